"""HttpSink, with real servers: what is sent, in which order, and what becomes of it when it is not taken."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from http_server import Asked, HttpServer, Reply

from headgate.api import ConnectError, DataError, RetriableError, Schema, SinkRecord, Struct, TopicPartition, schema
from headgate.api.testing import MemoryReporter, MemorySinkTaskContext, SinkConnectorSuite
from headgate.connectors import HttpSink
from headgate.connectors.http import sink_task
from headgate.connectors.http.sink_task import HttpSinkTask

pytestmark = pytest.mark.process

SECRET = "open-sesame-secret"
QUICK = {"retry.backoff.ms": "1", "retry.backoff.max.ms": "5"}


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as running:
        yield running


class Acceptance(SinkConnectorSuite):
    connector = HttpSink
    more: Mapping[str, str] = {}

    @pytest.fixture(autouse=True)
    def _given_a_server(self, server: HttpServer) -> None:
        self.server = server
        server.replies = [Reply(503)]
        self.config = {"url": server.url, **QUICK, **self.more}

    def written(self) -> list[Any]:
        return [asked.json for asked in self.server.asked]


class TestSingle(Acceptance):
    pass


class TestJsonArray(Acceptance):
    more = {"batch.format": "json-array", "batch.max.records": "2"}

    def written(self) -> list[Any]:
        return [each for asked in self.server.asked for each in asked.json]


class TestNdjson(Acceptance):
    more = {"batch.format": "ndjson", "batch.max.records": "2"}

    def written(self) -> list[Any]:
        return [json.loads(line) for asked in self.server.asked for line in asked.body.splitlines()]


# --- single tasks -----------------------------------------------------------------------------------------------------

Start = Callable[..., HttpSinkTask]


@pytest.fixture
def reporter() -> MemoryReporter:
    return MemoryReporter()


@pytest.fixture
def start(server: HttpServer, reporter: MemoryReporter) -> Iterator[Start]:
    tasks: list[HttpSinkTask] = []

    def started(more: Mapping[str, str] | None = None, tolerant: bool = True) -> HttpSinkTask:
        config = {"url": server.url, **QUICK, **(more or {})}
        task = HttpSinkTask()
        task.context = MemorySinkTaskContext(config, reporter=reporter if tolerant else None)
        tasks.append(task)
        task.start(config)
        task.open([TopicPartition("orders", 0)])
        return task

    yield started
    for task in tasks:
        task.stop()


def record(
    value: Any, key: Any = None, value_schema: Schema | None = None, offset: int = 0, topic: str = "orders"
) -> SinkRecord:
    return SinkRecord(
        topic=topic, value=value, key=key, value_schema=value_schema, partition=0, offset=offset,
        original_topic=topic, original_partition=0, original_offset=offset,
    )  # fmt: skip


def records(*values: Any) -> list[SinkRecord]:
    return [record(value, offset=offset) for offset, value in enumerate(values)]


def bodies(server: HttpServer) -> list[bytes]:
    return [asked.body for asked in server.asked]


def put(task: HttpSinkTask, batch: list[SinkRecord]) -> list[str]:
    """Until all is well, as the runtime does it; what was said in between."""
    told: list[str] = []
    while True:
        try:
            task.put(batch)
            return told
        except RetriableError as error:
            told.append(str(error))


ORDER = schema.struct(
    {"id": schema.INT64, "total": schema.decimal(2), "at": schema.TIMESTAMP, "note": schema.STRING.as_optional()}
)


@pytest.mark.parametrize(
    ("value", "value_schema", "body"),
    [
        ({"a": [1, None, True, 1e20], "b": "ü"}, None, '{"a":[1,null,true,1.0E20],"b":"ü"}'),
        ("text", schema.STRING, '"text"'),
        (b"\x00\xff", schema.BYTES, '"AP8="'),
        (7, None, "7"),
        (
            Struct(
                ORDER, {"id": 1, "total": Decimal("1.50"), "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "note": None}
            ),
            ORDER,
            '{"id":1,"total":"AJY=","at":1704067200000,"note":null}',
        ),
    ],
)
def test_values_are_sent_as_json_converter_writes_them(
    server: HttpServer, start: Start, value: Any, value_schema: Schema | None, body: str
) -> None:
    start().put([record(value, value_schema=value_schema)])
    (asked,) = server.asked
    assert (asked.method, asked.body.decode(), asked.headers["content-type"]) == ("POST", body, "application/json")


@pytest.mark.parametrize(
    ("value", "body"), [("a text", b"a text"), (b"\x00\xff", b"\x00\xff"), ({"a": 1}, b'{"a":1}'), (7, b"7")]
)
def test_texts_may_be_sent_as_they_are(server: HttpServer, start: Start, value: Any, body: bytes) -> None:
    start({"value.format": "text"}).put([record(value)])
    (asked,) = server.asked
    assert (asked.body, asked.headers["content-type"]) == (body, "text/plain; charset=utf-8")


@pytest.mark.parametrize(
    ("form", "value_format", "sent", "kind"),
    [
        ("json-array", "json", [b'["a",{"b":1}]', b"[3]"], "application/json"),
        ("ndjson", "json", [b'"a"\n{"b":1}\n', b"3\n"], "application/x-ndjson"),
        ("json-array", "text", [b'[a,{"b":1}]', b"[3]"], "application/json"),
        ("ndjson", "text", [b'a\n{"b":1}\n', b"3\n"], "application/x-ndjson"),
    ],
)
def test_batches(server: HttpServer, start: Start, form: str, value_format: str, sent: list[bytes], kind: str) -> None:
    start({"batch.format": form, "batch.max.records": "2", "value.format": value_format}).put(records("a", {"b": 1}, 3))
    assert bodies(server) == sent
    assert {asked.headers["content-type"] for asked in server.asked} == {kind}


def test_a_batch_has_not_more_bytes_than_it_may_unless_one_record_has(server: HttpServer, start: Start) -> None:
    values = ["x" * size for size in (3, 3, 3, 30, 3)]
    start({"batch.format": "json-array", "batch.max.bytes": "13"}).put(records(*values))
    assert bodies(server) == [b'["xxx","xxx"]', b'["xxx"]', b'["' + b"x" * 30 + b'"]', b'["xxx"]']


def test_records_of_other_topics_have_urls_and_requests_of_their_own(server: HttpServer, start: Start) -> None:
    batch = [record(1), record(2), record(3, topic="a b"), record(4)]
    start({"url": f"{server.url}/t/${{topic}}?x=y", "batch.format": "json-array", "method": "PUT"}).put(batch)
    assert [(asked.method, asked.target, asked.body) for asked in server.asked] == [
        ("PUT", "/t/orders?x=y", b"[1,2]"),
        ("PUT", "/t/a%20b?x=y", b"[3]"),
        ("PUT", "/t/orders?x=y", b"[4]"),
    ]


@pytest.mark.parametrize(
    ("key", "target"),
    [
        ("a/b", "/a%2Fb"),
        (7, "/7"),
        (True, "/true"),
        (b"\xff", "/%2Fw%3D%3D"),
        ({"a": 1}, "/%7B%22a%22%3A1%7D"),
        ("…", "/%E2%80%A6"),
    ],
)
def test_a_key_stands_in_the_url(server: HttpServer, start: Start, key: Any, target: str) -> None:
    start({"url": f"{server.url}/${{key}}"}).put([record(1, key)])
    assert server.asked[0].target == target


@pytest.mark.parametrize("key", [None, "", "..", "\ud800"])
def test_a_record_whose_key_makes_no_url_is_reported(
    server: HttpServer, start: Start, reporter: MemoryReporter, key: Any
) -> None:
    batch = [record(1, key), record(2, "fine")]
    start({"url": f"{server.url}/${{key}}", "method": "PUT"}).put(batch)
    assert [each.target for each in server.asked] == ["/fine"]
    assert [each for each, _ in reporter.reported] == batch[:1]


def test_each_request_may_have_the_place_of_its_record(server: HttpServer, start: Start) -> None:
    start({"idempotency.header": "Idempotency-Key"}).put(records("a", "b"))
    assert [asked.headers["idempotency-key"] for asked in server.asked] == ["orders-0-0", "orders-0-1"]


# --- records without values -------------------------------------------------------------------------------------------


def test_without_a_value_a_record_is_bad(server: HttpServer, start: Start, reporter: MemoryReporter) -> None:
    start({"batch.format": "ndjson"}).put(records(1, None, 2))
    assert bodies(server) == [b"1\n", b"2\n"]
    ((bad, error),) = reporter.reported
    assert (bad.value, str(error)) == (None, "It has no value, and on.null=fail")


def test_or_it_is_left_out(server: HttpServer, start: Start, reporter: MemoryReporter) -> None:
    start({"batch.format": "ndjson", "on.null": "skip"}).put(records(None, 1, None, 2, None))
    assert (bodies(server), reporter.reported) == ([b"1\n2\n"], [])


@pytest.mark.parametrize("status", [204, 404, 410])
def test_or_what_its_key_names_is_deleted(
    server: HttpServer, start: Start, reporter: MemoryReporter, status: int
) -> None:
    server.replies = [Reply(), Reply(status)]
    task = start({"url": f"{server.url}/items/${{key}}", "method": "PUT", "on.null": "delete"})
    task.put([record({"a": 1}, "k"), record(None, "k")])
    assert [(asked.method, asked.target, asked.body) for asked in server.asked] == [
        ("PUT", "/items/k", b'{"a":1}'),
        ("DELETE", "/items/k", b""),
    ]
    assert "content-type" not in server.asked[1].headers
    assert reporter.reported == []


def test_several_lines_are_no_line(server: HttpServer, start: Start, reporter: MemoryReporter) -> None:
    start({"batch.format": "ndjson", "value.format": "text"}).put(records("a", "b\nc", "d"))
    assert bodies(server) == [b"a\n", b"d\n"]
    assert "several lines" in str(reporter.reported[0][1])


# --- refusals ---------------------------------------------------------------------------------------------------------


def picky(asked: Asked) -> Reply:
    return Reply(422, {"error": f"not {SECRET}, and nothing bad"}) if b"bad" in asked.body else Reply(201)


@pytest.mark.parametrize("status", [400, 403, 404, 409, 413, 422])
def test_a_record_that_is_refused_is_reported_with_status_and_body(
    server: HttpServer, start: Start, reporter: MemoryReporter, status: int
) -> None:
    server.replies = [Reply(), Reply(status, {"error": f"no, {SECRET}"})]
    batch = records("a", "bad", "c")
    start({"auth.type": "bearer", "auth.token": SECRET}).put(batch)
    assert bodies(server) == [b'"a"', b'"bad"', b'"c"']
    ((reported, error),) = reporter.reported
    assert reported is batch[1]
    assert isinstance(error, DataError)
    assert f"POST {server.url}/ was answered with {status} " in str(error)
    assert str(error).endswith(': {"error": "no, [hidden]"}')


def test_of_a_batch_that_is_refused_each_record_is_sent_alone(
    server: HttpServer, start: Start, reporter: MemoryReporter
) -> None:
    server.answer = picky
    batch = records("a", "bad", "c", "d", "e", "bad too")
    start({"batch.format": "json-array", "batch.max.records": "3"}).put(batch)
    alone = [json.dumps([value]).encode() for value in ("a", "bad", "c")]
    alone_too = [json.dumps([value]).encode() for value in ("d", "e", "bad too")]
    assert bodies(server) == [b'["a","bad","c"]', *alone, b'["d","e","bad too"]', *alone_too]
    assert [each for each, _ in reporter.reported] == [batch[1], batch[5]]


def test_a_failure_in_between_does_not_begin_anew(server: HttpServer, start: Start, reporter: MemoryReporter) -> None:
    server.replies = [Reply(400), Reply(), Reply(500), Reply(), Reply()]
    batch = records("a", "b", "c")
    task = start({"batch.format": "json-array"})
    (told,) = put(task, batch)
    assert "500" in told
    assert bodies(server) == [b'["a","b","c"]', b'["a"]', b'["b"]', b'["b"]', b'["c"]']
    assert reporter.reported == []


def test_without_a_reporter_a_refusal_fails_the_task(server: HttpServer, start: Start) -> None:
    server.answer = picky
    told = (
        r"^A record is not taken, of topic orders, partition 0, offset 0: POST .* was answered with 422 .*nothing bad"
    )
    with pytest.raises(ConnectError, match=told) as failed:
        start(tolerant=False).put(records("bad"))
    assert not isinstance(failed.value, RetriableError)
    with pytest.raises(ConnectError, match="It has no value"):
        start(tolerant=False).put(records(None))


@pytest.mark.parametrize(("status", "headers"), [(401, {}), (407, {}), (302, {"Location": "http://b.example/"})])
def test_what_is_no_record_s_fault_fails_the_task(
    server: HttpServer, start: Start, reporter: MemoryReporter, status: int, headers: dict[str, str]
) -> None:
    server.replies = [Reply(status, b"who are you?", headers)]
    with pytest.raises(ConnectError, match=f"was answered with {status} .*who are you"):
        start().put(records("a"))
    assert (len(server.asked), reporter.reported) == (1, [])


# --- what passes ------------------------------------------------------------------------------------------------------


def timeouts(task: HttpSinkTask) -> list[int]:
    assert isinstance(task.context, MemorySinkTaskContext)
    return task.context.timeouts


def test_what_was_taken_is_not_sent_again(server: HttpServer, start: Start) -> None:
    server.replies = [Reply(), Reply(500, b"oops"), Reply(503), Reply()]
    task = start({"retry.backoff.ms": "100", "retry.backoff.max.ms": "150"})
    told = put(task, records("a", "b", "c"))
    assert bodies(server) == [b'"a"', b'"b"', b'"b"', b'"b"', b'"c"']
    assert ["500 Internal Server Error: oops" in told[0], "503 Service Unavailable" in told[1]] == [True, True]
    assert timeouts(task) == [100, 150]


@pytest.mark.parametrize(("status", "most", "waits"), [(429, 10_000, 7000), (503, 10_000, 7000), (503, 500, 500)])
def test_the_server_says_how_long_to_wait(server: HttpServer, start: Start, status: int, most: int, waits: int) -> None:
    server.replies = [Reply(status, headers={"Retry-After": "7"})]
    task = start({"retry.after.max.ms": str(most)})
    assert len(put(task, records("a"))) == 1
    assert timeouts(task) == [waits]


def test_after_too_many_failures_the_task_fails(server: HttpServer, start: Start) -> None:
    server.answer = lambda asked: Reply(500)
    task, batch = start({"retry.max": "2"}), records("a")
    for _ in range(2):
        with pytest.raises(RetriableError):
            task.put(batch)
    with pytest.raises(ConnectError, match=r"500 .*; it was tried 3 times") as failed:
        task.put(batch)
    assert not isinstance(failed.value, RetriableError)


def test_failures_are_counted_in_a_row_and_without_end_if_asked(server: HttpServer, start: Start) -> None:
    server.replies = [Reply(500), Reply(), Reply(500), Reply()] * 2
    assert len(put(start({"retry.max": "1"}), records(*"abcd"))) == 4
    server.replies = [Reply(500)] * 20
    assert len(put(start({"retry.max": "-1"}), records("a"))) == 20


def test_a_server_that_does_not_answer_is_tried_again(server: HttpServer, start: Start) -> None:
    with HttpServer() as gone:
        url = gone.url
    with pytest.raises(RetriableError, match="refused"):
        start({"url": url}).put(records("a"))


def test_another_batch_begins_anew(server: HttpServer, start: Start) -> None:
    server.replies = [Reply(), Reply(500)]
    task = start()
    with pytest.raises(RetriableError):
        task.put(records("a", "b"))
    task.put(records("c", "d"))
    assert bodies(server) == [b'"a"', b'"b"', b'"c"', b'"d"']


def test_a_partition_that_comes_back_is_sent_from_its_start(server: HttpServer, start: Start) -> None:
    server.replies = [Reply(), Reply(500)]
    task, batch = start(), records("a", "b")
    with pytest.raises(RetriableError):
        task.put(batch)
    task.close([TopicPartition("orders", 0)])
    task.open([TopicPartition("orders", 0)])
    task.put(batch)
    assert bodies(server) == [b'"a"', b'"b"', b'"a"', b'"b"']


def test_requests_keep_to_the_limit(server: HttpServer, start: Start) -> None:
    began = time.monotonic()
    start({"rate.limit.per.second": "20"}).put(records(*"abcde"))
    assert time.monotonic() - began >= 0.19


def test_a_long_put_makes_pauses_and_goes_on(server: HttpServer, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_task, "_PUT_S", 0.05)
    task = start({"rate.limit.per.second": "10"})
    told = put_patiently(task, records(*"abc"))
    assert told[0].startswith("1 of 3 records are sent, the others follow")
    assert bodies(server) == [b'"a"', b'"b"', b'"c"']
    assert all(0 < waited <= 100 for waited in timeouts(task))


def test_a_stop_ends_the_wait_for_the_limit(server: HttpServer, start: Start) -> None:
    task = start({"rate.limit.per.second": "0.11"})  # less than `put` may take
    task.stop_requested()
    with pytest.raises(RetriableError, match="1 of 2 records are sent"):
        task.put(records(*"ab"))
    assert bodies(server) == [b'"a"']


def put_patiently(task: HttpSinkTask, batch: list[SinkRecord]) -> list[str]:
    """With the pauses that the task asks for."""
    told: list[str] = []
    while True:
        try:
            task.put(batch)
            return told
        except RetriableError as error:
            told.append(str(error))
            time.sleep(timeouts(task)[-1] / 1000)


def test_nothing_is_sent_for_nothing(server: HttpServer, start: Start) -> None:
    start().put([])
    assert server.asked == []
