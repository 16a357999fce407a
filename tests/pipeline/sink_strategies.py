"""Sink chains and batches for them, drawn by Hypothesis."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
from hypothesis import strategies as st
from pipeline_plugins import JSON, TEXT, chain_spec, consumed, plugin, step

from headgate.api import Form, RetriableError, Transform
from headgate.api.frame import Frame, NotByColumns
from headgate.model import PluginSpec, StepSpec
from headgate.pipeline.columns import json_groups, reading
from headgate.pipeline.failure import Stage, class_name
from headgate.pipeline.predicates.has_header_key import HasHeaderKey
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.predicates.topic_name_matches import TopicNameMatches
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.tolerance import Retry, ToleranceExceeded, Triage
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

ALL: Final = ("topic", "partition", "offset", "timestamp", "key", "value")
TOLERANT: Final = {"errors.tolerance": "all", "errors.log.enable": "true"}


def sink(
    *steps: StepSpec,
    columns: Sequence[str] = ("value",),
    form: Form = Form.TEXT,
    key: PluginSpec = TEXT,
    value: PluginSpec = JSON,
    errors: Mapping[str, str] = TOLERANT,
) -> SinkChain:
    spec = chain_spec(*steps, key=key, value=value, errors=errors)
    return SinkChain(spec, Output(Kind.TABLE, tuple(columns), form))


def run(chain: SinkChain, batch: pa.Table, *, by_columns: bool, retry: Retry | None = None) -> Any:
    """All that comes of a batch."""
    triage = Triage(chain.policy, retry, clock=lambda: 0.0)
    fewest = 1 if by_columns else 1_000_000
    try:
        with patch.object(reading, "FEWEST", fewest), patch.object(json_groups, "FEWEST", fewest):
            made: Any = (
                _typed_rows(chain, batch, triage) if chain.output.form is Form.TYPED else chain.table(batch, triage)
            )
    except ToleranceExceeded as error:
        made = str(error)
    if isinstance(made, pa.Table):
        made.validate(full=True)
    return made, triage.failures, triage.postponed


def _typed_rows(chain: SinkChain, batch: pa.Table, triage: Triage) -> list[Any]:
    """Where one table ends and the next begins is not compared, nor the type of what is null."""
    found = []
    for each in chain.typed(batch, triage).tables:
        each.table.validate(full=True)
        found += [(repr(row), each.key_schema, each.value_schema) for row in each.table.to_pylist()]
    return found


class Patient(Transform[Any]):
    """Cannot take values with a field `b`, or none at all, yet."""

    def apply(self, record: Any) -> Any:
        if not isinstance(record.value, dict) or "b" in record.value:
            raise RetriableError("not yet")
        return record

    def apply_to_columns(self, frame: Frame) -> Frame:
        if "b" in frame.value.fields or frame.value.data.null_count:
            raise NotByColumns("not yet")
        return frame


# --- batches ----------------------------------------------------------------------------------------------------------

NAMES: Final = ("a", "b", "a.b", 'q"', "é😀", "", "\x1f")
INTEGERS = st.integers(-1000, 1000) | st.integers(-(10**30), 10**30) | st.sampled_from([0, 127, 128, 2**31, 2**63])
FLOATS = (
    st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-2000, 2000)
    | st.sampled_from([0.0, -0.0, 1e-3, 9.99e-4, 1e7, 9999999.5, 2.0**53, 2.0**63, 5e-324, 1.7e308])
)
STRINGS = st.text(max_size=6) | st.sampled_from(
    ["true", "TRUE", "12", "-7", "1.5", "007", " 1", "1e3", "😀", "\u0130", "K"]
)
KINDS: Final[Sequence[st.SearchStrategy[Any]]] = (INTEGERS, FLOATS, STRINGS, st.booleans(), st.none())
NESTED = st.lists(INTEGERS, max_size=2) | st.dictionaries(st.sampled_from(NAMES), STRINGS, max_size=2)
WRITERS: Final[Sequence[Callable[[Any], str]]] = (
    lambda tree: json.dumps(tree, ensure_ascii=False, separators=(",", ":")),
    lambda tree: json.dumps(tree),
    lambda tree: json.dumps(tree, ensure_ascii=False),
    lambda tree: json.dumps(tree, separators=(" , ", " : ")),
    lambda tree: json.dumps(tree, separators=(",", ":")).replace(".0", ".00").replace("e", "E"),
    lambda tree: json.dumps(tree, separators=(",", ":")).replace("e-3", "e-4"),
)
ODD = st.sampled_from(
    [
        None,
        b"null",
        b"",
        b" ",
        b"{",
        b"{}",
        b"[]",
        b"1",
        b'"x"',
        b"\xff",
        b'{"a":1}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":-0.0}',
        b'{"a":-0.5,"b":-1e-400}',
        b'{"a":1,"a":2}',
        b'{"b":null,"a":null}',
        b'{"a":1} ',
        b'{"a":1}{',
        b'{"a":NaN}',
        b'{"a":01}',
        b'{"a":"\\ud800"}',
    ]
)


@st.composite
def objects(draw: st.DrawFn) -> list[bytes | None]:
    """Objects of one shape; most of them, that is."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    kinds = {name: draw(st.sampled_from(KINDS)) for name in names}
    write = draw(st.sampled_from(WRITERS))
    holes = draw(st.sampled_from([0, 0, 3]))
    values: list[bytes | None] = []
    for row in range(draw(st.integers(1, 6))):
        tree = {name: None if holes and draw(st.integers(0, holes)) == 0 else draw(kinds[name]) for name in names}
        if row and draw(st.integers(0, 9)) == 0:
            tree[draw(st.sampled_from(NAMES))] = draw(NESTED | STRINGS | INTEGERS)
        values.append(write(tree).encode(errors="replace"))
    for place in draw(st.lists(st.integers(0, len(values)), max_size=2)):
        values.insert(place, draw(ODD))
    return values


# --- chains -----------------------------------------------------------------------------------------------------------

FIELD = st.sampled_from(["a", "b", "a.b", "é😀", 'q"'])
LISTED = st.lists(FIELD, min_size=1, max_size=3, unique=True).map(",".join)
TYPES: Final = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")


def configs(**keys: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, str]]:
    """Each key or not, with a dot for each underscore."""
    return st.fixed_dictionaries({}, optional={key.replace("_", "."): value for key, value in keys.items()})


def of(cls: type, config: st.SearchStrategy[dict[str, str]]) -> st.SearchStrategy[StepSpec]:
    return config.map(lambda found: step(cls, found))


MARKED = st.tuples(FIELD, st.sampled_from(["", "!", "?"])).map("".join)
REPLACES = of(
    ReplaceFieldValue,
    configs(
        exclude=LISTED,
        include=LISTED,
        renames=st.tuples(FIELD, st.sampled_from(("z", "a", "b", "é", "\ud800"))).map(":".join),
    ),
)
INSERTS = of(
    InsertFieldValue,
    configs(topic_field=MARKED, partition_field=MARKED, offset_field=MARKED, timestamp_field=MARKED)
    .flatmap(lambda found: st.tuples(st.just(found), MARKED, STRINGS))
    .map(lambda drawn: {**drawn[0], "static.field": drawn[1], "static.value": drawn[2]}),
)
CASTS = of(
    CastValue,
    st.lists(st.tuples(FIELD, st.sampled_from(TYPES)).map(":".join), min_size=1, max_size=3).map(
        lambda spec: {"spec": ",".join(spec)}
    )
    | st.sampled_from(TYPES).map(lambda kind: {"spec": kind}),
)
THE_THREE = REPLACES | INSERTS | CASTS
OTHERS = st.one_of(
    of(
        MaskFieldValue,
        st.tuples(LISTED, configs(replacement=st.sampled_from(["x", "12", "-1.5", "1e30", "1e999", "-0.0", "é"]))).map(
            lambda drawn: {"fields": drawn[0], **drawn[1]}
        ),
    ),
    of(
        ExtractFieldValue,
        st.tuples(FIELD, st.sampled_from(["V1", "V2"])).map(
            lambda drawn: {"field": drawn[0], "field.syntax.version": drawn[1]}
        ),
    ),
    of(
        HeaderFromValue,
        st.tuples(FIELD, st.sampled_from(["move", "copy"])).map(
            lambda drawn: {"fields": drawn[0], "headers": "h", "operation": drawn[1]}
        ),
    ),
    of(
        RegexRouter,
        st.tuples(st.sampled_from(["t.*", "(t)(.*)", "x"]), st.sampled_from(["n", "$1-$2", "$0", "$"])).map(
            lambda drawn: {"regex": drawn[0], "replacement": drawn[1]}
        ),
    ),
    of(
        TimestampRouter, st.sampled_from(["yyyy", "yyyyMMdd", "HHmmss", "SSS"]).map(lambda it: {"timestamp.format": it})
    ),
    st.sampled_from(
        [
            step(Filter),
            step(Patient),
            step(FlattenValue, {"delimiter": "-"}),
            step(DropHeaders, {"headers": "h"}),
            step(InsertHeader, {"header": "h", "value.literal": "[1,2]"}),
        ]
    ),
)
PREDICATES = st.none() | st.one_of(
    st.sampled_from([plugin(RecordIsTombstone), plugin(HasHeaderKey, {"name": "h"})]),
    st.sampled_from(["t", "t.*", "x"]).map(lambda pattern: plugin(TopicNameMatches, {"pattern": pattern})),
)
GUARDED = st.tuples(THE_THREE | OTHERS, PREDICATES, st.booleans()).map(
    lambda drawn: StepSpec(drawn[0].alias, drawn[0].transform, drawn[1], drawn[2])
)
ORIGINAL = ("original_topic", "original_partition", "original_offset")
COLUMNS = st.lists(st.sampled_from((*ALL, *ORIGINAL)), unique=True).map(
    lambda names: ("value", *(n for n in names if n != "value"))
)
POLICIES = st.sampled_from(
    [{}, TOLERANT, {**TOLERANT, "errors.deadletterqueue.topic.name": "dead"}, {"errors.tolerance": "all"}]
    + [{**TOLERANT, "errors.retry.timeout": timeout} for timeout in ("-1", "1000")]
)
RETRIES = st.none() | st.builds(
    Retry,
    st.just(Stage.TRANSFORMATION),
    st.just(class_name(Patient)),
    st.integers(1, 3),
    st.sampled_from([0.0, 2000.0]),
)


def told(draw: st.DrawFn, batch: pa.Table) -> pa.Table:
    """As Kafka may have it: several topics, several partitions, keys, headers, no times."""
    count = batch.num_rows

    def column(name: str, values: list[Any]) -> pa.Array:
        chosen = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3))
        return pa.array((chosen * count)[:count], batch.schema.field(name).type)

    choices: dict[str, list[Any]] = {
        "topic": ["t", "t2"],
        "partition": [3, 2**31 - 1],
        "timestamp": [0, -1, 1700000000000, 10**15, None],
        "key": [b"k", b'"\\\n', "é😀".encode(), b"\xff", None],
        "headers": [None, [{"key": "h", "value": b"1"}], [{"key": "i", "value": b"x"}]],
    }
    for name in draw(st.lists(st.sampled_from(sorted(choices)), unique=True)):
        place = batch.schema.get_field_index(name)
        batch = batch.set_column(place, batch.schema.field(name), column(name, choices[name]))
    return batch


@st.composite
def batches(draw: st.DrawFn) -> pa.Table:
    batch = told(draw, consumed(draw(objects())))
    if draw(st.booleans()):  # from the middle, and in pieces
        cut = draw(st.integers(0, batch.num_rows))
        batch = pa.concat_tables([batch.slice(cut), batch.slice(0, cut)]).slice(draw(st.integers(0, 3)))
    return batch
