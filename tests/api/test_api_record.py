"""Record: what travels between a connector and Kafka. From the data contract, §1."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from headgate.api import Header, Record, SinkRecord, SourceRecord
from headgate.api.schema import INT8, STRING


def test_only_the_topic_is_needed() -> None:
    record = SourceRecord(topic="t")
    assert (record.key, record.value, record.partition, record.timestamp, record.headers) == (
        None,
        None,
        None,
        None,
        (),
    )
    assert (record.key_schema, record.value_schema) == (None, None)
    assert (record.source_partition, record.source_offset) == (None, None)


def test_a_record_is_not_changed_but_replaced() -> None:
    record = SinkRecord(topic="t", value=1, value_schema=INT8, offset=7)
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.topic = "u"  # type: ignore[misc]
    other = record.replace(topic="u")
    assert (type(other), other.topic, other.value, other.offset) == (SinkRecord, "u", 1, 7)
    assert record.topic == "t"


def test_a_new_value_or_key_comes_with_its_schema_or_without_any() -> None:
    record = Record(topic="t", value=1, value_schema=INT8, key=2, key_schema=INT8)
    assert record.with_value("a", STRING) == Record(topic="t", value="a", value_schema=STRING, key=2, key_schema=INT8)
    assert record.with_value({"a": 1}).value_schema is None
    assert record.with_key("k", STRING).key_schema is STRING
    assert record.with_key("k").key_schema is None


def test_headers_keep_their_order_and_may_repeat() -> None:
    headers = (Header("a", 1, INT8), Header("b", "x"), Header("a", 2))
    assert Record(topic="t", headers=headers).headers == headers
    assert headers[1].schema is None


def test_where_a_record_came_from_stays_whatever_happens_to_its_topic() -> None:
    record = SinkRecord(
        topic="t", partition=3, offset=7, original_topic="t", original_partition=3, original_offset=7, timestamp=5
    )
    routed = record.replace(topic="u", partition=None)
    assert (routed.original_topic, routed.original_partition, routed.original_offset) == ("t", 3, 7)


def test_records_travel_to_executors_and_back() -> None:
    record = SourceRecord(
        topic="t", value="v", value_schema=STRING, headers=(Header("a", 1),), source_partition={"f": "x"}
    )
    assert pickle.loads(pickle.dumps(record)) == record
