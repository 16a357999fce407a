"""What a statement gave becomes records."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import ConnectError, Header, SchemaType, SinkRecord, SourceRecord, Struct
from headgate.api import schema as schemas
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.sql.column import Side
from headgate.pipeline.sql.rows import LastRecord, Origins
from headgate.pipeline.sql.selected import Selected

NOON = dt.datetime(2024, 5, 6, 12, 0, tzinfo=dt.UTC)
ORIGINS = Origins(
    topic="t",
    partition=1,
    timestamp_type="CreateTime",
    timestamp=1000,
    places={("t", 0): LastRecord("t", 0, 4), ("t", 1): LastRecord("was", 1, 7)},
    value=Side(False),
)
TYPED = Origins(topic="t", timestamp=1000, value=Side(True))


def converter() -> SimpleHeaderConverter:
    made = SimpleHeaderConverter()
    made.configure({})
    return made


def source(origins: Origins = ORIGINS, **columns: Any) -> list[SourceRecord]:
    return Selected(pa.table(columns), origins, sink=False).source_records(converter())


def sink(origins: Origins = ORIGINS, **columns: Any) -> list[SinkRecord]:
    return Selected(pa.table(columns), origins, sink=True).sink_records(converter())


def test_without_a_column_value_all_others_make_it() -> None:
    (record,) = source(id=[1], price=[2.5], offset=[9])
    assert record == SourceRecord(topic="t", value={"id": 1, "price": 2.5, "offset": 9}, timestamp=1000)


def test_columns_called_as_those_of_records_are_what_they_are_called() -> None:
    headers = pa.array([[{"key": "a", "value": b"1"}]])
    (record,) = source(TOPIC=["x"], Partition=[3], timestamp=[2000], key=["k"], value=[{"a": 1}], headers=headers)
    assert record == SourceRecord(
        topic="x",
        partition=3,
        timestamp=2000,
        key="k",
        value={"a": 1},
        headers=(Header("a", 1, schemas.INT8),),
    )
    (record,) = source(timestamp=pa.array([NOON], pa.timestamp("us", "UTC")), value=["v"])
    assert record.timestamp == 1714996800000


def test_a_row_of_a_sink_says_its_offset_or_has_that_of_its_partition() -> None:
    assert [
        (each.topic, each.partition, each.offset, each.original_topic, each.original_partition, each.original_offset)
        for each in (
            *sink(value=["a"]),
            *sink(value=["a"], partition=[0]),
            *sink(value=["a"], partition=[0], offset=[2]),
            *sink(value=["a"], topic=["x"], offset=pa.array([None], pa.int64())),
        )
    ] == [
        ("t", 1, 7, "was", 1, 7),
        ("t", 0, 4, "t", 0, 4),
        ("t", 0, 2, "t", 0, 2),
        ("x", 1, 7, "was", 1, 7),
    ]
    assert sink(value=["a"])[0].timestamp_type == "CreateTime"


def test_without_schema_values_are_what_json_knows_and_nulls_are_left_out() -> None:
    value = {
        "n": Decimal("5"),
        "d": Decimal("1.50"),
        "at": NOON,
        "day": NOON.date(),
        "time": dt.time(1, 2),
        "list": [{"a": None, "b": 1}],
        "map": [("k", Decimal("2"))],
        "none": None,
        "bytes": b"x",
    }
    kind = pa.struct(
        [
            ("n", pa.decimal128(38, 0)), ("d", pa.decimal128(9, 2)), ("at", pa.timestamp("us", "UTC")),
            ("day", pa.date32()), ("time", pa.time64("ns")),
            ("list", pa.list_(pa.struct([("a", pa.int8()), ("b", pa.int8())]))),
            ("map", pa.map_(pa.string(), pa.decimal128(9, 0))), ("none", pa.null()), ("bytes", pa.binary()),
        ]
    )  # fmt: skip
    (record,) = source(value=pa.array([value], kind))
    assert record.value_schema is None
    assert record.value == {
        "n": 5,
        "d": 1.5,
        "at": "2024-05-06T12:00:00.000Z",
        "day": "2024-05-06",
        "time": "01:02:00",
        "list": [{"b": 1}],
        "map": {"k": 2},
        "bytes": b"x",
    }


def test_with_schema_they_get_the_schema_of_their_type() -> None:
    columns = {
        "id": pa.array([1], pa.int16()),
        "price": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
        "at": pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us")),
        "day": pa.array([NOON.date()]),
        "tags": pa.array([["a", None]]),
        "counts": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        "inner": pa.array([{"x": None}], pa.struct([("x", pa.float32())])),
        "nothing": pa.nulls(1),
    }
    (record,) = source(TYPED, **columns)
    schema = record.value_schema
    assert schema is not None
    assert not schema.optional
    assert {each.name: each.schema for each in schema.fields} == {
        "id": schemas.INT16.as_optional(),
        "price": schemas.decimal(2, optional=True),
        "at": schemas.TIMESTAMP.as_optional(),
        "day": schemas.DATE.as_optional(),
        "tags": schemas.array(schemas.OPTIONAL_STRING, optional=True),
        "counts": schemas.mapping(schemas.OPTIONAL_STRING, schemas.INT32.as_optional(), optional=True),
        "inner": schemas.struct({"x": schemas.FLOAT32.as_optional()}, optional=True),
        "nothing": schemas.OPTIONAL_STRING,
    }
    record.value.validate()
    assert record.value["at"] == NOON
    assert record.value["counts"] == {"a": 1}
    assert record.value["inner"]["x"] is None


def test_a_type_that_did_not_change_keeps_its_schema() -> None:
    schema = schemas.struct({"id": schemas.INT32, "at": schemas.TIMESTAMP}, name="Order", version=3)
    origins = Origins(topic="t", value=Side(True, schema))
    kind = pa.struct([pa.field("id", pa.int32(), nullable=False), ("at", pa.timestamp("us", "UTC"))])
    kept, gone = source(origins, value=pa.array([{"id": 1, "at": NOON}, None], kind))
    assert kept.value == Struct(schema, {"id": 1, "at": NOON})
    assert kept.value_schema is schema
    assert (gone.value, gone.value_schema) == (None, None)
    (changed,) = source(origins, value=pa.array([{"id": 1}], pa.struct([("id", pa.int32())])))
    assert changed.value_schema is not None
    assert changed.value_schema.name is None


def test_a_key_without_precedent_does_as_the_value() -> None:
    assert source(TYPED, key=["k"], value=["v"])[0].key_schema == schemas.STRING
    assert source(key=["k"], value=["v"])[0].key_schema is None
    odd = Origins(topic="t", key=Side(False), value=Side(True))
    (record,) = source(odd, key=["k"], value=["v"])
    assert record.key_schema is None
    assert record.value_schema is not None
    assert record.value_schema.type is SchemaType.STRING


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"key": ["k"]}, "No column makes the value"),
        ({"value": ["v"], "id": [1]}, "no place for id"),
        ({"value": ["v"], "topic": [1]}, "Column topic must be STRING, it is int64"),
        ({"value": ["v"], "partition": ["0"]}, "Column partition must be INT"),
        ({"value": ["v"], "offset": ["0"]}, "Column offset must be BIGINT"),
        ({"value": ["v"], "timestamp": ["now"]}, "Column timestamp must be TIMESTAMP"),
        ({"value": ["v"], "headers": [["x"]]}, "Column headers must be ARRAY"),
        ({"value": ["v"], "topic": pa.array([None], pa.string())}, "NULL or empty"),
        ({"wait": pa.array([dt.timedelta(1)])}, "Column value.wait has the type duration"),
        ({"key": pa.array([dt.timedelta(1)]), "value": ["v"]}, "Column key has the type duration"),
    ],
)
def test_columns_that_cannot_be_a_record_are_said(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(ConnectError, match=said):
        sink(**columns)


def test_two_columns_of_a_name_and_variants_are_said() -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(ConnectError, match="Two columns have the name x"):
        Selected(twice, ORIGINS, sink=False)
    variant = pa.struct([("value", pa.binary()), pa.field("metadata", pa.binary(), metadata={"variant": "true"})])
    with pytest.raises(ConnectError, match="VARIANT"):
        source(v=pa.array([{"value": b"", "metadata": b""}], variant))
