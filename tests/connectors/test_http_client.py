"""HttpClient, with real servers: bounds, redirects, logins, TLS, and a stop in the middle."""

from __future__ import annotations

import gzip
import itertools
import ssl
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from authority import Authority
from cryptography.hazmat.primitives import serialization
from http_server import Asked, HttpServer, Reply

from headgate.api import ConfigError, ConnectError, Reach, ReachKind, RetriableError
from headgate.connectors.http.address import Address
from headgate.connectors.http.answer import HttpAnswer
from headgate.connectors.http.client import HttpClient
from headgate.connectors.http.sink_config import HttpSinkConfig

pytestmark = pytest.mark.process

SECRET = "open-sesame-secret"
LOGIN = {"auth.type": "basic", "auth.user": "me", "auth.password": SECRET}
MOST = 100_000

Make = Callable[..., HttpClient]


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[HttpServer]:
    with HttpServer() as running:
        yield running


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[HttpClient] = []

    def client(url: str, more: Mapping[str, str] | None = None, required: list[Reach] | None = None) -> HttpClient:
        config = HttpSinkConfig.of({"url": url, "request.timeout.ms": "5000", **(more or {})}).client
        made.append(HttpClient(config, (required if required is not None else []).append))
        return made[-1]

    yield client
    for each in made:
        each.close()


def get(client: HttpClient, url: str, most: int = MOST, **headers: str) -> HttpAnswer:
    return client.ask("GET", Address.parse(url), None, headers, most)


def test_an_answer_has_status_headers_and_body(server: HttpServer, make: Make) -> None:
    server.replies = [Reply(201, b"made", {"X-Two": "a", "x-one": "b"})]
    answer = get(make(server.url), f"{server.url}/x?y=z")
    assert (answer.status, answer.body, answer.whole) == (201, b"made", True)
    assert (answer.headers["x-one"], answer.headers["x-two"]) == ("b", "a")
    (asked,) = server.asked
    assert (asked.method, asked.target) == ("GET", "/x?y=z")
    assert asked.headers["user-agent"].startswith("headgate/")


def test_connections_are_kept(server: HttpServer, make: Make) -> None:
    client = make(server.url)
    for _ in range(5):
        get(client, server.url)
    assert server.connections == 1


def test_cookies_are_not_kept(server: HttpServer, make: Make) -> None:
    client = make(server.url)
    server.replies = [Reply(headers={"Set-Cookie": "a=b"})]
    get(client, server.url)
    get(client, server.url)
    assert "cookie" not in server.asked[1].headers


def test_headers_of_the_configuration_win(server: HttpServer, make: Make) -> None:
    client = make(server.url, {"headers.content-type": "text/x-own", "headers.X-A": "b", "secret.headers.X-C": SECRET})
    client.ask("POST", Address.parse(server.url), b"{}", {"Content-Type": "application/json", "X-A": "c"}, MOST)
    (asked,) = server.asked
    assert (asked.headers["content-type"], asked.headers["x-a"], asked.headers["x-c"]) == ("text/x-own", "b", SECRET)


@pytest.mark.parametrize(
    ("more", "header", "value"),
    [
        (LOGIN, "authorization", "Basic bWU6b3Blbi1zZXNhbWUtc2VjcmV0"),
        ({"auth.type": "bearer", "auth.token": SECRET}, "authorization", f"Bearer {SECRET}"),
        ({"auth.type": "header", "auth.token": SECRET}, "x-api-key", SECRET),
        ({"auth.type": "header", "auth.token": SECRET, "auth.header": "X-Mine"}, "x-mine", SECRET),
    ],
)
def test_logins(server: HttpServer, make: Make, more: dict[str, str], header: str, value: str) -> None:
    get(make(server.url, more), server.url)
    assert server.asked[0].headers[header] == value


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_no_more_is_read_than_is_wanted(server: HttpServer, make: Make) -> None:
    sent = itertools.count()
    server.replies = [Reply(body=(b"x" * 10_000 for _ in sent))]  # without end
    answer = get(make(server.url), server.url, most=25_000)
    assert (len(answer.body), answer.whole) == (25_000, False)
    assert next(sent) < 1000  # the connection was closed, and the server has noticed


def test_what_fits_exactly_is_whole(server: HttpServer, make: Make) -> None:
    server.replies = [Reply(body=b"x" * 10), Reply(body=gzip.compress(b"x" * 10), headers={"Content-Encoding": "gzip"})]
    client = make(server.url)
    for _ in range(2):
        answer = get(client, server.url, most=10)
        assert (answer.body, answer.whole) == (b"x" * 10, True)


def test_packed_answers_are_unpacked_only_as_far_as_is_wanted(server: HttpServer, make: Make) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    server.replies = [Reply(body=bomb, headers={"Content-Encoding": "gzip"})]
    client = make(server.url)
    tracemalloc.start()
    try:
        answer = get(client, server.url, most=1000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert (answer.body, answer.whole) == (b"\0" * 1000, False)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [("br", b"x"), ("gzip, gzip", b"x"), ("gzip", b"not packed"), ("gzip", gzip.compress(b"x" * 10_000)[:-20])],
)
def test_what_cannot_be_unpacked_is_told(server: HttpServer, make: Make, encoding: str, body: bytes) -> None:
    server.replies = [
        Reply(body=body, headers={"Content-Encoding": encoding}),
        Reply(404, body, {"Content-Encoding": encoding}),
    ]
    client = make(server.url)
    with pytest.raises(ConnectError, match="cannot be unpacked"):
        get(client, server.url)
    assert get(client, server.url).status == 404


def test_an_answer_that_drips_is_given_up(server: HttpServer, make: Make) -> None:
    stopped = threading.Event()

    def drip() -> Iterator[bytes]:
        while not stopped.wait(0.02):
            yield b"x"

    server.replies = [Reply(body=drip())]
    with pytest.raises(RetriableError, match=r"^GET http://127.0.0.1:\d+/ was not answered completely in time"):
        get(make(server.url, {"request.timeout.ms": "200"}), server.url)
    stopped.set()


def test_no_answer_in_time(server: HttpServer, make: Make) -> None:
    stopped = threading.Event()

    def slow(asked: Asked) -> Reply:
        stopped.wait(20)
        return Reply()

    server.answer = slow
    with pytest.raises(RetriableError, match=r"was not answered in time \(ReadTimeout\)"):
        get(make(server.url, {"request.timeout.ms": "100"}), server.url)
    stopped.set()


def test_a_server_that_is_away_is_tried_again(server: HttpServer, make: Make) -> None:
    with HttpServer() as gone:
        url = gone.url
    with pytest.raises(RetriableError, match=r"^GET http://127.0.0.1:\d+/ failed: .*refused"):
        get(make(url), url)


def test_half_an_answer_is_none(server: HttpServer, make: Make) -> None:
    server.replies = [Reply(body=b"half", length=8)]
    with pytest.raises(RetriableError, match="failed: "):
        get(make(server.url), server.url)


# --- redirects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_on_the_same_host_is_followed(server: HttpServer, make: Make, status: int) -> None:
    server.replies = [Reply(status, headers={"Location": "/there?x=y"}), Reply(body=b"found")]
    assert get(make(server.url, LOGIN), server.url).body == b"found"
    assert server.asked[1].target == "/there?x=y"
    assert "authorization" in server.asked[1].headers


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_host_is_not(server: HttpServer, other: HttpServer, make: Make, status: int) -> None:
    server.replies = [Reply(status, headers={"Location": f"{other.url}/there?token=x"})]
    client = make(server.url, LOGIN)
    answer = get(client, server.url)
    told = client.complaint("GET", Address.parse(server.url), answer)
    assert answer.status == status
    assert told.endswith(f", which leads to {other.url}/there and was not followed")
    assert other.asked == []


@pytest.mark.parametrize(("status", "sent"), [(301, 1), (302, 1), (303, 1), (307, 2), (308, 2)])
def test_what_is_sent_is_sent_again_only_where_the_method_stays(
    server: HttpServer, make: Make, status: int, sent: int
) -> None:
    server.replies = [Reply(status, headers={"Location": "/there"})]
    make(server.url).ask("POST", Address.parse(server.url), b"body", {}, MOST)
    assert [(asked.method, asked.body) for asked in server.asked] == [("POST", b"body")] * sent


def test_redirects_in_a_circle_end(server: HttpServer, make: Make) -> None:
    server.answer = lambda asked: Reply(302, headers={"Location": "/"})
    assert get(make(server.url), server.url).status == 302
    assert len(server.asked) == 5


@pytest.mark.parametrize("location", ["http://[", "javascript:x", "ftp://127.0.0.1/", "http://me:x@127.0.0.1/"])
def test_a_redirect_to_nowhere(server: HttpServer, make: Make, location: str) -> None:
    server.replies = [Reply(302, headers={"Location": location})]
    client = make(server.url)
    answer = get(client, server.url)
    assert (answer.status, len(server.asked)) == (302, 1)
    assert "me:x" not in client.complaint("GET", Address.parse(server.url), answer)


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_another_host_is_sent_no_secrets(server: HttpServer, other: HttpServer, make: Make) -> None:
    client = make(server.url, {**LOGIN, "secret.headers.X-S": SECRET, "headers.X-P": "plain"})
    get(client, other.url)
    (asked,) = other.asked
    assert asked.headers["x-p"] == "plain"
    assert {"authorization", "x-s"} & asked.headers.keys() == set()
    assert SECRET not in str(asked)


def test_a_complaint_has_status_and_body_and_no_secrets(server: HttpServer, make: Make) -> None:
    url = f"{server.url}/x?api_key=another-secret"
    client = make(url, LOGIN)
    heard = "".join(
        f"{name}: {value}\n" for name, value in {"a": "Basic bWU6b3Blbi1zZXNhbWUtc2VjcmV0", "p": SECRET}.items()
    )
    server.replies = [Reply(400, f"No!\n  You said\n{heard} and another-secret".encode() + b"\xff" + b"x" * 5000)]
    told = client.complaint("GET", Address.parse(url), get(client, url))
    assert told.startswith(
        f"GET {server.url}/x was answered with 400 Bad Request: No! You said a: [hidden] p: [hidden]"
    )
    assert " and [hidden]\ufffdxxx" in told
    assert told.endswith("xxx...")
    assert len(told) < 1200


def test_a_secret_at_the_edge_of_what_is_shown_is_not_cut(server: HttpServer, make: Make) -> None:
    client = make(server.url, LOGIN)
    server.replies = [Reply(400, b"x" * 990 + SECRET.encode() + b"y" * 100)]
    assert "open" not in client.complaint("GET", Address.parse(server.url), get(client, server.url))


# --- a stop -----------------------------------------------------------------------------------------------------------


def test_a_request_under_way_can_be_interrupted(
    server: HttpServer, make: Make, eventually: Callable[..., None]
) -> None:
    held, raised = threading.Event(), []

    def hold(asked: Asked) -> Reply:
        held.wait(20)
        return Reply()

    server.answer = hold
    client = make(server.url)

    def ask() -> None:
        try:
            get(client, server.url)
        except RetriableError as error:
            raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    eventually(lambda: server.asked)
    began = time.monotonic()
    client.interrupt()
    thread.join(4)
    assert not thread.is_alive()
    assert time.monotonic() - began < 3
    assert len(raised) == 1
    held.set()
    with pytest.raises(RetriableError, match="to stop"):
        get(client, server.url)


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def secure(authority: Authority) -> Iterator[HttpServer]:
    """Asks for a certificate, and does without if there is none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(authority.issue("server")))
    context.load_verify_locations(str(authority.ca))
    context.verify_mode = ssl.CERT_OPTIONAL
    with HttpServer(tls=context) as running:
        yield running


def test_a_server_whose_certificate_nobody_vouches_for_is_not_trusted(secure: HttpServer, make: Make) -> None:
    with pytest.raises(ConnectError, match=r"the server is not trusted: .*certificate verify failed") as refused:
        get(make(secure.url), secure.url)
    assert not isinstance(refused.value, RetriableError)
    assert secure.asked == []


def test_a_certificate_is_shown_to_the_server_of_the_configuration_alone(
    secure: HttpServer, server: HttpServer, make: Make, authority: Authority
) -> None:
    ca, own = str(authority.ca), str(authority.issue("me"))
    required: list[Reach] = []
    files = {"ssl.ca.location": ca, "ssl.certificate.location": own}
    assert get(make(secure.url, files, required), secure.url).status == 200
    assert required == [
        Reach(ReachKind.HOST, f"{secure.url}/", "url"),
        Reach(ReachKind.READ, ca, "ssl.ca.location"),
        Reach(ReachKind.READ, own, "ssl.certificate.location"),
    ]
    assert get(make(server.url, files), secure.url).status == 200
    assert [asked.certificate for asked in secure.asked] == ["me", None]


def test_a_private_key_may_have_a_file_and_a_password_of_its_own(
    secure: HttpServer, make: Make, authority: Authority, tmp_path: Path
) -> None:
    own = authority.issue("locked")
    key = serialization.load_pem_private_key(own.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(SECRET.encode())
    locked = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    (tmp_path / "key.pem").write_bytes(locked)
    files = {
        "ssl.ca.location": str(authority.ca),
        "ssl.certificate.location": str(own),
        "ssl.key.location": str(tmp_path / "key.pem"),
        "ssl.key.password": SECRET,
    }
    get(make(secure.url, files), secure.url)
    assert secure.asked[0].certificate == "locked"
    with pytest.raises(ConfigError, match=r"for configuration ssl\.certificate\.location: It cannot be used"):
        make(secure.url, {**files, "ssl.key.password": "wrong-one"})


@pytest.mark.parametrize("key", ["ssl.ca.location", "ssl.certificate.location"])
@pytest.mark.parametrize("content", [None, "nonsense"])
def test_files_that_are_of_no_use_are_named(make: Make, tmp_path: Path, key: str, content: str | None) -> None:
    file = tmp_path / "x.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=rf"^Invalid value .*x\.pem for configuration {key}: It cannot be used"):
        make("https://127.0.0.1", {key: str(file)})


def test_what_may_not_be_reached_is_not_opened(tmp_path: Path) -> None:
    def refuse(reach: Reach) -> None:
        if reach.kind is ReachKind.READ:
            raise ConfigError(f"not {reach.key}")

    config = HttpSinkConfig.of({"url": "https://a.example", "ssl.ca.location": str(tmp_path / "missing")}).client
    with pytest.raises(ConfigError, match=r"^not ssl\.ca\.location"):
        HttpClient(config, refuse)
