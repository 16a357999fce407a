"""Blobs: what travels in a Spark job. `run` is the one function that executors call, bytes in, bytes out.

Nothing here is shared between processes: the chain is named by the pickled spec, built where it is first met, and kept.
"""

from __future__ import annotations

import pickle
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from headgate.api import ConnectError, Schema, SinkRecord, SourceRecord, SourceTable
from headgate.model import ChainSpec
from headgate.pipeline.batch import Batch, from_ipc, to_ipc
from headgate.pipeline.packed import PROTOCOL, SINK_RECORDS, SOURCE_RECORDS
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.source_chain import SourceChain

MOST_CHAINS: Final = 256


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """The payload is a packed list of SourceRecord."""


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The payload is an Arrow table, as SourceTable describes it."""

    topic: str
    key_schema: Schema | None = None
    value_schema: Schema | None = None


Work: TypeAlias = Output | SourceRecords | SourceColumns
"""What to do. An Output stands for the sink chain that gives it; its payload is an Arrow table of CONSUMED columns."""


@dataclass(frozen=True, slots=True)
class Job:
    chain: bytes
    """Of `pack_spec`. The same bytes mean the same chain."""
    work: Work
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a job: a payload or an error, never both."""

    payload: bytes | None
    error: str | None
    """The traceback, as text."""
    error_type: str | None
    """The full name of the exception's class."""
    seconds: float
    count: int
    """Records in the payload."""

    def table(self) -> pa.Table:
        """Of a job that gives a table: PRODUCED for a source, the output's columns for a sink. Raises JobFailed."""
        return from_ipc(self._paid())

    def records(self) -> list[SinkRecord]:
        """Of a job whose output is records. Raises JobFailed."""
        return SINK_RECORDS.unpack(self._paid())

    def _paid(self) -> bytes:
        if self.payload is None:
            raise JobFailed(self.error or "", self.error_type)
        return self.payload


class JobFailed(ConnectError):
    """The chain raised on the executor; the message is its traceback there."""

    def __init__(self, trace: str, error_type: str | None = None) -> None:
        super().__init__(trace, error_type)
        self.trace = trace
        self.error_type = error_type

    def __str__(self) -> str:
        return self.trace


def pack_spec(spec: ChainSpec) -> bytes:
    """To be done once per task: its bytes are the name of the chain."""
    return pickle.dumps(spec, PROTOCOL)


def sink_job(chain: bytes, output: Output, batch: Batch) -> Job:
    return Job(chain, output, to_ipc(batch))


def source_records_job(chain: bytes, records: Sequence[SourceRecord]) -> Job:
    return Job(chain, SourceRecords(), SOURCE_RECORDS.pack(records))


def source_columns_job(chain: bytes, table: SourceTable) -> Job:
    return Job(chain, SourceColumns(table.topic, table.key_schema, table.value_schema), to_ipc(table.table))


def pack(job: Job) -> bytes:
    return pickle.dumps(job, PROTOCOL)


def unpack(data: bytes) -> Result:
    result: Result = pickle.loads(data)
    return result


def run(blob: bytes) -> bytes:
    """A packed Job in, a packed Result out. Never raises for what the chain, its plugins or the job do wrong."""
    start = time.perf_counter()
    try:
        payload, count = _done(pickle.loads(blob))
        result = Result(payload, None, None, time.perf_counter() - start, count)
    except Exception as error:
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        trace = "".join(traceback.format_exception(error))
        result = Result(None, trace, name, time.perf_counter() - start, 0)
    return pickle.dumps(result, PROTOCOL)


def map_batches(template: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For DataFrame.mapInArrow: sink batches in, the template's table out. The chain's errors fail the Spark job."""

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark copies this function with the globals it names: a function of a module by name, the cache by value.
        return _tables(template, batches)

    return mapped


def _tables(template: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    chain = _chains.sink(template)
    for batch in batches:
        yield from chain.table(batch).to_batches()


def map_records(template: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The same for tasks that take records: one row, a pickled list of records, for each batch."""

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _pickled(template, batches)

    return mapped


def _pickled(template: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    chain = _chains.sink(template)
    for batch in batches:
        packed = pickle.dumps(chain.records(batch), PROTOCOL)
        yield pa.record_batch({"records": pa.array([packed], pa.binary())})


def _done(job: Job) -> tuple[bytes, int]:
    match job.work:
        case Output(kind=Kind.RECORDS):
            records = _chains.sink(job).records(from_ipc(job.payload))
            return SINK_RECORDS.pack(records), len(records)
        case Output():
            table = _chains.sink(job).table(from_ipc(job.payload))
        case SourceRecords():
            table = _chains.source(job).records(SOURCE_RECORDS.unpack(job.payload))
        case SourceColumns(topic, key_schema, value_schema):
            table = _chains.source(job).columns(topic, from_ipc(job.payload), key_schema, value_schema)
    return to_ipc(table), table.num_rows


class _Chains:
    """The chains of this process, the least recently used thrown away first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[bytes, Output | None], SinkChain | SourceChain] = OrderedDict()

    def sink(self, job: Job) -> SinkChain:
        output = job.work
        assert isinstance(output, Output)
        found = self._get((job.chain, output), lambda: SinkChain(pickle.loads(job.chain), output))
        assert isinstance(found, SinkChain)
        return found

    def source(self, job: Job) -> SourceChain:
        found = self._get((job.chain, None), lambda: SourceChain(pickle.loads(job.chain)))
        assert isinstance(found, SourceChain)
        return found

    def _get(
        self, key: tuple[bytes, Output | None], build: Callable[[], SinkChain | SourceChain]
    ) -> SinkChain | SourceChain:
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = build()
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)[1].close()
        self._kept.move_to_end(key)
        return found


_chains: Final = _Chains(MOST_CHAINS)
