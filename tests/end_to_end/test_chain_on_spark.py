"""The chain on Spark gives what the chain gives on plain records: the same random records both ways, in a real job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pipeline_plugins import ENVELOPE, JSON, TEXT, chain_spec

from headgate.api import Form, Header, SourceRecord, SourceTable, Struct
from headgate.api import schema as s
from headgate.api.frame import HEADERS
from headgate.cli.assembly import StandaloneWorker
from headgate.java.nesting import DEEPEST
from headgate.model import ChainSpec, PluginRef, PluginSpec, StepSpec, TaskId
from headgate.pipeline import blob
from headgate.pipeline.batch import CONSUMED, slim
from headgate.pipeline.failure import Failure
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.source_chain import SourceChain
from headgate.pipeline.tolerance import Triage
from headgate.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

TASK = TaskId("test", 0)
# Shrinking would take a job for each try.
_OPTIONS: dict[str, Any] = {
    "deadline": None,
    "phases": [Phase.generate],
    "suppress_health_check": [HealthCheck.too_slow],
}
some, few = settings(max_examples=25, **_OPTIONS), settings(max_examples=8, **_OPTIONS)


@pytest.fixture(scope="module")
def engine(worker: StandaloneWorker) -> SparkEngine:
    worker.engine.session()
    return worker.engine


def ran(engine: SparkEngine, jobs: Sequence[blob.Job]) -> list[blob.Result]:
    """By residents."""
    return [blob.unpack(each) for each in engine.submit(TASK, [*map(blob.pack, jobs)]).result(120)]


# --- chains and records by lot ----------------------------------------------------------------------------------------


def step(module: str, name: str, **config: str) -> StepSpec:
    given_config = {key.replace("_", "."): value for key, value in config.items()}
    return StepSpec(name, PluginSpec(PluginRef(f"headgate.pipeline.transforms.{module}", name), given_config))


TOMBSTONES = PluginSpec(PluginRef("headgate.pipeline.predicates.record_is_tombstone", "RecordIsTombstone"))
STEPS = [
    step("insert_field", "InsertFieldValue", topic_field="t", timestamp_field="ts", static_field="s", static_value="v"),
    step("cast", "CastValue", spec="a:int32,b:string"),
    step("mask_field", "MaskFieldValue", fields="b"),
    step("flatten", "FlattenValue"),
    step("value_to_key", "ValueToKey", fields="a"),
    step("header_from", "HeaderFromValue", fields="a", headers="h", operation="copy"),
    step("replace_field", "ReplaceFieldValue", renames="a:x,b:y"),
    step("hoist_field", "HoistFieldValue", field="f"),
    step("regex_router", "RegexRouter", regex="t", replacement="other"),
    step("timestamp_router", "TimestampRouter"),
    step("insert_header", "InsertHeader", header="i", value_literal="1.5"),
    StepSpec("drop", step("filter", "Filter").transform, TOMBSTONES),
    StepSpec("extract", step("extract_field", "ExtractFieldValue", field="f").transform, TOMBSTONES, True),
]
steps = st.lists(st.sampled_from(STEPS), max_size=4, unique_by=lambda each: each.alias)
converters = st.sampled_from([JSON, ENVELOPE, TEXT])
chains = st.builds(
    lambda chosen, key, value: chain_spec(*chosen, key=key, value=value, errors={"errors.tolerance": "all"}),
    steps,
    st.sampled_from([TEXT, JSON]),
    converters,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
number = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
json_value = st.recursive(
    st.none() | st.booleans() | number | text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c", "f"]), inner, max_size=3)
    ),
    max_leaves=8,
)
fields = st.fixed_dictionaries({"a": number | text | st.none(), "b": text | st.none()}, optional={"f": json_value})


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def enveloped(value: dict[str, Any]) -> bytes:
    members = [
        {"type": "double" if isinstance(item, float) else "string", "optional": True, "field": name}
        for name, item in value.items()
    ]
    return orjson.dumps({"schema": {"type": "struct", "fields": members}, "payload": value})


flat = st.dictionaries(st.sampled_from(["a", "b", "c"]), st.floats(-1e6, 1e6) | text, max_size=3)
data = st.none() | st.binary(max_size=8) | json_value.map(dumped) | fields.map(dumped) | flat.map(enveloped)
headers = st.none() | st.lists(
    st.fixed_dictionaries({"key": text, "value": st.none() | st.binary(max_size=4) | text.map(str.encode)}), max_size=2
)
consumed_rows = st.lists(st.tuples(data, data, headers, st.integers(0, 2**42)), max_size=40)


def batch_of(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        {
            "topic": ["t"] * len(rows),
            "partition": [3] * len(rows),
            "offset": list(range(len(rows))),
            "timestamp": [row[3] for row in rows],
            "timestamp_type": ["CreateTime"] * len(rows),
            "key": [row[0] for row in rows],
            "value": [row[1] for row in rows],
            "headers": pa.array([row[2] for row in rows], HEADERS),
        },
        schema=CONSUMED,
    )


def halves(table: pa.Table) -> list[pa.Table]:
    """So that executors share it."""
    middle = table.num_rows // 2
    return [table.slice(0, middle), table.slice(middle)]


# --- both ways --------------------------------------------------------------------------------------------------------


@some
@given(chains, consumed_rows)
def test_records_of_a_sink(engine: SparkEngine, chain: ChainSpec, rows: list[tuple[Any, ...]]) -> None:
    output, batch, packed = Output(Kind.RECORDS), batch_of(rows), blob.pack_spec(chain)
    sink, failures = SinkChain(chain, output), list[Failure]()
    expected = []
    for part in halves(batch):
        triage = Triage(sink.policy)
        expected.append(sink.records(part, triage))
        failures += triage.failures
    results = ran(engine, [blob.sink_job(packed, output, part) for part in halves(batch)])
    assert [result.records() for result in results] == expected
    assert [failure for result in results for failure in result.failures] == failures


@few
@given(chains, consumed_rows, st.sampled_from([Form.TEXT, Form.JSON]))
def test_columns_of_a_sink(engine: SparkEngine, chain: ChainSpec, rows: list[tuple[Any, ...]], form: Form) -> None:
    output = Output(Kind.TABLE, ("topic", "partition", "offset", "timestamp", "key", "value"), form)
    batch, packed = batch_of(rows), blob.pack_spec(chain)
    sink = SinkChain(chain, output)
    triages = [Triage(sink.policy) for _ in range(2)]
    expected = [sink.table(part, triage) for part, triage in zip(halves(batch), triages, strict=True)]
    results = ran(engine, [blob.sink_job(packed, output, part) for part in halves(batch)])
    assert [result.table().to_pylist() for result in results] == [each.to_pylist() for each in expected]
    assert [result.failures for result in results] == [tuple(triage.failures) for triage in triages]
    # As a DataFrame, whose errors cannot be told one by one: only of what did not fail.
    bad = {failure.row for failure in triages[0].failures}
    first = halves(batch)[0]
    good = first.take(pa.array([row for row in range(first.num_rows) if row not in bad], pa.int64()))
    types = "topic string, partition int, offset bigint, timestamp bigint, key string, value string"
    if good.num_rows:
        frame = engine.session().createDataFrame(good).mapInArrow(blob.map_batches(blob.Job(packed, output)), types)
        found = sorted(frame.toArrow().to_pylist(), key=lambda row: row["offset"])
        assert found == expected[0].to_pylist()


STRUCT = s.struct({"a": s.FLOAT64.as_optional(), "b": s.OPTIONAL_STRING})
structs = st.fixed_dictionaries({"a": st.none() | st.floats(-1e6, 1e6), "b": st.none() | text}).map(
    lambda given_values: Struct(STRUCT, given_values)
)


def source_record(value: Any, key: Any, timestamp: int | None, header: Any, offset: int) -> SourceRecord:
    schema = STRUCT if isinstance(value, Struct) else None
    made = () if header is None else (Header("h", header),)
    return SourceRecord(
        topic="t",
        value=value,
        value_schema=schema,
        key=key,
        timestamp=timestamp,
        headers=made,
        source_partition={"file": "x"},
        source_offset={"line": offset},
    )


source_records = st.lists(
    st.builds(
        source_record,
        structs | fields | json_value,
        st.none() | text,
        st.none() | st.integers(0, 2**42),
        st.none() | text | st.integers(-5, 5),
        st.integers(0, 100),
    ),
    max_size=40,
)


@some
@given(chains, source_records)
def test_records_of_a_source(engine: SparkEngine, chain: ChainSpec, records: list[SourceRecord]) -> None:
    source = SourceChain(chain)
    triage = Triage(source.policy)
    expected = slim(source.records(records, triage))
    (result,) = ran(engine, [blob.source_records_job(blob.pack_spec(chain), records)])
    assert result.table().to_pylist() == expected.to_pylist()
    assert result.failures == tuple(triage.failures)


@some
@given(chains, st.lists(st.tuples(st.none() | text, st.none() | text), min_size=1, max_size=40))
def test_columns_of_a_source(engine: SparkEngine, chain: ChainSpec, rows: list[tuple[Any, Any]]) -> None:
    source = SourceChain(chain)
    triage = Triage(source.policy)
    columns = {name: pa.array([row[index] for row in rows], pa.string()) for index, name in enumerate(("key", "value"))}
    table = pa.table({**columns, "timestamp": pa.array(range(len(rows)), pa.int64())})
    expected = slim(source.columns(SourceTable(topic="t", table=table), triage))
    given_table = SourceTable(topic="t", table=table, source_partition=None, source_offset=None)
    (result,) = ran(engine, [blob.source_columns_job(blob.pack_spec(chain), given_table)])
    assert result.table().to_pylist() == expected.to_pylist()
    assert result.failures == tuple(triage.failures)


def test_a_record_nested_as_deep_as_may_be_comes_back_from_an_executor(engine: SparkEngine) -> None:
    value = b"[" * DEEPEST + b"]" * DEEPEST
    output, chain = Output(Kind.RECORDS), chain_spec(value=JSON)
    (result,) = ran(engine, [blob.sink_job(blob.pack_spec(chain), output, batch_of([(None, value, None, 5)]))])
    (record,) = result.records()
    (result,) = ran(
        engine, [blob.source_records_job(blob.pack_spec(chain), [SourceRecord(topic="t", value=record.value)])]
    )
    assert result.table()["value"].to_pylist() == [value]
