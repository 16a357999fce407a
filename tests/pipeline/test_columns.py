"""By columns or record by record: a sink gets the same, down to the row that failed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
import pytest
from pipeline_plugins import BYTES, ENVELOPE, JSON, TEXT, FailTimes, builtin, consumed, plugin, step
from sink_strategies import ALL, Patient, run, sink

from headgate.api import Form, Schema
from headgate.model import StepSpec
from headgate.pipeline.batch import Batch
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.predicates.has_header_key import HasHeaderKey
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.predicates.topic_name_matches import TopicNameMatches
from headgate.pipeline.sink_chain import SinkChain
from headgate.pipeline.tolerance import Triage
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
        by_columns = SinkChain._by_columns

        def watched(chain: SinkChain, batch: Batch, *args: Any) -> Any:
            found = by_columns(chain, batch, *args)
            self.rows += batch.num_rows - len(found[2])
            return found

        monkeypatch.setattr(SinkChain, "_by_columns", watched)


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


@pytest.mark.parametrize("form", [Form.TEXT, Form.JSON])
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
        ("1e19", "1.0E19", "1.0E19", True),
        ("1e400", "Infinity", '"Infinity"', False),
        ('""', "", '""', True),
        ('"é\u2028"', "é\u2028", '"é\u2028"', True),
        ('"😀"', "😀", '"\\uD83D\\uDE00"', True),
        (r'"\"\\\/\b\f\n\r\t"', '"\\/\b\f\n\r\t', r'"\"\\/\b\f\n\r\t"', True),
        (r'"\u00e9\u001F\u0000"', "é\x1f\x00", '"é\\u001F\\u0000"', True),
        (r'"\ud83d\ude00"', "😀", '"\\uD83D\\uDE00"', True),
        (r'"\ud83d"', "?", '"\\uD83D"', False),
        ("[1]", "[1]", "[1]", True),
        ("[1,2.5]", "[1, 2.5]", "[1,2.5]", False),
        ("{}", "{}", "{}", True),
        ('{"b":[{"c":null}]}', "{b=[{c=null}]}", '{"b":[{"c":null}]}', True),
    ],
)
def test_values(given: str, text: str, as_json: str, by_columns: bool, watch: Watch) -> None:
    batch = consumed([f'{{"a":{given}}}'.encode()] * ROWS)
    assert sink().table(batch)["value"].to_pylist() == [f"{{a={text}}}"] * ROWS
    assert sink(form=Form.JSON).table(batch)["value"].to_pylist() == [f'{{"a":{as_json}}}'] * ROWS
    assert watch.rows == (2 * ROWS if by_columns else 0)


@pytest.mark.parametrize("name", ["", "a.b", 'a"b', "a\\b", "é", "😀", "\x00", "\x1f", "a b", "(?i)[", "\u2028"])
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
    triage = Triage(chain.policy)
    table = chain.table(consumed(values), triage)
    assert watch.rows == 2 * ROWS - 5  # wherever they stand
    assert (table, triage.failures, None) == run(chain, consumed(values), by_columns=False)
    assert [failure.row for failure in triage.failures] == [5]
    assert sum(triage.by_records.values()) == 5


# --- what does not ----------------------------------------------------------------------------------------------------


class Loud(JsonConverter):
    """Has its own idea of values."""

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return None, "LOUD"


class Louder(MaskFieldValue):
    """Has its own idea of records."""

    def apply(self, record: Any) -> Any:
        return record.replace(value="LOUD")


@pytest.mark.parametrize(
    "chain",
    [
        sink(columns=("offset",)),
        sink(step(FailTimes, {"value": "x", "times": "1"})),
        sink(step(Louder, {"fields": "a"})),
        sink(value=plugin(Loud)),
    ],
)
def test_chains_that_need_records(chain: SinkChain) -> None:
    assert chain._plan is None


@pytest.mark.parametrize(
    "chain",
    [
        sink(value=ENVELOPE),
        sink(value=TEXT, form=Form.JSON),
        sink(columns=ALL, key=JSON),
        sink(columns=ALL, key=BYTES),
        sink(CAST, key=JSON),
        sink(step(Filter, only_if=plugin(HasHeaderKey, {"name": "h"}))),
    ],
)
def test_chains_that_do_not(chain: SinkChain) -> None:
    assert chain._plan is not None


def test_what_a_converter_cannot_read_by_columns_goes_as_records(watch: Watch) -> None:
    chain = sink(CAST, key=builtin("string", "StringConverter", **{"converter.encoding": "UTF-16"}), columns=("key",))
    batch = consumed([b'{"price":1.5}'] * ROWS, ["k".encode("utf-16")] * ROWS)
    assert chain.table(batch)["key"].to_pylist() == ["k"] * ROWS
    assert watch.rows == 0


def test_two_schemas_that_alternate_go_by_columns_and_keep_their_order(watch: Watch) -> None:
    values = [b'{"a":%d}' % row if row % 2 else b'{"b":"x","a":%d}' % row for row in range(4 * ROWS)]
    table = sink(columns=("offset", "value")).table(consumed(values))
    assert table["offset"].to_pylist() == list(range(10, 10 + 4 * ROWS))
    assert table["value"].to_pylist()[:3] == ["{b=x, a=0}", "{a=1}", "{b=x, a=2}"]
    assert watch.rows == 4 * ROWS


def test_a_predicate_that_answers_both_ways_parts_rows(watch: Watch) -> None:
    values: list[bytes | None] = [None if row % 3 == 0 else b'{"price":1.5}' for row in range(3 * ROWS)]
    cast = step(CastValue, {"spec": "price:int32"}, only_if=plugin(RecordIsTombstone), negate=True)
    table = sink(cast).table(consumed(values))
    assert table["value"].to_pylist() == [None, "{price=1}", "{price=1}"] * ROWS
    assert watch.rows == 3 * ROWS


def test_rows_that_a_step_refuses_are_looked_at_alone(watch: Watch) -> None:
    values = [b'{"price":"%s"}' % (b"x" if row == 7 else b"12") for row in range(ROWS)]
    found = run(sink(CAST), consumed(values), by_columns=True)
    assert [failure.row for failure in found[1]] == [7]
    assert found[0]["value"].to_pylist() == ["{price=12}"] * (ROWS - 1)
    assert watch.rows == ROWS - 1


def test_transforms_that_take_records_get_them_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = sink(step(FailTimes, {"value": "never", "times": "1"}), columns=("offset", "value"))
    monkeypatch.setattr(chain, "_each", None)  # nobody gets a turn alone
    table = chain.table(consumed(ORDERS))
    assert table.slice(2, 1).to_pylist() == [{"offset": 12, "value": "{id=2, name=n2, price=2.5, note=null}"}]


@pytest.mark.parametrize(
    "made",
    [
        step(CastValue, {"spec": "string"}),
        step(ExtractFieldValue, {"field": "a.b", "field.syntax.version": "V2"}),
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
    triage = Triage(chain.policy)
    table = chain.table(consumed(values), triage)
    assert watch.rows == 2 * ROWS
    assert (table, [], triage.postponed) == run(chain, consumed(values), by_columns=False)
    assert triage.postponed is not None
    assert (table.num_rows, triage.postponed.row) == (ROWS, ROWS)
