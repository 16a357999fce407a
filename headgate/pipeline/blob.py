"""Blobs: what travels in a Spark job. `run` is the one function that executors call, bytes in, bytes out.

Nothing here is shared between processes: the chain is named by the pickled spec, built where it is first met, and kept.

To read a pickle is to run what it says. So a blob, and all that is in it, is taken only from the worker's other half:
over a line on which both sides have proved that they know the secret, in a job that Spark brings to its own executors,
or from a shelf, a folder that only the worker's user may enter. Nothing that comes from Kafka or REST is read that way.
"""

from __future__ import annotations

import pickle
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from headgate.api import ConnectError, Form, Schema, SinkRecord, SourceRecord, SourceTable
from headgate.log import trace_of
from headgate.model import ChainSpec
from headgate.pipeline.batch import Batch, from_ipc, slim, to_ipc, write_ipc
from headgate.pipeline.columns.typed import TypedTables
from headgate.pipeline.failure import Failure, InternalSinkRecord, class_name
from headgate.pipeline.packed import INTERNAL_SINK_RECORDS, PROTOCOL, SINK_RECORDS, SOURCE_RECORDS, Packer
from headgate.pipeline.shelf import SMALL, Payload, Shelf, drop, opened
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.source_chain import SourceChain
from headgate.pipeline.sql.rows import Origins
from headgate.pipeline.sql.selected import Selected
from headgate.pipeline.tolerance import Retry, ToleranceExceeded, Triage

C = TypeVar("C", SinkChain, SourceChain)

MOST_CHAINS: Final = 256

Packed: TypeAlias = bytes | bytearray
"""A job or a result as it travels."""


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """The payload is a packed list of SourceRecord."""


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The payload is an Arrow table, as SourceTable describes it."""

    topic: str
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    def around(self, table: pa.Table) -> SourceTable:
        return SourceTable(topic=self.topic, table=table, value_schema=self.value_schema, key_schema=self.key_schema)


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The payload is the Arrow table that a statement gave: the chain goes on with it."""

    origins: Origins
    output: Output | None
    """Of a sink."""


Work: TypeAlias = Output | SourceRecords | SourceColumns | SelectedRows
"""What to do. An Output stands for the sink chain that gives it; its payload is an Arrow table of CONSUMED columns."""


@dataclass(frozen=True, slots=True)
class Job:
    chain: bytes
    """Of `pack_spec`. The same bytes mean the same chain."""
    work: Work
    payload: Payload = b""
    retry: Retry | None = None
    """What has been tried with the first record already, when this is the rest of another job."""
    shelf: Shelf | None = None
    """Where to put the result, if it is large."""

    def __reduce__(self) -> tuple[Any, ...]:  # what dataclasses make of it is five times as slow, for every batch
        return Job, (self.chain, self.work, self.payload, self.retry, self.shelf)


@dataclass(frozen=True, slots=True)
class Rest:
    """What a job has left undone: its first record failed and is to be tried again after a pause."""

    job: Job
    row: int
    """Where it begins in the job that it is the rest of."""
    delay_ms: float

    @property
    def attempts(self) -> int:
        """Those that failed so far."""
        return self.job.retry.attempts if self.job.retry else 0

    def blob(self, elapsed_ms: float) -> bytes:
        """To be run after the pause, so long after the first failure."""
        assert self.job.retry is not None
        return pack(replace(self.job, retry=replace(self.job.retry, elapsed_ms=elapsed_ms)))


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a job: a payload or an error, never both; and beside either, the records that failed."""

    payload: Payload | None
    error: str | None
    """The traceback, as text."""
    error_type: str | None
    """The full name of the exception's class."""
    seconds: float
    count: int
    """Records in the payload."""
    failures: tuple[Failure, ...] = ()
    """Those that were left out, or the one that was not tolerated."""
    rest: Rest | None = None
    by_records: Mapping[str, int] = field(default_factory=dict)
    """How many records did not go by columns, though the chain can, and why."""

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.payload, self.error, self.error_type, self.seconds, self.count, self.failures, self.rest
        return Result, (*given, self.by_records)

    def table(self) -> pa.Table:
        """Of a job that gives a table: slim PRODUCED of a source, the columns of a sink's output. Raises JobFailed."""
        return from_ipc(self._paid())

    def records(self) -> list[SinkRecord]:
        """Of a job whose output is records. Raises JobFailed."""
        return SINK_RECORDS.unpack(self._paid())

    def typed(self) -> TypedTables:
        """Of a job whose output is of Form.TYPED. Raises JobFailed."""
        return TypedTables.unpack(self._paid())

    def _paid(self) -> Any:
        """To be taken once: what lies on a shelf is gone from it afterwards."""
        if self.payload is None:
            raise JobFailed(self.error or "", self.error_type)
        data = opened(self.payload)
        drop(self.payload)
        return data


class JobFailed(ConnectError):
    """The chain raised on the executor; the message is its traceback there."""

    def __init__(self, trace: str, error_type: str | None = None) -> None:
        super().__init__(trace, error_type)
        self.trace = trace
        self.error_type = error_type

    def __str__(self) -> str:
        return self.trace

    @property
    def cause_line(self) -> str:
        return self.trace.partition("\n")[0]


def pack_spec(spec: ChainSpec) -> bytes:
    """To be done once per task: its bytes are the name of the chain."""
    return pickle.dumps(spec, PROTOCOL)


def sink_job(chain: bytes, output: Output, batch: Batch, shelf: Shelf | None = None) -> Job:
    return Job(chain, output, _table_payload(batch, shelf), shelf=shelf)


def source_records_job(chain: bytes, records: Sequence[SourceRecord]) -> Job:
    return Job(chain, SourceRecords(), SOURCE_RECORDS.pack(records))


def source_columns_job(chain: bytes, table: SourceTable, shelf: Shelf | None = None) -> Job:
    work = SourceColumns(table.topic, table.key_schema, table.value_schema)
    return Job(chain, work, _table_payload(table.table, shelf), shelf=shelf)


def selection_job(chain: bytes, work: SelectedRows, table: pa.Table, shelf: Shelf | None = None) -> Job:
    return Job(chain, work, _table_payload(table, shelf), shelf=shelf)


def pack(job: Job) -> bytes:
    return pickle.dumps(job, PROTOCOL)


def unpack(data: Packed) -> Result:
    result: Result = pickle.loads(data)  # noqa: S301 - see the first lines of this module
    return result


def run(blob: Packed) -> bytes:
    """A packed Job in, a packed Result out. Never raises for what the chain, its plugins or the job do wrong."""
    return _packed(lambda start: _done(pickle.loads(blob), start))  # noqa: S301 - see above


def run_sink(template: Job, batch: Batch) -> bytes:
    """The same for a sink's batch that is at hand already: it need not be packed to be run."""
    return _packed(lambda start: _sunk(template, batch, start))


def source_chain(chain: bytes) -> SourceChain:
    """Of `pack_spec`, for an executor that sends for itself what the chain gives."""
    return _chains.source(chain)


def _packed(work: Callable[[float], Result]) -> bytes:
    start = time.perf_counter()
    try:
        return pickle.dumps(work(start), PROTOCOL)
    except Exception as error:
        failures = (error.failure,) if isinstance(error, ToleranceExceeded) else ()
        failed = Result(None, trace_of(error), class_name(type(error)), time.perf_counter() - start, 0, failures)
        return pickle.dumps(failed, PROTOCOL)


def map_batches(template: Job) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For DataFrame.mapInArrow: sink batches in, the template's table out. The chain's errors fail the Spark job."""

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Spark copies this function with the globals it names: a function of a module by name, the cache by value.
        return _tables(template, batches)

    return mapped


def _tables(template: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    assert isinstance(template.work, Output)
    chain = _chains.sink(template.chain, template.work)
    for batch in batches:
        yield from chain.table(batch).to_batches()


def _done(job: Job, start: float) -> Result:
    if isinstance(job.work, Output):
        return _sunk(job, from_ipc(opened(job.payload)), start)
    if isinstance(job.work, SelectedRows):
        return _selected(job, job.work, start)
    chain = _chains.source(job.chain)
    triage = Triage(chain.policy, job.retry)
    if isinstance(job.work, SourceRecords):
        records = SOURCE_RECORDS.unpack(opened(job.payload))
        table = chain.records(records, triage)
        made = table if chain.cut else slim(table)
        return _result(job, made, triage, start, lambda row: SOURCE_RECORDS.pack(records[row:]))
    given = from_ipc(opened(job.payload))
    table = chain.columns(job.work.around(given), triage)
    made = table if chain.cut else slim(table)
    return _result(job, made, triage, start, lambda row: to_ipc(given.slice(row)))


def _selected(job: Job, work: SelectedRows, start: float) -> Result:
    given = from_ipc(opened(job.payload))
    selected = Selected(given, work.origins, sink=work.output is not None)
    made: pa.Table | list[SinkRecord] | TypedTables
    if work.output is None:
        source = _chains.source(job.chain)
        triage = Triage(source.policy, job.retry)
        table = source.records(selected.source_records(source.headers), triage)
        made = table if source.cut else slim(table)
    else:
        sink = _chains.sink(job.chain, work.output)
        triage = Triage(sink.policy, job.retry)
        made = sink.selected(selected.sink_records(sink.headers), triage)
    return _result(job, made, triage, start, lambda row: to_ipc(given.slice(row)))


def _sunk(job: Job, batch: Batch, start: float) -> Result:
    assert isinstance(job.work, Output)
    chain = _chains.sink(job.chain, job.work)
    triage = Triage(chain.policy, job.retry)
    made: pa.Table | list[SinkRecord] | TypedTables
    if chain.cut:
        made = chain.rows(batch, triage)
    elif chain.output.kind is Kind.RECORDS:
        made = chain.records(batch, triage)
    else:
        made = chain.typed(batch, triage) if chain.output.form is Form.TYPED else chain.table(batch, triage)
    return _result(job, made, triage, start, lambda row: to_ipc(batch.slice(row)))


def _result(
    job: Job, made: pa.Table | list[Any] | TypedTables, triage: Triage, start: float, left: Callable[[int], bytes]
) -> Result:
    """`left` packs the batch from a row on."""
    rest = None
    later = triage.postponed
    if later is not None:
        rest = Rest(Job(job.chain, job.work, left(later.row), later.retry), later.row, later.delay_ms)
    if isinstance(made, list):
        packer: Packer[Any] = INTERNAL_SINK_RECORDS if made and type(made[0]) is InternalSinkRecord else SINK_RECORDS
        payload, count = _bytes_payload(packer.pack(made), job.shelf), len(made)
    elif isinstance(made, TypedTables):
        payload, count = _bytes_payload(made.pack(), job.shelf), made.count
    else:
        payload, count = _table_payload(made, job.shelf), made.num_rows
    failures, by_records = tuple(triage.failures), dict(triage.by_records)
    return Result(payload, None, None, time.perf_counter() - start, count, failures, rest, by_records)


def _table_payload(table: pa.Table, shelf: Shelf | None) -> Payload:
    shelved = shelf.put(partial(write_ipc, table)) if shelf and table.nbytes > SMALL else None
    return shelved or to_ipc(table)


def _bytes_payload(data: bytes, shelf: Shelf | None) -> Payload:
    shelved = shelf.put(lambda file: file.write(data)) if shelf and len(data) > SMALL else None
    return shelved or data


class _Chains:
    """The chains of this process, the least recently used thrown away first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[tuple[bytes, Output | None], Any] = OrderedDict()

    def sink(self, chain: bytes, output: Output) -> SinkChain:
        return self._get((chain, output), lambda: SinkChain(pickle.loads(chain), output))  # noqa: S301 - of a job

    def source(self, chain: bytes) -> SourceChain:
        return self._get((chain, None), lambda: SourceChain(pickle.loads(chain)))  # noqa: S301 - of a job

    def _get(self, key: tuple[bytes, Output | None], build: Callable[[], C]) -> C:
        found: C | None = self._kept.get(key)
        if found is None:
            found = self._kept[key] = build()
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)[1].close()
        self._kept.move_to_end(key)
        return found


_chains: Final = _Chains(MOST_CHAINS)
