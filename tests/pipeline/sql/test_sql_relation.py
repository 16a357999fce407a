"""Records become the rows of a relation, of one type for the whole batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headgate.api import DataError, Header, SinkRecord, SourceRecord, Struct
from headgate.api import schema as schemas
from headgate.pipeline.batch import from_ipc, to_ipc
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.sql.column import Side
from headgate.pipeline.sql.relation import Relation, Relations
from headgate.pipeline.sql.rows import LastRecord, StatementRows

PLAIN = schemas.struct({"id": schemas.INT32})


def rows_of(*records: Any) -> pa.Table:
    """As they come back from an executor."""
    converter = SimpleHeaderConverter()
    converter.configure({})
    rows = StatementRows(converter)
    return from_ipc(to_ipc(rows.table([rows.row(record) for record in records])))


def sink(value: Any, offset: int = 0, topic: str = "t", partition: int = 0, **more: Any) -> SinkRecord:
    place = {"original_topic": topic, "original_partition": partition, "original_offset": offset}
    given = {"topic": topic, "partition": partition, "timestamp": 1000 + offset, **place, **more}
    return SinkRecord(value=value, offset=offset, timestamp_type="CreateTime", **given)


def relation(*values: Any, named: Any = (), declared: pa.DataType | None = None) -> Relation:
    return Relations(named, declared).of([rows_of(*(sink(value, at) for at, value in enumerate(values)))])


def seen(relation: Relation) -> list[Any]:
    found: list[Any] = relation.visible.column("value").to_pylist()
    return found


def test_a_source_has_no_offset_and_a_sink_has() -> None:
    source = SourceRecord(topic="t", value={"a": 1}, key="k", key_schema=schemas.STRING, timestamp=1714979289123)
    columns = ["topic", "partition", "timestamp", "key", "value", "headers"]
    made = Relations(()).of([rows_of(source)])
    assert made.visible.column_names == columns
    (row,) = made.visible.to_pylist()
    assert row["timestamp"].isoformat() == "2024-05-06T07:08:09.123000+00:00"
    assert (row["topic"], row["partition"], row["key"], row["value"], row["headers"]) == (
        "t",
        None,
        "k",
        {"a": 1},
        None,
    )
    assert relation({"a": 1}).visible.column_names == [*columns, "offset"]


def test_headers_are_what_the_converter_writes() -> None:
    headers = (Header("trace", 17, schemas.INT32), Header("none", None))
    made = Relations(()).of([rows_of(sink("x", headers=headers), sink("y"))])
    assert made.visible.column("headers").to_pylist() == [
        [{"key": "trace", "value": b"17"}, {"key": "none", "value": None}],
        None,
    ]


def test_blobs_of_different_types_become_one_column() -> None:
    made = Relations(()).of([rows_of(sink({"a": 1})), rows_of(sink({"a": 2.5, "b": "x"})), rows_of(sink(None))])
    assert seen(made) == [{"a": 1.0, "b": None}, {"a": 2.5, "b": "x"}, None]


def test_fields_of_earlier_batches_and_fields_that_are_named_are_there() -> None:
    relations = Relations([("value", "b", "c"), ("value", "never"), ("key", "id")])
    first = relations.of([rows_of(sink({"a": 1, "b": {"c": 1}}))])
    assert seen(first) == [{"a": 1, "b": {"c": 1}, "never": None}]
    second = relations.of([rows_of(sink({"a": "text"}))])
    assert seen(second) == [{"a": "text", "b": None, "never": None}]
    third = relations.of([rows_of(sink(None))])
    assert third.visible.schema.field("value").type.field("b").type == pa.struct([("c", pa.int64())])


def test_a_map_whose_names_are_data_is_not_remembered_for_ever() -> None:
    relations = Relations(())
    for number in range(30):
        made = relations.of([rows_of(sink({f"{number}-{field}": 1 for field in range(100)}))])
        assert len(made.table.schema.field("value").type) <= 1000


def test_values_with_a_schema_have_its_fields_and_no_others() -> None:
    typed = sink(Struct(PLAIN, {"id": 1}), value_schema=PLAIN)
    relations = Relations([("value", "wrong")])
    made = relations.of([rows_of(typed)])
    assert made.table.schema.field("value").type == pa.struct([("id", pa.int32())])
    assert made.value == Side(True, PLAIN)
    tombstone = relations.of([rows_of(sink(None))])
    assert tombstone.table.schema.field("value").type == pa.struct([("id", pa.int32())])
    assert tombstone.value == Side(True, PLAIN)


def test_a_declared_type_is_kept_to() -> None:
    declared = pa.struct([("id", pa.int32()), ("tags", pa.list_(pa.string()))])
    assert seen(relation({"id": 1, "other": 2}, {}, declared=declared)) == [
        {"id": 1, "tags": None},
        {"id": None, "tags": None},
    ]
    with pytest.raises(DataError, match=r"value\.id"):
        relation({"id": "x"}, declared=declared)


def test_where_rows_come_from() -> None:
    moved = sink("c", 7, partition=1, topic="renamed", original_topic="t", original_partition=1)
    made = Relations(()).of([rows_of(sink("a", 3), sink("b", 4)), rows_of(moved)])
    assert made.topics == ["t", "renamed"]
    origins = made.origins
    assert (origins.topic, origins.partition, origins.timestamp) == ("renamed", 1, 1007)
    assert origins.timestamp_type == "CreateTime"
    assert origins.place("t", 0) == LastRecord("t", 0, 4)
    assert origins.place("renamed", 1) == LastRecord("t", 1, 7)
    assert origins.place("unheard of", 0) == LastRecord("t", 1, 7)
    alone = made.of_topic("t")
    assert seen(alone) == ["a", "b"]
    assert alone.origins.partition == 0
