"""Verdicts over REST: beside states, never in what Apache's workers pass on, and with figures of whoever has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from rest_fakes import FakeHerder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from workers import Worker, other, worker

from headgate.model import ConnectorStatus, ConnectorType, Health, State, Status, TaskId, TaskStatus, Verdict

SINCE = 1_700_000_000_000
RETRYING = Health(Verdict.RETRYING, SINCE, "put(): locked", "put(): locked", SINCE - 1_000)
BODY = {
    "verdict": "retrying",
    "since": "2023-11-14T22:13:20Z",
    "reason": "put(): locked",
    "last_error": "put(): locked",
    "last_progress": "2023-11-14T22:13:19Z",
    "lag": None,
    "rate": None,
}


def status(worker_id: str = "worker:8083", health: Health = RETRYING) -> ConnectorStatus:
    connector = Status(State.RUNNING, worker_id, version="1.0", health=Health(Verdict.STARTING, SINCE))
    task = Status(State.RUNNING, worker_id, version="1.0", health=health)
    return ConnectorStatus("a", connector, (TaskStatus(0, task),), ConnectorType.SINK)


def test_a_status_has_verdicts_beside_the_states(client: TestClient, herder: FakeHerder) -> None:
    herder.statuses["a"] = status()
    found = client.get("/connectors/a/status").json()
    assert found["connector"]["state"] == "RUNNING"
    assert found["connector"]["health"] == found["tasks"][0]["health"] == BODY
    assert client.get("/connectors/a/tasks/0/status").json()["health"] == BODY


def test_what_is_known_here_has_figures(client: TestClient, herder: FakeHerder) -> None:
    herder.statuses["a"] = status()
    herder.watch.here = {TaskId("a", 0): Health(Verdict.OK, SINCE, lag=7, rate=2.345)}
    found = client.get("/connectors/a/status").json()
    for each in (found["connector"], found["tasks"][0]):
        assert (each["health"]["verdict"], each["health"]["lag"], each["health"]["rate"]) == ("ok", 7, 2.35)


def test_health_of_all_connectors(client: TestClient, herder: FakeHerder) -> None:
    herder.statuses["a"] = status()
    found = client.get("/connectors?expand=health").json()
    assert found == {"a": {"health": {**BODY, "tasks": [{"id": 0, "health": BODY}]}}}


def test_what_workers_without_verdicts_wrote_has_none(client: TestClient) -> None:
    found = client.get("/connectors/a/status").json()
    assert "health" not in found["connector"]
    assert "health" not in found["tasks"][0]
    listed = client.get("/connectors?expand=health&expand=status").json()["a"]
    assert listed["health"] == {"verdict": None, "tasks": [{"id": 0, "health": None}]}


def test_the_answer_to_a_restart_has_none_for_apaches_workers_pass_it_on(
    client: TestClient, herder: FakeHerder
) -> None:
    herder.statuses["a"] = status()
    response = client.post("/connectors/a/restart?includeTasks=true")
    assert response.status_code == 202
    assert "health" not in response.text


# --- between workers --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served() -> Iterator[list[Worker]]:
    with ExitStack() as workers:
        yield [workers.enter_context(worker()) for _ in range(2)]


@pytest.fixture
def here(served: list[Worker]) -> Worker:
    made = served[0].reset()
    made.herder.urls = {"there:8083": served[1].url.rstrip("/")}
    made.herder.statuses["a"] = status("there:8083")
    return made


@pytest.fixture
def there(served: list[Worker]) -> Worker:
    made = served[1].reset()
    made.herder.statuses["a"] = status("there:8083")
    made.herder.watch.here = {TaskId("a", 0): Health(Verdict.RETRYING, SINCE, "put(): locked", None, SINCE, 70, 0.5)}
    # It would ask in turn, if it were not told not to.
    made.herder.urls = {"there:8083": made.url.rstrip("/")}
    return made


@pytest.mark.process
@pytest.mark.parametrize("path", ["/connectors/a/status", "/connectors?expand=health"])
def test_figures_are_asked_of_the_worker_that_has_the_task_once(here: Worker, there: Worker, path: str) -> None:
    found = here.ask("GET", path, authorization="Basic x").json()
    health = found["connector"]["health"] if "connector" in found else found["a"]["health"]
    assert (health["verdict"], health["lag"], health["rate"]) == ("retrying", 70, 0.5)
    assert len(there.seen) == 1


@pytest.mark.process
def test_who_is_asked_is_believed_of_its_own_tasks_alone(here: Worker, there: Worker) -> None:
    """Both say something of both tasks: each knows its own, and of the other's what the topic says."""
    own, others = status("there:8083"), status("elsewhere:8083")
    both = replace(own, tasks=(*own.tasks, replace(others.tasks[0], id=1)))
    figures = Health(Verdict.OK, SINCE, rate=0.5)
    with worker() as elsewhere:
        for each, task in ((there, 0), (elsewhere, 1)):
            each.herder.statuses["a"] = both
            each.herder.watch.here = {TaskId("a", task): figures}
        here.herder.statuses["a"] = both
        here.herder.urls["elsewhere:8083"] = elsewhere.url.rstrip("/")
        found = here.ask("GET", "/connectors/a/status").json()
        assert [task["health"]["rate"] for task in found["tasks"]] == [0.5, 0.5]
        listed = here.ask("GET", "/connectors?expand=health").json()["a"]["health"]
        assert [task["health"]["rate"] for task in listed["tasks"]] == [0.5, 0.5]


@pytest.mark.process
def test_a_list_of_states_asks_nobody(here: Worker, there: Worker) -> None:
    assert here.ask("GET", "/connectors?expand=status").json()["a"]["status"]["tasks"][0]["health"] == BODY
    assert there.seen == []


def _answers(content: Any) -> Starlette:
    async def answer(request: Request) -> Response:
        return Response(content, 200 if content else 500, media_type="application/json")

    return Starlette(routes=[Route("/{path:path}", answer)])


@pytest.mark.process
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"a": 7}',
        b'{"a": {"health": 7}}',
        b'{"tasks": 7}',
        b'{"tasks": [{"id": 0}, 7, {"id": 0, "health": {"lag": 1}}]}',
    ],
)
def test_a_worker_that_cannot_be_understood_leaves_what_the_topic_says(here: Worker, content: bytes) -> None:
    with other(_answers(content)) as url:
        here.herder.urls = {"there:8083": url.rstrip("/")}
        assert here.ask("GET", "/connectors/a/status").json()["tasks"][0]["health"] == BODY
        assert here.ask("GET", "/connectors?expand=health").json()["a"]["health"]["tasks"][0]["health"] == BODY


@pytest.mark.process
def test_a_worker_that_is_away_leaves_what_the_topic_says(here: Worker) -> None:
    here.herder.urls = {"there:8083": "http://127.0.0.1:1"}
    assert here.ask("GET", "/connectors/a/status").json()["tasks"][0]["health"] == BODY
