"""SourceChain: what the producer gets for the records or columns of a source task."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_plugins import (
    BAD,
    BYTES,
    ENVELOPE,
    HEADERS,
    JSON,
    TEXT,
    Append,
    DropShort,
    FailOn,
    Reroute,
    builtin,
    chain_spec,
    step,
)

from headgate.api import DataError, Header, Schema, SourceRecord, SourceTable, Struct
from headgate.api import schema as s
from headgate.model import PluginSpec, StepSpec
from headgate.pipeline.batch import PRODUCED
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.source_chain import SourceChain
from headgate.pipeline.tolerance import ToleranceExceeded, Triage


def chain(
    *steps: StepSpec, key: PluginSpec = TEXT, value: PluginSpec = TEXT, headers: PluginSpec = HEADERS
) -> SourceChain:
    return SourceChain(chain_spec(*steps, key=key, value=value, headers=headers))


def columns(
    made: SourceChain,
    table: pa.Table,
    key_schema: Schema | None = None,
    value_schema: Schema | None = None,
    triage: Triage | None = None,
) -> pa.Table:
    return made.columns(SourceTable(topic="t", table=table, key_schema=key_schema, value_schema=value_schema), triage)


def record(value: Any, **fields: Any) -> SourceRecord:
    return SourceRecord(topic="t", value=value, **fields)


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_become_bytes_with_all_they_had() -> None:
    given_record = record(
        {"a": 1},
        key="k",
        partition=2,
        timestamp=5,
        headers=(Header("h", 12, s.INT8), Header("h", None)),
    )
    table = chain(value=JSON).records([given_record])
    assert table.schema == PRODUCED
    assert table.to_pylist() == [
        {
            "row": 0,
            "topic": "t",
            "partition": 2,
            "key": b"k",
            "value": b'{"a":1}',
            "timestamp": 5,
            "headers": [{"key": "h", "value": b"12"}, {"key": "h", "value": None}],
        }
    ]


def test_rows_say_which_records_are_left() -> None:
    table = chain(step(DropShort)).records([record("a"), record("bb"), record("c"), record("dd")])
    assert table.select(["row", "value"]).to_pylist() == [{"row": 1, "value": b"bb"}, {"row": 3, "value": b"dd"}]


def test_converters_see_the_topic_that_transforms_chose() -> None:
    assert chain(step(Reroute)).records([record("v")]).column("topic").to_pylist() == ["t-new"]


def test_nothing_gives_an_empty_table() -> None:
    assert chain().records([]) == PRODUCED.empty_table()


def test_a_timestamp_of_minus_one_is_none_and_others_below_zero_are_wrong() -> None:
    assert chain().records([record("v", timestamp=-1)]).column("timestamp").to_pylist() == [None]
    with pytest.raises(DataError, match="Invalid record timestamp -5"):
        chain().records([record("v", timestamp=-5)])


@pytest.mark.parametrize(
    ("stage", "made"),
    [
        ("KEY_CONVERTER", chain(key=BAD)),
        ("VALUE_CONVERTER", chain(value=BAD)),
        ("HEADER_CONVERTER", chain(headers=BAD)),
        ("TRANSFORMATION", chain(step(FailOn, {"value": "v"}))),
    ],
)
def test_every_stage_names_itself_and_where_the_record_came_from(stage: str, made: SourceChain) -> None:
    bad = record("v", headers=(Header("h", 1),), source_partition={"file": "a"}, source_offset={"line": 9})
    with pytest.raises(ToleranceExceeded, match=f"stage '{stage}'.*file=a.*line=9") as raised:
        made.records([bad])
    assert isinstance(raised.value.__cause__, DataError)


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_text_columns_are_sent_as_they_are(kind: pa.DataType) -> None:
    data = ["a", None, "é"] if kind in (pa.string(), pa.large_string()) else [b"a", None, "é".encode()]
    table = columns(chain(), pa.table({"value": pa.array(data, kind)}), None, s.STRING)
    assert table.schema == PRODUCED
    assert table.column("value").to_pylist() == [b"a", None, "é".encode()]
    assert table.column("row").to_pylist() == [0, 1, 2]
    assert table.column("topic").to_pylist() == ["t"] * 3
    assert all(table.column(name).null_count == 3 for name in ("key", "partition", "timestamp", "headers"))


def test_optional_columns_are_taken() -> None:
    source = pa.table({"value": ["a"], "key": ["k"], "timestamp": [5], "partition": [2]})
    row = columns(chain(), source).to_pylist()[0]
    assert (row["key"], row["timestamp"], row["partition"]) == (b"k", 5, 2)


POINT = s.struct({"a": s.INT32, "l": s.array(s.STRING), "m": s.mapping(s.STRING, s.INT32)})


@pytest.mark.parametrize(
    ("value", "schema", "column", "expected"),
    [
        (BYTES, None, pa.array([b"\xff"]), b"\xff"),
        (BYTES, s.BYTES, pa.array([b"\xff"]), b"\xff"),
        (TEXT, None, pa.array([b"\xff"]), "\ufffd".encode()),
        (TEXT, None, pa.array([1.5]), b"1.5"),
        (builtin("string", "StringConverter", **{"converter.encoding": "UTF-16BE"}), None, pa.array(["v"]), b"\x00v"),
        (JSON, None, pa.array([{"a": 1, "b": [None]}]), b'{"a":1,"b":[null]}'),
        (JSON, s.STRING, pa.array([b"v"]), b'"v"'),
        (ENVELOPE, s.STRING, pa.array(["v"]), b'{"schema":{"type":"string","optional":false},"payload":"v"}'),
        (
            JSON,
            POINT,
            pa.array(
                [{"a": 1, "l": ["x"], "m": [("k", 2)]}],
                pa.struct({"a": pa.int32(), "l": pa.list_(pa.string()), "m": pa.map_(pa.string(), pa.int32())}),
            ),
            b'{"a":1,"l":["x"],"m":{"k":2}}',
        ),
    ],
)
def test_columns_of_any_type_are_converted(
    value: PluginSpec, schema: Schema | None, column: pa.Array, expected: bytes
) -> None:
    source = pa.table({"value": column})
    for steps in ((), (step(FailOn, {"value": "never"}),)):
        assert columns(chain(*steps, value=value), source, None, schema).column("value").to_pylist() == [expected]


def test_a_struct_column_reaches_transforms_as_a_struct() -> None:
    source = pa.table({"value": pa.array([{"a": 1}])})
    schema = s.struct({"a": s.INT64})
    table = columns(chain(step(Append, {"suffix": "!"})), source, None, schema)
    assert table.column("value").to_pylist() == [f"{Struct(schema, {'a': 1})}!".encode()]


def test_transforms_apply_to_columns() -> None:
    table = columns(chain(step(DropShort), step(Append, {"suffix": "!"})), pa.table({"value": ["a", "bb"]}))
    assert table.select(["row", "value"]).to_pylist() == [{"row": 1, "value": b"bb!"}]


def test_no_key_is_converted_as_no_key_with_its_schema() -> None:
    table = columns(chain(key=JSON), pa.table({"value": ["a", "b"]}), s.OPTIONAL_STRING)
    assert table.column("key").to_pylist() == [b"null", b"null"]


@pytest.mark.parametrize(
    ("made", "column", "schema", "message"),
    [
        (chain(value=BYTES), pa.array([b"v"]), s.STRING, "Invalid schema type for ByteArrayConverter: STRING"),
        (chain(value=BAD), pa.array(["v"]), None, "no bytes today"),
        (chain(key=BAD), pa.array(["v"]), None, "stage 'KEY_CONVERTER'"),
    ],
)
def test_a_bad_row_is_reported_as_a_bad_record(
    made: SourceChain, column: pa.Array, schema: Schema | None, message: str
) -> None:
    with pytest.raises(ToleranceExceeded, match=message):
        columns(made, pa.table({"value": column}), None, schema)


def test_timestamps_of_columns_follow_the_same_rule() -> None:
    assert columns(chain(), pa.table({"value": ["a"], "timestamp": [-1]})).column("timestamp").to_pylist() == [None]
    with pytest.raises(DataError, match="Invalid record timestamp -2"):
        columns(chain(), pa.table({"value": ["a"], "timestamp": [-2]}))


def test_no_rows_give_no_rows() -> None:
    empty = pa.table({"value": pa.array([], pa.string()), "timestamp": pa.array([], pa.int64())})
    assert columns(chain(), empty).num_rows == 0


@given(
    st.lists(st.tuples(st.none() | st.text(max_size=5), st.none() | st.binary(max_size=5), st.none() | st.just(5))),
    st.sampled_from([TEXT, JSON]),
)
def test_columns_give_what_records_give(rows: list[tuple[Any, Any, Any]], value: PluginSpec) -> None:
    values, keys, timestamps = zip(*rows, strict=True) if rows else ((), (), ())
    source = pa.table(
        {
            "value": pa.array(values, pa.string()),
            "key": pa.array(keys, pa.binary()),
            "timestamp": pa.array(timestamps, pa.int64()),
        }
    )
    fast = columns(chain(key=BYTES, value=value), source)
    records = [record(v, key=k, timestamp=t) for v, k, t in rows]
    assert fast == chain(key=BYTES, value=value).records(records)
    assert fast == columns(chain(step(FailOn, {"value": "!never!"}), key=BYTES, value=value), source)


# --- lines as JSON ----------------------------------------------------------------------------------------------------

NAMED = Schema(s.SchemaType.STRING, optional=True, default='d""', name="n")


@pytest.mark.parametrize(
    ("value", "schema", "head", "tail"),
    [
        (JSON, None, "", ""),
        (JSON, s.STRING, "", ""),
        (ENVELOPE, None, '{"schema":null,"payload":', "}"),
        (ENVELOPE, s.STRING, '{"schema":{"type":"string","optional":false},"payload":', "}"),
    ],
)
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_text_becomes_json_without_a_call_for_each_row(
    value: PluginSpec,
    schema: Schema | None,
    head: str,
    tail: str,
    kind: pa.DataType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = chain(value=value)
    calls: list[Any] = []
    convert = made._chain.value.from_connect

    def counted(topic: str, schema: Schema | None, value: Any) -> bytes | None:
        calls.append(value)
        return convert(topic, schema, value)

    monkeypatch.setattr(made._chain.value, "from_connect", counted)
    table = columns(made, pa.table({"value": pa.array(["line", "é", '"\n', "😀"] * 100, kind)}), None, schema)
    expected = [f"{head}{each}{tail}".encode() for each in ('"line"', '"é"', r'"\"\n"', r'"\uD83D\uDE00"')]
    assert table["value"].to_pylist() == expected * 100
    assert not calls


@settings(deadline=None, max_examples=2 * settings().max_examples)
@given(
    st.lists(st.none() | st.text(max_size=5) | st.sampled_from(['"', "\\", "\n", "\x1f", "\x00", "😀"]), max_size=6),
    st.sampled_from([None, s.STRING, s.OPTIONAL_STRING, NAMED, s.INT64, s.DATE]),
    st.sampled_from([JSON, ENVELOPE, builtin("json", "JsonConverter", **{"replace.null.with.default": "false"})]),
    st.sampled_from([pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]),
)
def test_text_becomes_the_same_json_row_by_row(
    texts: list[str | None], schema: Schema | None, value: PluginSpec, kind: pa.DataType
) -> None:
    column = pa.array([each.encode() if each is not None else None for each in texts], pa.binary())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        column = pa.array([b"\xff" if each == b"0" else each for each in column.to_pylist()], pa.binary())
    # In pieces, as a pump joins what was polled.
    table = pa.table({"value": pa.chunked_array([column[:2].cast(kind), column[2:].cast(kind)])})

    def made(*steps: StepSpec) -> Any:
        triage = Triage(ErrorPolicy(tolerant=True))
        found = columns(chain(*steps, value=value), table, None, schema, triage)
        return found.drop_columns("timestamp"), [(each.row, each.message) for each in triage.failures]

    assert made() == made(step(FailOn, {"value": "!never!"}))
