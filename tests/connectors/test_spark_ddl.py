from __future__ import annotations

from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.connectors.spark.sink.ddl import NoDdl, parse, type_name, written

LEAVES = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(),
    pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(10, 2), pa.decimal128(38, 38),
]  # fmt: skip
names = st.one_of(st.sampled_from(["id", "at", "not", "int", "array"]), st.text(min_size=1, max_size=5))


def fields(types: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[list[pa.Field]]:
    made = st.builds(pa.field, names, types, st.booleans())
    return st.lists(made, min_size=1, max_size=4, unique_by=lambda field: field.name.lower())


types = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(pa.list_, inner),
        st.builds(pa.map_, st.sampled_from(LEAVES), inner),
        st.builds(pa.struct, fields(inner)),
    ),
    max_leaves=5,
)


@given(fields(types))
def test_what_is_written_is_read_as_the_same(columns: list[pa.Field]) -> None:
    schema = pa.schema(columns)
    assert parse(written(schema)) == schema


def test_it_reads_as_spark_does() -> None:
    text = "id bigint NOT NULL COMMENT 'it''s one', `a b` Decimal(5), s STRUCT<x: INT, y STRING>, t: timestamp_ltz"
    assert parse(text) == pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("a b", pa.decimal128(5, 0)),
            pa.field("s", pa.struct([pa.field("x", pa.int32()), pa.field("y", pa.string())])),
            pa.field("t", pa.timestamp("us", "UTC")),
        ]
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "It names no columns"),
        ("id", "The text ends in the middle"),
        ("id INT,", "The text ends in the middle"),
        ("id INT NOT", "The text ends in the middle"),
        ("id INT NOT 3", "NOT of column id is not followed by NULL"),
        ("id NUMBER", "'NUMBER' is no type of a column; there are "),
        ("id INT name STRING", "'name' is found where ',' is expected"),
        ("id INT)", "')' is found where ',' is expected"),
        (", id INT", "',' is found where the name of a column is expected"),
        ("id INT; DROP", "'; DROP' cannot be read"),
        ("id INT, ID INT", "Column id is named twice"),
        ("s STRUCT<>", "A STRUCT needs fields"),
        ("m MAP<STRING>", "'>' is found where ',' is expected"),
        ("d DECIMAL(39)", "DECIMAL(39,0) does not exist"),
        ("d DECIMAL(x)", "'x' is no number of digits"),
        ("a " + "ARRAY<" * 2000, "Types are nested more than 50 deep"),
    ],
)
def test_what_is_no_ddl_is_told(text: str, problem: str) -> None:
    with pytest.raises(NoDdl) as raised:
        parse(text)
    assert str(raised.value).startswith(problem)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(NoDdl):
        assert len(parse(text)) > 0


def test_types_have_sparks_names() -> None:
    assert type_name(
        pa.struct([pa.field("x", pa.list_(pa.int64())), pa.field("y", pa.map_(pa.string(), pa.null()))])
    ) == ("STRUCT<x: ARRAY<BIGINT>, y: MAP<STRING, NULL>>")
