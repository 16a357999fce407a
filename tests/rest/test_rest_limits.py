"""What one client may ask for, how long it may take, and how many there may be."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

import pytest
from rest_fakes import FakeHerder
from wire import Wire
from workers import LOCAL, Worker, worker

from headgate.rest.limits import RestLimits
from headgate.rest.listeners import Listener, Tls
from headgate.rest.settings import RestSettings

pytestmark = pytest.mark.process

GET = b"GET /connectors HTTP/1.1\r\nHost: localhost\r\n"
PUT = b"PUT /connectors/b/config HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
SOON_S = 0.3
SHORT = RestLimits(headers_s=SOON_S, body_s=SOON_S, idle_s=SOON_S)


def limited(limits: RestLimits, herder: FakeHerder | None = None) -> AbstractContextManager[Worker]:
    return worker(RestSettings(listeners=(LOCAL,), limits=limits), herder)


# --- how much ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served() -> Iterator[Worker]:
    with limited(RestLimits(body_bytes=2048)) as made:
        yield made


@pytest.fixture
def wire(served: Worker) -> Iterator[Wire]:
    served.reset()
    with Wire(served) as made:
        yield made


LARGE = b"X: " + b"y" * 8000 + b"\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (GET + 4 * LARGE, 200),
        (GET + 5 * LARGE, 431),
        (GET + b"X: y\r\n" * 99, 200),
        (GET + b"X: y\r\n" * 100, 431),
        (b"GET /connectors?x=" + b"y" * 8000 + GET[15:], 200),
        (b"GET /connectors?x=" + b"y" * 9000 + GET[15:], 414),
        (b"GET /connectors/" + b"y" * 9000 + GET[15:], 414),
        (PUT + b"Content-Length: 2049\r\n", 413),
    ],
    ids=["large headers", "too large", "many headers", "too many", "long query", "too long", "long path", "body"],
)
def test_what_is_too_large_is_refused_and_the_connection_stays(wire: Wire, sent: bytes, status: int) -> None:
    wire.send(sent + b"\r\n")
    answered, headers, body = wire.answer()
    assert (answered, headers["content-type"]) == (status, "application/json")
    if status != 200:
        assert json.loads(body)["error_code"] == status
    if status != 413:
        assert wire.asked(GET + b"\r\n")[0] == 200


def test_the_rest_of_a_body_that_is_too_large_is_thrown_away(wire: Wire) -> None:
    assert wire.asked(PUT + b"Content-Length: 3000\r\n\r\n")[0] == 413
    assert wire.asked(b"x" * 3000 + GET + b"\r\n")[0] == 200


def test_a_body_without_a_length_is_counted(wire: Wire, served: Worker) -> None:
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    assert wire.asked(PUT + CHUNKED + 3 * chunk + b"0\r\n\r\n")[0] == 413
    assert wire.asked(PUT + CHUNKED + b'd\r\n{"k":"value"}\r\n0\r\n\r\n')[0] == 201
    assert [call[0] for call in served.herder.calls] == ["put_config"]


def test_nobody_keeps_a_header_that_never_ends(wire: Wire) -> None:
    sent, block = 0, b"y" * 65536
    wire.send(GET + b"X: ")
    with suppress(ConnectionError):
        while sent < 100 * 1024 * 1024:
            sent += wire.socket.send(block)
    assert sent < 20 * 1024 * 1024, "what the two ends of a socket hold, and no more"


# --- how long ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hasty() -> Iterator[Worker]:
    with limited(SHORT) as made:
        yield made


def trickle(wire: Wire, piece: bytes) -> bytes:
    """Sends it again and again, until the other end has had enough; what it said."""
    wire.socket.settimeout(SOON_S / 10)
    said = b""
    for _ in range(200):
        with suppress(ConnectionError):
            wire.socket.sendall(piece)
        try:
            found = wire.socket.recv(4096)
        except TimeoutError:
            continue
        except ConnectionError:
            return said
        if not found:
            return said
        said += found
    raise AssertionError("it waits for ever")


@pytest.mark.parametrize(
    ("begin", "piece", "said"),
    [
        (b"GET / HTTP/1.1\r\n", b"X: y\r\n", b"HTTP/1.1 408 Request Timeout\r\n"),
        (GET + b"\r\nGET / HTTP/1.1\r\n", b"X: y\r\n", b"HTTP/1.1 408 Request Timeout\r\n"),
        (PUT + b"Content-Length: 1000\r\n\r\n", b"x", b"HTTP/1.1 408 Request Timeout\r\n"),
        (PUT + CHUNKED, b"1\r\nx\r\n", b"HTTP/1.1 408 Request Timeout\r\n"),
        (PUT + b"Content-Type: text/plain\r\n" + CHUNKED, b"1\r\nx\r\n", b"HTTP/1.1 415 Unsupported Media Type\r\n"),
    ],
    ids=["headers", "second headers", "body", "chunks", "body behind its answer"],
)
def test_bytes_that_trickle_in_win_no_time(hasty: Worker, begin: bytes, piece: bytes, said: bytes) -> None:
    with Wire(hasty) as wire:
        wire.send(begin)
        assert said in trickle(wire, piece)


def test_who_says_nothing_is_left(hasty: Worker) -> None:
    with Wire(hasty) as silent, Wire(hasty) as idle:
        assert idle.asked(GET + b"\r\n")[0] == 200
        assert idle.ended()
        assert silent.ended()


def test_who_never_agrees_upon_tls_is_left(pem: Path) -> None:
    listener = Listener("https", "127.0.0.1", 0)
    with worker(RestSettings(listeners=(listener,), tls=Tls(str(pem)), limits=SHORT)) as made, Wire(made) as wire:
        assert wire.ended()


def test_who_does_not_read_is_left(eventually: Callable[..., None]) -> None:
    herder = FakeHerder(*(f"connector-{number}" for number in range(20_000)))
    with limited(SHORT, herder) as made, Wire(made) as wire:
        wire.send(100 * (GET + b"\r\n"))
        connections = made.server._servers[0]._connections
        eventually(lambda: len(connections) == 1, 10)
        eventually(lambda: len(connections) == 0, 10)
        assert wire.file.read().count(b"HTTP/1.1 200") < 100, "far more than the socket holds was to be read"


def test_a_request_that_takes_long_is_waited_for() -> None:
    slow = Slow()
    with limited(SHORT, slow) as made, Wire(made) as wire:
        wire.send(b"GET /connectors/a/offsets HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.entered.wait(10)
        with Wire(made) as silent:  # its time is over before that of the other may come
            assert silent.ended()
        slow.go_on.set()
        assert wire.answer()[0] == 200


# --- how many ---------------------------------------------------------------------------------------------------------


class Slow(FakeHerder):
    """Reads offsets when it is told to."""

    def __init__(self) -> None:
        super().__init__("a")
        self.entered, self.go_on = threading.Event(), threading.Event()

    async def offsets(self, name: str) -> list[object]:  # type: ignore[override]
        self.entered.set()
        while not self.go_on.is_set():
            await asyncio.sleep(0.01)
        return []


def ended(wires: Sequence[Wire]) -> int:
    """How many of them the other end has closed."""
    watch = select.poll()
    for wire in wires:
        watch.register(wire.socket, select.POLLRDHUP | select.POLLHUP)
    return len(watch.poll(0))


def test_half_open_connections_keep_nobody_out(eventually: Callable[..., None]) -> None:
    """As many as there are files for, half of them being at the other end."""
    most, files = 50, resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    many = min(1500, files // 2)
    with limited(RestLimits(connections=most, per_address=most)) as made, ExitStack() as opened:
        wires = []
        for _ in range(many):
            wires.append(opened.enter_context(Wire(made)))
            wires[-1].send(b"GET / HTTP/1.1\r\n")
        assert made.ask("GET", "/connectors").json() == ["a"]
        assert made.ask("PUT", "/connectors/b/config", {}).status_code == 201
        eventually(lambda: ended(wires) >= many - most, 10)
        assert ended(wires) < many, "nobody goes before others come"


def test_one_address_has_no_more_than_its_share(eventually: Callable[..., None]) -> None:
    with limited(RestLimits(connections=100, per_address=5)) as made, ExitStack() as opened:
        neighbours = [opened.enter_context(Wire(made)) for _ in range(4)]
        crowd = [opened.enter_context(Wire(made, "127.0.0.2")) for _ in range(20)]
        eventually(lambda: ended(crowd) == 15, 10)
        assert ended(crowd[-5:]) == 0, "whoever waits longest goes first"
        assert ended(neighbours) == 0
        assert neighbours[0].asked(GET + b"\r\n")[0] == 200


def test_whoever_is_being_served_makes_room_for_nobody(
    eventually: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    slow = Slow()
    with limited(RestLimits(connections=1), slow) as made, Wire(made) as served:
        served.send(b"GET /connectors/a/offsets HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert slow.entered.wait(10)
        with Wire(made) as refused, Wire(made) as refused_too:
            assert refused.ended()
            assert refused_too.ended()
        slow.go_on.set()
        assert served.answer()[0] == 200
        eventually(lambda: made.ask("GET", "/connectors").status_code == 200, 10)
    (said,) = caplog.messages
    assert "none of them idle: one more is refused" in said


# --- files ------------------------------------------------------------------------------------------------------------


def test_connections_wait_while_there_are_no_files(
    eventually: Callable[..., None],
    no_files: Callable[[], AbstractContextManager[None]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with limited(RestLimits()) as made, socket.socket() as client:
        client.settimeout(10)
        host, _, port = made.server.addresses[0].removeprefix("http://").rpartition(":")
        with no_files():
            client.connect((host, int(port)))
            client.sendall(GET + b"\r\n")
            eventually(lambda: caplog.messages, 10)
        assert client.recv(15) == b"HTTP/1.1 200 OK"
    (said,) = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert said[0] == logging.WARNING
    assert said[1].endswith("no connection can be taken: Too many open files")
