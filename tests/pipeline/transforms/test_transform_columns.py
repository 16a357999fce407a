"""Transforms by columns: what goes that way, with nothing refused, and what is left to records."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from importlib.metadata import entry_points
from typing import Any, Final

import pyarrow as pa
import pytest
from frame_support import assert_same, by_columns, frame_of, records
from transform_support import DEFAULTS, KEEP, configured

from headgate.api import Record, Schema, Struct, Transform
from headgate.api import schema as s
from headgate.api.frame import HEADERS, Group, HeaderColumns, Values
from headgate.pipeline.columns.objects import values_of
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.predicates.has_header_key import HasHeaderKey
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.predicates.topic_name_matches import TopicNameMatches
from headgate.pipeline.steps import Step
from headgate.pipeline.transforms.cast import CastKey, CastValue
from headgate.pipeline.transforms.drop_headers import DropHeaders
from headgate.pipeline.transforms.extract_field import ExtractFieldKey, ExtractFieldValue
from headgate.pipeline.transforms.filter import Filter
from headgate.pipeline.transforms.flatten import FlattenKey, FlattenValue
from headgate.pipeline.transforms.from_json import FromJsonValue
from headgate.pipeline.transforms.header_from import HeaderFromKey, HeaderFromValue
from headgate.pipeline.transforms.hoist_field import HoistFieldKey, HoistFieldValue
from headgate.pipeline.transforms.insert_field import InsertFieldKey, InsertFieldValue
from headgate.pipeline.transforms.insert_header import InsertHeader
from headgate.pipeline.transforms.mask_field import MaskFieldKey, MaskFieldValue
from headgate.pipeline.transforms.regex_router import RegexRouter
from headgate.pipeline.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from headgate.pipeline.transforms.set_schema_metadata import SetSchemaMetadataKey, SetSchemaMetadataValue
from headgate.pipeline.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue
from headgate.pipeline.transforms.timestamp_router import TimestampRouter
from headgate.pipeline.transforms.value_to_key import ValueToKey

INNER: Final = s.struct({"p": s.INT64}, optional=True)
ORDER: Final = s.struct(
    {"a": s.INT32, "b": s.OPTIONAL_STRING, "d": s.decimal(2), "t": s.TIMESTAMP, "l": s.array(s.STRING), "o": INNER},
    name="order",
)
AT: Final = dt.datetime(2023, 11, 14, 22, 13, 20, 123000, dt.UTC)


def maps(*rows: dict[str, Any] | None) -> Values:
    return Values(pa.array(rows))


def structs(schema: Schema, *rows: list[Any] | None) -> Values:
    return values_of(schema, [None if row is None else Struct.of(schema, row) for row in rows])


PLAIN: Final = maps(
    {"a": 5, "b": "x", "n": None, "t": 1700000000123, "o": {"p": 1, "q": [1, 2]}},
    {"a": 6, "b": None, "n": None, "t": 0, "o": {"p": 2, "q": []}},
)
TYPED: Final = structs(
    ORDER,
    [300, "x", Decimal("1.50"), AT, ["l"], Struct.of(INNER, [1])],
    [-1, None, Decimal("0.00"), AT, [], None],
)
OF_BOTH: Final[list[tuple[type[Transform[Any]], type[Transform[Any]], dict[str, str]]]] = [
    (CastKey, CastValue, {"spec": "a:string,b:boolean,zz:int8"}),
    (ExtractFieldKey, ExtractFieldValue, {"field": "a"}),
    (ExtractFieldKey, ExtractFieldValue, {"field": "o"}),
    (ExtractFieldKey, ExtractFieldValue, {"field": "o.p", "field.syntax.version": "V2"}),
    (FlattenKey, FlattenValue, {}),
    (HeaderFromKey, HeaderFromValue, {"fields": "a,o", "headers": "h,i", "operation": "move"}),
    (HeaderFromKey, HeaderFromValue, {"fields": "a,b", "headers": "h,i", "operation": "copy"}),
    (HoistFieldKey, HoistFieldValue, {"field": "f"}),
    (
        InsertFieldKey,
        InsertFieldValue,
        {"topic.field": "T!", "partition.field": "P", "offset.field": "O", "timestamp.field": "TS"},
    ),
    (InsertFieldKey, InsertFieldValue, {"static.field": "s", "static.value": "é"}),
    (MaskFieldKey, MaskFieldValue, {"fields": "a,b,t"}),
    (MaskFieldKey, MaskFieldValue, {"fields": "a,b", "replacement": "77"}),
    (ReplaceFieldKey, ReplaceFieldValue, {"exclude": "b", "renames": "a:id"}),
    (ReplaceFieldKey, ReplaceFieldValue, {"include": "a,o"}),
    (TimestampConverterKey, TimestampConverterValue, {"field": "t", "target.type": "unix"}),
    (
        TimestampConverterKey,
        TimestampConverterValue,
        {"field": "t", "target.type": "string", "format": "yyyy-MM-dd HH"},
    ),
]


@pytest.mark.parametrize(("of_key", "of_value", "config"), OF_BOTH)
@pytest.mark.parametrize("given", [PLAIN, TYPED], ids=["maps", "structs"])
def test_keys_and_values_go_by_columns(
    of_key: type[Transform[Any]], of_value: type[Transform[Any]], config: dict[str, str], given: Values
) -> None:
    assert assert_same(configured(of_value, config), frame_of(given)) == set()
    assert assert_same(configured(of_key, config), frame_of(Values.nulls(2), given)) == set()


@pytest.mark.parametrize(
    ("cls", "config"),
    [
        (SetSchemaMetadataValue, {"schema.name": "new", "schema.version": "2"}),
        (MaskFieldValue, {"fields": "a,b,d,t,l"}),
        (MaskFieldValue, {"fields": "d", "replacement": "1.25"}),
        (CastValue, {"spec": "d:float64,t:string,a:int8,b:boolean"}),
        (TimestampConverterValue, {"field": "t", "target.type": "Date"}),
        (TimestampConverterValue, {"field": "t", "target.type": "Time"}),
        (ValueToKey, {"fields": "o,a"}),
    ],
)
def test_structs_go_by_columns(cls: type[Transform[Any]], config: dict[str, str]) -> None:
    assert assert_same(configured(cls, config), frame_of(TYPED)) == set()


@pytest.mark.parametrize(
    ("cls", "config"),
    [
        (CastValue, {"spec": "int8"}),
        (CastValue, {"spec": "string"}),
        (HoistFieldValue, {"field": "f"}),
        (TimestampConverterValue, {"target.type": "unix", "unix.precision": "seconds"}),
        (TimestampConverterValue, {"target.type": "string", "format": "EEE, d MMM yyyy"}),
    ],
)
@pytest.mark.parametrize("schema", [None, s.INT64.as_optional()])
def test_values_that_are_numbers_go_by_columns(
    cls: type[Transform[Any]], config: dict[str, str], schema: Schema | None
) -> None:
    given = Values(pa.array([1700000000123, None, 7]), schema)
    assert assert_same(configured(cls, config), frame_of(given)) == set()


@pytest.mark.parametrize(
    ("cls", "config"),
    [
        (Filter, {}),
        (InsertHeader, {"header": "h", "value.literal": '{"a":[1,2]}'}),
        (DropHeaders, {"headers": "h"}),
        (RegexRouter, {"regex": "(.*)", "replacement": "new-$1"}),
        (TimestampRouter, {}),
        (ValueToKey, {"fields": "o,zz"}),
        (SetSchemaMetadataKey, {"schema.name": "n"}),
    ],
)
def test_other_parts_go_by_columns(cls: type[Transform[Any]], config: dict[str, str]) -> None:
    given = pa.array([[{"key": "h", "value": b"1"}, {"key": "i", "value": None}], None], HEADERS)
    frame = frame_of(PLAIN, headers=HeaderColumns(given, (("h", PLAIN),)))
    assert assert_same(configured(cls, config), frame) == set()


# --- records that differ afterwards -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "config"),
    [
        (CastValue, {"spec": "a:int8"}),
        (FlattenValue, {}),
        (InsertFieldValue, {"topic.field": "t"}),
        (ReplaceFieldValue, {"exclude": "a"}),
    ],
)
def test_null_keeps_the_schema_that_it_has(cls: type[Transform[Any]], config: dict[str, str]) -> None:
    schema = s.struct({"a": s.INT32}, optional=True)
    frame = frame_of(structs(schema, [1], None, [2]))
    made, refused = by_columns(configured(cls, config), frame)
    assert [(each.rows.to_pylist(), each.value.schema == schema) for each in made] == [([0, 2], False), ([1], True)]
    assert refused == assert_same(configured(cls, config), frame) == set()


def test_maps_that_flatten_to_other_fields_part() -> None:
    frame = frame_of(maps({"o": {"p": {"q": 1}}}, {"o": None}, {"o": {"p": None}}, None, {"o": {"p": {"q": 2}}}))
    made, _ = by_columns(configured(FlattenValue, {}), frame)
    assert assert_same(configured(FlattenValue, {}), frame) == set()
    found = {
        row: record.value for each in made for row, record in zip(each.rows.to_pylist(), records(each), strict=True)
    }
    assert found == {0: {"o.p.q": 1}, 1: {"o": None}, 2: {"o.p": None}, 3: None, 4: {"o.p.q": 2}}


def test_a_map_gets_no_field_for_what_is_not_known() -> None:
    times, partitions = pa.array([7, None, 8], pa.int64()), pa.nulls(3, pa.int32())
    frame = frame_of(maps({"a": 1}, {"a": 2}, {"a": 3}), sink=False, timestamp=times, partition=partitions)
    transform = configured(InsertFieldValue, {"timestamp.field": "t", "partition.field": "p"})
    made, _ = by_columns(transform, frame)
    assert sorted(str(record.value) for each in made for record in records(each)) == [
        "{'a': 1, 't': 7}",
        "{'a': 2}",
        "{'a': 3, 't': 8}",
    ]
    assert assert_same(transform, frame) == set()


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_defaults_stand_where_nothing_was_set() -> None:
    frame = frame_of(structs(DEFAULTS, [None, None], [1, "x"]))
    (made,), _ = by_columns(configured(ReplaceFieldValue, {}), frame)
    assert made.value.data.to_pylist() == [{"d": 9, "r": "rd"}, {"d": 1, "r": "x"}]
    assert assert_same(configured(ReplaceFieldValue, KEEP), frame) == {0}  # a required field stays null


def test_a_default_that_is_a_struct_is_left_to_records() -> None:
    member = Schema(s.SchemaType.STRUCT, optional=True, fields=INNER.fields, default=Struct.of(INNER, [1]))
    schema = s.struct({"o": member, "a": s.INT32})
    frame = frame_of(structs(schema, [None, 1], [Struct.of(member, [2]), 1]))
    assert assert_same(configured(ReplaceFieldValue, {"include": "a"}), frame) == {0}


# --- what is left to records ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "config", "given", "refused"),
    [
        (CastValue, {"spec": "a:int8"}, maps({"a": "1"}, {"a": "x"}), {1}),
        (CastValue, {"spec": "int8"}, maps({"a": 1}, None), {0}),
        (CastValue, {"spec": "string"}, values_of(s.TIMESTAMP, [AT]), {0}),  # which keeps the name of a Timestamp
        (ExtractFieldValue, {"field": "zz"}, TYPED, {0, 1}),
        (ExtractFieldValue, {"field": "a.b", "field.syntax.version": "V2"}, maps({"a": 1}, {"a": None}), {0}),
        (FlattenValue, {}, structs(s.struct({"m": s.mapping(s.STRING, s.INT8)}), [{}]), {0}),
        (HeaderFromValue, {"fields": "a", "headers": "h", "operation": "copy"}, maps({"a": 1}, None), {1}),
        (HeaderFromValue, {"fields": "zz", "headers": "h", "operation": "copy"}, TYPED, {0, 1}),
        (HoistFieldValue, {"field": "f"}, Values(pa.array([1, None]), s.INT64), {1}),
        (InsertFieldValue, {"topic.field": "a"}, TYPED, {0, 1}),
        (InsertFieldValue, {"static.field": "f", "static.value": "\ud800"}, PLAIN, {0, 1}),
        (InsertHeader, {"header": "h", "value.literal": '[1,"a"]'}, PLAIN, {0, 1}),
        (MaskFieldValue, {"fields": "a"}, maps({"a": b"x"}, {"a": None}), {0}),
        (MaskFieldValue, {"fields": "a"}, maps({"a": 1}, None), {1}),
        (MaskFieldValue, {"fields": "d", "replacement": "77"}, TYPED, {0, 1}),  # of another scale
        (RegexRouter, {"regex": "t", "replacement": "$9"}, PLAIN, {0, 1}),
        (SetSchemaMetadataValue, {"schema.name": "n"}, maps({"a": 1}, None), {0}),
        (SetSchemaMetadataValue, {"schema.name": s.DATE_NAME}, TYPED, {0, 1}),
        (TimestampConverterValue, {"field": "t", "target.type": "Timestamp"}, PLAIN, {0, 1}),  # dates have no shape
        (TimestampConverterValue, {"target.type": "Date"}, Values(pa.array([0, 2**60]), s.INT64), {1}),
        (ValueToKey, {"fields": "a"}, maps({"a": 1}, None), {1}),
    ],
)
def test_what_records_must_tell(
    cls: type[Transform[Any]], config: dict[str, str], given: Values, refused: set[int]
) -> None:
    assert assert_same(configured(cls, config), frame_of(given)) == refused


def test_sources_have_no_offset_to_insert() -> None:
    transform = configured(InsertFieldValue, {"offset.field": "o"})
    assert assert_same(transform, frame_of(PLAIN, sink=False)) == {0, 1}


def test_a_timestamp_that_is_missing_is_told_by_records() -> None:
    frame = frame_of(PLAIN, timestamp=pa.array([None, 1], pa.int64()))
    assert assert_same(configured(TimestampRouter, {}), frame) == {0}


# --- JSON -------------------------------------------------------------------------------------------------------------


class Reader(JsonConverter):
    """Reads texts that are numbers by columns."""

    def read_columns(self, topic: str, data: pa.Array) -> Iterator[Group]:
        rows = [row for row, each in enumerate(data.to_pylist()) if each.isdigit()]
        yield Group(pa.array(rows, pa.int64()), Values(pa.array([int(data[row].as_py()) for row in rows], pa.int64())))


@pytest.mark.parametrize(
    "given", [Values(pa.array(["1", "{", None, "22"])), values_of(s.OPTIONAL_BYTES, [b"1", b"{", None])]
)
def test_json_is_read_as_the_converter_reads_columns(given: Values, monkeypatch: pytest.MonkeyPatch) -> None:
    transform = configured(FromJsonValue, {})
    reader = Reader()
    reader.configure({"schemas.enable": "false"})
    monkeypatch.setattr(transform, "_json", reader)
    assert assert_same(transform, frame_of(given)) == {1}
    assert assert_same(transform, frame_of(values_of(s.OPTIONAL_STRING, [None, None]))) == set()
    assert assert_same(transform, frame_of(Values(pa.array([1, None])))) == {0}


# --- predicates -------------------------------------------------------------------------------------------------------


def test_predicates_give_masks() -> None:
    given = pa.array([[{"key": "h", "value": b"1"}], None, []], HEADERS)
    frame = frame_of(
        maps({"a": 1}, None, {"a": 2}), headers=HeaderColumns(given), topic=pa.array(["t", "t2", "t"], pa.string())
    )
    has_header, matches, tombstone = HasHeaderKey(), TopicNameMatches(), RecordIsTombstone()
    has_header.configure({"name": "h"})
    matches.configure({"pattern": "t"})
    tombstone.configure({})
    assert has_header.test_columns(frame) == pa.array([True, False, False])
    assert matches.test_columns(frame) == pa.array([True, False, True])
    assert tombstone.test_columns(frame) == pa.array([False, True, False])
    assert tombstone.test_columns(frame_of(PLAIN)) is False
    assert has_header.test_columns(frame_of(PLAIN)) is False
    assert has_header.test_columns(frame_of(PLAIN, headers=HeaderColumns(added=(("h", PLAIN),)))) is True


# --- who takes part ---------------------------------------------------------------------------------------------------


def ours(package: str) -> list[type[Any]]:
    entries = entry_points(group="headgate.plugins")
    return [each.load() for each in entries if each.module.startswith(f"headgate.pipeline.{package}.")]


@pytest.mark.parametrize("cls", ours("transforms"))
def test_all_but_code_of_users_and_statements_take_part(cls: type[Transform[Any]]) -> None:
    assert Step(cls()).by_columns == (cls.__name__ not in ("Python", "Sql"))


@pytest.mark.parametrize("cls", [each for each in ours("transforms") if each.__name__ not in ("Python", "Sql")])
def test_another_apply_does_not_take_part(cls: type[Transform[Any]]) -> None:
    def apply(self: Any, record: Record) -> Record:
        return record

    assert not Step(type("Other", (cls,), {"apply": apply})()).by_columns


@pytest.mark.parametrize("cls", ours("predicates"))
def test_all_predicates_take_part(cls: type[Any]) -> None:
    assert Step(Filter(), cls()).by_columns


def test_a_frame_without_records_is_no_problem() -> None:
    for of_key, of_value, config in OF_BOTH:
        for given in (PLAIN, TYPED):
            empty = Values(given.data.slice(0, 0), given.schema)
            assert assert_same(configured(of_value, config), frame_of(empty)) == set()
            assert assert_same(configured(of_key, config), frame_of(empty, empty)) == set()
