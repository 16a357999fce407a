"""By columns or record by record: a sink gets the same, down to the row that failed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
import pyarrow as pa
import pytest
from pipeline_plugins import BYTES, ENVELOPE, JSON, TEXT, FailTimes, builtin, consumed, plugin, step
from sink_strategies import ALL, Patient, run, sink

from headgate.api import Form
from headgate.model import PluginSpec, StepSpec
from headgate.pipeline.columns import plan as plans
from headgate.pipeline.columns.frame import Frame, NotByColumns
from headgate.pipeline.columns.json_shape import Shape, runs
from headgate.pipeline.predicates.has_header_key import HasHeaderKey
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.predicates.topic_name_matches import TopicNameMatches
from headgate.pipeline.sink_chain import SinkChain
from headgate.pipeline.transforms.cast import CastValue
from headgate.pipeline.transforms.drop_headers import DropHeaders
from headgate.pipeline.transforms.extract_field import ExtractFieldValue
from headgate.pipeline.transforms.filter import Filter
from headgate.pipeline.transforms.flatten import FlattenValue
from headgate.pipeline.transforms.header_from import HeaderFromValue
from headgate.pipeline.transforms.insert_field import InsertFieldValue
from headgate.pipeline.transforms.insert_header import InsertHeader
from headgate.pipeline.transforms.mask_field import MaskFieldValue
from headgate.pipeline.transforms.regex_router import RegexRouter
from headgate.pipeline.transforms.replace_field import ReplaceFieldValue
from headgate.pipeline.transforms.timestamp_router import TimestampRouter

ROWS: Final = 150
"""Enough to go by columns."""


class Watch:
    """Counts the rows that went by columns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        table = plans.ColumnPlan.table

        def watched(plan: plans.ColumnPlan, batch: pa.Table, *args: Any) -> pa.Table:
            made = table(plan, batch, *args)
            self.rows += batch.num_rows
            return made

        monkeypatch.setattr(plans.ColumnPlan, "table", watched)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    return Watch(monkeypatch)


# --- what goes by columns ---------------------------------------------------------------------------------------------

REPLACE = step(ReplaceFieldValue, {"exclude": "note", "renames": "name:customer"})
INSERT = step(InsertFieldValue, {"static.field": "origin", "static.value": "eu", "topic.field": "topic"})
CAST = step(CastValue, {"spec": "price:int32"})
ORDERS: Final = [
    json.dumps({"id": row, "name": f"n{row}", "price": row + 0.5, "note": None}).encode() for row in range(ROWS)
]


@pytest.mark.parametrize("form", list(Form))
def test_the_usual_batch_goes_by_columns(form: Form, watch: Watch) -> None:
    chain = sink(REPLACE, INSERT, CAST, form=form, columns=("offset", "value"))
    table = chain.table(consumed(ORDERS))
    assert watch.rows == ROWS
    shown = {
        Form.TEXT: "{id=1, customer=n1, price=1, topic=t, origin=eu}",
        Form.JSON: '{"id":1,"customer":"n1","price":1,"topic":"t","origin":"eu"}',
    }
    assert table.slice(1, 1).to_pylist() == [{"offset": 11, "value": shown[form]}]


@pytest.mark.parametrize("columns", [("value",), ALL])
def test_a_chain_without_transforms_goes_by_columns_too(columns: Sequence[str], watch: Watch) -> None:
    sink(columns=columns).table(consumed(ORDERS))
    assert watch.rows == ROWS


STEPS: Final[Mapping[str, tuple[StepSpec, str]]] = {
    "nothing": (step(FlattenValue), "{a=7, b=x, c=null}"),
    "mask": (step(MaskFieldValue, {"fields": "a,b,c,d"}), "{a=0, b=, c=null, d=null}"),
    "mask with": (step(MaskFieldValue, {"fields": "a,b", "replacement": "12"}), "{a=12, b=12, c=null}"),
    "extract": (step(ExtractFieldValue, {"field": "b"}), "x"),
    "extract by path": (step(ExtractFieldValue, {"field": "`b`", "field.syntax.version": "V2"}), "x"),
    "headers": (step(HeaderFromValue, {"fields": "a,z", "headers": "h,i", "operation": "move"}), "{b=x, c=null}"),
    "copied": (step(HeaderFromValue, {"fields": "a", "headers": "h", "operation": "copy"}), "{a=7, b=x, c=null}"),
    "insert header": (step(InsertHeader, {"header": "h", "value.literal": "1"}), "{a=7, b=x, c=null}"),
    "drop headers": (step(DropHeaders, {"headers": "h"}), "{a=7, b=x, c=null}"),
    "tombstones": (step(Filter, only_if=plugin(RecordIsTombstone)), "{a=7, b=x, c=null}"),
    "topics": (step(Filter, only_if=plugin(TopicNameMatches, {"pattern": "x.*"})), "{a=7, b=x, c=null}"),
    "no such topic": (
        step(MaskFieldValue, {"fields": "a"}, only_if=plugin(TopicNameMatches, {"pattern": "t"}), negate=True),
        "{a=7, b=x, c=null}",
    ),
    "cast": (step(CastValue, {"spec": "a:string,c:int8,z:float64"}), "{a=7, b=x, c=null, z=null}"),
    "keep": (step(ReplaceFieldValue, {"include": "c,b", "renames": "b:c"}), "{c=null}"),
    "empty": (step(ReplaceFieldValue, {"include": "z"}), "{}"),
}


@pytest.mark.parametrize(("made", "shown"), STEPS.values(), ids=list(STEPS))
def test_transforms_that_know_columns(made: StepSpec, shown: str, watch: Watch) -> None:
    table = sink(made).table(consumed([b'{"a":7,"b":"x","c":null}'] * ROWS))
    assert table["value"].to_pylist() == [shown] * ROWS
    assert watch.rows == ROWS


@pytest.mark.parametrize(
    ("made", "topic"),
    [
        (step(RegexRouter, {"regex": "(.)", "replacement": "$1-new"}), "t-new"),
        (step(RegexRouter, {"regex": "x", "replacement": "y"}), "t"),
        (step(TimestampRouter, {"topic.format": "${topic}-${timestamp}"}), "t-20231114"),
    ],
)
def test_a_new_topic_is_seen_by_those_after_it(made: StepSpec, topic: str, watch: Watch) -> None:
    chain = sink(made, step(InsertFieldValue, {"topic.field": "t"}), columns=("topic", "value"))
    table = chain.table(consumed([b'{"a":7}'] * ROWS))
    assert table.to_pylist() == [{"topic": topic, "value": f"{{a=7, t={topic}}}"}] * ROWS
    assert watch.rows == ROWS


def test_a_filter_leaves_nothing(watch: Watch) -> None:
    assert sink(step(Filter), CAST).table(consumed(ORDERS)).num_rows == 0
    assert watch.rows == ROWS


# --- values as they are read and shown --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "text", "as_json", "by_columns"),
    [
        ("true", "true", "true", True),
        ("0", "0", "0", True),
        ("-1", "-1", "-1", True),
        ("9223372036854775807", "9223372036854775807", "9223372036854775807", True),
        ("9223372036854775808", "-9223372036854775808", "-9223372036854775808", False),
        ("-0", "0", "0", False),
        ("0.5", "0.5", "0.5", True),
        ("5.0", "5.0", "5.0", True),
        ("-12.50", "-12.5", "-12.5", True),
        ("0.001", "0.001", "0.001", True),
        ("0.0009", "9.0E-4", "9.0E-4", True),
        ("9999999.0", "9999999.0", "9999999.0", True),
        ("1e7", "1.0E7", "1.0E7", True),
        ("1.5E-07", "1.5E-7", "1.5E-7", True),
        ("0.1000000000000000055511151231257827", "0.1", "0.1", True),
        ("-0.50", "-0.5", "-0.5", True),
        (f"-0.{'0' * 400}1", "-0.0", "-0.0", False),
        ("-0.0", "0.0", "0.0", False),
        ("1e19", "1.0E19", "1.0E19", False),
        ("1e400", "Infinity", '"Infinity"', False),
        ('""', "", '""', True),
        ('"é\u2028"', "é\u2028", '"é\u2028"', True),
        ('"😀"', "😀", '"\\uD83D\\uDE00"', True),
        (r'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t', r'"\"\\/\b\f\n\r\t"', True),
        (r'"\u00e9\u001F\u0000"', "é\x1f\x00", '"é\\u001F\\u0000"', True),
        (r'"\ud83d\ude00"', "😀", '"\\uD83D\\uDE00"', False),
        (r'"\ud83d"', "?", '"\\uD83D"', False),
        ("[1]", "[1]", "[1]", False),
        ("{}", "{}", "{}", False),
    ],
)
def test_values(given: str, text: str, as_json: str, by_columns: bool, watch: Watch) -> None:
    batch = consumed([f'{{"a":{given}}}'.encode()] * ROWS)
    assert sink().table(batch)["value"].to_pylist() == [f"{{a={text}}}"] * ROWS
    assert sink(form=Form.JSON).table(batch)["value"].to_pylist() == [f'{{"a":{as_json}}}'] * ROWS
    assert watch.rows == (2 * ROWS if by_columns else 0)


@pytest.mark.parametrize(
    "name", ["", "a.b", 'a"b', "a\\b", "é", "😀", "\x00", "\x1f", "\x7f", "a b", "(?i)[", "\u2028"]
)
@pytest.mark.parametrize("form", list(Form))
def test_names(name: str, form: Form, watch: Watch) -> None:
    chain = sink(form=form)
    batch = consumed([orjson.dumps({name: 1, "z": name})] * ROWS)
    assert run(chain, batch, by_columns=True) == run(chain, batch, by_columns=False)
    assert watch.rows == ROWS


def test_texts_may_be_spaced_as_python_does_it(watch: Watch) -> None:
    sink().table(consumed([b'{"a": 1, "b": "x: y, z"}'] * ROWS))
    assert watch.rows == ROWS


def test_rows_of_another_shape_go_as_records(watch: Watch) -> None:
    values: list[bytes | None] = [b'{"a":1}'] * (2 * ROWS)
    odd = {3: None, 4: b'{"b":1}', 5: b"{", ROWS + 40: b'{"a":"x"}', ROWS + 41: b'{"a":1,"a":2}'}
    values = [odd.get(row, value) for row, value in enumerate(values)]
    chain = sink(CAST, columns=("offset", "value"))
    found = run(chain, consumed(values), by_columns=True)
    assert found == run(chain, consumed(values), by_columns=False)
    assert [failure.row for failure in found[1]] == [5]
    assert watch.rows == ROWS + 40 - 6  # what follows the last odd row is too little


# --- what does not ----------------------------------------------------------------------------------------------------


class Louder(MaskFieldValue):
    """Has its own idea of records."""

    def apply(self, record: Any) -> Any:
        return record.replace(value="LOUD")


@pytest.mark.parametrize(
    "chain",
    [
        sink(value=ENVELOPE),
        sink(value=TEXT),
        sink(columns=("offset",)),
        sink(columns=ALL, key=JSON),
        sink(columns=ALL, key=BYTES),
        sink(CAST, key=JSON),
        sink(CAST, key=builtin("string", "StringConverter", **{"converter.encoding": "UTF-16"})),
        sink(step(FailTimes, {"value": "x", "times": "1"})),
        sink(step(Filter, only_if=plugin(HasHeaderKey, {"name": "h"}))),
        sink(step(Louder, {"fields": "a"})),
    ],
)
def test_chains_that_need_records(chain: SinkChain) -> None:
    assert chain._plan is None


@pytest.mark.parametrize("key", [JSON, TEXT])
def test_a_key_that_nobody_reads_is_no_hindrance(key: PluginSpec) -> None:
    assert sink(key=key)._plan is not None


@pytest.mark.parametrize(
    "made",
    [
        step(CastValue, {"spec": "a:float32"}),
        step(CastValue, {"spec": "string"}),
        step(ExtractFieldValue, {"field": "a.b", "field.syntax.version": "V2"}),
        step(MaskFieldValue, {"fields": "a", "replacement": "1e999"}),
        step(InsertFieldValue, {"static.field": "x", "static.value": "\ud800"}),
        step(RegexRouter, {"regex": "t", "replacement": "$9"}),
    ],
)
@pytest.mark.parametrize("form", list(Form))
def test_what_only_records_can_tell(made: StepSpec, form: Form, watch: Watch) -> None:
    chain = sink(made, form=form)
    batch = consumed([b'{"a":1.5}'] * ROWS)
    assert run(chain, batch, by_columns=True) == run(chain, batch, by_columns=False)
    assert watch.rows == 0


@pytest.mark.parametrize("value", [1.5, 3, True, "x"])
@pytest.mark.parametrize("names", [[f"field{number}" for number in range(3000)], ["x" * 50_000]])
def test_an_object_may_have_too_many_fields_or_too_long_names(names: list[str], value: Any, watch: Watch) -> None:
    batch = consumed([orjson.dumps(dict.fromkeys(names, value))] * ROWS)
    assert sink().table(batch).num_rows == ROWS
    assert watch.rows == 0


def test_a_batch_without_rows_or_without_values() -> None:
    assert sink().table(consumed([])) == sink().table(consumed([b"1"])).slice(1)
    assert sink().table(consumed([None] * ROWS))["value"].null_count == ROWS


def test_a_batch_ends_before_a_row_that_is_to_be_tried_again(watch: Watch) -> None:
    values = [b'{"a":1}'] * ROWS + [b'{"b":1}'] + [b'{"a":1}'] * ROWS
    chain = sink(step(Patient), errors={"errors.retry.timeout": "-1"})
    found = run(chain, consumed(values), by_columns=True)
    assert found == run(chain, consumed(values), by_columns=False)
    assert (found[0].num_rows, found[2].row) == (ROWS, ROWS)
    assert watch.rows == ROWS


# --- the pieces -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([], []),
        ([True], [(0, 1, True)]),
        ([False, False], [(0, 2, False)]),
        ([True, False, False, True], [(0, 1, True), (1, 3, False), (3, 4, True)]),
    ],
)
def test_runs(mask: list[bool], expected: list[tuple[int, int, bool]]) -> None:
    assert list(runs(pa.array(mask, pa.bool_()).to_numpy(zero_copy_only=False))) == expected


@pytest.mark.parametrize(
    ("texts", "fields"),
    [
        ([None, "[", "1", "[1]", "{}", '{"a":[]}'], None),
        ([None, '{"a":null,"b":1}', '{"c":1}', '{"a":"x","b":null}'], {"a": pa.string(), "b": pa.int64()}),
        (['{"a":null}'], {"a": pa.null()}),
        (['{"a":true,"b":1.0}'], {"a": pa.bool_(), "b": pa.float64()}),
    ],
)
def test_the_shape_of_texts(texts: list[str | None], fields: dict[str, pa.DataType] | None) -> None:
    shape = Shape.of(pa.array(texts, pa.string()))
    assert (shape and shape.schema) == (fields and pa.schema(fields))


def test_a_frame_knows_only_what_it_was_given() -> None:
    frame = Frame.of(pa.table({"topic": ["t", None], "partition": pa.array([1, 2], pa.int32())}), {})
    assert frame.column("partition").type == pa.int64()
    assert frame.field("a").null_count == 2
    for name in ("topic", "offset"):
        with pytest.raises(NotByColumns):
            frame.column(name)
    with pytest.raises(NotByColumns):
        _ = frame.with_value(pa.nulls(2)).fields
