"""What a chain uses travels, and nothing else; the result is the same as if everything did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import entry_points
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline_plugins import BYTES, ENVELOPE, HEADERS, JSON, TEXT, Append, Starts, chain_spec, consumed, plugin, step
from sink_strategies import ALL, POLICIES, run

from headgate.api import ConnectError, Form, Transform
from headgate.api.transform import EVERYTHING
from headgate.model import PluginRef, PluginSpec, StepSpec
from headgate.pipeline.batch import CONSUMED
from headgate.pipeline.predicates.has_header_key import HasHeaderKey
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.predicates.topic_name_matches import TopicNameMatches
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.transforms.drop_headers import DropHeaders
from headgate.pipeline.transforms.filter import Filter
from headgate.pipeline.transforms.insert_field import InsertFieldKey, InsertFieldValue
from headgate.pipeline.transforms.regex_router import RegexRouter
from headgate.pipeline.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from headgate.pipeline.transforms.timestamp_router import TimestampRouter

NAMED: Final = {"topic", "partition", "offset"}
VALUES: Final = Output(Kind.TABLE, ("value",))
REPLACE: Final = step(ReplaceFieldValue, {"exclude": "a"})
OFFSETS: Final = Output(Kind.TABLE, ("offset",))


def guarded(predicate: PluginSpec) -> StepSpec:
    return step(Filter, only_if=predicate)


@pytest.mark.parametrize(
    ("steps", "output", "more", "expected"),
    [
        ([REPLACE], VALUES, {}, {"value"}),
        ([REPLACE, step(DropHeaders, {"headers": "h"})], VALUES, {}, {"value"}),
        ([step(ReplaceFieldKey, {"exclude": "a"})], VALUES, {}, {"value", "key"}),
        ([step(InsertFieldValue, {"static.field": "a", "static.value": "x"})], VALUES, {}, {"value"}),
        ([step(InsertFieldValue, {"topic.field": "a", "timestamp.field": "b"})], VALUES, {}, {"value", "timestamp"}),
        ([step(InsertFieldKey, {"offset.field": "a"})], VALUES, {}, {"value", "key"}),
        ([step(TimestampRouter)], OFFSETS, {}, {"timestamp", "key", "value"}),
        ([step(RegexRouter, {"regex": "a", "replacement": "b"})], OFFSETS, {"value": TEXT}, set()),
        ([step(RegexRouter, {"regex": "a", "replacement": "b"})], OFFSETS, {"value": JSON}, {"value"}),
        ([guarded(plugin(HasHeaderKey, {"name": "h"}))], VALUES, {}, {"value", "headers"}),
        ([guarded(plugin(RecordIsTombstone))], OFFSETS, {"value": BYTES}, {"value"}),
        ([guarded(plugin(TopicNameMatches, {"pattern": "x"}))], OFFSETS, {"value": BYTES}, set()),
        ([REPLACE], Output(Kind.TABLE, ("value", "timestamp")), {}, {"value", "timestamp"}),
        # What may fail to be converted must be tried.
        ([REPLACE], VALUES, {"key": JSON}, {"value", "key"}),
        ([REPLACE], VALUES, {"headers": JSON}, {"value", "headers"}),
        ([], VALUES, {"key": JSON, "headers": JSON}, {"value"}),
        # Somebody wants it all.
        ([REPLACE], Output(Kind.RECORDS), {}, EVERYTHING),
        ([REPLACE], VALUES, {"errors": {"errors.deadletterqueue.topic.name": "dead"}}, EVERYTHING),
        ([REPLACE, step(Append, {"suffix": "x"})], VALUES, {}, EVERYTHING),
        ([guarded(plugin(Starts, {"with": "x"}))], VALUES, {}, EVERYTHING),
    ],
)
def test_only_what_is_used_is_needed(
    steps: Sequence[StepSpec], output: Output, more: dict[str, Any], expected: set[str]
) -> None:
    assert SinkChain(chain_spec(*steps, **{"value": JSON, **more}), output).needed == expected | NAMED


def test_everything_is_what_kafka_has() -> None:
    assert frozenset(CONSUMED.names) == EVERYTHING


class Modest(Transform[Any]):
    uses = frozenset({"value"})

    def apply(self, record: Any) -> Any:
        return record


class Curious(Modest):
    """Looks at more than the class that it is made from."""

    def apply(self, record: Any) -> Any:
        return record if record.headers else None


class Dreaming(Modest):
    uses = frozenset({"val"})


def test_what_a_class_says_is_not_true_of_another_apply() -> None:
    assert SinkChain(chain_spec(step(Modest)), VALUES).needed == {"value"} | NAMED
    assert SinkChain(chain_spec(step(Curious)), VALUES).needed == EVERYTHING


def test_what_no_record_has_cannot_be_used() -> None:
    with pytest.raises(ConnectError, match="Dreaming or its predicate uses what no record has: val"):
        _ = SinkChain(chain_spec(step(Dreaming)), VALUES).needed


# --- the same with less -----------------------------------------------------------------------------------------------

FIELD = {"field": "a"}
CONFIGS: Final[Mapping[str, Sequence[Mapping[str, str]]]] = {
    "Cast": ({"spec": "a:string"}, {"spec": "string"}),
    "DropHeaders": ({"headers": "h"},),
    "ExtractField": (FIELD,),
    "Filter": ({},),
    "Flatten": ({},),
    "FromJson": ({},),
    "HeaderFrom": (
        {"fields": "a", "headers": "h", "operation": "move"},
        {"fields": "a", "headers": "i", "operation": "copy"},
    ),
    "HoistField": (FIELD,),
    "InsertField": (
        {"static.field": "s", "static.value": "v"},
        {"topic.field": "t", "partition.field": "p"},
        {"offset.field": "a", "timestamp.field": "t"},
    ),
    "InsertHeader": ({"header": "h", "value.literal": "1"},),
    "MaskField": ({"fields": "a"}, {"fields": "a", "replacement": "x"}),
    "RegexRouter": ({"regex": "(.)(.*)", "replacement": "$2$1"}, {"regex": "t", "replacement": "$9"}),
    "ReplaceField": ({"exclude": "a"},),
    "SetSchemaMetadata": ({"schema.name": "n"},),
    "TimestampConverter": ({"target.type": "unix", "field": "a"}, {"target.type": "string", "format": "yyyy"}),
    "TimestampRouter": ({},),
    "ValueToKey": ({"fields": "a"},),
    "HasHeaderKey": ({"name": "h"},),
    "RecordIsTombstone": ({},),
    "TopicNameMatches": ({"pattern": "t"},),
}


def found(package: str) -> list[PluginSpec]:
    """All built-in plugins of a package, with some configurations each."""
    made = []
    for entry in entry_points(group="headgate.plugins"):
        if entry.module.startswith(f"headgate.pipeline.{package}.") and entry.load().uses != EVERYTHING:
            configs = CONFIGS.get(entry.name) or CONFIGS[entry.name.removesuffix("Key").removesuffix("Value")]
            made += [PluginSpec(PluginRef(entry.module, entry.attr), config) for config in configs]
    return made


TRANSFORMS: Final = found("transforms")
STEPS = st.builds(
    StepSpec, st.just("a"), st.sampled_from(TRANSFORMS), st.none() | st.sampled_from(found("predicates")), st.booleans()
)
DATA = st.sampled_from(
    [None, b"k", b"{", b'{"a":1}', b'{"a":"x","b":null}', b'{"a":1700000000000}', b'{"schema":null,"payload":{"a":1}}']
    + [json.dumps({"schema": {"type": kind, "fields": [{"type": "int64", "field": "a", "optional": True}]},
                   "payload": {"a": 1} if kind == "struct" else 7}).encode() for kind in ("struct", "int64")]
)  # fmt: skip
SOME_HEADERS = st.sampled_from([None, [{"key": "h", "value": b"1"}], [{"key": "i", "value": b"{"}]])
CONVERTERS = st.sampled_from([TEXT, BYTES, JSON, ENVELOPE])


@st.composite
def batches(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.lists(st.tuples(DATA, DATA, SOME_HEADERS), min_size=1, max_size=6))
    table = consumed(*map(list, zip(*rows, strict=True)))
    times = draw(st.lists(st.none() | st.integers(0, 2**40), min_size=len(rows), max_size=len(rows)))
    return table.set_column(3, "timestamp", pa.array(times, pa.int64()))


def test_only_what_runs_code_of_users_does_not_say_what_it_uses() -> None:
    of_ours = [e for e in entry_points(group="headgate.plugins") if e.module.startswith("headgate.pipeline.")]
    loaded = [each.load() for each in of_ours if ".transforms." in each.module or ".predicates." in each.module]
    assert {cls.__name__ for cls in loaded if cls.uses == EVERYTHING} <= {"Python", "Sql"}
    assert len(TRANSFORMS) > 26


@settings(deadline=None, max_examples=2 * settings().max_examples)
@given(
    batches(),
    st.lists(STEPS, max_size=3),
    st.tuples(CONVERTERS, CONVERTERS, st.sampled_from([HEADERS, JSON])),
    st.lists(st.sampled_from(ALL), min_size=1, unique=True),
    st.sampled_from(Form),
    POLICIES,
)
def test_what_is_not_needed_changes_nothing(
    batch: pa.Table,
    steps: list[StepSpec],
    converters: tuple[PluginSpec, PluginSpec, PluginSpec],
    columns: list[str],
    form: Form,
    errors: dict[str, str],
) -> None:
    key, value, headers = converters
    spec = chain_spec(*steps, key=key, value=value, headers=headers, errors=errors)
    chain = SinkChain(spec, Output(Kind.TABLE, tuple(columns), form))
    needed = [name for name in CONSUMED.names if name in chain.needed]
    whole, less = (run(chain, each, by_columns=True) for each in (batch, batch.select(needed)))
    if not chain.policy.keeps_records:  # then failures name the place, and nobody asks for more
        whole, less = ((made[0], list(map(placed, made[1])), made[2]) for made in (whole, less))
    assert less == whole


def placed(failure: Any) -> Any:
    return replace(failure, record=failure.record[:3])
