"""Packed records: nothing is lost on the way."""

from __future__ import annotations

from headgate.api import Header, SinkRecord, SourceRecord, Struct
from headgate.api import schema as s
from headgate.pipeline.packed import SINK_RECORDS, SOURCE_RECORDS

POINT = s.struct({"a": s.INT32})


def test_source_records_keep_every_field() -> None:
    records = [
        SourceRecord(topic="a"),
        SourceRecord(
            topic="b",
            value=Struct(POINT, {"a": 1}),
            key="k",
            value_schema=POINT,
            key_schema=s.STRING,
            partition=1,
            timestamp=2,
            headers=(Header("h", 1.5, s.FLOAT32),),
            source_partition={"file": "x"},
            source_offset={"position": 9},
        ),
    ]
    assert SOURCE_RECORDS.unpack(SOURCE_RECORDS.pack(records)) == records


def test_sink_records_keep_every_field() -> None:
    records = [
        SinkRecord(
            topic="b",
            value={"a": [b"x", None]},
            offset=5,
            timestamp_type="LogAppendTime",
            original_topic="a",
            original_partition=2,
            original_offset=5,
        )
    ]
    assert SINK_RECORDS.unpack(SINK_RECORDS.pack(records)) == records


def test_nothing_stays_nothing() -> None:
    assert SINK_RECORDS.unpack(SINK_RECORDS.pack([])) == []
