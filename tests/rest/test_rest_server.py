"""Real sockets: binding, serving, ending."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from rest_fakes import FakeHerder
from starlette.types import ASGIApp

from headgate.model import Offset, Partition
from headgate.rest.app import build_admin_app, build_app
from headgate.rest.listeners import Listener, ListenerError, Tls, bind_all
from headgate.rest.server import Server
from headgate.rest.settings import RestSettings

pytestmark = pytest.mark.process

LOCAL = Listener("http", "127.0.0.1", 0)


@pytest.fixture
def app(herder: FakeHerder) -> ASGIApp:
    return build_app(herder.as_herder(), RestSettings())


@pytest.fixture
def server(app: ASGIApp) -> Iterator[Server]:
    with Server(RestSettings(listeners=(LOCAL,))) as server:
        server.start(app)
        yield server


def get(url: str, path: str = "/connectors", context: ssl.SSLContext | None = None) -> tuple[int, object]:
    scheme, _, host = url.rstrip("/").partition("://")
    connection = (
        http.client.HTTPSConnection(host, timeout=10, context=context)
        if scheme == "https"
        else http.client.HTTPConnection(host, timeout=10)
    )
    with closing(connection):
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, json.loads(response.read())


def test_a_free_port_is_found_and_told(server: Server) -> None:
    (address,) = server.addresses
    port = int(address.rpartition(":")[2])
    assert port > 0
    assert address == f"http://127.0.0.1:{port}"
    assert server.advertised_url == f"http://127.0.0.1:{port}/"
    assert server.worker_id == f"127.0.0.1:{port}"
    assert get(address) == (200, ["a"])


def test_several_listeners_serve_the_same_and_admin_listeners_their_own(herder: FakeHerder) -> None:
    settings = RestSettings(listeners=(LOCAL, LOCAL), admin_listeners=(LOCAL,))
    with Server(settings) as server:
        server.start(build_app(herder.as_herder(), settings), build_admin_app(herder.as_herder(), settings))
        first, second = server.addresses
        (admin,) = server.admin_addresses
        assert get(first) == get(second) == (200, ["a"])
        assert get(first, "/admin/loggers")[0] == 404
        assert get(admin, "/admin/loggers")[0] == 200
        assert get(admin)[0] == 404


@pytest.mark.parametrize("host", ["", "0.0.0.0", "localhost"])
def test_all_interfaces_and_names_can_be_listened_on(app: ASGIApp, host: str) -> None:
    with Server(RestSettings(listeners=(Listener("http", host, 0),))) as server:
        server.start(app)
        port = server.addresses[0].rpartition(":")[2]
        assert get(f"http://127.0.0.1:{port}") == (200, ["a"])
        if host == "localhost":
            assert server.worker_id == f"localhost:{port}"
        else:
            assert server.worker_id.rpartition(":")[0] not in ("", "0.0.0.0")


def test_ipv6_can_be_listened_on(app: ASGIApp) -> None:
    try:
        server = Server(RestSettings(listeners=(Listener("http", "::1", 0),)))
    except ListenerError:
        pytest.skip("no IPv6 on this machine")
    with server:
        server.start(app)
        assert server.advertised_url.startswith("http://[::1]:")
        assert get(server.addresses[0]) == (200, ["a"])


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({"advertised_host": "me.example"}, "http://me.example:{port}/"),
        ({"advertised_host": "me.example", "advertised_port": 80}, "http://me.example:80/"),
        ({"advertised_listener": "https"}, "https://127.0.0.1:{port}/"),
    ],
)
def test_the_advertised_address_can_be_set(settings: dict[str, Any], url: str) -> None:
    with Server(RestSettings(listeners=(LOCAL,), **settings)) as server:
        port = server.addresses[0].rpartition(":")[2]
        assert server.advertised_url == url.format(port=port)


# --- what can go wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_a_port_in_use_is_one_sentence_before_anything_is_started(server: Server, host: str) -> None:
    port = int(server.addresses[0].rpartition(":")[2])
    threads = threading.active_count()
    with pytest.raises(ListenerError) as caught:
        Server(RestSettings(listeners=(LOCAL, Listener("http", host, port))))
    where = f"127.0.0.1:{port}" if host else f"port {port}"
    assert str(caught.value) == (
        f"Cannot listen on {where}: the port is in use, perhaps by another worker."
        f" Change listeners in the worker's configuration (now http://{host}:{port})."
    )
    assert threading.active_count() == threads


def test_an_admin_port_in_use_names_its_key_and_lets_go_of_the_other_sockets(server: Server) -> None:
    port = int(server.addresses[0].rpartition(":")[2])
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        free = found.getsockname()[1]
    main = Listener("http", "127.0.0.1", free)
    with pytest.raises(ListenerError, match=r"Change admin\.listeners"):
        Server(RestSettings(listeners=(main,), admin_listeners=(Listener("http", "127.0.0.1", port),)))
    Server(RestSettings(listeners=(main,))).stop()


def test_an_address_that_is_not_ours_is_said_so() -> None:
    with pytest.raises(ListenerError, match="that is no address of this machine"):
        Server(RestSettings(listeners=(Listener("http", "203.0.113.7", 0),)))


def test_a_host_that_nobody_knows_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ListenerError, match=r"Cannot listen on nowhere:8083: no such host is known\."):
        Server(RestSettings(listeners=(Listener("http", "nowhere", 8083),)))


def test_a_port_can_be_opened_again_at_once(app: ASGIApp) -> None:
    first = Server(RestSettings(listeners=(LOCAL,)))
    first.start(app)
    port = int(first.addresses[0].rpartition(":")[2])
    assert get(first.addresses[0])[0] == 200
    first.stop()
    with Server(RestSettings(listeners=(Listener("http", "127.0.0.1", port),))) as second:
        second.start(app)
        assert get(second.addresses[0])[0] == 200


# --- the wire ---------------------------------------------------------------------------------------------------------


def test_requests_that_come_before_the_start_are_answered_after_it(app: ASGIApp) -> None:
    with Server(RestSettings(listeners=(LOCAL,))) as server:
        answers: list[object] = []
        early = threading.Thread(target=lambda: answers.append(get(server.addresses[0])))
        early.start()
        server.start(app)
        early.join(10)
        assert answers == [(200, ["a"])]


def test_the_body_of_an_answer_does_not_wait_until_its_head_is_acknowledged() -> None:
    (bound,) = bind_all([LOCAL], None)
    with bound.socket, closing(socket.create_connection(bound.socket.getsockname())), bound.socket.accept()[0] as taken:
        assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_encoded_names_large_bodies_and_missing_bodies_work_over_real_http(server: Server, herder: FakeHerder) -> None:
    with closing(http.client.HTTPConnection(server.addresses[0].partition("://")[2], timeout=10)) as connection:

        def send(method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
            connection.request(method, path, body)
            response = connection.getresponse()
            assert "server" not in response.headers
            return response.status, response.read()

        big = json.dumps({"k": "x" * 1_000_000}).encode()
        assert send("PUT", "/connectors/a%2Fb%20%25/config", big)[0] == 201
        assert "a/b %" in herder.configs
        assert send("GET", "/connectors/a%2Fb%20%25/config/")[0] == 200
        assert send("HEAD", "/connectors")[1] == b""
        assert send("PUT", "/connectors/a/pause") == (202, b"")
        assert send("DELETE", "/connectors/a") == (204, b"")
        assert send("POST", "/connectors")[0] == 400
        # Refused before all of it was sent: the answer arrives, and this connection may be gone.
        assert send("PUT", "/connectors/a/config", b"[" * 11_000_000)[0] == 413


def test_a_start_that_fails_is_raised(app: ASGIApp) -> None:
    server = Server(RestSettings(listeners=(LOCAL,)))
    server.stop()
    with pytest.raises((OSError, ValueError)):
        server.start(app)


def test_no_signal_handler_is_installed(server: Server) -> None:
    """A shell starts what runs in the background with SIGINT ignored, tests too: what it was, it is."""
    assert signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_IGN)


# --- ending -----------------------------------------------------------------------------------------------------------


class SlowHerder(FakeHerder):
    """Takes a while to read offsets."""

    def __init__(self, seconds: float) -> None:
        super().__init__("a")
        self.seconds = seconds
        self.entered = threading.Event()

    async def offsets(self, name: str) -> list[tuple[Partition, Offset]]:
        self.entered.set()
        await asyncio.sleep(self.seconds)
        return []


def _stop_while_asked(herder: SlowHerder, timeout: float) -> tuple[Server, object]:
    """The server, stopped while it handled a request, and what the client got."""
    server = Server(RestSettings(listeners=(LOCAL,)))
    server.start(build_app(herder.as_herder(), RestSettings()))
    answers: list[object] = []
    client = threading.Thread(target=lambda: answers.append(get(server.addresses[0], "/connectors/a/offsets")))
    client.start()
    assert herder.entered.wait(10)
    server.stop(timeout)
    client.join(10)
    return server, answers[0]


def test_stopping_lets_running_requests_end() -> None:
    server, answer = _stop_while_asked(SlowHerder(0.5), timeout=10)
    assert answer == (200, {"offsets": []})
    server.stop()
    with pytest.raises(OSError, match="refused"):
        get(server.addresses[0])


def test_stopping_cuts_off_requests_that_take_too_long_and_tells_the_client() -> None:
    began = time.monotonic()
    _, answer = _stop_while_asked(SlowHerder(60), timeout=0.2)
    assert time.monotonic() - began < 5
    assert answer == (500, {"error_code": 500, "message": "Worker is shutting down"})


def test_an_idle_connection_does_not_hold_up_the_end(server: Server) -> None:
    connection = http.client.HTTPConnection(server.addresses[0].partition("://")[2], timeout=10)
    with closing(connection):
        connection.request("GET", "/connectors")
        connection.getresponse().read()
        began = time.monotonic()
        server.stop(timeout=10)
        assert time.monotonic() - began < 2


def test_a_server_that_was_never_started_gives_its_port_back() -> None:
    server = Server(RestSettings(listeners=(LOCAL,)))
    port = int(server.addresses[0].rpartition(":")[2])
    server.stop()
    Server(RestSettings(listeners=(Listener("http", "127.0.0.1", port),))).stop()


# --- https ------------------------------------------------------------------------------------------------------------


def test_https_serves_with_pem_files_beside_http(app: ASGIApp, pem: Path) -> None:
    settings = RestSettings.parse(
        {
            "listeners": "http://127.0.0.1:0,https://127.0.0.1:0",
            "listeners.https.ssl.keystore.type": "PEM",
            "listeners.https.ssl.keystore.location": str(pem),
        }
    )
    with Server(settings) as server:
        server.start(app)
        plain, secure = server.addresses
        assert secure.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(pem))
        assert get(plain) == get(secure, context=trusting) == (200, ["a"])
        with pytest.raises(ssl.SSLCertVerificationError):
            get(secure, context=ssl.create_default_context())


def test_https_can_ask_for_a_client_s_certificate(app: ASGIApp, pem: Path) -> None:
    listener = Listener("https", "127.0.0.1", 0)
    tls = Tls(str(pem), ca=str(pem), client_auth=ssl.CERT_REQUIRED)
    with Server(RestSettings(listeners=(listener,), tls=tls)) as server:
        server.start(app)
        unknown = ssl.create_default_context(cafile=str(pem))
        with pytest.raises((OSError, http.client.HTTPException)):
            get(server.addresses[0], context=unknown)
        known = ssl.create_default_context(cafile=str(pem))
        known.load_cert_chain(str(pem))
        assert get(server.addresses[0], context=known) == (200, ["a"])


def test_https_without_a_certificate_says_what_to_set() -> None:
    with pytest.raises(ListenerError, match=r"needs a certificate: set ssl\.keystore\.type=PEM"):
        Server(RestSettings(listeners=(Listener("https", "127.0.0.1", 0),)))


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_https_with_unusable_files_names_them(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "k.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ListenerError, match=r"Cannot use the PEM files of https \(.*k\.pem\)"):
        Server(RestSettings(listeners=(Listener("https", "127.0.0.1", 0),), tls=Tls(str(file))))


def test_importing_the_api_takes_no_time_worth_speaking_of() -> None:
    code = (
        "import time; began = time.process_time(); import headgate.rest.app, headgate.rest.server, sys;"
        "print(time.process_time() - began, 'pyspark' in sys.modules, 'pyarrow' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert printed[1:] == ["False", "False"]
    assert float(printed[0]) < 2
