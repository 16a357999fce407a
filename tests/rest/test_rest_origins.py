"""Which names a listener answers to, and which web pages may change something through it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from rest_fakes import FakeHerder
from wire import Wire
from workers import LOCAL, Worker, worker

from headgate.access.audit import Audit
from headgate.rest.app import build_app
from headgate.rest.listeners import Listener
from headgate.rest.server import Server
from headgate.rest.settings import RestSettings

pytestmark = pytest.mark.process

EVERYWHERE = Listener("http", "", 0)
UI = {"access.control.allow.origin": "https://ui.example", "access.control.allow.methods": "GET,POST"}
BODY = b'{"name":"b","config":{}}'
ServedWith = Callable[..., Worker]


@pytest.fixture(scope="module")
def served() -> Iterator[ServedWith]:
    """A worker with these settings, the same one for all that ask for it."""
    made: dict[str, Worker] = {}
    with ExitStack() as opened:

        def of(*listeners: Listener, **settings: object) -> Worker:
            key = repr((listeners, settings))
            if key not in made:
                whole = RestSettings(listeners=listeners, **settings)  # type: ignore[arg-type]
                made[key] = opened.enter_context(worker(whole))
            return made[key].reset()

        yield of


def ask(served: Worker, method: str, path: str, body: bytes | None = None, **headers: str) -> httpx2.Response:
    """`-` is `_` in names of headers; `{own}` in a value is the worker's address."""
    address = served.server.addresses[0].replace("//:", "//127.0.0.1:")
    own = address.removeprefix("http://")
    sent = {
        name.replace("_", "-"): value.format(own=own, port=own.rpartition(":")[2]) for name, value in headers.items()
    }
    return httpx2.request(method, address + path, content=body, headers=sent, trust_env=False, verify=False)


# --- pages ------------------------------------------------------------------------------------------------------------


def test_a_web_page_creates_no_connector(served: ServedWith) -> None:
    made = served(LOCAL)
    page = {"origin": "http://evil.example", "sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}
    assert ask(made, "POST", "/connectors", BODY, **page).status_code == 403
    assert ask(made, "POST", "/connectors", BODY, host="evil.example:{port}", **page).status_code == 421
    rebound = ask(made, "POST", "/connectors", BODY, host="evil.example:{port}", origin="http://evil.example:{port}")
    assert rebound.status_code == 421
    assert made.herder.calls == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"content_type": "application/json"}, 201),
        ({"origin": "http://{own}"}, 201),
        ({"origin": "HTTP://{own}", "sec_fetch_site": "same-origin"}, 201),
        ({"host": "localhost:{port}", "origin": "http://localhost:{port}"}, 201),
        ({"host": "localhost", "origin": "http://localhost"}, 201),
        ({"host": "localhost", "origin": "https://localhost"}, 201),  # behind a proxy that has TLS
        ({"host": "localhost", "origin": "https://localhost:80"}, 403),
        ({"host": "localhost:{port}", "origin": "http://{own}"}, 201),  # as it is advertised
        ({"origin": "http://localhost:{port}"}, 403),
        ({"origin": "http://127.0.0.1:1"}, 403),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": "{own}"}, 403),
        ({"origin": "http://user@{own}"}, 403),
        ({"origin": "https://ui.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "none"}, 201),
        ({"origin": "http://{own}", "sec_fetch_site": "cross-site"}, 403),
    ],
)
def test_only_our_own_pages_and_whoever_is_none_change_something(
    served: ServedWith, headers: dict[str, str], status: int
) -> None:
    made = served(LOCAL)
    answer = ask(made, "POST", "/connectors", BODY, **headers)
    assert answer.status_code == status
    assert ("b" in made.herder.configs) is (status == 201)
    if status == 403:
        told = answer.json()
        assert (answer.headers["content-type"], told["error_code"]) == ("application/json", 403)
        assert "access.control.allow.origin" in told["message"]


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/connectors/a/pause"), ("PATCH", "/connectors/a/config"), ("DELETE", "/connectors/a"),
     ("PUT", "/admin/loggers/root"), ("BREW", "/")],
)  # fmt: skip
def test_that_holds_for_whatever_changes_something(served: ServedWith, method: str, path: str) -> None:
    assert ask(served(LOCAL), method, path, b"{}", origin="http://evil.example").status_code == 403


def test_what_changes_nothing_is_answered_and_browsers_keep_it_from_the_page(served: ServedWith) -> None:
    answer = ask(served(LOCAL), "GET", "/connectors", origin="http://evil.example", sec_fetch_site="cross-site")
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("config", "method", "path", "origin", "status"),
    [
        (UI, "POST", "/connectors", "https://ui.example", 201),
        (UI, "PUT", "/connectors/a/pause", "https://ui.example", 403),
        (UI, "POST", "/connectors", "https://evil.example", 403),
        (
            {"access.control.allow.origin": "https://ui.example"},
            "PUT",
            "/connectors/a/pause",
            "https://ui.example",
            403,
        ),
        ({"access.control.allow.origin": "*"}, "POST", "/connectors", "https://evil.example", 201),
        ({"access.control.allow.origin": "https://*.example"}, "POST", "/connectors", "https://ui.example", 201),
    ],
)
def test_apache_s_keys_let_pages_of_others_in(
    config: dict[str, str], method: str, path: str, origin: str, status: int
) -> None:
    with worker(RestSettings.parse({"listeners": "http://127.0.0.1:0", **config})) as made:
        answer = ask(made, method, path, BODY, origin=origin, sec_fetch_site="cross-site")
    assert answer.status_code == status


def test_what_is_refused_is_in_the_log(served: ServedWith, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "headgate.rest.commands")
    ask(served(LOCAL), "POST", "/connectors", BODY, origin="http://evil.example")
    ask(served(LOCAL), "POST", "/connectors", BODY, host="evil.example")
    said = [record.getMessage().rpartition(" in ")[0] for record in caplog.records]
    assert said == ["127.0.0.1: POST /connectors: 403", "127.0.0.1: POST /connectors: 421"]


def test_and_in_the_audit(tmp_path: Path) -> None:
    herder, settings = FakeHerder("a"), RestSettings(listeners=(LOCAL,))
    with Server(settings) as server:
        server.start(build_app(herder.as_herder(), settings), audit=Audit(str(tmp_path / "audit")))
        ask(Worker(herder, server), "POST", "/connectors", BODY, origin="http://evil.example")
    told = json.loads((tmp_path / "audit").read_text())
    assert (told["principal"], told["outcome"], told["status"]) == (None, "refused", 403)
    assert "a page of http://evil.example" in told["error"]


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200),
        ("LocalHost", 200),
        ("127.0.0.1:8083", 200),
        ("127.9.9.9", 200),
        ("[::1]:8083", 200),
        ("me.example", 200),
        ("proxy.example:444", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("127.0.0.1@evil.example", 421),
        ("10.0.0.1", 421),
        ("[::2]", 421),
        ("[bad", 421),
    ],
)
def test_a_listener_for_this_machine_answers_to_its_own_names(served: ServedWith, host: str, status: int) -> None:
    made = served(LOCAL, advertised_host="me.example", allowed_hosts=("Proxy.example",))
    answer = ask(made, "GET", "/connectors", host=host)
    assert answer.status_code == status
    if status == 421:
        assert answer.json()["message"].startswith(
            f"HTTP 421 Misdirected Request: this worker is not known as '{host}'"
        )


def test_the_host_of_a_whole_target_is_what_counts(served: ServedWith) -> None:
    with Wire(served(LOCAL)) as wire:
        assert wire.asked(b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 421
        assert wire.asked(b"GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n")[0] == 200


@pytest.mark.parametrize(("host", "status"), [("me.example", 200), ("{own}", 200), ("a.example", 200), ("x", 421)])
def test_others_answer_to_any_name_unless_names_are_given(served: ServedWith, host: str, status: int) -> None:
    assert ask(served(EVERYWHERE, advertised_host="me.example"), "GET", "/connectors", host=host).status_code == 200
    named = served(EVERYWHERE, advertised_host="me.example", allowed_hosts=("a.example",))
    assert ask(named, "GET", "/connectors", host=host).status_code == status


@pytest.mark.parametrize(
    ("host", "location"),
    [
        ("{own}", "http://{own}/connectors/b"),
        ("localhost:9", "http://localhost:9/connectors/b"),
        ("me.example", "http://me.example/connectors/b"),
        ("evil.example", "http://me.example:{port}/connectors/b"),
        ("[bad", "http://me.example:{port}/connectors/b"),
    ],
)
def test_an_address_that_is_told_has_no_name_that_was_not_checked(served: ServedWith, host: str, location: str) -> None:
    made = served(EVERYWHERE, advertised_host="me.example")
    port = made.server.addresses[0].rpartition(":")[2]
    answer = ask(made, "POST", "/connectors", BODY, host=host)
    assert (answer.status_code, answer.headers["location"]) == (
        201,
        location.format(own=f"127.0.0.1:{port}", port=port),
    )


def test_a_page_under_a_name_that_was_not_checked_is_not_ours(served: ServedWith) -> None:
    made = served(EVERYWHERE, advertised_host="me.example")
    for name, status in (("evil.example", 403), ("me.example", 201)):
        answer = ask(made, "POST", "/connectors", BODY, host=f"{name}:{{port}}", origin=f"http://{name}:{{port}}")
        assert answer.status_code == status


def test_workers_among_themselves_go_on() -> None:
    with worker() as leader, worker() as follower:
        follower.follow(leader.url)
        page = {"host": "localhost:{port}", "origin": "http://localhost:{port}"}
        answer = ask(follower, "POST", "/connectors", BODY, **page)
        port = follower.url.rstrip("/").rpartition(":")[2]
        assert (answer.status_code, answer.headers["location"]) == (201, f"http://localhost:{port}/connectors/b")
        assert "b" in leader.herder.configs
