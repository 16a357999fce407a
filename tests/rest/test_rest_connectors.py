"""/connectors: `rest.md` sections 2 and 4, as changed by `decisions.md`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from rest_fakes import WORKER, FakeHerder
from starlette.testclient import TestClient

from headgate.model import ConnectorType, State, Status, TargetState, TaskStatus
from headgate.runtime.errors import (
    AlreadyExists,
    InvalidConfig,
    PluginNotFound,
    StartFailed,
    StatusNotFound,
    TooManyTasks,
)

MISMATCH = "Connector name configuration (other) doesn't match connector name in the URL (a)"
STATUS = {
    "name": "a",
    "connector": {"state": "RUNNING", "worker_id": WORKER, "version": "1.0"},
    "tasks": [{"id": 0, "state": "RUNNING", "worker_id": WORKER, "version": "1.0"}],
    "type": "source",
}
INFO = {
    "name": "a",
    "config": {"name": "a", "connector.class": "acme.Source"},
    "tasks": [{"connector": "a", "task": 0}],
    "type": "source",
}


# --- list -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["a"]),
        ("?expand=status", {"a": {"status": STATUS}}),
        ("?expand=info", {"a": {"info": INFO}}),
        ("?expand=status&expand=info", {"a": {"status": STATUS, "info": INFO}}),
        ("?expand=info&expand=nonsense&expand=info", {"a": {"info": INFO}}),
        ("?expand=nonsense", {"a": {}}),
        ("?expand=", {"a": {}}),
        ("?unknown=1", ["a"]),
    ],
)
def test_connectors_are_listed_by_name_or_with_what_was_asked_for(
    client: TestClient, query: str, expected: Any
) -> None:
    response = client.get(f"/connectors{query}")
    assert response.status_code == 200
    assert response.json() == expected
    assert response.headers["content-type"] == "application/json"


def test_without_connectors_the_expanded_list_is_an_empty_object(client: TestClient, herder: FakeHerder) -> None:
    herder.configs.clear()
    assert client.get("/connectors").json() == []
    assert client.get("/connectors?expand=status").json() == {}


def test_a_connector_that_vanishes_while_it_is_expanded_is_left_out(client: TestClient, herder: FakeHerder) -> None:
    herder.errors["connector_status"] = StatusNotFound("gone")
    assert client.get("/connectors?expand=status&expand=info").json() == {}


def test_fields_come_in_the_order_of_the_contract(client: TestClient) -> None:
    assert client.get("/connectors/a").text == (
        '{"name":"a","config":{"name":"a","connector.class":"acme.Source"},'
        '"tasks":[{"connector":"a","task":0}],"type":"source"}'
    )
    assert client.get("/connectors/a/status").text == (
        f'{{"name":"a","connector":{{"state":"RUNNING","worker_id":"{WORKER}","version":"1.0"}},'
        f'"tasks":[{{"id":0,"state":"RUNNING","worker_id":"{WORKER}","version":"1.0"}}],"type":"source"}}'
    )


# --- create -----------------------------------------------------------------------------------------------------------


def test_a_created_connector_is_answered_with_201_its_info_and_its_location(
    client: TestClient, herder: FakeHerder
) -> None:
    response = client.post("/connectors", json={"name": "b", "config": {"connector.class": "acme.Source"}})
    assert response.status_code == 201
    assert response.headers["location"] == "http://worker:8083/connectors/b"
    assert response.json() == {
        "name": "b",
        "config": {"connector.class": "acme.Source", "name": "b"},
        "tasks": [{"connector": "b", "task": 0}],
        "type": "source",
    }
    assert herder.calls == [("create", "b", {"connector.class": "acme.Source", "name": "b"}, None)]
    assert herder.timeouts == [90.0]


@pytest.mark.kip(980, "initial_state is RUNNING, PAUSED or STOPPED, in any case, and may be left out")
@pytest.mark.parametrize(
    ("body", "target"),
    [
        ({"initial_state": "RUNNING"}, TargetState.STARTED),
        ({"initial_state": "PAUSED"}, TargetState.PAUSED),
        ({"initial_state": "STOPPED"}, TargetState.STOPPED),
        ({"initial_state": "stopped"}, TargetState.STOPPED),
        ({"initial_state": "Paused"}, TargetState.PAUSED),
        ({"initial_state": None}, None),
        ({}, None),
    ],
)
def test_a_connector_can_be_created_in_any_initial_state(
    client: TestClient, herder: FakeHerder, body: dict[str, Any], target: TargetState | None
) -> None:
    assert client.post("/connectors", json={"name": "b", "config": {}, **body}).status_code == 201
    assert herder.calls[-1][-1] is target


@pytest.mark.kip(980, "an invalid initial_state is answered with 400")
@pytest.mark.parametrize("state", ["STARTED", "", "UNASSIGNED", 5, True, {}, []])
def test_an_invalid_initial_state_is_refused_with_the_valid_ones(
    client: TestClient, herder: FakeHerder, state: Any
) -> None:
    response = client.post("/connectors", json={"name": "b", "config": {}, "initial_state": state})
    assert response.status_code == 400
    assert response.json()["message"].startswith('"initial_state" must be one of RUNNING, PAUSED, STOPPED')
    assert herder.calls == []


@pytest.mark.parametrize(
    ("sent", "name"),
    [
        ({"name": "  b\t\n", "config": {}}, "b"),
        ({"name": "b c", "config": {}}, "b c"),
        ({"config": {}}, ""),
        ({"name": None, "config": {}}, ""),
        ({"name": "   ", "config": {}}, ""),
        ({"name": "b", "config": {"name": "b"}}, "b"),
        ({"name": "b", "config": {"name": None}}, "b"),
        ({"name": "5", "config": {"name": 5}}, "5"),
        ({"name": "\u00a0b", "config": {}}, "\u00a0b"),
    ],
)
def test_names_are_trimmed_and_put_into_the_configuration(
    client: TestClient, herder: FakeHerder, sent: dict[str, Any], name: str
) -> None:
    client.post("/connectors", json=sent)
    assert herder.calls == [("create", name, {"name": name}, None)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "Request body is empty: expected JSON"),
        ("  ", "Request body is empty: expected JSON"),
        ("null", "request body must be an object, not null"),
        ("[]", "request body must be an object, not an array"),
        ('"a"', "request body must be an object, not a string"),
        ('{"name":"a"}', '"config" is missing: expected an object with the connector\'s configuration'),
        ('{"name":"a","config":null}', '"config" is missing: expected an object with the connector\'s configuration'),
        ('{"name":"a","config":[]}', '"config" must be an object of configuration keys and values, not an array'),
        ('{"name":"a","config":5}', '"config" must be an object of configuration keys and values, not a number'),
        ('{"name":5,"config":{}}', '"name" must be a string, not a number'),
        ('{"name":{},"config":{}}', '"name" must be a string, not an object'),
        (
            '{"name":"a","config":{},"state":"x","extra":1}',
            'request body has unknown fields: "state", "extra"; known fields are name, config, initial_state',
        ),
        (
            '{"name":"a","config":{"k":{"x":1}}}',
            '"config": the value of "k" must be a string, a number or a boolean, not an object',
        ),
        (
            '{"name":"a","config":{"k":[1]}}',
            '"config": the value of "k" must be a string, a number or a boolean, not an array',
        ),
        ('{"name":"a","config":{"name":"other"}}', MISMATCH),
    ],
)
def test_a_wrong_create_request_is_refused_with_what_is_wrong_and_where(
    client: TestClient, herder: FakeHerder, body: str, message: str
) -> None:
    response = client.post("/connectors", content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json() == {"error_code": 400, "message": message}
    assert herder.calls == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidConfig("Connector configuration is invalid and contains the following 1 error(s):\n…"), 400),
        (PluginNotFound("Failed to find any class that implements Connector"), 400),
        (AlreadyExists("b"), 409),
        (StartFailed("Failed to transition connector b to state STARTED"), 500),
        (TooManyTasks("The connector b has generated 3 tasks"), 500),
    ],
)
@pytest.mark.parametrize("method", ["create", "put_config"])
def test_what_the_herder_refuses_is_answered_with_its_message(
    client: TestClient, herder: FakeHerder, method: str, error: Exception, status: int
) -> None:
    herder.errors[method] = error
    if method == "create":
        response = client.post("/connectors", json={"name": "b", "config": {}})
    else:
        response = client.put("/connectors/b/config", json={})
    assert response.status_code == status
    assert response.json() == {"error_code": status, "message": str(error)}


# --- read -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/connectors/a", INFO),
        ("/connectors/a/config", INFO["config"]),
        ("/connectors/a/tasks", [{"id": {"connector": "a", "task": 0}, "config": {"task.class": "acme.Task"}}]),
        ("/connectors/a/status", STATUS),
        ("/connectors/a/tasks/0/status", {"id": 0, "state": "RUNNING", "worker_id": WORKER, "version": "1.0"}),
    ],
)
def test_a_connector_can_be_read(client: TestClient, path: str, body: Any) -> None:
    response = client.get(path)
    assert response.status_code == 200
    assert response.json() == body


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/connectors/x", "Connector x not found"),
        ("GET", "/connectors/x/config", "Connector x not found"),
        ("GET", "/connectors/x/tasks", "Connector x not found"),
        ("GET", "/connectors/x/status", "No status found for connector x"),
        ("GET", "/connectors/x/tasks/0/status", "No status found for task x-0"),
        ("GET", "/connectors/a/tasks/7/status", "No status found for task a-7"),
        ("DELETE", "/connectors/x", "Connector x not found"),
        ("GET", "/connectors/x/tasks-config", "HTTP 404 Not Found"),
        ("GET", "/connectors/x/tasks/first/status", "HTTP 404 Not Found"),
    ],
)
def test_what_is_not_there_is_answered_with_404_in_its_own_words(
    client: TestClient, method: str, path: str, message: str
) -> None:
    response = client.request(method, path)
    assert response.status_code == 404
    assert response.json() == {"error_code": 404, "message": message}


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (Status(State.FAILED, "w", "Traceback\nOSError: x"), {"version": None, "trace": "Traceback\nOSError: x"}),
        (Status(State.FAILED, "w", ""), {"version": None}),
        (Status(State.STOPPED, "w", None, "2"), {"version": "2"}),
        (Status(State.FAILED, "w", "odd \udcff"), {"version": None, "trace": "odd \udcff"}),
    ],
)
def test_a_trace_is_shown_only_if_there_is_one_and_a_version_always(
    client: TestClient, herder: FakeHerder, status: Status, shown: dict[str, Any]
) -> None:
    herder.statuses["a"] = replace(
        herder.statuses["a"], connector=status, tasks=(TaskStatus(0, status),), type=ConnectorType.UNKNOWN
    )
    found = client.get("/connectors/a/status").json()
    assert found["connector"] == {"state": status.state.value, "worker_id": "w", **shown}
    assert found["tasks"] == [{"id": 0, "state": status.state.value, "worker_id": "w", **shown}]
    assert found["type"] == "unknown"


@pytest.mark.kip(745, "RESTARTING is a state that the status shows")
def test_restarting_is_shown_in_the_status(client: TestClient, herder: FakeHerder) -> None:
    herder.statuses["a"] = replace(herder.statuses["a"], connector=Status(State.RESTARTING, "w"))
    assert client.get("/connectors/a/status").json()["connector"]["state"] == "RESTARTING"


@pytest.mark.kip(875, "a stopped connector appears in the status with the state STOPPED")
def test_stopped_is_shown_in_the_status(client: TestClient, herder: FakeHerder) -> None:
    herder.statuses["a"] = replace(herder.statuses["a"], connector=Status(State.STOPPED, "w"), tasks=())
    found = client.get("/connectors/a/status").json()
    assert (found["connector"]["state"], found["tasks"]) == ("STOPPED", [])


# --- change -----------------------------------------------------------------------------------------------------------


def test_putting_a_config_creates_with_201_or_replaces_with_200(client: TestClient, herder: FakeHerder) -> None:
    created = client.put("/connectors/b/config", json={"k": "v"})
    assert (created.status_code, created.headers["location"]) == (201, "http://worker:8083/connectors/b")
    replaced = client.put("/connectors/b/config", json={"k": "w", "name": "b"})
    assert replaced.status_code == 200
    assert "location" not in replaced.headers
    assert replaced.json()["config"] == {"k": "w", "name": "b"}
    assert [call[0] for call in herder.calls] == ["put_config", "put_config"]


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("5", "5"),
        ("1.5", "1.5"),
        ("1.50", "1.50"),
        ("-0", "-0"),
        ("1e3", "1e3"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("true", "true"),
        ("false", "false"),
        ("null", None),
        ('"x"', "x"),
        ('""', ""),
        ('"é\\u00e9\\ud83d\\ude00"', "éé😀"),
    ],
)
def test_config_values_become_text_as_they_were_written(
    client: TestClient, herder: FakeHerder, literal: str, text: str | None
) -> None:
    headers = {"content-type": "application/json"}
    client.put("/connectors/b/config", content=f'{{"k":{literal}}}', headers=headers)
    client.patch("/connectors/b/config", content=f'{{"k":{literal}}}', headers=headers)
    client.post("/connectors", content=f'{{"name":"c","config":{{"k":{literal}}}}}', headers=headers)
    put, patch, post = herder.calls
    assert put[2]["k"] == patch[2]["k"] == post[2]["k"] == text


def test_the_last_of_two_equal_keys_counts(client: TestClient, herder: FakeHerder) -> None:
    client.put("/connectors/b/config", content='{"k":"1","k":"2"}')
    assert herder.calls[0][2]["k"] == "2"


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_config_with_another_name_is_refused(client: TestClient, herder: FakeHerder, method: str) -> None:
    response = client.request(method, "/connectors/a/config", json={"name": "other"})
    assert (response.status_code, response.json()["message"]) == (400, MISMATCH)
    assert herder.calls == []


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("null", "request body must be an object of configuration keys and values, not null"),
        ("[]", "request body must be an object of configuration keys and values, not an array"),
        ("", "Request body is empty: expected JSON"),
        ('{"k":{}}', 'request body: the value of "k" must be a string, a number or a boolean, not an object'),
    ],
)
def test_a_config_of_another_shape_is_refused(client: TestClient, method: str, body: str, message: str) -> None:
    response = client.request(method, "/connectors/a/config", content=body)
    assert (response.status_code, response.json()["message"]) == (400, message)


def test_a_patch_sets_and_removes_keys(client: TestClient, herder: FakeHerder) -> None:
    response = client.patch("/connectors/a/config", json={"connector.class": None, "k": 5})
    assert response.status_code == 200
    assert response.json()["config"] == {"name": "a", "k": "5"}
    assert herder.calls == [("patch_config", "a", {"connector.class": None, "k": "5"})]


@pytest.mark.parametrize("name", ["a", None])
def test_a_patch_never_takes_the_name_away(client: TestClient, herder: FakeHerder, name: str | None) -> None:
    assert client.patch("/connectors/a/config", json={"name": name}).status_code == 200
    assert herder.calls == [("patch_config", "a", {})]


def test_a_patch_of_an_unknown_connector_is_404(client: TestClient) -> None:
    response = client.patch("/connectors/x/config", json={})
    assert (response.status_code, response.json()["message"]) == (404, "Connector x not found")


def test_a_deleted_connector_is_answered_with_204_and_nothing_else(client: TestClient, herder: FakeHerder) -> None:
    response = client.delete("/connectors/a")
    assert (response.status_code, response.content) == (204, b"")
    assert "content-type" not in response.headers
    assert herder.configs == {}


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("with/slash", "with%2Fslash"),
        ("100%", "100%25"),
        ("a%2Fb", "a%252Fb"),
        ("two words", "two%20words"),
        ("größe-日本", "gr%C3%B6%C3%9Fe-%E6%97%A5%E6%9C%AC"),
        ("a+b", "a%2Bb"),
        ("q?x=1&y#z", "q%3Fx%3D1%26y%23z"),
        ("status", "status"),
    ],
)
def test_any_name_can_be_created_and_is_addressed_by_its_location(
    client: TestClient, herder: FakeHerder, name: str, encoded: str
) -> None:
    created = client.post("/connectors", json={"name": name, "config": {}})
    assert created.headers["location"] == f"http://worker:8083/connectors/{encoded}"
    path = created.headers["location"].removeprefix("http://worker:8083")
    assert client.get(path).json()["name"] == name
    assert client.get(f"{path}/status").json()["name"] == name
    assert client.put(f"{path}/config", json={}).status_code == 200
    assert client.delete(path).status_code == 204


def test_a_plus_in_the_path_is_a_plus(client: TestClient, herder: FakeHerder) -> None:
    client.put("/connectors/a+b/config", json={})
    assert herder.calls == [("put_config", "a+b", {"name": "a+b"})]
