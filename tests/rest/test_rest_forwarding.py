"""Requests that another worker must carry out: `rest.md` section 9, between real servers."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from rest_fakes import FakeHerder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient
from workers import Worker, other, worker

from headgate.model import RestartRequest, TaskId
from headgate.rest.app import build_app
from headgate.rest.client import patience
from headgate.rest.routing import encoded
from headgate.rest.settings import RestSettings
from headgate.runtime.errors import BadRequest, ConnectorNotFound, Elsewhere, Rebalancing

pytestmark = pytest.mark.process

CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
NO_LEADER = "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
STALE = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config change)"
)
CONFIG = {"connector.class": "acme.Source"}


@pytest.fixture(scope="module")
def served() -> Iterator[list[Worker]]:
    with ExitStack() as workers:
        yield [workers.enter_context(worker()) for _ in range(3)]


@pytest.fixture
def leader(served: list[Worker]) -> Worker:
    return served[0].reset()


@pytest.fixture
def follower(served: list[Worker], leader: Worker) -> Worker:
    made = served[1].reset()
    made.follow(leader.url)
    return made


@pytest.fixture
def third(served: list[Worker]) -> Worker:
    return served[2].reset()


def error(status: int, message: str | None) -> dict[str, Any]:
    return {"error_code": status, "message": message}


# --- what is passed on ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "call", "status"),
    [
        ("POST", "/connectors", {"name": "b", "config": CONFIG}, ("create", "b", {**CONFIG, "name": "b"}, None), 201),
        ("PUT", "/connectors/b/config", CONFIG, ("put_config", "b", {**CONFIG, "name": "b"}), 201),
        ("PUT", "/connectors/a/config", CONFIG, ("put_config", "a", {**CONFIG, "name": "a"}), 200),
        ("PATCH", "/connectors/a/config", {"k": None}, ("patch_config", "a", {"k": None}), 200),
        ("DELETE", "/connectors/a", None, ("delete", "a"), 204),
        ("PUT", "/connectors/a/stop", None, ("stop", "a"), 204),
        ("POST", "/connectors/a/restart", None, ("restart", RestartRequest("a")), 204),
        ("POST", "/connectors/a/restart?onlyFailed=TRUE", None, ("restart", RestartRequest("a", False, True)), 202),
        ("POST", "/connectors/a/tasks/0/restart", None, ("restart_task", TaskId("a", 0)), 204),
        (
            "PATCH", "/connectors/a/offsets", {"offsets": [{"partition": {"f": "x"}, "offset": {"p": 7}}]},
            ("alter_offsets", "a", [({"f": "x"}, {"p": 7})]), 200,
        ),
        ("DELETE", "/connectors/a/offsets", None, ("reset_offsets", "a"), 200),
        ("POST", "/connectors/a/tasks", [{"t": "1"}], ("put_task_configs", "a", [{"t": "1"}]), 204),
        ("PUT", "/connectors/a/fence", None, ("fence", "a"), 204),
    ],
)  # fmt: skip
def test_what_has_its_place_is_done_there_and_answered_as_if_here(
    leader: Worker,
    follower: Worker,
    third: Worker,
    method: str,
    path: str,
    body: object,
    call: tuple[Any, ...],
    status: int,
) -> None:
    answer = follower.ask(method, path, body)
    assert (answer.status_code, leader.herder.calls) == (status, [call])
    expected = third.ask(method, path, body)
    assert (answer.status_code, answer.content) == (expected.status_code, expected.content)
    assert answer.headers.get("content-type") == expected.headers.get("content-type")


@pytest.mark.parametrize(
    ("method", "path", "call"),
    [
        ("PUT", "/connectors/a/pause", "pause"),
        ("PUT", "/connectors/a/resume", "resume"),
        ("PUT", "/connectors/a/topics/reset", "reset_topics"),
        ("GET", "/connectors/a/offsets", "offsets"),
    ],
)
def test_what_any_worker_can_do_is_never_passed_on(
    leader: Worker, third: Worker, method: str, path: str, call: str
) -> None:
    third.herder.errors[call] = Elsewhere(leader.url)
    answer = third.ask(method, path)
    assert (answer.status_code, answer.json()) == (409, error(409, CONFLICT))
    assert leader.seen == []


def test_what_is_wrong_is_said_by_the_first_worker(leader: Worker, follower: Worker) -> None:
    assert follower.ask("POST", "/connectors", b"{").status_code == 400
    follower.herder.errors["create"] = BadRequest("invalid")
    assert follower.ask("POST", "/connectors", {"name": "b", "config": {}}).json() == error(400, "invalid")
    assert leader.seen == []


def _commands(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    told = [each for each in caplog.records if each.name == "headgate.rest.commands"]
    return [(each.levelno, each.getMessage().rpartition(" in ")[0]) for each in told]


def test_a_command_is_told_of_where_it_was_asked_for_and_only_there(
    leader: Worker, follower: Worker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "headgate.rest.commands")
    follower.ask("PUT", "/connectors/a/stop")
    line = "127.0.0.1: PUT /connectors/a/stop, connector 'a': 204"
    assert _commands(caplog) == [(logging.DEBUG, line), (logging.INFO, line)]  # the leader, the one who was asked


# --- hops -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("", "forward=true"),
        ("?forward=", "forward=true"),
        ("?forward=true", "forward=false"),
        ("?forward=TRUE", "forward=false"),
    ],
)
def test_the_query_counts_the_hops(leader: Worker, follower: Worker, asked: str, sent: str) -> None:
    assert follower.ask("PUT", f"/connectors/a/stop{asked}").status_code == 204
    assert [each.query for each in leader.seen] == [sent]


@pytest.mark.parametrize("text", ["false", "FALSE", "no", "1"])
def test_what_may_not_be_passed_on_is_a_conflict(leader: Worker, follower: Worker, text: str) -> None:
    answer = follower.ask("PUT", f"/connectors/a/stop?forward={text}")
    assert (answer.status_code, answer.json()) == (409, error(409, CONFLICT))
    assert leader.seen == []


def test_from_any_worker_the_way_goes_over_the_leader_to_the_owner(
    leader: Worker, follower: Worker, third: Worker
) -> None:
    leader.follow(third.url)
    assert follower.ask("POST", "/connectors/a/tasks/0/restart").status_code == 204
    assert third.herder.calls == [("restart_task", TaskId("a", 0))]
    assert [each.query for each in (*leader.seen, *third.seen)] == ["forward=true", "forward=false"]


def test_two_workers_that_take_each_other_for_the_leader_end_in_a_conflict(leader: Worker, follower: Worker) -> None:
    leader.follow(follower.url)
    answer = follower.ask("DELETE", "/connectors/a")
    assert (answer.status_code, answer.json()) == (409, error(409, CONFLICT))
    assert [each.query for each in (*follower.seen, *leader.seen)] == ["", "forward=false", "forward=true"]


@pytest.mark.parametrize(
    ("query", "message"), [("", NO_LEADER), ("?forward=true", NO_LEADER), ("?forward=0", CONFLICT)]
)
def test_while_nobody_knows_the_leader_it_is_said_so(third: Worker, query: str, message: str) -> None:
    third.follow("")
    answer = third.ask("PUT", f"/connectors/a/stop{query}")
    assert (answer.status_code, answer.json()) == (409, error(409, message))


def test_a_rebalance_is_told_by_whoever_has_it(leader: Worker, follower: Worker) -> None:
    leader.herder.errors["reset_offsets"] = Rebalancing()
    answers = [each.ask("DELETE", "/connectors/a/offsets") for each in (leader, follower)]
    assert [(each.status_code, each.json()) for each in answers] == [(409, error(409, STALE))] * 2


def test_whoever_asks_last_loses_patience_first() -> None:
    last, first = patience(0).read, patience(1).read
    assert last is not None
    assert first is not None
    assert 90 < last < first


# --- what arrives -----------------------------------------------------------------------------------------------------


def test_of_the_headers_only_the_login_is_repeated(leader: Worker, follower: Worker) -> None:
    headers = {"Authorization": "Basic cGFzcw==", "Cookie": "a=b", "X-Mine": "1", "User-Agent": "me", "Accept": "*/*"}
    signature = {"X-Connect-Authorization": "AAAA", "X-Connect-Request-Signature-Algorithm": "HmacSHA256"}
    assert follower.ask("POST", "/connectors/a/tasks?other=1", [], **headers, **signature).status_code == 204
    (seen,) = leader.seen
    assert (seen.method, seen.path, seen.query) == ("POST", "/connectors/a/tasks", "forward=true")
    transport = {"accept-encoding", "connection", "content-length"}
    told = {name: seen.headers.pop(name) for name in ("x-request-id", "x-headgate-caller", "x-headgate-authorization")}
    assert told["x-headgate-caller"] == '["anybody", "none", []]'
    assert {name: value for name, value in seen.headers.items() if name not in transport} == {
        "host": leader.url.removeprefix("http://").rstrip("/"),
        "accept": "application/json",
        "user-agent": "kafka-connect",
        "authorization": "Basic cGFzcw==",
        "content-type": "application/json",
    }


def test_without_a_body_there_is_no_type_of_it(leader: Worker, follower: Worker) -> None:
    assert follower.ask("PUT", "/connectors/a/stop", b"not read", Authorization="Bearer é").status_code == 204
    (seen,) = leader.seen
    assert (seen.headers.get("content-type"), seen.headers["content-length"]) == (None, "0")
    assert seen.headers["authorization"].encode("latin-1").decode() == "Bearer é"


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("?includeTasks=true&onlyFailed=true", "forward=true&includeTasks=true&onlyFailed=true"),
        ("?onlyFailed=True&includeTasks=no", "forward=true&includeTasks=false&onlyFailed=true"),
        ("?forward=true&includeTasks=TRUE&x=y", "forward=false&includeTasks=true"),
    ],
)
def test_the_parameters_of_a_restart_are_repeated(leader: Worker, follower: Worker, asked: str, sent: str) -> None:
    assert follower.ask("POST", f"/connectors/a/restart{asked}").status_code == 202
    assert [each.query for each in leader.seen] == [sent]


@pytest.mark.parametrize(
    "name",
    [
        "a/b",
        "%",
        "100%25",
        "a b",
        " ",
        "é/ü",
        "日本",
        "a+b&c=d;e",
        "?x#y",
        "a%2Fb",
        ".",
        "..",
        "a/../b",
        "\\",
        "[x]",
        '"',
    ],
)
def test_names_survive_being_passed_on(leader: Worker, follower: Worker, name: str) -> None:
    path = f"/connectors/{quote(name, safe='').replace('.', '%2E')}"
    answer = follower.ask("PUT", f"{path}/config", CONFIG)
    assert (answer.status_code, answer.json()["name"]) == (201, name)
    assert answer.headers["location"] == f"{follower.url}connectors/{encoded(name)}"
    assert follower.ask("PUT", f"{path}/stop/").status_code == 204
    assert leader.herder.calls == [("put_config", name, {**CONFIG, "name": name}), ("stop", name)]


def test_numbers_keep_their_digits(leader: Worker, follower: Worker) -> None:
    follower.ask("PUT", "/connectors/a/config", b'\xef\xbb\xbf{"f":1.50,"n":123456789012345678901234567890,"b":true}')
    offsets = b'{"offsets":[{"partition":{"n":12345678901234567890123},"offset":{"p":1.5}}]}'
    follower.ask("PATCH", "/connectors/a/offsets", offsets)
    assert leader.herder.calls == [
        ("put_config", "a", {"f": "1.50", "n": "123456789012345678901234567890", "b": "true", "name": "a"}),
        ("alter_offsets", "a", [({"n": 12345678901234567890123}, {"p": 1.5})]),
    ]


def test_large_bodies_go_both_ways(leader: Worker, follower: Worker) -> None:
    config = {"k": "ü" * 1_000_000}
    answer = follower.ask("PUT", "/connectors/b/config", config)
    assert answer.json()["config"] == {**config, "name": "b"}


# --- what comes back --------------------------------------------------------------------------------------------------


def test_the_address_of_what_was_created_is_one_of_the_worker_that_was_asked(leader: Worker, follower: Worker) -> None:
    created = follower.ask("POST", "/connectors", {"name": "b/c", "config": CONFIG})
    assert created.headers["location"] == f"{follower.url}connectors/b%2Fc"
    assert follower.ask("PUT", "/connectors/d/config", CONFIG, Host="localhost:1").headers["location"] == (
        "http://localhost:1/connectors/d"
    )
    assert "location" not in follower.ask("PUT", "/connectors/d/config", CONFIG).headers


def test_errors_are_passed_back_as_they_are(leader: Worker, follower: Worker) -> None:
    leader.herder.errors["stop"] = ConnectorNotFound("a")
    answer = follower.ask("PUT", "/connectors/a/stop")
    assert (answer.status_code, answer.json()) == (404, error(404, "Unknown connector a"))
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (418, b'{"error_code": 40403, "message": "tea"}', (418, error(40403, "tea"))),
        (500, b'{"error_code": 500, "message": null, "more": 1}', (500, error(500, None))),
        (299, b'{"x":1}', (299, {"x": 1})),
        (302, b"", (500, error(500, "Unexpected status code when handling forwarded request: 302"))),
        (304, b"", (500, error(500, "Unexpected status code when handling forwarded request: 304"))),
    ],
)
def test_any_answer_is_passed_back_by_its_status(
    third: Worker, status: int, body: bytes, expected: tuple[int, Any]
) -> None:
    with other(_answering(status, body)) as url:
        third.follow(url)
        answer = third.ask("PUT", "/connectors/a/stop")
    assert (answer.status_code, answer.json()) == expected


@pytest.mark.parametrize(("status", "body"), [(400, b"<html>"), (404, b"[]"), (500, b"{}"), (200, b""), (200, b"{")])
def test_an_answer_that_cannot_be_read_is_an_io_error(third: Worker, status: int, body: bytes) -> None:
    with other(_answering(status, body)) as url:
        third.follow(url)
        answer = third.ask("PUT", "/connectors/a/stop")
        message = answer.json()["message"]
    assert answer.status_code == 500
    assert message.startswith(
        f"IO Error trying to forward REST request: The answer, of status {status}, cannot be read: "
    )
    assert message.endswith(f"({url})")


def _answering(status: int, body: bytes) -> Starlette:
    async def answer(request: Request) -> Response:
        return Response(body, status, {"Location": "http://elsewhere.example/", "Set-Cookie": "who=me"})

    return Starlette(routes=[Route("/{path:path}", answer, methods=["PUT", "POST", "PATCH", "DELETE"])])


def test_cookies_are_not_kept_for_others(follower: Worker) -> None:
    seen: list[str | None] = []

    async def answer(request: Request) -> Response:
        seen.append(request.headers.get("cookie"))
        return Response(status_code=204, headers={"Set-Cookie": "who=me; Path=/"})

    with other(Starlette(routes=[Route("/{path:path}", answer, methods=["PUT"])])) as url:
        follower.follow(url)
        for _ in range(2):
            assert follower.ask("PUT", "/connectors/a/stop").status_code == 204
    assert seen == [None, None]


# --- when it fails ----------------------------------------------------------------------------------------------------


def test_a_worker_that_is_gone_is_an_io_error(third: Worker, caplog: pytest.LogCaptureFixture) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        url = f"http://127.0.0.1:{found.getsockname()[1]}/"
    third.follow(url)
    answer = third.ask("PUT", "/connectors/a/stop")
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("IO Error trying to forward REST request: ")
    assert answer.json()["message"].endswith(f"({url})")
    assert "PUT /connectors/a/stop answered 500: IO Error" in caplog.text


def test_a_worker_that_hangs_up_is_an_io_error(third: Worker) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def hang_up() -> None:
            connection, _ = listening.accept()
            connection.recv(100)
            connection.close()

        threading.Thread(target=hang_up, daemon=True).start()
        third.follow(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        answer = third.ask("DELETE", "/connectors/a")
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("IO Error trying to forward REST request: ")


def test_an_address_that_is_none_is_an_error(third: Worker) -> None:
    third.follow("http://[::1/")
    answer = third.ask("PUT", "/connectors/a/stop")
    assert answer.status_code == 500
    assert answer.json()["message"].startswith("Error trying to forward REST request: ")


class Stuck:
    """A server whose answer never comes; knows whether somebody still waits for it."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.left = threading.Event()
        self.app = Starlette(routes=[Route("/{path:path}", self._wait, methods=["PUT", "POST"])])

    async def _wait(self, request: Request) -> Response:
        self.asked.set()
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.left.set()
        return Response()


@pytest.mark.parametrize("body", [b"", b"{}" * 100_000])
def test_when_the_client_goes_away_the_request_ends(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headgate.rest.commands")
    stuck = Stuck()
    with other(stuck.app) as url, worker() as made:
        made.follow(url)
        with socket.create_connection(("127.0.0.1", int(made.url.rstrip("/").rpartition(":")[2]))) as client:
            head = f"PUT /connectors/a/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
            assert stuck.asked.wait(10)
            assert not stuck.left.is_set()
        assert stuck.left.wait(10)
    assert _commands(caplog) == [(logging.INFO, "127.0.0.1: PUT /connectors/a/stop, connector 'a': 499")]


def test_over_two_hops_too() -> None:
    stuck = Stuck()
    with other(stuck.app) as url, worker() as leader, worker() as follower:
        leader.follow(url)
        follower.follow(leader.url)
        with socket.create_connection(("127.0.0.1", int(follower.url.rstrip("/").rpartition(":")[2]))) as client:
            client.sendall(b"POST /connectors/a/restart HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            assert stuck.asked.wait(10)
        assert stuck.left.wait(10)


def test_when_the_server_ends_the_client_is_told() -> None:
    stuck = Stuck()
    answers: list[httpx2.Response] = []
    with other(stuck.app) as url, worker() as made:
        made.follow(url)
        client = threading.Thread(target=lambda: answers.append(made.ask("PUT", "/connectors/a/stop")))
        client.start()
        assert stuck.asked.wait(10)
        began = time.monotonic()
        made.server.stop(timeout=0.2)
        client.join(10)
        assert time.monotonic() - began < 5
        assert stuck.left.wait(10)
    message = "Thread was interrupted trying to forward REST request: Worker is shutting down"
    assert [(each.status_code, each.json()) for each in answers] == [(500, error(500, message))]


def test_many_requests_are_under_way_at_once(leader: Worker, follower: Worker) -> None:
    class Slow(FakeHerder):
        def __init__(self) -> None:
            super().__init__("a")
            self.together = 0
            self.full = asyncio.Event()

        async def stop(self, name: str) -> None:
            self.together += 1
            if self.together == 30:
                self.full.set()
            await asyncio.wait_for(self.full.wait(), 30)

    with worker(herder=Slow()) as slow:
        follower.follow(slow.url)

        async def ask() -> list[int]:
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
                asked = [client.put(f"{follower.url}connectors/a/stop") for _ in range(30)]
                return [answer.status_code for answer in await asyncio.gather(*asked)]

        assert asyncio.run(ask()) == [204] * 30


def test_an_application_that_was_never_served_can_still_be_asked(leader: Worker) -> None:
    """As by tools that call it in their own process."""
    herder = FakeHerder("a")
    herder.errors["put_config"] = Elsewhere(leader.url)
    with TestClient(build_app(herder.as_herder(), RestSettings()), base_url="http://here") as client:
        answer = client.put("/connectors/b/config", content=json.dumps(CONFIG))
        assert (answer.status_code, answer.headers["location"]) == (201, "http://here:80/connectors/b")
