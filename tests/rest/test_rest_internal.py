"""Calls from worker to worker: `rest.md` section 10, as changed by `decisions.md`."""

from __future__ import annotations

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient

from headgate.runtime.errors import BadRequest, Elsewhere, HerderError, InvalidSignature, NoSessionKey

signed = pytest.mark.kip(507, "internal requests are signed")


def test_task_configs_and_fencing_go_to_the_herder(client: TestClient, herder: FakeHerder) -> None:
    assert client.post("/connectors/a/tasks", json=[{"k": "v", "n": 1}]).status_code == 204
    assert client.put("/connectors/a/fence").status_code == 204
    assert herder.calls == [("put_task_configs", "a", [{"k": "v", "n": "1"}]), ("fence", "a")]


@pytest.mark.parametrize(
    ("method", "path", "call", "message"),
    [
        (
            "POST", "tasks", "put_task_configs",
            "Kafka Connect in standalone mode does not support externally setting task configurations.",
        ),
        ("PUT", "fence", "fence", "Kafka Connect in standalone mode does not support exactly-once source connectors."),
    ],
)  # fmt: skip
def test_standalone_answers_internal_calls_with_the_herder_s_error(
    client: TestClient, herder: FakeHerder, method: str, path: str, call: str, message: str
) -> None:
    herder.errors[call] = HerderError(message)
    response = client.request(method, f"/connectors/a/{path}", json=[])
    assert (response.status_code, response.json()) == (500, {"error_code": 500, "message": message})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "request body must be an array of task configurations, not an object"),
        ([{}, 5], "request body[1] must be an object of configuration keys and values, not a number"),
    ],
)
def test_task_configs_of_another_shape_are_refused(client: TestClient, body: object, message: str) -> None:
    response = client.post("/connectors/a/tasks", json=body)
    assert (response.status_code, response.json()["message"]) == (400, message)


# --- signatures -------------------------------------------------------------------------------------------------------


@signed
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/connectors/a/tasks", b' [{"k": "v"}]\n'),
        ("PUT", "/connectors/a/fence", b""),
        ("PUT", "/connectors/a/fence", b"{"),
        ("PUT", "/connectors/a%2Fb%20c/fence", b""),
        ("DELETE", "/internal/members/connect-h:8083-1", b""),
    ],
)
def test_the_signature_is_checked_over_the_request_as_it_was_sent(
    client: TestClient, herder: FakeHerder, method: str, path: str, body: bytes
) -> None:
    headers = {"X-Connect-Authorization": "AAAA", "X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
    for query in ("", "?forward=false"):
        assert client.request(method, path + query, content=body, headers=headers).status_code == 204
        asked, seen = herder.signed.pop()
        assert asked == (method, path + query, body)
        assert {name: seen[name.lower()] for name in headers} == headers


@signed
@pytest.mark.parametrize(
    ("error", "status"), [(BadRequest("unsigned"), 400), (InvalidSignature(), 403), (NoSessionKey(), 503)]
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/connectors/a/tasks"), ("PUT", "/connectors/a/fence"), ("DELETE", "/internal/members/m")],
)
def test_without_a_good_signature_nothing_is_done(
    client: TestClient, herder: FakeHerder, method: str, path: str, error: Exception, status: int
) -> None:
    herder.errors["check_signature"] = error
    response = client.request(method, path, json=[])
    assert (response.status_code, response.json()) == (status, {"error_code": status, "message": str(error)})
    assert herder.calls == []


@signed
def test_a_body_that_cannot_be_read_is_refused_before_its_signature(client: TestClient, herder: FakeHerder) -> None:
    herder.errors["check_signature"] = InvalidSignature()
    assert client.post("/connectors/a/tasks", content=b"[").status_code == 400
    assert client.post("/connectors/a/tasks", json=[5]).status_code == 400


# --- members that leave -----------------------------------------------------------------------------------------------


def test_a_member_that_leaves_is_named_as_it_is(client: TestClient, herder: FakeHerder) -> None:
    assert client.delete("/internal/members/connect-10.0.0.2%3A8083-x%2Fy").status_code == 204
    assert herder.calls == [("took_leave", "connect-10.0.0.2:8083-x/y")]


def test_whoever_does_not_lead_says_so_to_members_that_leave(client: TestClient, herder: FakeHerder) -> None:
    herder.errors["took_leave"] = Elsewhere("http://leader.example/")
    assert client.delete("/internal/members/m").status_code == 409
