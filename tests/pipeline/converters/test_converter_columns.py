"""Converters read and write columns as they do one by one."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from value_strategies import BYTES, any_values, floats, integers, plain_values, typed_values

from headgate.api import DataError, Schema, Struct
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.converters.boolean import BooleanConverter
from headgate.pipeline.converters.byte_array import ByteArrayConverter
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.numbers import (
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    NumberConverter,
    ShortConverter,
)
from headgate.pipeline.converters.string import StringConverter

NUMBERS: Final = (ShortConverter, IntegerConverter, LongConverter, FloatConverter, DoubleConverter)
READERS: Final = (StringConverter, ByteArrayConverter, BooleanConverter, *NUMBERS)


def configured(cls: type[Any], **config: str) -> Any:
    made = cls()
    made.configure({name.replace("_", "."): value for name, value in config.items()}, is_key=False)
    return made


def from_connect(converter: Any, values: Values) -> list[bytes | Exception | None]:
    """One by one."""
    found: list[bytes | Exception | None] = []
    for item in objects(values):
        try:
            found.append(converter.from_connect("t", values.schema, item))
        except DataError as error:
            found.append(error)
    return found


def assert_same_written(converter: Any, values: Values) -> None:
    """Refused if one of them cannot be written, and of single rows only such."""
    expected = from_connect(converter, values)
    wrong = [isinstance(each, Exception) for each in expected]
    made, named = written(converter, values)
    if made is None:
        assert any(wrong) or not wrong
        assert not any(row and not bad for row, bad in zip(named, wrong, strict=False))
    else:
        made.validate(full=True)
        assert made.type == pa.binary()
        assert made.to_pylist() == expected


def written(converter: Any, values: Values) -> tuple[pa.Array | None, list[bool]]:
    """Or the rows that were refused, if some were named."""
    try:
        return converter.write_columns("t", values), []
    except NotByColumns as refused:
        return None, [] if refused.rows is None else refused.rows.to_pylist()


def assert_same_read(converter: Any, data: pa.Array) -> None:
    """What is in no group cannot be read."""
    groups = list(converter.read_columns("t", data))
    read: dict[int, Any] = {}
    for each in groups:
        each.values.data.validate(full=True)
        assert each.rows.type == pa.int64()
        assert read.keys().isdisjoint(each.rows.to_pylist())
        found = zip(each.rows.to_pylist(), objects(each.values), strict=True)
        read |= {row: (each.values.schema, item) for row, item in found}
    for row, item in enumerate(data.to_pylist()):
        if row in read:
            schema, value = converter.to_connect("t", item)
            assert repr(read[row]) == repr((schema, value))  # NaN is not equal to itself
        else:
            with pytest.raises(DataError):
                converter.to_connect("t", item)


# --- JSON -------------------------------------------------------------------------------------------------------------

JSON_CONFIGS: Final = st.fixed_dictionaries(
    {
        "schemas.enable": st.sampled_from(["true", "false"]),
        "decimal.format": st.sampled_from(["BASE64", "NUMERIC"]),
        "replace.null.with.default": st.sampled_from(["true", "false"]),
    }
)


@given(any_values() | typed_values(lacking=True), JSON_CONFIGS)
def test_json_is_written_as_one_by_one(values: Values, config: dict[str, str]) -> None:
    assert_same_written(configured(JsonConverter, **config), values)


def test_json_in_its_envelope_and_without() -> None:
    schema = s.struct({"a": replace(s.INT8, default=7)}, optional=True)
    values = values_of(schema, [Struct(schema, {"a": 1}), Struct(schema), None])
    text = '{"type":"struct","fields":[{"type":"int8","optional":false,"default":7,"field":"a"}],"optional":true}'
    payloads = ['{"a":1}', '{"a":7}', "null"]
    enveloped = [f'{{"schema":{text},"payload":{payload}}}'.encode() for payload in payloads]
    assert configured(JsonConverter).write_columns("t", values).to_pylist() == enveloped
    plain = configured(JsonConverter, schemas_enable="false")
    assert plain.write_columns("t", values).to_pylist() == [payload.encode() for payload in payloads]
    assert plain.write_columns("t", Values(pa.array(["x", None]))).to_pylist() == [b'"x"', None]


def test_json_refuses_null_where_a_value_is_required() -> None:
    with pytest.raises(NotByColumns) as refused:
        configured(JsonConverter).write_columns("t", values_of(s.INT8, [1, None]))
    assert refused.value.rows is not None
    assert refused.value.rows.to_pylist() == [False, True]


def test_json_refuses_a_schema_that_it_cannot_write() -> None:
    point = s.struct({"a": s.INT8})
    schema = s.struct({"p": replace(point, default=Struct(point, {"a": 1}))})
    assert_same_written(configured(JsonConverter), values_of(schema, [Struct(schema, {"p": Struct(point, {"a": 2})})]))


# --- the others -------------------------------------------------------------------------------------------------------


@given(any_values(lacking=True))
def test_text_is_written_as_one_by_one(values: Values) -> None:
    assert_same_written(configured(StringConverter), values)


@given(any_values(lacking=True), st.sampled_from(READERS[1:]))
def test_whatever_it_is_it_is_written_or_refused_as_one_by_one(values: Values, cls: type[Any]) -> None:
    assert_same_written(configured(cls), values)


@given(st.data(), st.sampled_from(NUMBERS))
def test_numbers_are_written_as_one_by_one(data: st.DataObject, cls: type[NumberConverter]) -> None:
    schema: Schema | None = data.draw(st.sampled_from([None, cls.schema, replace(cls.schema, default=cls.kind(1))]))
    kind = pa.int64() if cls.kind is int else pa.float64()
    values = data.draw(plain_values(kind) if schema is None else typed_values(schema))
    assert_same_written(configured(cls), values)


@pytest.mark.parametrize("cls", NUMBERS)
def test_numbers_go_by_columns(cls: type[NumberConverter]) -> None:
    items = [cls.kind(1), None, cls.kind(-2)]
    packed = [None if item is None else cls.layout.pack(item) for item in items]
    converter = configured(cls)
    for values in (Values(pa.array(items)), values_of(cls.schema, items)):
        assert converter.write_columns("t", values).to_pylist() == packed
    (found,) = converter.read_columns("t", pa.array([b"", *packed], pa.binary()))
    assert (found.rows.to_pylist(), objects(found.values), found.values.schema) == ([1, 2, 3], items, cls.schema)


def test_numbers_that_are_too_large_are_refused() -> None:
    with pytest.raises(NotByColumns) as refused:
        configured(ShortConverter).write_columns("t", Values(pa.array([1, 1 << 15, None])))
    assert refused.value.rows is not None
    assert refused.value.rows.to_pylist() == [False, True, False]


@pytest.mark.parametrize("bits", [0x7FA00001, 0xFFA00000, 0x7FC00000, 0xFFFFFFFF])
def test_what_is_no_number_keeps_its_bits_as_far_as_python_does(bits: int) -> None:
    converter = configured(FloatConverter)
    data = struct.pack(">I", bits)
    (found,) = converter.read_columns("t", pa.array([data]))
    assert_same_written(converter, found.values)
    assert_same_written(configured(DoubleConverter), Values(pa.array([converter.to_connect("t", data)[1], math.inf])))


def encoded(cls: type[Any]) -> st.SearchStrategy[bytes]:
    if cls is BooleanConverter:
        return st.sampled_from([b"\0", b"\1", b"\2"])
    if not issubclass(cls, NumberConverter):
        return BYTES
    size = 8 * cls.layout.size
    return (integers(size) if cls.kind is int else floats(size)).map(cls.layout.pack)


@given(st.data(), st.sampled_from(READERS))
def test_bytes_are_read_as_one_by_one(data: st.DataObject, cls: type[Any]) -> None:
    items: Sequence[bytes | None] = data.draw(st.lists(st.none() | encoded(cls) | BYTES, max_size=6))
    column = pa.array(items, pa.binary()).slice(data.draw(st.integers(0, 2)))
    assert_same_read(configured(cls), column)


def test_many_texts_some_of_which_are_no_utf8() -> None:
    assert_same_read(configured(StringConverter), pa.array([b"a", b"\xff", "é".encode()] * 50))


def test_other_encodings_go_one_by_one() -> None:
    converter = configured(StringConverter, converter_encoding="UTF-16")
    with pytest.raises(NotByColumns):
        list(converter.read_columns("t", pa.array([b"a"])))
    with pytest.raises(NotByColumns):
        converter.write_columns("t", Values(pa.array(["a"])))


@pytest.mark.parametrize(
    ("cls", "values", "expected"),
    [
        (StringConverter, Values(pa.array(["é", None])), ["é".encode(), None]),
        (ByteArrayConverter, Values(pa.array([b"x", None])), [b"x", None]),
        (ByteArrayConverter, Values(pa.nulls(1), s.OPTIONAL_BYTES), [None]),
        (BooleanConverter, Values(pa.array([True, None, False])), [b"\1", None, b"\0"]),
        (BooleanConverter, Values(pa.nulls(2)), [None, None]),
    ],
)
def test_the_usual_goes_by_columns(cls: type[Any], values: Values, expected: list[bytes | None]) -> None:
    assert configured(cls).write_columns("t", values).to_pylist() == expected
