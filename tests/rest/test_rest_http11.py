"""HTTP/1.1 byte by byte, and with clients that offer HTTP/2."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from rest_fakes import FakeHerder
from wire import Wire
from workers import LOCAL, Worker, worker

from headgate.rest.settings import RestSettings

pytestmark = pytest.mark.process

# As java.net.http.HttpClient writes them.
OFFER = (
    b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
)
BODY = b'{"k":"v"}'
PUT = b"PUT /connectors/b/config HTTP/1.1\r\nHost: x\r\n"
GET = b"GET /connectors HTTP/1.1\r\nHost: x\r\n"
HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


@pytest.fixture(scope="module")
def served() -> Iterator[Worker]:
    with worker(RestSettings(listeners=(LOCAL,), allowed_hosts=("x",))) as made:
        yield made


@pytest.fixture
def herder(served: Worker) -> FakeHerder:
    return served.reset().herder


@pytest.fixture
def wire(served: Worker, herder: FakeHerder) -> Iterator[Wire]:
    with Wire(served) as made:
        yield made


# --- clients that offer HTTP/2 ----------------------------------------------------------------------------------------

LENGTH = b"Content-Length: 9\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "pieces",
    [
        (PUT + OFFER + LENGTH + BODY,),
        (PUT + OFFER + LENGTH, BODY[:4], BODY[4:]),
        (PUT + OFFER + CHUNKED + b"9\r\n" + BODY + b"\r\n0\r\n\r\n",),
    ],
    ids=["at once", "in pieces", "chunked"],
)
def test_an_offer_of_h2c_is_passed_over_and_the_body_is_kept(
    wire: Wire, herder: FakeHerder, caplog: pytest.LogCaptureFixture, pieces: tuple[bytes, ...]
) -> None:
    status, body = wire.asked(*pieces)
    assert (status, json.loads(body)["config"]) == (201, {"k": "v", "name": "b"})
    assert herder.configs["b"] == {"k": "v", "name": "b"}
    assert wire.asked(GET + OFFER + b"\r\n") == wire.asked(GET + b"\r\n") == (200, b'["a","b"]')
    assert caplog.messages == []


def test_curl_that_offers_http2_is_served(served: Worker, herder: FakeHerder) -> None:
    curl = shutil.which("curl")
    if curl is None or b"HTTP2" not in subprocess.run([curl, "--version"], capture_output=True, check=True).stdout:
        pytest.skip("no curl with HTTP/2 on this machine")
    command = [curl, "--http2", "-sS", "--noproxy", "*", "-w", "%{http_code} %{http_version}", "-o", "/dev/null"]
    command += ["-X", "PUT", "-H", "Content-Type: application/json", "-d", BODY.decode()]
    where = f"{served.url}connectors/b/config"
    printed = subprocess.run([*command, where], capture_output=True, timeout=60, check=True).stdout
    assert (printed, herder.configs["b"]) == (b"201 1.1", {"k": "v", "name": "b"})


JAVA = """
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

class Client {
    public static void main(String[] arguments) throws Exception {
        var client = HttpClient.newHttpClient();
        for (var name : arguments[1].split(",")) {
            var uri = URI.create(arguments[0] + "connectors/" + name + "/config");
            var body = HttpRequest.BodyPublishers.ofString("{\\"k\\":\\"v\\"}");
            var request = HttpRequest.newBuilder(uri).header("Content-Type", "application/json").PUT(body).build();
            System.out.print(client.send(request, BodyHandlers.ofString()).statusCode() + " ");
        }
    }
}
"""


def test_the_client_of_java_is_served(served: Worker, herder: FakeHerder, tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no JDK on this machine")
    (tmp_path / "Client.java").write_text(JAVA)
    command = ["java", "-XX:TieredStopAtLevel=1", str(tmp_path / "Client.java"), served.url, "b,c"]
    printed = subprocess.run(command, capture_output=True, timeout=120, check=True).stdout
    assert (printed, herder.configs["c"]) == (b"201 201 ", {"k": "v", "name": "c"})
    assert {seen.headers["upgrade"] for seen in served.seen} == {"h2c"}


# --- connections and bodies -------------------------------------------------------------------------------------------


def test_requests_that_come_together_are_answered_in_order(wire: Wire) -> None:
    head = b"HEAD /connectors HTTP/1.1\r\nHost: x\r\n\r\n"
    wire.send(GET + b"\r\n" + PUT + LENGTH + BODY + head + PUT.replace(b"PUT", b"GET") + b"\r\n" + GET + b"\r\n")
    answers = [wire.answer(), wire.answer(), wire.answer(body=False), wire.answer(), wire.answer()]
    assert [status for status, _, _ in answers] == [200, 201, 200, 200, 200]
    assert (answers[0][2], answers[4][2]) == (b'["a"]', b'["a","b"]')
    assert answers[2][1]["content-length"] == answers[4][1]["content-length"]


def test_chunks_come_as_they_like(wire: Wire) -> None:
    chunks = b'4;why="not"\r\n' + BODY[:4] + b"\r\n05\r\n" + BODY[4:] + b"\r\n0\r\nX-Sum: 1\r\n\r\n"
    whole = PUT + CHUNKED + chunks
    assert wire.asked(*(whole[i : i + 7] for i in range(0, len(whole), 7)))[0] == 201
    assert wire.asked(GET + b"\r\n")[0] == 200


def test_a_client_that_waits_for_a_word_before_its_body_gets_it_or_the_refusal(wire: Wire) -> None:
    waiting = PUT + b"Expect: 100-continue\r\n"
    wire.send(waiting + LENGTH)
    assert wire.answer()[0] == 100
    assert wire.asked(BODY)[0] == 201
    wire.send(waiting + b"Content-Type: text/plain\r\n" + LENGTH)
    assert wire.answer()[0] == 415


@pytest.mark.parametrize(
    "request_head", [GET + b"Connection: close\r\n\r\n", b"GET /connectors HTTP/1.0\r\n\r\n"], ids=["asked to", "1.0"]
)
def test_a_connection_ends_for_who_wants_that(wire: Wire, request_head: bytes) -> None:
    wire.send(request_head)
    status, headers, body = wire.answer()
    assert (status, headers["connection"], body) == (200, "close", b'["a"]')
    assert wire.ended()


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://x/connectors", 200),
        (b"HTTP://x:8083/connectors?expand=info", 200),
        (b"http://x", 200),
        (b"http://x/connectors/%61", 200),
        (b"http://x/nowhere", 404),
    ],
)
def test_a_target_may_name_the_host_too(wire: Wire, target: bytes, status: int) -> None:
    assert wire.asked(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n")[0] == status


def test_where_two_lengths_are_told_nothing_can_hide_behind_the_body(wire: Wire, herder: FakeHerder) -> None:
    hidden = b"DELETE /connectors/a HTTP/1.1\r\nHost: x\r\n\r\n"
    wire.send(PUT + b"Content-Length: 100\r\n" + CHUNKED + b"9\r\n" + BODY + b"\r\n0\r\n\r\n" + hidden)
    assert wire.answer()[0] == 201
    assert wire.ended()
    assert list(herder.configs) == ["a", "b"]


# --- what is no request -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (HELLO, 400),
        (b"GET /connectors HTTP/1.1\r\n\r\n", 400),
        (GET + b"Host: y\r\n\r\n", 400),
        (GET + b"X : y\r\n\r\n", 400),
        (GET + b"X: \x00\r\n\r\n", 400),
        (b"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (PUT + b"Content-Length: -1\r\n\r\n", 400),
        (PUT + b"Content-Length: 9\r\nContent-Length: 8\r\n\r\n", 400),
        (PUT + CHUNKED + b"nine\r\n", 400),
        (PUT + CHUNKED + b"2\r\n{}x", 400),
        (PUT + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501),
        # Refused with the last byte: what is left unread makes the end a reset, which may overtake the answer.
        ((GET + b"X: ").ljust(40 * 1024 + 1, b"y"), 431),
        (b"GET /".ljust(40 * 1024 + 1, b"y"), 414),
    ],
    ids=["words", "tls", "no host", "two hosts", "blank", "nul", "utf-8", "negative", "two lengths", "no size",
         "no end", "gzip", "endless", "endless line"],
)  # fmt: skip
def test_what_is_no_request_is_refused_in_json_and_the_connection_ends(
    wire: Wire, herder: FakeHerder, sent: bytes, status: int
) -> None:
    wire.send(sent)
    answered, headers, body = wire.answer()
    assert (answered, headers["content-type"], headers["connection"]) == (status, "application/json", "close")
    told = json.loads(body)
    assert (told["error_code"], told["message"].partition(" ")[0]) == (status, "HTTP")
    assert wire.ended()
    assert herder.calls == []


def test_a_body_that_breaks_after_its_answer_gets_no_second_one(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    wire.send(PUT + b"Content-Type: text/plain\r\n" + CHUNKED)
    assert wire.answer()[0] == 415
    wire.send(b"nonsense\r\n")
    assert wire.ended()
    assert caplog.messages == ["Invalid HTTP request received."]


def test_a_body_that_breaks_before_its_answer_gets_one_answer(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """All of it in one packet: the endpoint refuses the type, and would answer when h11 already has."""
    head = b"PUT /connectors/a/config HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
    status, body = wire.asked(head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    assert (status, json.loads(body)["error_code"]) == (400, 400)
    assert wire.ended()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_what_was_refused_is_not_carried_out(wire: Wire, herder: FakeHerder) -> None:
    status, _ = wire.asked(
        b"PUT /connectors/a/pause HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nnine\r\n"
    )
    assert status == 400
    assert wire.ended()
    assert herder.calls == []
