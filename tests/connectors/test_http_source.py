"""HttpSource, with real servers: pages, offsets, failures, and answers that nobody wants."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from http_server import Asked, HttpServer, Reply

from headgate.api import ConnectError, Reach, ReachKind, RetriableError, SourceRecord
from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext, SourceConnectorSuite
from headgate.connectors import HttpSource
from headgate.connectors.http import source_task
from headgate.connectors.http.source_task import HttpSourceTask

pytestmark = pytest.mark.process

PAGE = 2
QUICK = {"topic": "orders", "poll.interval.ms": "10", "retry.backoff.ms": "10", "retry.backoff.max.ms": "40"}
SECRET = "open-sesame-secret"


class Api:
    """A list that grows, in pages, by every way to ask for them."""

    def __init__(self) -> None:
        self.items: list[dict[str, int]] = []
        self.server = HttpServer(self.answer)

    def add(self, count: int) -> None:
        self.items += [{"id": number + 1} for number in range(len(self.items), len(self.items) + count)]

    def answer(self, asked: Asked) -> Reply:
        query = {**asked.query, **(asked.json if asked.body else {})}
        match asked.path:
            case "/after":  # the id of the last record
                start = int(query.get("after") or 0)
                return Reply(body={"items": self.items[start : start + PAGE]})
            case "/offset":
                start, limit = int(query["offset"]), int(query["limit"])
                return Reply(body={"items": self.items[start : start + limit]})
            case "/cursor":
                start = int(str(query.get("cursor") or "c0")[1:])
                more = start + PAGE < len(self.items)
                return Reply(
                    body={"items": self.items[start : start + PAGE], "next": f"c{start + PAGE}" if more else None}
                )
            case "/link":
                start = int(query.get("start", 0))
                more = start + PAGE < len(self.items)
                link = {"Link": f'</link?start={start + PAGE}>; rel="next"'} if more else {}
                return Reply(body={"items": self.items[start : start + PAGE]}, headers=link)
        return Reply(404)


WAYS: dict[str, dict[str, str]] = {
    "after": {"page.by": "cursor", "cursor.in": "record", "cursor.pointer": "/id", "cursor.param": "after"},
    "offset": {"page.by": "offset", "limit": str(PAGE)},
    "cursor": {"page.by": "cursor", "cursor.pointer": "/next", "cursor.param": "cursor"},
    "link": {"page.by": "link"},
}
POST = {"method": "POST", "page.by": "cursor", "cursor.pointer": "/next", "body": '{"cursor": ${cursor}}'}


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api()
    with made.server:
        yield made


class Acceptance(SourceConnectorSuite):
    connector = HttpSource
    way = ""
    more: Mapping[str, str] = {}

    @pytest.fixture(autouse=True)
    def _given_an_api(self, api: Api) -> None:
        self.api = api
        self.config = {
            **QUICK, **WAYS[self.way], **self.more, "url": f"{api.server.url}/{self.way}", "records.pointer": "/items",
        }  # fmt: skip

    def add_data(self, count: int) -> None:
        self.api.add(count)


class TestByTheCursorOfARecord(Acceptance):
    way = "after"


class TestByOffset(Acceptance):
    way = "offset"


class TestByCursor(Acceptance):
    way = "cursor"


class TestByLink(Acceptance):
    way = "link"


class TestByPost(Acceptance):
    way = "cursor"
    more = POST


# --- single tasks -----------------------------------------------------------------------------------------------------

Start = Callable[..., HttpSourceTask]


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as running:
        yield running


@pytest.fixture
def other() -> Iterator[HttpServer]:
    with HttpServer() as running:
        yield running


@pytest.fixture
def start(server: HttpServer) -> Iterator[Start]:
    tasks: list[HttpSourceTask] = []

    def started(more: Mapping[str, str] | None = None, offsets: MemoryOffsets | None = None) -> HttpSourceTask:
        config = {"url": server.url, **QUICK, **(more or {})}
        task = HttpSourceTask()
        task.context = MemorySourceTaskContext(config, offsets)
        tasks.append(task)
        task.start(config)
        return task

    yield started
    for task in tasks:
        task.stop_requested()
        task.stop()


def polled(task: HttpSourceTask) -> list[SourceRecord]:
    """The next records, however often it takes to ask."""
    deadline = time.monotonic() + 20
    while not (found := task.poll()):
        assert time.monotonic() < deadline
    return [*found]


def test_records_have_keys_times_and_exact_values(server: HttpServer, start: Start) -> None:
    body = b'{"data": {"rows": [{"id": "a", "at": 1700000000123, "n": 9007199254740993, "d": 1.10, "x": [null, {}]},'
    body += b' {"at": "2024-05-06T09:08:09.123+02:00", "n": 18446744073709551615}, {"at": "2024-05-06T07:08:09.5"}]}}'
    server.replies = [Reply(body=body)]
    pointers = {"records.pointer": "/data/rows", "key.pointer": "/id", "timestamp.pointer": "/at"}
    first, second, third = polled(start(pointers))
    assert (first.topic, first.key, first.timestamp) == ("orders", "a", 1700000000123)
    assert first.value == {"id": "a", "at": 1700000000123, "n": 9007199254740993, "d": 1.1, "x": [None, {}]}
    # Beyond 64 bits, as JsonConverter reads it.
    assert (second.key, second.value["n"], second.timestamp) == (None, -1, 1714979289123)
    assert (third.timestamp, third.value_schema, third.source_offset) == (1714979289500, None, None)


@pytest.mark.parametrize("value", ['"yesterday"', "-1", "true", "[]", '"99999-01-01"', "1e300", "1e400"])
def test_a_time_that_is_none_is_told(server: HttpServer, start: Start, value: str) -> None:
    server.replies = [Reply(body=f'[{{"at": {value}}}]'.encode())]
    with pytest.raises(ConnectError, match=r"at timestamp\.pointer: neither milliseconds since 1970 nor"):
        start({"timestamp.pointer": "/at"}).poll()


@pytest.mark.parametrize(
    ("body", "records"),
    [
        (b'[1, "a", null]', [1, "a", None]),
        (b'{"a": 1}', [{"a": 1}]),
        (b"7", [7]),
        (b"[[]]", [[]]),
    ],
)
def test_without_a_pointer_an_answer_is_a_list_of_records_or_one(
    server: HttpServer, start: Start, body: bytes, records: list[Any]
) -> None:
    server.replies = [Reply(body=body)]
    assert [record.value for record in polled(start())] == records


@pytest.mark.parametrize("body", [b"", b" \n", b"[]", b"null"])
def test_an_answer_may_be_empty(server: HttpServer, start: Start, body: bytes) -> None:
    server.replies = [Reply(204 if not body else 200, body)]
    assert start().poll() is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{}", r"has nothing at records\.pointer"),
        (b'{"items": {}}', r"has no list at records\.pointer"),
        (b'[{"items": []}]', r"has nothing at records\.pointer"),
    ],
)
def test_where_records_should_be_is_no_list(server: HttpServer, start: Start, body: bytes, reason: str) -> None:
    server.replies = [Reply(body=body)]
    with pytest.raises(ConnectError, match=reason):
        start({"records.pointer": "/items"}).poll()


def test_one_page_is_read_again_after_a_while(server: HttpServer, start: Start) -> None:
    server.answer = lambda asked: Reply(body=[1])
    task = start({"poll.interval.ms": "300"})
    assert polled(task)
    began = time.monotonic()
    assert polled(task)
    assert time.monotonic() - began >= 0.25


def test_garbage_fails_the_task_and_is_shown(server: HttpServer, start: Start) -> None:
    server.replies = [Reply(body=b"<html>Please  log in, open-sesame-secret</html>")]
    with pytest.raises(
        ConnectError, match=r"^The answer to GET http://127.0.0.1:\d+/ is not JSON: <html>Please log in, \[hid"
    ):
        start({"auth.type": "bearer", "auth.token": SECRET}).poll()


def test_a_huge_answer_fails_the_task(server: HttpServer, start: Start) -> None:
    server.replies = [Reply(body=b"[" + b"1," * 1000)]
    with pytest.raises(
        ConnectError, match=r"has more than 1000 bytes: ask for smaller pages, or .* response\.max\.bytes"
    ):
        start({"response.max.bytes": "1000"}).poll()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 422])
def test_a_refusal_fails_the_task(server: HttpServer, start: Start, status: int) -> None:
    server.replies = [Reply(status, {"error": f"not with {SECRET}"})]
    with pytest.raises(ConnectError) as failed:
        start({"auth.type": "bearer", "auth.token": SECRET}).poll()
    assert not isinstance(failed.value, RetriableError)
    assert f" was answered with {status} " in str(failed.value)
    assert '{"error": "not with [hidden]"}' in str(failed.value)


def test_a_redirect_elsewhere_fails_the_task(server: HttpServer, other: HttpServer, start: Start) -> None:
    server.replies = [Reply(302, headers={"Location": other.url})]
    with pytest.raises(ConnectError, match=r"302 Found, which leads to .* and was not followed"):
        start().poll()
    assert other.asked == []


# --- what passes ------------------------------------------------------------------------------------------------------


def test_after_failures_there_are_longer_and_longer_pauses(server: HttpServer, start: Start) -> None:
    times: list[float] = []

    def answer(asked: Asked) -> Reply:
        times.append(time.monotonic())
        return Reply(500, b"oops") if len(times) < 5 else Reply(body=[len(times)])

    server.answer = answer
    task = start({"retry.backoff.ms": "50", "retry.backoff.max.ms": "200"})
    told: list[str] = []
    found: Any = None
    while not found:
        try:
            found = task.poll()
        except RetriableError as error:
            told.append(str(error))
    assert found[0].value == 5
    assert "was answered with 500 Internal Server Error: oops; asked again after 0.1 s, 1 in a row" in told[0]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert [gap >= least for gap, least in zip(gaps, (0.05, 0.1, 0.2, 0.2), strict=True)] == [True] * 4


@pytest.mark.parametrize(("status", "most", "least"), [(429, "10000", 1.0), (503, "10000", 1.0), (503, "300", 0.3)])
def test_a_server_is_left_alone_as_long_as_it_says_and_is_believed(
    server: HttpServer, start: Start, monkeypatch: pytest.MonkeyPatch, status: int, most: str, least: float
) -> None:
    monkeypatch.setattr(source_task, "_TROUBLE_S", 0.05)
    server.replies = [Reply(status, headers={"Retry-After": "1"}), Reply(body=[1])]
    task = start({"retry.after.max.ms": most})
    began, told, found = time.monotonic(), set(), None
    while not found:
        try:
            found = task.poll()
        except RetriableError as error:  # also while it waits, so that everybody can see why
            told.add(str(error))
    assert time.monotonic() - began >= least
    (said,) = told
    assert f"was answered with {status} " in said
    assert said.endswith(f"; asked again after {least} s, 1 in a row")
    assert len(server.asked) == 2


def test_a_server_that_comes_back_is_asked_again(start: Start) -> None:
    with HttpServer() as gone:
        url = gone.url
    task = start({"url": url})
    with pytest.raises(RetriableError, match="refused"):
        task.poll()


def test_requests_keep_to_the_limit(server: HttpServer, start: Start) -> None:
    times: list[float] = []

    def answer(asked: Asked) -> Reply:
        times.append(time.monotonic())
        return Reply(body=[{"id": len(times)}])

    server.answer = answer
    task = start({**WAYS["after"], "rate.limit.per.second": "10"})
    while len(times) < 4:
        task.poll()
    assert times[3] - times[0] >= 0.25


def test_a_stop_wakes_a_task_that_waits_for_an_answer(
    server: HttpServer, start: Start, eventually: Callable[..., None]
) -> None:
    held = threading.Event()

    def hold(asked: Asked) -> Reply:
        held.wait(20)
        return Reply()

    server.answer = hold
    task = start()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(task.poll()))
    thread.start()
    eventually(lambda: server.asked)
    task.stop_requested()
    thread.join(4)
    held.set()
    assert found == [None]


# --- links ------------------------------------------------------------------------------------------------------------


def linked(link: str) -> Reply:
    return Reply(body=[1], headers={"Link": f'<{link}>; rel="next"'})


def test_a_link_to_another_host_is_followed_if_it_is_named_and_without_secrets(
    server: HttpServer, other: HttpServer, start: Start
) -> None:
    server.replies = [linked(f"{other.url}/2")]
    other.replies = [Reply(body=[2])]
    hosts = f"127.0.0.1:{other.port}"
    task = start({"page.by": "link", "link.hosts": hosts, "auth.type": "bearer", "auth.token": SECRET})
    (first,) = polled(task)
    assert (first.source_partition, first.source_offset) == ({"url": f"{server.url}/"}, {"link": f"{other.url}/2"})
    (second,) = polled(task)
    assert second.source_offset == {"link": f"{other.url}/2", "records": 1}
    assert server.asked[0].headers["authorization"] == f"Bearer {SECRET}"
    assert "authorization" not in other.asked[0].headers
    assert isinstance(task.context, MemorySourceTaskContext)
    assert Reach(ReachKind.HOST, f"{other.url}/2", "link.hosts") in task.context.required


@pytest.mark.parametrize("link", ["http://elsewhere.example/2", "ftp://127.0.0.1/2", "http://me:x@127.0.0.1/2"])
def test_a_link_that_may_not_be_followed_fails_the_task_before_its_records_are_lost(
    server: HttpServer, start: Start, link: str
) -> None:
    server.replies = [linked(link)]
    with pytest.raises(ConnectError, match=r"link"):
        start({"page.by": "link"}).poll()


def test_a_link_with_a_secret_in_it_does_not_become_an_offset(server: HttpServer, start: Start) -> None:
    server.replies = [
        linked(f"/2?token={SECRET}"),
        linked("/2?api_key=another-secret"),
        linked("?api_key=another-secret"),
    ]
    with pytest.raises(ConnectError, match="has a secret in it") as failed:
        start({"page.by": "link", "auth.type": "bearer", "auth.token": SECRET}).poll()
    assert SECRET not in str(failed.value)
    for _ in range(2):
        with pytest.raises(ConnectError, match="has a secret in it"):
            start({"page.by": "link", "url": f"{server.url}?api_key=another-secret"}).poll()


def test_a_stored_link_is_looked_at_again(server: HttpServer, other: HttpServer, start: Start) -> None:
    stored = MemoryOffsets([({"url": f"{server.url}/"}, {"link": f"{other.url}/2"})])
    with pytest.raises(ConnectError, match="The next page is said to be at"):
        start({"page.by": "link"}, stored).poll()
    assert other.asked == []


def test_a_stored_offset_of_another_kind_is_told(server: HttpServer, start: Start) -> None:
    stored = MemoryOffsets([({"url": f"{server.url}/"}, {"offset": 7})])
    with pytest.raises(ConnectError, match=r"^The stored offset is of no use: With page.by=link .*reset its offsets"):
        start({"page.by": "link"}, stored)


def test_a_page_that_has_shrunk_is_told_of(server: HttpServer, start: Start, caplog: pytest.LogCaptureFixture) -> None:
    stored = MemoryOffsets([({"url": f"{server.url}/"}, {"records": 3})])
    server.replies = [Reply(body=[1])]
    assert start({"page.by": "link"}, stored).poll() is None
    assert "has 1 records, of which 3 were given before" in caplog.text
