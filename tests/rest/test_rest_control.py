"""Pause, resume, stop, restart, topics: `rest.md` section 5, as changed by `decisions.md`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate.model import RestartRequest, State, Status, TaskId, TaskStatus
from headgate.runtime.errors import AlreadyRestarting, Forbidden, StartFailed, StatusNotFound


@pytest.mark.parametrize(
    ("verb", "status"),
    [
        pytest.param("pause", 202, marks=pytest.mark.kip(52, "202 on pause initiation")),
        pytest.param("resume", 202, marks=pytest.mark.kip(52, "202 on resume initiation")),
        pytest.param("stop", 204, marks=pytest.mark.kip(875, "PUT /connectors/{connector}/stop")),
    ],
)
def test_pause_resume_and_stop_answer_without_a_body(
    client: TestClient, herder: FakeHerder, verb: str, status: int
) -> None:
    response = client.put(f"/connectors/a/{verb}")
    assert (response.status_code, response.content) == (status, b"")
    assert response.headers.get("content-length") == ("0" if status == 202 else None)
    assert herder.calls == [(verb, "a")]


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        pytest.param("PUT", "x/pause", "Unknown connector x", marks=pytest.mark.kip(52, "pause: 404 if unknown")),
        pytest.param("PUT", "x/resume", "Unknown connector x", marks=pytest.mark.kip(52, "resume: 404 if unknown")),
        pytest.param("PUT", "x/stop", "Unknown connector x", marks=pytest.mark.kip(875, "the connector must exist")),
        pytest.param("POST", "x/restart", "Unknown connector: x", marks=pytest.mark.kip(52, "restart: 404 if unknown")),
        pytest.param(
            "POST",
            "x/restart?includeTasks=true",
            "Unknown connector: x",
            marks=pytest.mark.kip(745, "404 when the named connector does not exist"),
        ),
        ("POST", "x/tasks/0/restart", "Unknown connector: x"),
        ("POST", "a/tasks/7/restart", "Unknown task: a-7"),
        ("POST", "a/tasks/-1/restart", "Unknown task: a--1"),
        ("POST", "a/tasks/one/restart", "HTTP 404 Not Found"),
        ("POST", "a/tasks/1.0/restart", "HTTP 404 Not Found"),
        ("POST", "a/tasks/99999999999/restart", "HTTP 404 Not Found"),
        ("POST", "a/tasks/2147483648/restart", "HTTP 404 Not Found"),
        ("POST", "a/tasks//restart", "HTTP 404 Not Found"),
    ],
)
def test_unknown_connectors_and_tasks_are_404_in_each_call_s_own_words(
    client: TestClient, method: str, path: str, message: str
) -> None:
    response = client.request(method, f"/connectors/{path}")
    assert (response.status_code, response.json()) == (404, {"error_code": 404, "message": message})


@pytest.mark.kip(745, "includeTasks and onlyFailed default to false; 202 with a body if one is true, else 204")
@pytest.mark.parametrize(
    ("query", "include_tasks", "only_failed"),
    [
        ("", False, False),
        ("?includeTasks=false&onlyFailed=false", False, False),
        ("?includeTasks=true", True, False),
        ("?onlyFailed=true", False, True),
        ("?includeTasks=true&onlyFailed=true", True, True),
        ("?includeTasks=TRUE&onlyFailed=True", True, True),
        ("?includeTasks=yes", False, False),
        ("?includeTasks=1", False, False),
        ("?includeTasks=", False, False),
        ("?includeTasks", False, False),
        ("?includeTasks=true&includeTasks=false", True, False),
        ("?forward=false&other=1", False, False),
    ],
)
def test_a_restart_touches_what_its_parameters_say(
    client: TestClient, herder: FakeHerder, query: str, include_tasks: bool, only_failed: bool
) -> None:
    response = client.post(f"/connectors/a/restart{query}")
    assert herder.calls == [("restart", RestartRequest("a", include_tasks, only_failed))]
    if include_tasks or only_failed:
        assert response.status_code == 202
        assert response.json()["name"] == "a"
    else:
        assert (response.status_code, response.content) == (204, b"")


@pytest.mark.kip(745, "the 202 body is the status, with RESTARTING for all that will be restarted")
def test_what_is_being_restarted_shows_no_trace(client: TestClient, herder: FakeHerder) -> None:
    running = Status(State.RUNNING, "fakehost1:8083")
    again = Status(State.RESTARTING, "fakehost3:8083", "the old failure")
    herder.statuses["a"] = replace(
        herder.statuses["a"], connector=running, tasks=(TaskStatus(0, running), TaskStatus(1, again))
    )
    body = client.post("/connectors/a/restart?includeTasks=true&onlyFailed=true").json()
    assert body["connector"]["state"] == "RUNNING"
    assert body["tasks"] == [
        {"id": 0, "state": "RUNNING", "worker_id": "fakehost1:8083", "version": None},
        {"id": 1, "state": "RESTARTING", "worker_id": "fakehost3:8083", "version": None},
    ]


@pytest.mark.parametrize(
    ("path", "method", "error", "status"),
    [
        pytest.param(
            "restart", "restart", AlreadyRestarting("Connector a is already being restarted"), 409,
            marks=pytest.mark.kip(52, "409 if the connector is already being restarted"),
        ),
        pytest.param(
            "tasks/0/restart", "restart_task", AlreadyRestarting("Task a-0 is already being restarted"), 409,
            marks=pytest.mark.kip(52, "409 if the task is already being restarted"),
        ),
        ("restart", "restart", StartFailed("Failed to transition connector a to state STARTED"), 500),
        ("restart?onlyFailed=true", "restart", StatusNotFound("Status for connector a not found"), 404),
    ],
)  # fmt: skip
def test_a_restart_that_cannot_be_done_is_answered_with_the_reason(
    client: TestClient, herder: FakeHerder, path: str, method: str, error: Exception, status: int
) -> None:
    herder.errors[method] = error
    response = client.post(f"/connectors/a/{path}")
    assert (response.status_code, response.json()) == (status, {"error_code": status, "message": str(error)})


@pytest.mark.kip(52, "204 on successful restart of a task")
def test_a_task_restart_is_204(client: TestClient, herder: FakeHerder) -> None:
    assert client.post("/connectors/a/tasks/0/restart?forward=true").status_code == 204
    assert herder.calls == [("restart_task", TaskId("a", 0))]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("PUT", "pause", 202), ("PUT", "resume", 202), ("PUT", "stop", 204), ("POST", "restart", 204)],
)
@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", None])
def test_a_body_that_nobody_asked_for_is_ignored(
    client: TestClient, method: str, path: str, status: int, kind: str | None
) -> None:
    headers = {} if kind is None else {"content-type": kind}
    response = client.request(method, f"/connectors/a/{path}", content="{nonsense", headers=headers)
    assert response.status_code == status


# --- topics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "topics"), [("a", ["t1", "t2"]), ("x", [])])
def test_topics_are_listed_whether_or_not_there_is_such_a_connector(
    client: TestClient, name: str, topics: list[str]
) -> None:
    response = client.get(f"/connectors/{name}/topics")
    assert (response.status_code, response.json()) == (200, {name: {"topics": topics}})


def test_topics_can_be_reset(client: TestClient, herder: FakeHerder) -> None:
    response = client.put("/connectors/x/topics/reset")
    assert (response.status_code, response.content) == (202, b"")
    assert herder.calls == [("reset_topics", "x")]


@pytest.mark.parametrize(
    ("method", "path", "call", "message"),
    [
        ("GET", "topics", "active_topics", "Topic tracking is disabled."),
        ("PUT", "topics/reset", "reset_topics", "Topic tracking is disabled."),
        ("PUT", "topics/reset", "reset_topics", "Topic tracking reset is disabled."),
    ],
)
def test_topic_tracking_that_is_switched_off_is_403(
    client: TestClient, herder: FakeHerder, method: str, path: str, call: str, message: str
) -> None:
    herder.errors[call] = Forbidden(message)
    response = client.request(method, f"/connectors/a/{path}")
    assert (response.status_code, response.json()) == (403, {"error_code": 403, "message": message})
