"""A line: who may be on it, and what goes over it. Real sockets, no Spark."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from headgate.spark import line as lines
from headgate.spark.line import Invitation, Line, NotOurs, greeted, own_certificate

SECRET = b"s" * 32
WAIT_S = 10.0


@pytest.fixture(scope="module")
def own() -> tuple[str, ssl.SSLContext]:
    return own_certificate()


class Driver:
    """Greets whoever calls, each in a thread of its own, as the driver does."""

    def __init__(self, tls: ssl.SSLContext | None = None, certificate: str | None = None) -> None:
        self._tls = tls
        self._certificate = certificate
        self._stack = ExitStack()
        self._pool = self._stack.enter_context(ThreadPoolExecutor(8))
        self._listener = self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.greetings: list[Future[tuple[int, Line]]] = []
        self.arrived = threading.Semaphore(0)
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.greetings.append(self._pool.submit(greeted, connection, SECRET, self._tls))
            self.arrived.release()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def invitation(self, number: int = 1, secret: bytes = SECRET) -> Invitation:
        return Invitation("127.0.0.1", self.port, number, secret, self._certificate)

    def call(self) -> socket.socket:
        """A stranger, connected."""
        return self._stack.enter_context(socket.create_connection(("127.0.0.1", self.port), WAIT_S))

    def greeting(self) -> Future[tuple[int, Line]]:
        """Of the next one that has called."""
        assert self.arrived.acquire(timeout=WAIT_S)
        return self.greetings.pop(0)

    def joined(self, number: int = 1) -> tuple[Line, Line]:
        """The driver's end, the resident's end."""
        theirs = self.invitation(number).accept()
        found, ours = self.greeting().result(WAIT_S)
        assert found == number
        self._stack.callback(ours.close)
        self._stack.callback(theirs.close)
        return ours, theirs

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._stack.close()


@pytest.fixture
def plain() -> Iterator[Driver]:
    made = Driver()
    yield made
    made.close()


@pytest.fixture
def encrypted(own: tuple[str, ssl.SSLContext]) -> Iterator[Driver]:
    made = Driver(own[1], own[0])
    yield made
    made.close()


@pytest.fixture(params=["plain", "encrypted"])
def driver(request: pytest.FixtureRequest) -> Driver:
    made: Driver = request.getfixturevalue(request.param)
    return made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "_GREETING_S", 0.1)


def frame(data: bytes) -> bytes:
    return struct.pack(">Q", len(data)) + data


def read(stranger: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = stranger.recv(size - len(data))
        assert more, "it was closed"
        data += more
    return data


def received(line: Line) -> bytes:
    data = line.receive()
    assert data is not None, "it was closed"
    return bytes(data)


def send_all(line: Line, frames: Iterable[bytes]) -> None:
    for each in frames:
        line.send(each)


def is_closed(stranger: socket.socket) -> bool:
    """Reads to the end, which comes before the time-out."""
    try:
        while stranger.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


# --- who may be on it -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 2**40])
def test_the_driver_knows_which_resident_calls(driver: Driver, number: int) -> None:
    ours, theirs = driver.joined(number)
    ours.send(b"work")
    assert received(theirs) == b"work"
    theirs.send(b"result")
    assert received(ours) == b"result"


def test_several_are_on_lines_of_their_own(driver: Driver) -> None:
    pairs = [driver.joined(number) for number in range(3)]
    for number, (ours, _) in enumerate(pairs):
        ours.send(b"%d" % number)
    assert [received(theirs) for _, theirs in pairs] == [b"0", b"1", b"2"]


def test_who_does_not_know_the_secret_is_refused(driver: Driver) -> None:
    with pytest.raises(NotOurs):
        driver.invitation(secret=b"other").accept()
    with pytest.raises(NotOurs, match="no resident of this worker"):
        driver.greeting().result(WAIT_S)


def test_a_driver_that_does_not_know_the_secret_gets_no_resident() -> None:
    """Somebody listens where the driver listened: what a resident would do for it nobody knows."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(Invitation("127.0.0.1", listener.getsockname()[1], 1, SECRET).accept)
        connection, _ = listener.accept()
        with connection:
            connection.sendall(frame(os.urandom(16)))
            read(connection, 8 + 16 + 8 + 32)
            connection.sendall(frame(os.urandom(32)))
            with pytest.raises(NotOurs, match="The driver does not know the secret"):
                accepted.result(WAIT_S)
            assert is_closed(connection)


def test_the_secret_is_never_on_the_line(plain: Driver) -> None:
    stranger = plain.call()
    nonce = read(stranger, 8 + 16)[8:]
    ours, number = b"o" * 16, struct.pack(">Q", 7)
    proof = lines._proof(SECRET, b"resident", nonce, ours, number)
    stranger.sendall(frame(ours + number + proof))
    answer = read(stranger, 8 + 32)[8:]
    assert SECRET not in proof + answer
    assert answer == lines._proof(SECRET, b"driver", ours, nonce)
    found, line = plain.greeting().result(WAIT_S)
    line.close()
    assert found == 7


def test_the_proof_of_another_call_is_worth_nothing(plain: Driver) -> None:
    """Who has listened to a resident's greeting and says the same is refused: the driver asks something else."""
    first = plain.call()
    nonce = read(first, 8 + 16)[8:]
    said = frame(
        b"o" * 16 + struct.pack(">Q", 1) + lines._proof(SECRET, b"resident", nonce, b"o" * 16, struct.pack(">Q", 1))
    )
    first.sendall(said)
    plain.greeting().result(WAIT_S)[1].close()
    second = plain.call()
    assert read(second, 8 + 16)[8:] != nonce
    second.sendall(said)
    with pytest.raises(NotOurs):
        plain.greeting().result(WAIT_S)
    assert is_closed(second)


def test_a_proof_holds_for_one_number(plain: Driver) -> None:
    stranger = plain.call()
    nonce = read(stranger, 8 + 16)[8:]
    proof = lines._proof(SECRET, b"resident", nonce, b"o" * 16, struct.pack(">Q", 1))
    stranger.sendall(frame(b"o" * 16 + struct.pack(">Q", 2) + proof))
    with pytest.raises(NotOurs):
        plain.greeting().result(WAIT_S)


def test_what_the_driver_says_cannot_be_said_to_it(plain: Driver) -> None:
    """A driver proves that it knows the secret with other words than a resident."""
    stranger = plain.call()
    nonce = read(stranger, 8 + 16)[8:]
    proof = lines._proof(SECRET, b"driver", nonce, b"o" * 16, struct.pack(">Q", 1))
    stranger.sendall(frame(b"o" * 16 + struct.pack(">Q", 1) + proof))
    with pytest.raises(NotOurs):
        plain.greeting().result(WAIT_S)


RUBBISH = {
    "zeros": bytes(64),
    "random": b"\xff\x00\x13" * 30,
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b" " * 64,
    "too short": frame(b"x" * 55),
    "too long": frame(b"x" * 57),
    "endless": struct.pack(">Q", 2**63) + b"x" * 100,
    "empty": frame(b""),
    "right size": frame(b"x" * 56),
}


@pytest.mark.parametrize("said", RUBBISH.values(), ids=RUBBISH)
def test_who_says_something_else_is_refused_at_once(driver: Driver, said: bytes) -> None:
    stranger = driver.call()
    stranger.sendall(said)
    with pytest.raises((NotOurs, OSError)) as raised:
        driver.greeting().result(WAIT_S)
    assert not isinstance(raised.value, TimeoutError)
    assert is_closed(stranger)


def test_a_stranger_that_goes_away_is_refused(driver: Driver) -> None:
    driver.call().close()
    with pytest.raises((NotOurs, OSError)):
        driver.greeting().result(WAIT_S)


@pytest.mark.usefixtures("impatient")
def test_a_stranger_that_says_nothing_is_refused_after_a_while(driver: Driver) -> None:
    stranger = driver.call()
    with pytest.raises(TimeoutError):
        driver.greeting().result(WAIT_S)
    assert is_closed(stranger)


@pytest.mark.usefixtures("impatient")
def test_a_resident_does_not_wait_for_ever_for_a_driver_that_says_nothing(
    own: tuple[str, ssl.SSLContext],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for certificate in (None, own[0]):
            with pytest.raises(TimeoutError):
                Invitation("127.0.0.1", listener.getsockname()[1], 1, SECRET, certificate).accept()


def test_nobody_waits_for_those_who_say_nothing(driver: Driver) -> None:
    strangers = [driver.call() for _ in range(4)]
    waiting = [driver.greeting() for _ in strangers]
    ours, theirs = driver.joined()
    ours.send(b"work")
    assert received(theirs) == b"work"
    assert not any(each.done() for each in waiting)
    for each in strangers:
        each.close()


@pytest.mark.usefixtures("impatient")
def test_the_time_for_a_greeting_does_not_hold_for_what_comes_after(driver: Driver) -> None:
    ours, theirs = driver.joined()
    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(received, each) for each in (ours, theirs)]
        with pytest.raises(TimeoutError):
            waits[0].result(0.3)
        ours.send(b"late")
        theirs.send(b"too")
        assert [each.result(WAIT_S) for each in waits] == [b"too", b"late"]


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        Invitation("127.0.0.1", port, 1, SECRET).accept()


def test_an_invitation_does_not_show_its_secret() -> None:
    assert "sss" not in repr(Invitation("h", 1, 2, SECRET))


# --- encryption -------------------------------------------------------------------------------------------------------


def test_a_resident_takes_the_certificate_of_its_driver_and_no_other(encrypted: Driver) -> None:
    """The other one has the same name, as that of any worker has."""
    other, _ = own_certificate()
    with pytest.raises(ssl.SSLCertVerificationError):
        Invitation("127.0.0.1", encrypted.port, 1, SECRET, other).accept()
    with pytest.raises(ssl.SSLError):
        encrypted.greeting().result(WAIT_S)


def test_a_resident_that_expects_encryption_does_without_for_nobody(
    plain: Driver, own: tuple[str, ssl.SSLContext]
) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        Invitation("127.0.0.1", plain.port, 1, SECRET, own[0]).accept()
    with pytest.raises((NotOurs, OSError)):
        plain.greeting().result(WAIT_S)


def test_a_driver_that_encrypts_lets_nobody_in_who_does_not(encrypted: Driver) -> None:
    stranger = encrypted.call()
    stranger.sendall(frame(b"o" * 56))
    with pytest.raises(ssl.SSLError):
        encrypted.greeting().result(WAIT_S)


def test_what_is_sent_cannot_be_read_on_the_way(encrypted: Driver) -> None:
    seen = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(3) as pool:
        invitation = Invitation("127.0.0.1", listener.getsockname()[1], 1, SECRET, encrypted._certificate)
        accepted = pool.submit(invitation.accept)
        resident, _ = listener.accept()
        driver = encrypted.call()

        def relay(source: socket.socket, target: socket.socket) -> None:
            while data := source.recv(65536):
                seen.extend(data)
                target.sendall(data)

        pool.submit(relay, resident, driver)
        pool.submit(relay, driver, resident)
        theirs = accepted.result(WAIT_S)
        _, ours = encrypted.greeting().result(WAIT_S)
        ours.send(b"a well known text")
        assert received(theirs) == b"a well known text"
        assert len(seen) > 1000
        assert b"a well known text" not in seen
        for each in (ours, theirs):
            each.close()
        for connection in (resident, driver):
            connection.close()


# --- what goes over it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 64 * 1024, 64 * 1024 + 1, 5_000_000])
def test_frames_of_any_size(driver: Driver, size: int) -> None:
    ours, theirs = driver.joined()
    data = os.urandom(size)
    with ThreadPoolExecutor(1) as pool:
        for source, target in ((ours, theirs), (theirs, ours)):
            sent = pool.submit(source.send, data)
            assert received(target) == data
            sent.result(WAIT_S)


def test_frames_keep_their_order(driver: Driver) -> None:
    ours, theirs = driver.joined()
    frames = [os.urandom(size) for size in (3, 0, 200_000, 1, 70_000)]
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(send_all, ours, frames)
        assert [received(theirs) for _ in frames] == frames
        sent.result(WAIT_S)


def test_one_thread_sends_while_another_receives(driver: Driver) -> None:
    """Both ends at once, large and small: with an SSLSocket this waits for ever on some versions of Python."""
    ours, theirs = driver.joined()
    frames = [os.urandom(size) for size in (1, 300_000, 10, 2_000_000, 0, 70_000) * 3]

    with ThreadPoolExecutor(4) as pool:
        takes = [pool.submit(lambda line: [received(line) for _ in frames], each) for each in (ours, theirs)]
        sends = [pool.submit(send_all, each, frames) for each in (ours, theirs)]
        assert [each.result(WAIT_S) for each in takes] == [frames, frames]
        for each in sends:
            each.result(WAIT_S)


def test_who_announces_a_frame_that_nobody_can_hold_is_gone(driver: Driver) -> None:
    """Even a resident: its process may be out of its mind. Nothing is set aside for what it says."""
    ours, theirs = driver.joined()
    theirs._stream.sendall(struct.pack(">Q", 2**62))
    with pytest.raises(OSError, match="4611686018427387904 bytes"):
        ours.receive()


END: dict[str, Callable[[Line, Line], None]] = {
    "at the other end": lambda _, theirs: theirs.close(),
    "at this end": lambda ours, _: ours.close(),
}


@pytest.mark.parametrize("end", END.values(), ids=END)
def test_closing_ends_a_receive_at_either_end(driver: Driver, end: Callable[[Line, Line], None]) -> None:
    ours, theirs = driver.joined()
    began = threading.Event()

    def receive() -> object:
        began.set()
        try:
            return ours.receive()
        except OSError:
            return None

    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(receive)
        assert began.wait(WAIT_S)
        with pytest.raises(TimeoutError):
            waits.result(0.05)
        end(ours, theirs)
        assert waits.result(WAIT_S) is None


def test_a_frame_that_breaks_off_is_the_end(driver: Driver) -> None:
    ours, theirs = driver.joined()
    theirs._stream.sendall(struct.pack(">Q", 100) + b"x" * 50)
    theirs.close()
    assert ours.receive() is None


def test_sending_to_who_is_gone_is_an_error(driver: Driver) -> None:
    ours, theirs = driver.joined()
    theirs.close()
    with pytest.raises(ConnectionError):
        send_all(ours, [b"x" * 100_000] * 1000)


def test_closing_twice_is_no_error(driver: Driver) -> None:
    ours, _ = driver.joined()
    ours.close()
    ours.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        ours.send(b"x")


def test_a_machine_that_falls_silent_is_noticed(driver: Driver) -> None:
    """A process that ends closes its line. A machine that is cut off does not: the kernel asks it now and then."""
    ours, theirs = driver.joined()
    for each in (ours, theirs):
        raw = each._connection
        asks = raw.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert asks == 1
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 30
        assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
