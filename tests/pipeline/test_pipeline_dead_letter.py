"""DeadLetter: the record as it was, and Apache's headers behind its own."""

from __future__ import annotations

import pytest

from headgate.api import ConfigError, ConnectError, DataError, RetriableError
from headgate.model import TaskId
from headgate.pipeline.dead_letter import DeadLetter
from headgate.pipeline.failure import ConsumedRecord, Failure, PolledRecord, Stage, class_name
from headgate.pipeline.tolerance import ToleranceExceeded

pytestmark = pytest.mark.kip(298, "dead letter queue")

TASK = TaskId("orders", 2)
RECORD = ConsumedRecord("t", 3, 17, 1700000000123, "CreateTime", b"k", b"\xff", (("h", b"1"), ("h", None)))


def failure(record: ConsumedRecord | PolledRecord, message: str | None = "grün", error: str = "b.Error") -> Failure:
    return Failure(Stage.VALUE_CONVERTER, "a.Converter", error, message, ("Traceback\n", "b.Error: grün\n"), record)


@pytest.mark.parametrize("with_context", [False, True])
def test_bytes_headers_and_time_are_the_originals(with_context: bool) -> None:
    letter = DeadLetter.of(failure(RECORD), TASK, with_context)
    assert (letter.key, letter.value, letter.timestamp) == (b"k", b"\xff", 1700000000123)
    assert letter.headers[:2] == (("h", b"1"), ("h", None))
    assert len(letter.headers) == (12 if with_context else 2)


def test_the_ten_headers_in_apaches_order() -> None:
    assert DeadLetter.of(failure(RECORD), TASK, True).headers[2:] == (
        ("__connect.errors.topic", b"t"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"17"),
        ("__connect.errors.connector.name", b"orders"),
        ("__connect.errors.task.id", b"2"),
        ("__connect.errors.stage", b"VALUE_CONVERTER"),
        ("__connect.errors.class.name", b"a.Converter"),
        ("__connect.errors.exception.class.name", b"b.Error"),
        ("__connect.errors.exception.message", "grün".encode()),
        ("__connect.errors.exception.stacktrace", "Traceback\nb.Error: grün\n".encode()),
    )


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (DataError, b"org.apache.kafka.connect.errors.DataException"),
        (RetriableError, b"org.apache.kafka.connect.errors.RetriableException"),
        (ConnectError, b"org.apache.kafka.connect.errors.ConnectException"),
        (ConfigError, b"org.apache.kafka.common.config.ConfigException"),
        (ToleranceExceeded, b"headgate.pipeline.tolerance.ToleranceExceeded"),
        (ValueError, b"builtins.ValueError"),
    ],
)
def test_an_error_goes_by_apaches_name_if_it_has_one(error: type[Exception], name: bytes) -> None:
    headers = dict(DeadLetter.of(failure(RECORD, error=class_name(error)), TASK, True).headers)
    assert headers["__connect.errors.exception.class.name"] == name


def test_an_error_without_message_has_none() -> None:
    headers = dict(DeadLetter.of(failure(RECORD, None), TASK, True).headers)
    assert headers["__connect.errors.exception.message"] is None


def test_a_source_tells_where_the_record_came_from() -> None:
    record = PolledRecord("t", {"filename": "é.txt"}, {"position": 7, "n": None}, value=b"v")
    letter = DeadLetter.of(failure(record, "a lone \ud800"), TASK, True)
    assert (letter.key, letter.value, letter.timestamp) == (None, b"v", None)
    assert letter.headers[:4] == (
        ("__connect.errors.topic", b"t"),
        ("__connect.errors.source.partition", '{"filename":"é.txt"}'.encode()),
        ("__connect.errors.source.offset", b'{"position":7,"n":null}'),
        ("__connect.errors.connector.name", b"orders"),
    )
    assert dict(letter.headers)["__connect.errors.exception.message"] == b"a lone \\ud800"
    assert len(letter.headers) == 10


def test_a_source_without_places() -> None:
    headers = dict(DeadLetter.of(failure(PolledRecord("t", None, None)), TASK, True).headers)
    assert headers["__connect.errors.source.partition"] == headers["__connect.errors.source.offset"] == b"null"
