"""One line in the log for every command."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest
from rest_fakes import FakeHerder
from starlette.responses import Response
from starlette.testclient import TestClient

from headgate.rest.commands import Commands
from headgate.runtime.errors import RequestTimeout
from headgate.runtime.ports import PeerRequest

LOGGER = "headgate.rest.commands"


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """By level, without the milliseconds."""
    found = [(each.levelno, each.getMessage()) for each in caplog.records if each.name == LOGGER]
    assert all(re.search(r" in \d+ ms, request [0-9a-f]{16}$", text) for _, text in found)
    return [(level, text.rpartition(" in ")[0]) for level, text in found]


@pytest.mark.parametrize(
    ("method", "path", "body", "line"),
    [
        ("PUT", "/connectors/a/pause", None, "PUT /connectors/a/pause, connector 'a': 202"),
        ("PUT", "/connectors/a/stop/", None, "PUT /connectors/a/stop/, connector 'a': 204"),
        ("PUT", "/connectors/b%20%C3%A9/config", {"password": "hunter2"},
         "PUT /connectors/b%20%C3%A9/config, connector 'b é': 201"),
        ("POST", "/connectors", {"name": "b", "config": {"password": "hunter2"}},
         "POST /connectors, connector 'b': 201"),
        ("POST", "/connectors", {"name": "a", "config": {}}, "POST /connectors, connector 'a': 409"),
        ("POST", "/connectors", {"config": 7}, "POST /connectors: 400"),
        ("POST", "/connectors/a/restart?token=hunter2&includeTasks=true&onlyFailed=no", None,
         "POST /connectors/a/restart?includeTasks=true&onlyFailed=no, connector 'a': 202"),
        ("POST", "/connectors/a/tasks/0/restart", None, "POST /connectors/a/tasks/0/restart, connector 'a': 204"),
        ("PATCH", "/connectors/a/config", {"k": None}, "PATCH /connectors/a/config, connector 'a': 200"),
        ("DELETE", "/connectors/x", None, "DELETE /connectors/x, connector 'x': 404"),
        ("DELETE", "/connectors/a/offsets", None, "DELETE /connectors/a/offsets, connector 'a': 200"),
        ("PUT", "/admin/loggers/x?scope=cluster", {"level": "INFO"}, "PUT /admin/loggers/x?scope=cluster: 204"),
        ("DELETE", "/nowhere", None, "DELETE /nowhere: 404"),
        ("DELETE", "/connectors", None, "DELETE /connectors: 405"),
    ],
)  # fmt: skip
def test_a_command_leaves_one_line_with_who_what_and_the_outcome(
    client: TestClient, caplog: pytest.LogCaptureFixture, method: str, path: str, body: Any, line: str
) -> None:
    client.request(method, path, json=body)
    assert lines(caplog) == [(logging.INFO, f"testclient: {line}")]


@pytest.mark.parametrize("error", [RequestTimeout("late"), KeyError("bug")])
def test_so_does_one_that_fails_or_comes_too_early(
    client: TestClient, herder: FakeHerder, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    herder.errors["pause"] = error
    client.put("/connectors/a/pause")
    herder.ready = False
    client.put("/connectors/a/pause")
    assert [text.rpartition(": ")[2] for _, text in lines(caplog)] == ["500", "503"]


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_questions_leave_none(client: TestClient, caplog: pytest.LogCaptureFixture, method: str) -> None:
    client.request(method, "/connectors")
    assert lines(caplog) == []


def test_what_another_worker_asks_is_told_by_the_worker_that_was_asked_first(
    client: TestClient, herder: FakeHerder, caplog: pytest.LogCaptureFixture
) -> None:
    path = "/connectors/a/stop?forward=true"
    caller = '["alice", "basic", []]'
    proof = herder.sign(PeerRequest("PUT", path, f"{caller}\n0123456789abcdef\n".encode()))
    headers = {"X-Headgate-Caller": caller, "X-Request-Id": "0123456789abcdef", **proof}
    client.put(path, headers=headers)
    client.put("/connectors/a/fence?forward=false")  # which only workers may, and have signed
    assert [level for level, _ in lines(caplog)] == [logging.DEBUG] * 2
    for forged in ({**headers, "X-Headgate-Caller": '["root", "basic", []]'}, {"X-Headgate-Caller": caller}, {}):
        caplog.clear()
        client.put(path, headers={"X-Request-Id": "0123456789abcdef", **forged})
        ((level, text),) = lines(caplog)
        assert level == logging.INFO, "whoever says that a worker has passed it on must be one"
        assert text.startswith("testclient: ")


FORGED = "a\r\n[2026-01-01 00:00:00,000] INFO 10.0.0.1: DELETE /connectors/b\x1b[2J\x85\u2028\u202e"


def test_no_name_ends_the_line(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    client.post("/connectors", json={"name": FORGED, "config": {}})
    client.put("/connectors/a%0D%0A10.0.0.1%3A%1B%5B2J%C2%85%E2%80%A8/pause?onlyFailed=%0Ax&scope=%E2%80%A8")
    assert [text.isprintable() for _, text in lines(caplog)] == [True, True]


def test_no_path_does_whatever_a_parser_lets_through(caplog: pytest.LogCaptureFixture) -> None:
    scope: dict[str, Any] = {
        "type": "http", "method": "PUT", "path": FORGED, "raw_path": FORGED.encode(), "query_string": b"",
        "headers": [], "client": None,
    }  # fmt: skip

    async def nothing(message: Any = None) -> Any:
        pass

    asyncio.run(Commands(Response(status_code=204))(scope, nothing, nothing))
    ((_, text),) = lines(caplog)
    assert text.isprintable()
    assert text.startswith("somebody: PUT a%0D%0A%5B2026-01-01%20")
