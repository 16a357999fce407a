"""SinkChain: what a sink task gets for a batch of Kafka's records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline_plugins import (
    BAD,
    BYTES,
    DECIMALS,
    ENVELOPE,
    JSON,
    TEXT,
    Append,
    AsDecimal,
    DropShort,
    FailOn,
    Reroute,
    Starts,
    builtin,
    chain_spec,
    consumed,
    plugin,
    step,
)

from headgate.api import Form, Header, SinkRecord
from headgate.api import schema as s
from headgate.api.frame import HEADERS
from headgate.model import ChainSpec, PluginSpec, StepSpec
from headgate.pipeline.batch import CONSUMED
from headgate.pipeline.columns import reading
from headgate.pipeline.columns.typed import TypedTables
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.tolerance import ToleranceExceeded, Triage
from headgate.pipeline.transforms.drop_headers import DropHeaders
from headgate.pipeline.transforms.regex_router import RegexRouter

RECORDS = Output(Kind.RECORDS)
VALUES = Output(Kind.TABLE, ("value",))
ALL = ("topic", "partition", "offset", "timestamp", "key", "value")


def values(table: pa.Table) -> list[str | None]:
    found: list[str | None] = table.column("value").to_pylist()
    return found


def chain(*steps: StepSpec, output: Output = VALUES, key: PluginSpec = TEXT, value: PluginSpec = TEXT) -> SinkChain:
    return SinkChain(chain_spec(*steps, key=key, value=value), output)


# --- records ----------------------------------------------------------------------------------------------------------


def test_records_hold_all_that_kafka_says() -> None:
    headers: list[list[dict[str, Any]] | None] = [[{"key": "h", "value": b"12"}, {"key": "h", "value": None}]]
    found = chain(output=RECORDS, value=JSON).records(consumed([b'{"a":1}'], [b"k"], headers))
    assert found == [
        SinkRecord(
            topic="t",
            value={"a": 1},
            key="k",
            value_schema=None,
            key_schema=s.OPTIONAL_STRING,
            partition=3,
            timestamp=1700000000000,
            headers=(Header("h", 12, s.INT8), Header("h", None, None)),
            offset=10,
            timestamp_type="CreateTime",
            original_topic="t",
            original_partition=3,
            original_offset=10,
        )
    ]


def test_a_transform_moves_the_topic_but_not_the_original() -> None:
    found = chain(step(Reroute), output=RECORDS).records(consumed([b"v"]))[0]
    assert (found.topic, found.original_topic) == ("t-new", "t")


def test_a_batch_may_lack_columns() -> None:
    found = chain(output=RECORDS).records(pa.table({"value": pa.array([b"v"])}))
    assert [(each.value, each.key, each.topic, each.offset) for each in found] == [("v", None, "", -1)]


def test_record_batches_are_as_good_as_tables() -> None:
    batch = consumed([b"v"]).to_batches()[0]
    assert chain(output=RECORDS).records(batch)[0].value == "v"
    assert values(chain().table(batch)) == ["v"]


# --- steps ------------------------------------------------------------------------------------------------------------


def test_steps_run_in_their_order() -> None:
    found = chain(step(Append, {"suffix": "1"}), step(Append, {"suffix": "2"})).table(consumed([b"a"]))
    assert values(found) == ["a12"]


def test_a_dropped_record_is_gone_and_later_steps_do_not_see_it() -> None:
    found = chain(step(DropShort), step(Append, {"suffix": "!"})).table(consumed([b"a", b"bb", None]))
    assert values(found) == ["bb!"]
    assert values(chain(step(DropShort)).table(consumed([b"a"]))) == []


@pytest.mark.parametrize(("negate", "expected"), [(False, ["ab!", "b"]), (True, ["ab", "b!"])])
def test_a_step_with_predicate_runs_iff_predicate_xor_negate(negate: bool, expected: list[str]) -> None:
    only_if = plugin(Starts, {"with": "a"})
    guarded = step(Append, {"suffix": "!"}, only_if=only_if, negate=negate)
    assert values(chain(guarded).table(consumed([b"ab", b"b"]))) == expected


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [(), (step(Append, {"suffix": ""}),)])
def test_a_table_has_the_columns_of_the_output(steps: tuple[StepSpec, ...]) -> None:
    table = chain(*steps, output=Output(Kind.TABLE, ALL)).table(consumed([b"v"], [b"k"]))
    assert table.schema == pa.schema(
        {
            "topic": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.int64(),
            "key": pa.string(),
            "value": pa.string(),
        }
    )
    assert table.to_pylist() == [
        {"topic": "t", "partition": 3, "offset": 10, "timestamp": 1700000000000, "key": "k", "value": "v"}
    ]


ORIGINAL = ("original_topic", "original_partition", "original_offset")


@pytest.mark.parametrize(
    ("steps", "value", "topic"), [((), TEXT, "t"), ((), JSON, "t"), ((step(Reroute),), TEXT, "t-new")]
)
def test_original_columns_stay_what_kafka_says_and_change_no_text(
    steps: tuple[StepSpec, ...], value: PluginSpec, topic: str
) -> None:
    made = chain(*steps, output=Output(Kind.TABLE, ("value", "topic", *ORIGINAL)), value=value)
    alone = chain(*steps, value=value)
    assert made.passthrough is alone.passthrough
    batch = consumed([b'"a"', b"2"])
    table = made.table(batch.select([name for name in CONSUMED.names if name in made.needed]))
    assert table.select(["topic", *ORIGINAL]).to_pylist() == [
        {"topic": topic, "original_topic": "t", "original_partition": 3, "original_offset": offset}
        for offset in (10, 11)
    ]
    assert values(table) == values(alone.table(batch))


@pytest.mark.parametrize("steps", [(), (step(FailOn, {"value": "never"}),)])
@pytest.mark.parametrize(
    ("value", "form", "data", "expected"),
    [
        (TEXT, Form.TEXT, b"v", "v"),
        (TEXT, Form.TEXT, b"\xff", "\ufffd"),
        (TEXT, Form.JSON, b"v", '"v"'),
        (BYTES, Form.TEXT, b"v", "v"),
        (BYTES, Form.JSON, b"v", '"dg=="'),
        (JSON, Form.TEXT, b'{"a":1,"b":[1.0,null,"x"],"c":{"d":true}}', "{a=1, b=[1.0, null, x], c={d=true}}"),
        (JSON, Form.JSON, b'{ "a":1,"b":[1e20,null] }', '{"a":1,"b":[1.0E20,null]}'),
        (ENVELOPE, Form.TEXT, b'{"schema":{"type":"float"},"payload":1.1}', "1.1"),
        (ENVELOPE, Form.JSON, b'{"schema":{"type":"float"},"payload":1.1}', "1.1"),
        (JSON, Form.TEXT, b'"a\\ud800"', "a?"),
        (JSON, Form.JSON, b'"a\\ud800"', '"a\\uD800"'),
        (JSON, Form.TEXT, b"null", None),
        (JSON, Form.JSON, b"null", None),
        (builtin("string", "StringConverter", **{"converter.encoding": "UTF-16BE"}), Form.TEXT, b"\x00v", "v"),
    ],
)
def test_values_are_shown_in_the_form_of_the_output(
    steps: tuple[StepSpec, ...], value: PluginSpec, form: Form, data: bytes, expected: str | None
) -> None:
    made = chain(*steps, output=Output(Kind.TABLE, ("value",), form), value=value)
    assert values(made.table(consumed([data, None]))) == [expected, None]


def test_keys_are_shown_as_values_are() -> None:
    made = chain(output=Output(Kind.TABLE, ("key", "value"), Form.JSON), key=JSON)
    table = made.table(consumed([b"v"], [b'{"k": 1}']))
    assert table.to_pylist() == [{"key": '{"k":1}', "value": '"v"'}]


@pytest.mark.parametrize("form", list(Form))
def test_a_topic_that_is_no_text_is_shown_as_java_shows_it(form: Form) -> None:
    half = step(RegexRouter, {"regex": ".*", "replacement": "\ud800"})
    made = chain(half, output=Output(Kind.TABLE, ("topic", "value"), form))
    batch = consumed([b"v"])
    table = made.typed(batch, Triage(ErrorPolicy())).tables[0].table if form is Form.TYPED else made.table(batch)
    assert table.column("topic").to_pylist() == ["?"]


# --- headers as they are ----------------------------------------------------------------------------------------------

WITH_HEADERS = Output(Kind.TABLE, ("original_offset", "original_headers", "value"), Form.TYPED)
GIVEN: list[list[dict[str, Any]] | None] = [
    [{"key": "h", "value": b"12"}, {"key": "h", "value": None}],
    None,
    [{"key": "g", "value": b"\xff"}],
]


@pytest.mark.parametrize("by_columns", [True, False], ids=["by columns", "by records"])
@pytest.mark.parametrize(
    ("steps", "kept"),
    [((), [0, 1, 2]), ((step(DropHeaders, {"headers": "h"}),), [0, 1, 2]), ((step(DropShort),), [0, 2])],
    ids=["no step", "dropped headers", "dropped records"],
)
def test_the_original_headers_are_what_kafka_says(
    steps: tuple[StepSpec, ...], kept: list[int], by_columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FEWEST", 1 if by_columns else 100)
    made = chain(*steps, output=WITH_HEADERS)
    assert "headers" in made.needed
    batch = consumed([b"aa", b"b", b"cc"], headers=GIVEN)
    tables = made.typed(batch, Triage(ErrorPolicy())).tables
    assert pa.concat_tables([each.table for each in tables]).select(
        ["original_offset", "original_headers"]
    ) == pa.table(
        {
            "original_offset": pa.array([10 + row for row in kept], pa.int64()),
            "original_headers": pa.array([GIVEN[row] for row in kept], HEADERS),
        }
    )


def test_headers_that_nobody_else_wants_need_not_be_readable() -> None:
    bad: list[list[dict[str, Any]] | None] = [[{"key": "h", "value": b"{"}]]
    made = SinkChain(chain_spec(key=TEXT, value=TEXT, headers=JSON), WITH_HEADERS)
    (table,) = made.typed(consumed([b"v"], headers=bad), Triage(ErrorPolicy())).tables
    assert table.table.column("original_headers").to_pylist() == bad


def test_the_headers_of_what_a_statement_made_are_those_it_left() -> None:
    records = [
        SinkRecord(topic="t", value="a", value_schema=s.STRING, headers=(Header("h", 12, s.INT8),)),
        SinkRecord(topic="t", value="b", value_schema=s.STRING),
    ]
    made = chain(output=WITH_HEADERS).selected(records, Triage(ErrorPolicy()))
    assert isinstance(made, TypedTables)
    (table,) = made.tables
    assert table.table.column("original_headers").to_pylist() == [[{"key": "h", "value": b"12"}], None]


# --- what must be sent ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "passes", "needed"),
    [
        (chain(), True, {"value"}),
        (chain(value=BYTES), True, {"value"}),
        (chain(value=TEXT, key=JSON), True, {"value"}),
        (chain(output=Output(Kind.TABLE, ("key", "timestamp"))), True, {"key", "timestamp"}),
        (chain(output=Output(Kind.TABLE, ("value",), Form.JSON)), False, {"value", "topic", "partition", "offset"}),
        (chain(value=JSON), False, {"value", "topic", "partition", "offset"}),
        (chain(step(DropShort)), False, set(CONSUMED.names)),
        (chain(output=RECORDS), False, set(CONSUMED.names)),
        (
            chain(value=builtin("string", "StringConverter", **{"converter.encoding": "UTF-16"})),
            False,
            {"value", "topic", "partition", "offset"},
        ),
    ],
)
def test_only_what_the_chain_uses_must_be_sent(made: SinkChain, passes: bool, needed: set[str]) -> None:
    assert made.passthrough is passes
    assert made.needed == needed
    batch = consumed([b"1", None]).select(sorted(needed))
    assert (made.records if needed == set(CONSUMED.names) else made.table)(batch) is not None


@given(st.lists(st.none() | st.binary(max_size=8), max_size=5))
def test_the_fast_path_gives_what_the_records_give(data: list[bytes | None]) -> None:
    slow = chain(step(FailOn, {"value": "never"}))
    for value in (TEXT, BYTES):
        fast = chain(value=value)
        assert fast.passthrough
        assert fast.table(consumed(data)) == slow.table(consumed(data))


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", [RECORDS, VALUES])
def test_a_bad_value_is_named_by_topic_partition_and_offset(output: Output) -> None:
    made = chain(output=output, value=JSON)
    with pytest.raises(ToleranceExceeded) as raised:
        (made.records if output is RECORDS else made.table)(consumed([b"1", b"{", b"2"]))
    assert str(raised.value).startswith(
        "Tolerance exceeded in error handler: stage 'VALUE_CONVERTER' with class "
        "'org.apache.kafka.connect.json.JsonConverter', "
        "where consumed record is {topic='t', partition=3, offset=11}: DataError: Converting byte[]"
    )


@pytest.mark.parametrize(
    ("stage", "spec", "batch"),
    [
        ("KEY_CONVERTER", chain_spec(key=BAD), consumed([b"v"])),
        ("VALUE_CONVERTER", chain_spec(value=BAD), consumed([b"v"])),
        ("HEADER_CONVERTER", chain_spec(headers=BAD), consumed([b"v"], None, [[{"key": "h", "value": b"x"}]])),
        ("TRANSFORMATION", chain_spec(step(FailOn, {"value": "v"})), consumed([b"v"])),
    ],
)
def test_every_stage_names_itself(stage: str, spec: ChainSpec, batch: pa.Table) -> None:
    with pytest.raises(ToleranceExceeded, match=f"stage '{stage}'.*offset=10") as raised:
        SinkChain(spec, RECORDS).records(batch)
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("steps", [(), (step(AsDecimal),)])
def test_a_value_that_the_form_cannot_show_is_named_too(steps: tuple[StepSpec, ...]) -> None:
    made = chain(*steps, output=Output(Kind.TABLE, ("value",), Form.JSON), value=DECIMALS)
    with pytest.raises(ToleranceExceeded, match=r"stage 'VALUE_CONVERTER'.*offset=11.*BigDecimal"):
        made.table(consumed([None, b"1"]))


def test_a_key_that_nobody_asked_for_is_not_converted() -> None:
    assert values(chain(key=BAD).table(consumed([b"v"], [b"k"]))) == ["v"]
