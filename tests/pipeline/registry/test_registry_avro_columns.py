"""AvroConverter by columns: what is written and read is the same as record by record, or it is refused."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from registry_columns import by_columns, by_records, damaged, schemas_with_rows
from registry_stand_in import StandIn
from registry_support import configured, kept

from headgate.api import Schema, Struct
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, Values
from headgate.java.numbers import float32
from headgate.pipeline.columns import reading
from headgate.pipeline.columns.objects import values_of
from headgate.pipeline.converters.registry import avro_names as names
from headgate.pipeline.converters.registry.avro import AvroConverter

SAME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("few_by_columns")]

ADDRESS = s.struct({"street": s.STRING, "city": s.OPTIONAL_STRING}, name="com.acme.Address")
USUAL = s.struct(
    {
        "int8": s.INT8,
        "int16": s.INT16,
        "int32": s.INT32,
        "int64": s.INT64,
        "float32": s.FLOAT32,
        "float64": s.FLOAT64.as_optional(),
        "boolean": s.BOOLEAN,
        "string": s.STRING,
        "bytes": s.OPTIONAL_BYTES,
        "date": s.DATE,
        "time": s.TIME.as_optional(),
        "timestamp": s.TIMESTAMP,
        "decimal": s.decimal(2),
        "with_default": replace(s.INT32, default=7),
        "optional_with_default": replace(s.OPTIONAL_STRING, default="none"),
        "address": ADDRESS,
        "other": replace(ADDRESS, optional=True),
        "list": s.array(s.STRING.as_optional()),
        "addresses": s.array(ADDRESS, optional=True),
        "map": s.mapping(s.STRING, s.array(s.INT64)),
        "numbers": s.mapping(s.INT32, s.FLOAT64),
    },
    name="com.acme.Usual",
)
LONG = "a text that is longer than two hundred and fifty-six bytes " * 5
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 5000, tzinfo=dt.UTC)


def usual(**changed: Any) -> Struct:
    values = {
        "int8": -128,
        "int16": 32767,
        "int32": -(2**31),
        "int64": 2**63 - 1,
        "float32": -0.0,
        "float64": math.inf,
        "boolean": True,
        "string": "Zürich",
        "bytes": b"\xff\x00",
        "date": dt.date.min,
        "time": dt.time(23, 59, 59, 999000),
        "timestamp": NOON,
        "decimal": Decimal("-12345678901234567890.12"),
        "with_default": 8,
        "optional_with_default": "some",
        "address": Struct(ADDRESS, {"street": "Main"}),
        "other": Struct(ADDRESS.as_optional(), {"street": "", "city": LONG}),
        "list": ["a", None, LONG],
        "addresses": [Struct(ADDRESS, {"street": "x"})],
        "map": {"one": [1], "none": [], "ü": [-(2**63), 2**40]},
        "numbers": {1: 0.5, -1: math.nan},
    }
    return Struct(USUAL, {**values, **changed})


ROWS = [
    usual(),
    usual(bytes=None, time=None, other=None, addresses=None, float64=None, with_default=None),
    usual(optional_with_default=None, list=[], map={}, numbers={}, string="", bytes=b"", decimal=Decimal("0.00")),
    usual(int64=-(2**63), decimal=Decimal("127.00"), addresses=[], date=dt.date.max, list=[None] * 100),
    usual(decimal=Decimal("9" * 35 + ".99"), float32=float32(0.1), map={str(each): [each] * each for each in range(9)}),
]


def another(registry: StandIn, avro: Any, *values: Any) -> list[bytes]:
    """What somebody else wrote."""
    number, made = registry.add("t-value", json.dumps(avro)), []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, fastavro.parse_schema(avro), value)
        made.append(bytes([0, *number.to_bytes(4, "big")]) + out.getvalue())
    return made


# --- by lot -----------------------------------------------------------------------------------------------------------


@SAME
@given(schemas_with_rows())
def test_both_ways_write_and_read_the_same(shared_registry: StandIn, found: tuple[Schema, list[Any]]) -> None:
    converter = kept(AvroConverter, shared_registry.url)
    schema, rows = found
    data = [converter.from_connect("t", schema, row) for row in rows]
    assert converter.write_columns("t", values_of(schema, rows)).to_pylist() == data
    assert by_columns(converter, data) == by_records(converter, data)


@SAME
@given(schemas_with_rows(), st.data())
def test_damaged_bytes_are_refused_or_read_the_same(
    shared_registry: StandIn, found: tuple[Schema, list[Any]], data: st.DataObject
) -> None:
    converter = kept(AvroConverter, shared_registry.url)
    schema, rows = found
    written = [data.draw(damaged(converter.from_connect("t", schema, row))) for row in rows]
    read, expected = by_columns(converter, written), by_records(converter, written)
    assert read == {row: expected[row] for row in read}


# --- what goes by columns ---------------------------------------------------------------------------------------------


def test_every_type_is_written_and_read_by_columns(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    data = [converter.from_connect("t", USUAL, row) for row in ROWS]
    assert converter.write_columns("t", values_of(USUAL, ROWS)).to_pylist() == data
    found = by_columns(converter, data)
    assert len(found) == len(ROWS)
    assert found == by_records(converter, data)


def test_a_part_of_a_column_is_written(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    written = converter.write_columns("t", Values(values_of(USUAL, ROWS).data.slice(1, 3), USUAL))
    assert written.to_pylist() == [converter.from_connect("t", USUAL, row) for row in ROWS[1:4]]


def test_more_rows_than_are_taken_at_once(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    values = values_of(USUAL, ROWS * 4_000)
    written = converter.write_columns("t", values)
    assert written[:5].equals(written[-5:])
    (group,) = converter.read_columns("t", written)
    assert group.rows.to_pylist() == list(range(20_000))
    # The one NaN is not equal to itself.
    assert group.values.data[19_999].as_py().keys() == values.data[19_999].as_py().keys()
    assert group.values.data.field("map").equals(values.data.field("map"))


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (s.STRING, ["a", "", LONG]),
        (s.OPTIONAL_STRING, ["a", None]),
        (s.array(s.INT32), [[1, 2], []]),
        (s.mapping(s.STRING, s.BOOLEAN), [{"a": True}]),
        (s.struct({}, name="Empty"), [Struct(s.struct({}, name="Empty"))]),
        (None, ["a", None]),
        (None, [1, -1]),
        (None, [0.5]),
        (None, [True]),
        (None, [b"a"]),
        (None, [None]),
    ],
    ids=str,
)
def test_what_is_no_record(registry: StandIn, schema: Schema | None, values: list[Any]) -> None:
    converter = configured(AvroConverter, registry.url)
    given = Values(pa.array(values)) if schema is None else values_of(schema, values)
    data = [converter.from_connect("t", schema, value) for value in values]
    assert converter.write_columns("t", given).to_pylist() == data
    assert by_columns(converter, data) == by_records(converter, data)
    assert len(by_columns(converter, data)) == len(values)


def test_enums_by_columns(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url, enhanced_avro_schema_support=True)
    avro = {
        "type": "record",
        "name": "Card",
        "fields": [
            {"name": "suit", "type": {"type": "enum", "name": "Suit", "symbols": ["SPADES", "HEARTS"]}},
            {"name": "other", "type": ["null", "Suit"]},
        ],
    }
    data = another(registry, avro, {"suit": "HEARTS", "other": None}, {"suit": "SPADES", "other": "HEARTS"})
    assert by_columns(converter, data) == by_records(converter, data)
    (group,) = converter.read_columns("t", pa.array(data))
    assert group.values.data.to_pylist() == [{"suit": "HEARTS", "other": None}, {"suit": "SPADES", "other": "HEARTS"}]
    written = converter.write_columns("t", group.values).to_pylist()
    assert [each[5:] for each in written] == [each[5:] for each in data]


def test_fixed_by_columns(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    amount = {"type": "fixed", "name": "Amount", "size": 12, "logicalType": "decimal", "precision": 20, "scale": 1}
    fields = [
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 3}},
        {"name": "amount", "type": ["null", amount]},
    ]
    avro = {"type": "record", "name": "Block", "fields": fields}
    values = [{"hash": b"abc", "amount": None}, {"hash": b"\0\0\0", "amount": Decimal("-1.5")}]
    data = another(registry, avro, *values)
    (group,) = converter.read_columns("t", pa.array(data))
    assert group.values.data.to_pylist() == values
    assert by_columns(converter, data) == by_records(converter, data)


def test_arrays_in_several_blocks_with_their_sizes(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    (empty,) = another(registry, {"type": "array", "items": "string"}, [])
    start = empty[:-1]
    data = [
        start + b"\x02\x02a\x04\x02b\x02c\x00",  # one, then two
        start + b"\x03\x08\x02d\x02e\x00",  # minus two, of four bytes
        empty,
        start + b"\x02\x02f\x01\x04\x02g\x00",
    ]
    (group,) = converter.read_columns("t", pa.array(data))
    assert group.values.data.to_pylist() == [["a", "b", "c"], ["d", "e"], [], ["f", "g"]]
    assert by_columns(converter, data) == by_records(converter, data)


def test_null_that_is_no_tombstone(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    data = another(registry, ["null", "string"], None, "a")
    (group,) = converter.read_columns("t", pa.array(data))
    assert (group.values.schema, group.values.data.to_pylist()) == (s.OPTIONAL_STRING, [None, "a"])
    assert by_columns(converter, data) == by_records(converter, data)


def test_tombstones_schemas_and_what_is_no_avro(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    texts = [converter.from_connect("t", s.STRING, each) or b"" for each in ("a", "b", "c")]
    numbers = [converter.from_connect("t", s.INT64, each) for each in (1, 2)]
    data = [
        texts[0],
        None,
        numbers[0],
        b"",
        b"\0\0",
        b"\1" + texts[0][1:],
        texts[1],
        None,
        b"\0\0\0\0\x09",
        numbers[1],
        texts[2],
    ]
    groups = {str(group.values.schema): group for group in converter.read_columns("t", pa.array(data))}
    assert {name: group.rows.to_pylist() for name, group in groups.items()} == {
        "None": [1, 7],
        "Schema{STRING}": [0, 6, 10],
        "Schema{INT64}": [2, 9],
    }
    assert groups["Schema{STRING}"].values.data.to_pylist() == ["a", "b", "c"]
    assert groups["None"].values.data.to_pylist() == [None, None]


def test_few_rows_are_left_to_records(registry: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "FEWEST", 3)
    converter = configured(AvroConverter, registry.url)
    texts = [converter.from_connect("t", s.STRING, each) for each in ("a", "b", "c")]
    numbers = [converter.from_connect("t", s.INT64, each) for each in (1, 2)]
    assert sorted(by_columns(converter, [*texts, None, *numbers])) == [0, 1, 2, 3]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("avro", "good", "bad"),
    [
        ("string", b"\x02a", b"\x04a"),
        ("string", b"\x02a", b"\x02\xff"),
        ("string", b"\x04\xc3\xbc", b"\x06\xed\xa0\x80"),
        ("string", b"\x02a", b"\x01"),
        ("string", b"\x02a", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("string", b"\x02a", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("string", b"\x02a", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
        ("int", b"\x02", b"\x80\x80\x80\x80\x20"),
        ("int", b"\x02", b"\x80"),
        ("int", b"\x02", b""),
        ("boolean", b"\x01", b"\x02"),
        ("double", b"\0" * 8, b"\0" * 7),
        ("float", b"\0" * 4, b"\0" * 3),
        (["null", "int"], b"\x02\x02", b"\x04\x02"),
        (["null", "int"], b"\x00", b""),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02", b"\x04"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x02", b"\x01"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"a"),
        ({"type": "int", "logicalType": "date"}, b"\x02", b"\xfe\xff\xff\xff\x0f"),
        ({"type": "int", "logicalType": "time-millis"}, b"\x02", b"\x01"),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\x02", b"\xfe\xff\xff\xff\xff\xff\xff\x01"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, b"\x02\x01", b"\x00"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, b"\x12" + b"\x01" * 9, b"\x22" + b"\0" * 17),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9}, b"\x02\x01", b"\x20\x7f" + b"\xff" * 15),
        ({"type": "array", "items": "boolean"}, b"\x02\x01\x00", b"\x02\x01"),
        ({"type": "array", "items": "boolean"}, b"\x02\x01\x00", b"\xfe\xff\xff\xff\x0f\x01"),
        ({"type": "array", "items": "boolean"}, b"\x02\x01\x00", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"),
        ({"type": "array", "items": ["null", "int"]}, b"\x02\x00\x00", b"\x80\x02" + b"\0" * 100),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02b\x02\x00", b"\x04\x02a\x02\x02a\x04\x00"),
        ({"type": "map", "values": "int"}, b"\x00", b"\x02\x02\xff\x02\x00"),
    ],
    ids=str,
)
def test_one_damaged_row_is_refused_alone(registry: StandIn, avro: Any, good: bytes, bad: bytes) -> None:
    converter = configured(AvroConverter, registry.url)
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]}
    number = registry.add("t-value", json.dumps(record))
    start = bytes([0, *number.to_bytes(4, "big")])
    data = [start + good] * 3 + [start + bad] + [start + good] * 3
    found, expected = by_columns(converter, data), by_records(converter, data)
    assert sorted(found) == [0, 1, 2, 4, 5, 6]
    assert found == {row: expected[row] for row in found}


def test_hostile_counts_take_neither_time_nor_memory(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    nested = {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": ["null", "string"]}}}
    number = registry.add("t-value", json.dumps(nested))
    start = bytes([0, *number.to_bytes(4, "big")])
    many = b"\xd0\x0f" * 3  # a thousand of a thousand of a thousand
    began = time.process_time()
    found = by_columns(converter, [start + b"\x00"] + [start + many + b"\x02" * 1000] * 300)
    assert sorted(found) == [0]
    assert time.process_time() - began < 5


def test_an_array_that_is_much_longer_than_all_others_is_left_to_records(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    schema = s.array(s.INT32)
    data = [converter.from_connect("t", schema, row) for row in [[1, 2, 3]] * 50 + [[4] * 20_000] + [[5]] * 50]
    assert by_columns(converter, data).keys() == set(range(101)) - {50}


@pytest.mark.parametrize(
    "avro",
    [
        ["null", "string", "int"],
        ["string", "int"],
        {"type": "array", "items": {"type": "record", "name": "Nothing", "fields": []}},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["int", {"type": "array", "items": "int"}]}]},
        {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 50},
        {"type": "string", "connect.name": s.DATE.name},
    ],
    ids=str,
)
def test_schemas_that_are_left_to_records(registry: StandIn, avro: Any) -> None:
    converter = configured(AvroConverter, registry.url)
    number = registry.add("t-value", json.dumps(avro))
    assert by_columns(converter, [bytes([0, *number.to_bytes(4, "big"), 0, 0])] * 3) == {}
    asked = len(registry.requests)
    assert by_columns(converter, [bytes([0, *number.to_bytes(4, "big"), 0, 0])] * 3) == {}
    assert len(registry.requests) == asked


def refused(converter: AvroConverter, values: Values) -> NotByColumns:
    with pytest.raises(NotByColumns) as found:
        converter.write_columns("t", values)
    return found.value


@pytest.mark.parametrize(
    ("field", "fitting", "other"),
    [
        (s.STRING, "a", None),
        (s.array(s.STRING), ["a"], ["a", None]),
        (s.mapping(s.STRING, s.INT32), {"a": 1}, {"a": None}),
        (s.array(s.array(s.INT32)), [[1], []], [[], [1, None]]),
        (replace(s.array(replace(s.INT32, default=1)), optional=True), None, [None]),
        (Schema(s.STRING.type, parameters={names.ENUM: "E", f"{names.ENUM}.A": "A"}), "A", "B"),
    ],
    ids=str,
)
def test_rows_with_values_that_must_not_be_are_refused(
    registry: StandIn, field: Schema, fitting: Any, other: Any
) -> None:
    converter = configured(AvroConverter, registry.url, enhanced_avro_schema_support=True)
    schema = s.struct({"a": s.INT32, "b": field})
    rows = [Struct.of(schema, [1, each]) for each in (fitting, other, fitting)]
    found = refused(converter, values_of(schema, rows)).rows
    assert found is not None
    assert found.to_pylist() == [False, True, False]
    assert len(converter.write_columns("t", values_of(schema, [rows[0], rows[2]]))) == 2


def test_null_for_a_required_value_is_refused(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    rows = refused(converter, Values(pa.array(["a", None]), s.STRING)).rows
    assert rows is not None
    assert rows.to_pylist() == [False, True]


UNION = Schema(USUAL.type, name=names.UNION, fields=s.struct({"a": s.OPTIONAL_STRING}).fields)


@pytest.mark.parametrize(
    "schema",
    [
        UNION,
        s.struct({"not a name": s.STRING}),
        s.struct({"a": s.decimal(-1)}),
        s.array(replace(s.decimal(2), optional=True, default=Decimal("1"))),
    ],
    ids=str,
)
def test_schemas_that_are_written_record_by_record(registry: StandIn, schema: Schema) -> None:
    converter = configured(AvroConverter, registry.url, connect_meta_data=False)
    anything = pa.array([{"a": "x"}] if schema.fields else [["x"]])
    assert refused(converter, Values(anything, schema)).rows is None


def test_values_without_schema_are_refused(registry: StandIn) -> None:
    assert refused(configured(AvroConverter, registry.url), Values(pa.array([{"a": 1}]))).rows is None


def test_a_registry_that_fails_refuses_all(registry: StandIn) -> None:
    converter = configured(AvroConverter, registry.url)
    registry.fail_with = 500
    assert refused(converter, Values(pa.array(["a"]), s.STRING)).rows is None
    assert by_columns(converter, [b"\0\0\0\0\1\x02a"]) == {}
    registry.fail_with = None
    assert converter.write_columns("t", Values(pa.array(["a"]), s.STRING)).to_pylist() == [b"\0\0\0\0\1\x02a"]
    assert len(by_columns(converter, [b"\0\0\0\0\1\x02a"])) == 1


def test_the_latest_schema_must_be_that_of_the_records(registry: StandIn) -> None:
    latest = {"auto_register_schemas": False, "use_latest_version": True}
    writing = configured(AvroConverter, registry.url)
    schema = s.struct({"a": s.INT32}, name="com.acme.A")
    rows = [Struct(schema, {"a": 1})]
    data = [writing.from_connect("t", schema, row) for row in rows]
    assert (
        configured(AvroConverter, registry.url, **latest).write_columns("t", values_of(schema, rows)).to_pylist()
        == data
    )
    wider = {"type": "record", "name": "A", "namespace": "com.acme", "fields": [{"name": "a", "type": "long"}]}
    registry.add("t-value", json.dumps(wider))
    assert refused(configured(AvroConverter, registry.url, **latest), values_of(schema, rows)).rows is None
