"""Blobs: one function, bytes in, bytes out, that never raises."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest
from pipeline_plugins import JSON, Append, DropShort, FailOn, FailTimes, Reroute, chain_spec, consumed, step
from pyspark import cloudpickle

from headgate.api import ConnectError, SourceRecord, SourceTable
from headgate.api import schema as s
from headgate.model import ChainSpec, PluginRef, PluginSpec
from headgate.pipeline import blob
from headgate.pipeline.blob import Job, JobFailed, Result
from headgate.pipeline.failure import ConsumedRecord, InternalSinkRecord, Stage
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.tolerance import ToleranceExceeded

RECORDS = Output(Kind.RECORDS)
VALUES = Output(Kind.TABLE, ("value",))


def run(job: Job) -> Result:
    return blob.unpack(blob.run(blob.pack(job)))


@pytest.fixture
def few_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob, "_chains", blob._Chains(2))
    Append.closed.clear()


def test_sink_records_go_through() -> None:
    result = run(blob.sink_job(blob.pack_spec(chain_spec(value=JSON)), RECORDS, consumed([b'{"a":1}', None])))
    assert [(each.value, each.offset) for each in result.records()] == [({"a": 1}, 10), (None, 11)]
    assert (result.error, result.error_type, result.count) == (None, None, 2)
    assert 0 < result.seconds < 60


def test_sink_tables_go_through() -> None:
    result = run(blob.sink_job(blob.pack_spec(chain_spec(step(DropShort))), VALUES, consumed([b"a", b"bb"])))
    assert result.table().to_pylist() == [{"value": "bb"}]
    assert result.count == 1


def test_source_records_go_through() -> None:
    records = [SourceRecord(topic="t", value="a", value_schema=s.STRING), SourceRecord(topic="t", value="bb")]
    result = run(blob.source_records_job(blob.pack_spec(chain_spec(step(DropShort))), records))
    assert result.table().to_pylist() == [{"topic": "t", "row": 1, "value": b"bb"}]  # which row says what was dropped
    assert result.count == 1


def test_source_columns_go_through() -> None:
    source = SourceTable(
        topic="t",
        table=pa.table({"value": ["a"]}),
        source_partition=None,
        source_offset=None,
        value_schema=s.STRING,
        key_schema=s.OPTIONAL_STRING,
    )
    result = run(blob.source_columns_job(blob.pack_spec(chain_spec(key=JSON, value=JSON)), source))
    row = result.table().to_pylist()[0]
    assert (row["topic"], row["key"], row["value"]) == ("t", b"null", b'"a"')


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_error_of_the_chain_comes_back_as_its_traceback() -> None:
    spec = blob.pack_spec(chain_spec(step(FailOn, {"value": "b"})))
    result = run(blob.sink_job(spec, RECORDS, consumed([b"a", b"b"])))
    assert (result.payload, result.count) == (None, 0)
    assert result.error_type == "headgate.pipeline.tolerance.ToleranceExceeded"
    assert result.error is not None
    assert "Traceback (most recent call last)" in result.error
    assert "headgate.api.errors.DataError: cannot take b" in result.error
    assert "Tolerance exceeded in error handler" in result.error
    assert "{topic='t', partition=3, offset=11}" in result.error


@pytest.mark.parametrize("read", [Result.table, Result.records])
def test_reading_a_failed_result_raises_its_traceback(read: Callable[[Result], object]) -> None:
    result = run(blob.sink_job(blob.pack_spec(chain_spec(value=JSON)), RECORDS, consumed([b"{"])))
    with pytest.raises(JobFailed, match="Tolerance exceeded in error handler") as raised:
        read(result)
    assert isinstance(raised.value, ConnectError)
    assert str(pickle.loads(pickle.dumps(raised.value))) == result.error


def _unpicklable(spec: ChainSpec) -> bytes:
    return blob.pack_spec(spec)[:-2]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a job",
        blob.pack(Job(b"not a spec", RECORDS)),
        blob.pack(Job(_unpicklable(chain_spec()), RECORDS)),
        blob.pack(Job(blob.pack_spec(chain_spec()), RECORDS, b"not arrow")),
        blob.pack(Job(blob.pack_spec(chain_spec()), blob.SourceRecords(), b"not records")),
        blob.pack(Job(blob.pack_spec(chain_spec()), VALUES, b"")),
        blob.pack(blob.sink_job(blob.pack_spec(chain_spec(step(Append))), RECORDS, consumed([b"a"]))),
        blob.pack(
            blob.sink_job(
                blob.pack_spec(chain_spec(value=PluginSpec(PluginRef("no.such", "X")))), RECORDS, consumed([b"a"])
            )
        ),
        blob.pack(blob.sink_job(blob.pack_spec(chain_spec()), VALUES, pa.table({"other": [1]}))),
        blob.pack(blob.sink_job(blob.pack_spec(chain_spec(value=JSON)), VALUES, pa.table({"other": [1]}))),
        blob.pack(
            blob.source_columns_job(
                blob.pack_spec(chain_spec()),
                SourceTable(topic="t", table=pa.table({"x": [1]}), source_partition=None, source_offset=None),
            )
        ),
    ],
)
def test_run_never_raises(data: bytes) -> None:
    result = blob.unpack(blob.run(data))
    assert result.payload is None
    assert result.error is not None
    assert result.error_type is not None


def test_a_result_travels() -> None:
    result = Result(b"x", None, None, 0.5, 1)
    assert pickle.loads(pickle.dumps(result)) == result


# --- the cache --------------------------------------------------------------------------------------------------------


def test_a_chain_is_built_once_and_the_least_used_one_is_closed(few_chains: None) -> None:
    specs = {name: blob.pack_spec(chain_spec(step(Append, {"suffix": name}))) for name in "abc"}
    for name in "abac":
        result = run(blob.sink_job(specs[name], VALUES, consumed([b"v"])))
        assert result.table().to_pylist() == [{"value": f"v{name}"}]
    assert Append.closed == ["b"]


def test_sink_and_source_use_of_one_spec_are_two_chains(few_chains: None) -> None:
    spec = blob.pack_spec(chain_spec(step(Append, {"suffix": "x"})))
    for _ in range(2):
        assert run(blob.sink_job(spec, VALUES, consumed([b"v"]))).count == 1
        assert run(blob.source_records_job(spec, [SourceRecord(topic="t", value="v")])).count == 1
    assert Append.closed == []


# --- in a DataFrame ---------------------------------------------------------------------------------------------------


def test_batches_of_a_dataframe_are_mapped_one_by_one() -> None:
    mapped = blob.map_batches(Job(blob.pack_spec(chain_spec(step(Append, {"suffix": "!"}))), VALUES))
    batches = [consumed([b"a"]).to_batches()[0], consumed([b"b", b"c"]).to_batches()[0]]
    found = list(mapped(iter(batches)))
    assert [row["value"] for batch in found for row in batch.to_pylist()] == ["a!", "b!", "c!"]
    assert all(isinstance(batch, pa.RecordBatch) for batch in found)


def test_an_error_in_a_dataframe_is_raised() -> None:
    """Even where errors are tolerated: a frame cannot tell of single records, and none may be lost without a word."""
    spec = chain_spec(value=JSON, errors={"errors.tolerance": "all", "errors.retry.timeout": "-1"})
    mapped = blob.map_batches(Job(blob.pack_spec(spec), VALUES))
    with pytest.raises(ToleranceExceeded, match="offset=10"):
        list(mapped(iter(consumed([b"{"]).to_batches())))


def test_the_mapping_function_travels_without_the_chains_of_this_process() -> None:
    data = cloudpickle.dumps(blob.map_batches(Job(blob.pack_spec(chain_spec()), VALUES)))  # type: ignore[no-untyped-call]
    assert b"_Chains" not in data
    assert [batch.num_rows for batch in pickle.loads(data)(iter(consumed([b"a"]).to_batches()))] == [1]


# --- records that fail ------------------------------------------------------------------------------------------------

ALL = {"errors.tolerance": "all"}
DEAD = {**ALL, "errors.deadletterqueue.topic.name": "dead", "errors.deadletterqueue.context.headers.enable": "true"}


@pytest.mark.kip(298, "error handling in Connect")
@pytest.mark.parametrize("output", [RECORDS, VALUES])
def test_a_failure_comes_back_beside_the_results(output: Output) -> None:
    headers = [None, [{"key": "h", "value": b"1"}], None]
    spec = blob.pack_spec(chain_spec(value=JSON, errors=DEAD))
    result = run(blob.sink_job(spec, output, consumed([b"1", b"{", b"3"], [None, b"k", None], headers)))
    assert (result.count, result.error, result.rest) == (2, None, None)
    (failure,) = result.failures
    assert failure.record == ConsumedRecord("t", 3, 11, 1700000000001, "CreateTime", b"k", b"{", (("h", b"1"),))
    assert (failure.stage, failure.row) == (Stage.VALUE_CONVERTER, 1)
    assert failure.plugin == "org.apache.kafka.connect.json.JsonConverter"
    assert "Traceback (most recent call last)" in "".join(failure.trace)


@pytest.mark.kip(298, "error handling in Connect")
def test_without_tolerance_the_failure_comes_beside_the_error() -> None:
    spec = blob.pack_spec(chain_spec(value=JSON, errors={**DEAD, "errors.tolerance": "none"}))
    result = run(blob.sink_job(spec, RECORDS, consumed([b"1", b"{", b"{"])))
    assert result.payload is None
    assert result.error is not None
    assert "Tolerance exceeded in error handler" in result.error
    assert [each.record.offset for each in result.failures if isinstance(each.record, ConsumedRecord)] == [11]


@pytest.mark.kip(610, "errant record reporter")
@pytest.mark.parametrize(
    ("errors", "kept"), [(DEAD, True), (ALL, False), ({**ALL, "errors.log.enable": "true"}, False)]
)
def test_records_remember_their_bytes_where_they_may_become_dead_letters(errors: dict[str, str], kept: bool) -> None:
    spec = chain_spec(step(Append, {"suffix": "!"}), step(Reroute), errors=errors)
    (record,) = run(blob.sink_job(blob.pack_spec(spec), RECORDS, consumed([b"v"], [b"k"]))).records()
    assert (record.value, record.topic, record.key) == ("v!", "t-new", "k")
    assert isinstance(record, InternalSinkRecord) is kept
    expected = ConsumedRecord("t", 3, 10, 1700000000000, "CreateTime", b"k", b"v")
    if kept:
        assert SinkChain(spec, RECORDS).consumed(record.replace(value="other")) == expected
    else:
        assert SinkChain(spec, RECORDS).consumed(record) == expected._replace(value=b"v!")


@pytest.mark.kip(298, "retries")
@pytest.mark.parametrize("output", [RECORDS, VALUES])
def test_the_rest_of_a_sink_job_is_tried_again_and_nothing_is_done_twice(output: Output) -> None:
    errors = {**ALL, "errors.retry.timeout": "1000"}
    spec = blob.pack_spec(chain_spec(step(FailTimes, {"value": "b", "times": "2"}), errors=errors))
    FailTimes.seen.clear()
    blobs = [blob.pack(blob.sink_job(spec, output, consumed([b"a", b"b", b"c"])))]
    found: list[str | None] = []
    delays = []
    while blobs:
        result = blob.unpack(blob.run(blobs.pop()))
        found += [each.value for each in result.records()] if output is RECORDS else result.table()["value"].to_pylist()
        if result.rest is not None:
            delays.append((result.rest.row, result.rest.delay_ms, result.rest.attempts))
            blobs.append(result.rest.blob(elapsed_ms=100.0))
    assert found == ["a", "b", "c"]
    assert delays == [(1, 300, 1), (0, 600, 2)]
    assert FailTimes.seen == ["a", "b", "b", "b", "c"]


@pytest.mark.kip(298, "retries")
@pytest.mark.parametrize("columns", [False, True])
def test_the_rest_of_a_source_job_is_tried_again(columns: bool) -> None:
    spec = blob.pack_spec(
        chain_spec(step(FailTimes, {"value": "b", "times": "99"}), errors={**ALL, "errors.retry.timeout": "1000"})
    )
    FailTimes.seen.clear()
    values = ["a", "b", "c"]
    if columns:
        table = pa.table({"value": values})
        source = SourceTable(topic="t", table=table, source_partition=None, source_offset=None)
        job = blob.source_columns_job(spec, source)
    else:
        job = blob.source_records_job(spec, [SourceRecord(topic="t", value=value) for value in values])
    first = run(job)
    assert first.table()["value"].to_pylist() == [b"a"]
    assert first.rest is not None
    later = blob.unpack(blob.run(first.rest.blob(elapsed_ms=1000.0)))
    assert later.table()["value"].to_pylist() == [b"c"]
    assert later.rest is None
    assert [(each.row, each.attempts) for each in later.failures] == [(0, 2)]
