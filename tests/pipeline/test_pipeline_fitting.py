"""What bytes look like that a converter could not read, and which one would."""

from __future__ import annotations

import json

import pytest

from headgate.api import DataError
from headgate.log import cause_of
from headgate.model import TaskId
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.failure import ConsumedRecord, Failure, Stage
from headgate.pipeline.fitting import described, fitting
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.tolerance import StageFailed, ToleranceExceeded, Triage

JSON, AVRO, LONG = "a.JsonConverter", "b.AvroConverter", "c.LongConverter"
NO_ENVELOPE = 'JsonConverter with schemas.enable requires "schema" and "payload" fields'
ENVELOPE = json.dumps({"schema": None, "payload": 1}).encode()
PLAIN = "JSON without its schema, so for value.converter=org.apache.kafka.connect.json.JsonConverter with value.conv"
TEXT = "plain text, so for value.converter=org.apache.kafka.connect.storage.StringConverter"
REGISTRY = "written with schema 1 of a schema registry, so for value.converter=AvroConverter, JsonSchemaConverter or Pr"
BYTES = "neither text nor JSON; value.converter=org.apache.kafka.connect.converters.ByteArrayConverter takes any"


@pytest.mark.parametrize(
    ("data", "plugin", "complaint", "guess"),
    [
        (b"\x00\x00\x00\x00\x01", JSON, "serialization error", REGISTRY),
        (b"\x00\x00\x00\x00\x01\x02a", LONG, "", REGISTRY),
        (b"\x00\x00\x00\x00\x01\x02a", AVRO, "the registry refused", None),
        (b"\x00\x00\x00\x00\x00\x00\x00\x07", JSON, "", BYTES),
        (b"hello", JSON, "serialization error", TEXT),
        ("für\n".encode(), AVRO, "", TEXT),
        (b"12", AVRO, "", TEXT),
        (b'{"a": 1}', JSON, NO_ENVELOPE, PLAIN),
        (b"12", JSON, NO_ENVELOPE, PLAIN),
        (b'{"a": 1}', JSON, "the sink cannot show it", None),
        (b"[1]", AVRO, "Unknown magic byte!", PLAIN),
        (
            ENVELOPE,
            AVRO,
            "",
            "JSON with its schema, so for value.converter=org.apache.kafka.connect.json.JsonConverter",
        ),
        (ENVELOPE, JSON, "Unknown schema type", None),
        (b'{"a": ', JSON, "serialization error", "JSON that is broken or cut off"),
        (b"\xff\xfe\x01", JSON, "", BYTES),
        (b"", JSON, NO_ENVELOPE, None),
        (b"[" * 5000, JSON, "", "JSON that is broken or cut off"),
    ],
)
def test_what_they_look_like(data: bytes, plugin: str, complaint: str, guess: str | None) -> None:
    found = fitting("value", data, plugin, complaint)
    assert found == guess if guess is None else (found or "").startswith(guess)


def test_of_bytes_only_a_few_are_shown() -> None:
    assert described(b"\x00\x00\x00\x00\x01secrets") == "12 bytes, first 00 00 00 00 01 73 65 63"
    assert described(b"") == "no bytes"


def test_a_task_that_fails_says_in_one_line_where_the_record_is_and_what_would_read_it() -> None:
    record = ConsumedRecord("orders", 3, 1207, key=b"k", value=b"hello")
    converter = JsonConverter()
    converter.configure({})
    with pytest.raises(DataError) as refused:
        converter.to_connect("orders", record.value)
    failed = StageFailed(Stage.VALUE_CONVERTER, JsonConverter, refused.value)
    with pytest.raises(ToleranceExceeded) as raised:
        Triage(ErrorPolicy()).goes_on(0, failed, lambda: record)
    line = cause_of(raised.value)
    assert line.startswith(
        "DataError: Converting byte[] to Kafka Connect data failed due to serialization error: (from "
    )
    assert line.endswith(
        f"; the value of topic orders, partition 3, offset 1207 has 5 bytes, first 68 65 6c 6c 6f: {TEXT}"
    )


def test_other_stages_name_their_class_and_the_record() -> None:
    failure = Failure(Stage.TRANSFORMATION, "a.B", "c.D", "no", (), ConsumedRecord("t", 0, 1, value=b"x"))
    line = "D: no (in a.B, consumed record is {topic='t', partition=0, offset=1})"
    assert cause_of(ToleranceExceeded(failure)) == line


@pytest.mark.parametrize(("with_record", "tells"), [(True, True), (False, False)])
def test_the_log_shows_bytes_only_where_it_may_show_records(with_record: bool, tells: bool) -> None:
    record = ConsumedRecord("t", 0, 1, key=b"hello")
    failure = Failure(Stage.KEY_CONVERTER, JSON, "c.D", "no", (), record)
    line = failure.report(TaskId("orders", 2), with_record)
    assert ("D: no; the key of topic t, partition 0, offset 1 has 5 bytes, first 68 65 6c 6c 6f" in line) is tells
    assert ("key.converter=" in line) is tells
