"""ProtobufConverter by columns: what is written and read is the same as record by record, or it is refused."""

from __future__ import annotations

import datetime as dt
import math
import time
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from registry_columns import by_columns, by_records, damaged, exactly, schemas_with_rows
from registry_stand_in import StandIn
from registry_support import bare, configured, kept

from headgate.api import Schema, SchemaType, Struct
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.columns.objects import values_of
from headgate.pipeline.converters.registry import protobuf_names as names
from headgate.pipeline.converters.registry.protobuf import ProtobufConverter
from headgate.pipeline.converters.registry.protobuf_files import described
from headgate.pipeline.converters.registry.protobuf_schema import file_text

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("few_by_columns")]

SAME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
OPTIONS = st.sampled_from([{}, {"optional_for_nullables": True}, {"wrapper_for_nullables": True}])

SYMBOLS = {names.ENUM: "Suit", f"{names.ENUM}.NONE": "0", f"{names.ENUM}.HEARTS": "300"}
SUIT = Schema(SchemaType.STRING, name="Suit", parameters=SYMBOLS)
ADDRESS = s.struct({"street": s.STRING, "city": s.OPTIONAL_STRING}, name="Address")
CHOICE = Schema(
    SchemaType.STRUCT,
    True,
    name=f"{names.UNION}choice",
    fields=s.struct(
        {"number": s.INT32.as_optional(), "place": ADDRESS.as_optional(), "word": s.OPTIONAL_STRING}
    ).fields,
)
USUAL = s.struct(
    {
        "choice_0": CHOICE,
        "int8": s.INT8,
        "int16": s.INT16.as_optional(),
        "int32": s.INT32,
        "int64": s.INT64.as_optional(),
        "float32": s.FLOAT32,
        "float64": s.FLOAT64.as_optional(),
        "boolean": s.BOOLEAN.as_optional(),
        "string": s.OPTIONAL_STRING,
        "bytes": s.OPTIONAL_BYTES,
        "date": s.DATE.as_optional(),
        "time": s.TIME,
        "timestamp": s.TIMESTAMP,
        "decimal": s.decimal(2),
        "suit": SUIT,
        "with_default": replace(s.INT32, default=7),
        "address": ADDRESS,
        "other": ADDRESS.as_optional(),
        "numbers": s.array(s.INT64),
        "texts": s.array(s.STRING, optional=True),
        "suits": s.array(SUIT),
        "addresses": s.array(ADDRESS),
        "map": s.mapping(s.STRING, ADDRESS),
    },
    name="com.acme.Usual",
)
LONG = "a text that is longer than two hundred and fifty-six bytes " * 5


def usual(**changed: Any) -> Struct:
    values = {
        "choice_0": Struct(CHOICE, {"place": Struct(ADDRESS.as_optional(), {"street": "here"})}),
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
        "timestamp": dt.datetime(1969, 12, 31, 23, 59, 59, 5000, tzinfo=dt.UTC),
        "decimal": Decimal("-12345678901234567890.12"),
        "suit": "HEARTS",
        "with_default": 8,
        "address": Struct(ADDRESS, {"street": "Main"}),
        "other": Struct(ADDRESS.as_optional(), {"street": "", "city": LONG}),
        "numbers": [0, -1, 2**40],
        "texts": ["", LONG],
        "suits": ["NONE", "HEARTS"],
        "addresses": [Struct(ADDRESS, {"street": "x"}), Struct(ADDRESS, {"street": ""})],
        "map": {"": Struct(ADDRESS, {"street": ""})},
    }
    return Struct(USUAL, {**values, **changed})


NULLS = dict.fromkeys(["choice_0", "int16", "int64", "float64", "boolean", "string", "bytes", "date", "other", "texts"])
ZEROS: dict[str, Any] = {"int8": 0, "int16": 0, "int32": 0, "int64": 0, "float32": 0.0, "float64": 0.0}
EMPTY: dict[str, Any] = {"string": "", "bytes": b"", "numbers": [], "texts": [], "suits": [], "addresses": []}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ROWS = [
    usual(),
    usual(**NULLS, with_default=None),
    usual(**ZEROS, **EMPTY, boolean=False, suit="NONE", decimal=Decimal("0.00"), timestamp=EPOCH, map={}),
    usual(choice_0=Struct(CHOICE, {"number": 0}), time=dt.time(), date=dt.date.max, int64=-(2**63)),
    usual(choice_0=Struct(CHOICE, {"word": ""}), decimal=Decimal("9" * 35 + ".99"), numbers=[5] * 100),
    usual(
        choice_0=Struct(CHOICE), float32=math.nan, decimal=Decimal("-0.01"), map={"a": Struct(ADDRESS, {"street": "b"})}
    ),
]


def but_for_order(value: Any) -> str:
    """Maps have none in Protobuf."""
    return exactly(_sorted(bare(value)))


def written(converter: ProtobufConverter, values: Values) -> list[bytes | None] | None:
    """None where that is refused: for unusual defaults, and maps of several entries."""
    try:
        found: list[bytes | None] = converter.write_columns("t", values).to_pylist()
    except NotByColumns:
        return None
    return found


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value, key=repr)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


# --- by lot -----------------------------------------------------------------------------------------------------------


@SAME
@given(schemas_with_rows(nulls_inside=False, nested=False), OPTIONS)
def test_both_ways_write_and_read_the_same(
    shared_registry: StandIn, found: tuple[Schema, list[Any]], options: dict[str, bool]
) -> None:
    converter = kept(ProtobufConverter, shared_registry.url, **options)
    schema, rows = found
    data = [converter.from_connect("t", schema, row) for row in rows]
    assert written(converter, values_of(schema, rows)) in (None, data)
    assert by_columns(converter, data, but_for_order) == by_records(converter, data, but_for_order)


@SAME
@given(schemas_with_rows(nulls_inside=False, nested=False), OPTIONS, st.data())
def test_damaged_bytes_are_refused_or_read_the_same(
    shared_registry: StandIn, found: tuple[Schema, list[Any]], options: dict[str, bool], data: st.DataObject
) -> None:
    converter = kept(ProtobufConverter, shared_registry.url, **options)
    schema, rows = found
    written = [data.draw(damaged(converter.from_connect("t", schema, row))) for row in rows]
    read, expected = (each(converter, written, but_for_order) for each in (by_columns, by_records))
    assert read == {row: expected[row] for row in read}


# --- what goes by columns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"optional_for_nullables": True}, {"wrapper_for_nullables": True}], ids=str)
def test_every_type_is_written_and_read_by_columns(registry: StandIn, options: dict[str, bool]) -> None:
    converter = configured(ProtobufConverter, registry.url, **options)
    data = [converter.from_connect("t", USUAL, row) for row in ROWS]
    assert written(converter, values_of(USUAL, ROWS)) == data
    assert written(converter, Values(values_of(USUAL, ROWS).data.slice(1, 3), USUAL)) == data[1:4]
    found = by_columns(converter, data)
    assert len(found) == len(ROWS)
    assert found == by_records(converter, data)


def test_maps_that_are_no_maps_in_protobuf(registry: StandIn) -> None:
    converter = configured(ProtobufConverter, registry.url)
    schema = s.struct({"a": s.mapping(s.FLOAT64, s.STRING)})
    rows = [Struct(schema, {"a": each}) for each in ({}, {0.0: "", 2.0: "b", -1.0: "a"})]
    assert written(converter, values_of(schema, rows)) == [converter.from_connect("t", schema, row) for row in rows]


SCALARS: dict[int, list[Any]] = {
    1: [1.5, -0.0, math.inf],
    2: [0.5, -0.0, 3.0],
    3: [-1, 2**63 - 1, 5],
    4: [2**64 - 1, 1, 300],
    5: [-1, 2**31 - 1, 128],
    6: [2**64 - 1, 0, 1],
    7: [2**32 - 1, 0, 1],
    8: [True, False, True],
    9: ["", "ü", "a" * 300],
    12: [b"", b"\xff", b"a" * 300],
    13: [2**32 - 1, 0, 128],
    15: [-1, 2**31 - 1, 0],
    16: [-1, 2**63 - 1, 0],
    17: [-1, 2**31 - 1, -(2**31)],
    18: [-1, 2**63 - 1, -(2**63)],
}
MANY_TIMES = FieldDescriptorProto.LABEL_REPEATED


def another() -> tuple[Any, list[Any]]:
    """A file that somebody else wrote, with fields of all types, and messages."""
    file = FileDescriptorProto(syntax="proto3", name="another.proto")
    message = file.message_type.add(name="Another")
    for kind in SCALARS:
        message.field.add(name=f"one_{kind}", number=kind, label=1, type=kind)
        message.field.add(name=f"some_{kind}", number=1000 + kind, label=1, type=kind, proto3_optional=True)
        message.field.add(name=f"many_{kind}", number=100 + kind, label=MANY_TIMES, type=kind)
        apart = message.field.add(name=f"apart_{kind}", number=100_000 + kind, label=MANY_TIMES, type=kind)
        if kind not in (9, 12):
            apart.options.packed = False
    for made in [each for each in message.field if each.proto3_optional]:
        made.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{made.name}")
    make = GetMessageClass(described(file).message_types_by_name["Another"])
    messages: list[Any] = [make() for _ in range(4)]
    for row, one in enumerate(messages[:3]):
        for kind, values in SCALARS.items():
            setattr(one, f"one_{kind}", values[row])
            setattr(one, f"some_{kind}", values[row])
            getattr(one, f"many_{kind}").extend(values[:row])
            getattr(one, f"apart_{kind}").extend(values[:row])
    return file, messages


def test_every_type_of_others_is_read_by_columns(registry: StandIn) -> None:
    file, messages = another()
    number = registry.add("t-value", file_text(file), "PROTOBUF")
    data = [bytes([0, *number.to_bytes(4, "big"), 0]) + each.SerializeToString() for each in messages]
    converter = configured(ProtobufConverter, registry.url)
    assert by_columns(converter, data) == by_records(converter, data)
    assert len(by_columns(converter, data)) == 4


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"\x12\x01a\x08\x01",  # in another order
        b"\x08\x01\x08\x02",  # twice
        b"\x08\x01\x98\x06\x01",  # an unknown one
        b"\x08\x80",
        b"\x08",
        b"\x12\x02a",
        b"\x12\x01\xff",
        b"\x0d\0\0\0\0",  # of another type
        b"\x1a\x03\x08\x01",
        b"\x1a\x02\x08\x80",
        b"\x22\x02\x01\x80",
        b"\x22\x03\x01",
        b"\x2a\x03\x0a\x01a\x2a\x03\x0a\x01a",
    ],
    ids=str,
)
def test_messages_of_an_unusual_form_are_refused_alone(registry: StandIn, data: bytes) -> None:
    inner = s.struct({"a": s.INT32}, name="Inner")
    fields = {"n": s.INT32, "s": s.STRING, "m": inner, "l": s.array(s.INT32), "p": s.mapping(s.STRING, s.INT32)}
    schema = s.struct(fields, name="M")
    converter = configured(ProtobufConverter, registry.url)
    row = Struct(schema, {"n": 1, "s": "a", "m": Struct(inner, {"a": 1}), "l": [1], "p": {"a": 1}})
    good = converter.from_connect("t", schema, row) or b""
    everything = [good, good, good[:6] + data, good]
    found, expected = by_columns(converter, everything), by_records(converter, everything)
    assert sorted(found) == [0, 1, 3]
    assert found == {place: expected[place] for place in found}


def test_hostile_lengths_do_not_take_long(registry: StandIn) -> None:
    inner = s.struct({"a": s.array(s.INT32), "b": s.array(s.STRING)}, name="Inner")
    schema = s.struct({"m": s.array(inner)}, name="M")
    converter = configured(ProtobufConverter, registry.url)
    good = converter.from_connect("t", schema, Struct(schema, {"m": []})) or b""
    began = time.process_time()
    # A message of a million bytes, of which a hundred are there: empty texts.
    assert sorted(by_columns(converter, [good] + [good + b"\x0a\x80\x80\x40" + b"\x12\x00" * 50] * 2000)) == [0]
    assert sorted(by_columns(converter, [good] + [good + b"\x0a\x80\x80\x40\x0a\x80\x80\x40" + b"\1" * 99] * 2000)) == [
        0
    ]
    assert time.process_time() - began < 5


def test_messages_of_another_type_are_left_to_records(registry: StandIn) -> None:
    file = FileDescriptorProto(syntax="proto3", name="two.proto")
    for name in ("One", "Two"):
        file.message_type.add(name=name).field.add(name="a", number=1, label=1, type=5)
    number = registry.add("t-value", file_text(file), "PROTOBUF")
    start = bytes([0, *number.to_bytes(4, "big")])
    converter = configured(ProtobufConverter, registry.url)
    data = [start + b"\x02\x02\x08\x05", start + b"\x00\x08\x05", start + b"\x02\x02", start]
    assert sorted(by_columns(converter, data)) == [0, 2]
    assert by_columns(converter, data[2:])[0] == by_records(converter, data[2:])[0]


@pytest.mark.parametrize(
    ("field", "fitting", "other"),
    [
        (s.STRING, "a", None),
        (s.array(s.STRING.as_optional()), ["a"], ["a", None]),
        (s.mapping(s.STRING, s.INT32.as_optional()), {"a": 1}, {"a": None}),
        (s.mapping(s.STRING, s.INT32), {"a": 1}, {"a": 1, "b": 2}),
        (SUIT, "NONE", "SPADES"),
        (replace(CHOICE, optional=False), Struct(replace(CHOICE, optional=False)), None),
    ],
    ids=str,
)
def test_rows_that_must_be_written_one_by_one(registry: StandIn, field: Schema, fitting: Any, other: Any) -> None:
    converter = configured(ProtobufConverter, registry.url)
    schema = s.struct({"a": s.INT32, "b": field})
    rows = [Struct.of(schema, [1, each]) for each in (fitting, other, fitting)]
    with pytest.raises(NotByColumns) as refused:
        converter.write_columns("t", values_of(schema, rows))
    assert refused.value.rows is not None
    assert refused.value.rows.to_pylist() == [False, True, False]
    assert written(converter, values_of(schema, [rows[0]])) == [converter.from_connect("t", schema, rows[0])]


@pytest.mark.parametrize(
    "schema",
    [
        s.struct({"a": replace(s.array(s.STRING), default=["x"])}),
        s.struct({"a": replace(s.decimal(2), default=Decimal("1"))}),
        s.struct({"a": s.array(s.array(s.STRING))}),
        s.STRING,
    ],
    ids=str,
)
def test_schemas_that_are_written_record_by_record(registry: StandIn, schema: Schema) -> None:
    converter = configured(ProtobufConverter, registry.url)
    assert written(converter, Values(pa.array([{"a": "x"}]), schema)) is None


def test_values_without_schema_are_refused(registry: StandIn) -> None:
    assert written(configured(ProtobufConverter, registry.url), Values(pa.array(["a"]))) is None


def test_the_latest_schema_must_be_that_of_the_records(registry: StandIn) -> None:
    latest = {"auto_register_schemas": False, "use_latest_version": True}
    schema = s.struct({"a": s.INT32}, name="com.acme.A")
    rows = [Struct(schema, {"a": 1})]
    data = [configured(ProtobufConverter, registry.url).from_connect("t", schema, row) for row in rows]
    assert written(configured(ProtobufConverter, registry.url, **latest), values_of(schema, rows)) == data
    file, _ = another()
    registry.add("t-value", file_text(file), "PROTOBUF")
    assert written(configured(ProtobufConverter, registry.url, **latest), values_of(schema, rows)) is None
