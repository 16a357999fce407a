"""Exactly once: records and their offsets are one transaction (KIP-618)."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from headgate.api.record import SourceRecord
from headgate.api.task import SourceTable, SourceTask
from headgate.metrics import SourceMetrics
from headgate.model import Boundary, Offset, Partition, TaskSpec
from headgate.producer.errors import ProducerError
from headgate.tasks.control import Control, Rewind, Stopped
from headgate.tasks.ports import Clock
from headgate.tasks.reporter import Reporter
from headgate.tasks.source.batch import Batch, Made
from headgate.tasks.source.offsets import TaskOffsets
from headgate.tasks.source.polled import End, Polled
from headgate.tasks.source.transactions import Transactions

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

TRANSACTION: Final = "the transaction"
_LETTERS_S: Final = 1.0
_JOIN_S: Final = 1.0
"""Under load, how long polls may share a transaction."""


@dataclass(eq=False)
class ExactlyOnce:
    """Fits `batch.Outlet`: of one instance of the task. The transactions are the task's, and outlive it."""

    _spec: TaskSpec
    _control: Control
    _clock: Clock
    _offsets: TaskOffsets
    _metrics: SourceMetrics
    _task: SourceTask
    _reporter: Reporter
    _transactions: Transactions
    _pending: dict[str, tuple[Partition, Offset]] = field(default_factory=dict)
    _records: list[SourceRecord] = field(default_factory=list)
    _tables: list[pa.Table] = field(default_factory=list)
    """Of the batch that ends next."""
    _rows: int = 0
    _since: float | None = None
    """When the first batch of the transaction came; None: none has."""
    _goes_on: bool = False

    def __post_init__(self) -> None:
        transaction = self._spec.transaction
        assert transaction is not None
        self.forbidden: str | None = self._offsets.topic
        self._connector, self._boundary = self._spec.id.connector, transaction.boundary
        # Half of the time that the broker gives: an interval alone shall never be what a transaction expires by.
        longest = transaction.interval_ms / 1000 if self._boundary is Boundary.INTERVAL else _JOIN_S
        self._longest = min(longest, self._transactions.timeout / 2)
        self._tells_records = type(self._task).commit_record is not SourceTask.commit_record

    def add(self, made: Made) -> None:
        # Sent when all of the batch is there: no transaction stays open for a record that is tried again.
        self._tables.append(made[0])

    def end(self, batch: Batch) -> None:
        tables, self._tables = self._tables, []
        if self._control.cancelled:
            raise Stopped("given up on before its records were sent")
        if self._since is None:
            self._since = self._clock()
        if batch.end is End.ABORT:
            log.info("A transaction is aborted, as the task has asked for")
            self._transactions.abort()
        else:
            for table in tables:
                self._transactions.send(table)
        for polled in batch.polled:
            self._remember(polled)
        # Where another full batch waits already, it joins: a commit for each would keep the broker idle in between.
        if batch.end is not None or (self._boundary is Boundary.POLL and not batch.more):
            self._commit()

    def due(self) -> float | None:
        if self._boundary is Boundary.CONNECTOR or self._since is None:
            return None
        return max(self._since + self._longest - self._clock(), 0.0)

    def commit_if_due(self) -> None:
        if self.due() == 0.0:
            self._commit()

    def settle(self) -> None:
        if self._boundary is not Boundary.CONNECTOR:
            self._commit()
        elif self._since is not None:
            # Its end is the task's to say. Left open it would expire; so it is polled once more.
            self._transactions.abort()
            raise Rewind

    def failed(self, error: BaseException) -> BaseException:
        if isinstance(error, ProducerError):
            self._metrics.committed(self._clock(), ok=False)
        failure = self._transactions.give_up(error)
        self._goes_on = isinstance(failure, Rewind)
        return failure

    def close(self) -> None:
        if not self._goes_on:
            self._transactions.close()

    def _remember(self, polled: Polled) -> None:
        self._pending |= {repr(partition): (partition, offset) for partition, offset in polled.offsets}
        self._rows += polled.rows
        if self._tells_records and not isinstance(polled.content, SourceTable):
            self._records += polled.content

    def _commit(self) -> None:
        """Everything that was taken since the last time, with its offsets."""
        if self._since is None:
            return
        began = self._clock()
        offsets: list[tuple[Partition, Offset | None]] = list(self._pending.values())
        if offsets or self._transactions.is_open:
            self._await_letters()
            entries = self._offsets.entries(self._connector, offsets)
            consumed = self._task.consumed(list(self._pending.values())) if offsets else None
            size = self._transactions.commit(self._offsets.topic, entries, consumed)
            self._metrics.written.add(size)
            if self._metrics.transaction_size is not None:
                self._metrics.transaction_size.add(size)
            self._metrics.committed(began, ok=True)
            self._metrics.activity.goes(TRANSACTION)
            if offsets:
                self._offsets.copy(self._connector, offsets)
        self._metrics.passed += self._rows
        records, self._records = self._records, []
        self._pending.clear()
        self._rows, self._since = 0, None
        for record in records:
            self._task.commit_record(record)
        self._task.commit()

    def _await_letters(self) -> None:
        """A record that was left out is kept in the dead letter queue before its offset moves on."""
        while not self._reporter.flush(_LETTERS_S):
            self._control.check()
            if self._control.cancelled:
                raise Stopped("given up on while Kafka was slow to take dead letters")
        if self._control.cancelled:
            raise Stopped("given up on before its transaction was committed")
