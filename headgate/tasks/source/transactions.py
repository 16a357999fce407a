"""The transactions of a source task, one after the other, whatever becomes of its instances.

Errors are KIP-691's: what an abort puts right is aborted, and the task goes on where the last committed transaction
ended; whatever else fails the task. A commit that did not answer in time is only ever repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from confluent_kafka import TopicPartition as NativePartition

from headgate.api.errors import ConnectError
from headgate.api.task import Consumed
from headgate.kafka.native.column_producer import ColumnProducer, RowBulk
from headgate.kafka.native.columns import fitting, runs
from headgate.kafka.native.rows import SLICE
from headgate.kafka.settings import ClientKind, Complaints, translate
from headgate.model import TaskSpec
from headgate.producer import (
    FailureType,
    OperationTimeoutError,
    ProducerError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionalProducer,
    TransactionStateError,
)
from headgate.producer.loop import Patience
from headgate.tasks.control import Control, Reassigned, Rewind, Stopped
from headgate.tasks.source.transaction_errors import explained

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.tasks.runner import Listener

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
"""In between, whether the task was given up on is looked at."""
_COMMIT_S: Final = 10.0
"""One try of a commit; it is repeated."""
_CLOSE_S: Final = 5.0
_TOO_LARGE: Final = 10
_LARGEST: Final = 1_000_000
"""Most bytes of a batch, unless `batch.size` says less."""
_PATIENCE: Final = Patience()
_REJECTED_TRIES: Final = 3
"""A record that Kafka does not take for what it is will hardly be taken later."""


class Transactions:
    """`open` is called by the task's thread, all else by the one that sends; `close` by either."""

    def __init__(self, spec: TaskSpec, control: Control, listener: Listener) -> None:
        """Raises TransactionFailed when there can be no such producer."""
        assert spec.transaction is not None
        given = {**spec.producer, "transactional.id": spec.transaction.id, "enable.idempotence": "true"}
        translated = translate(ClientKind.PRODUCER, given)
        if translated.ignored:
            log.info("Producer settings without meaning here are ignored: %s", ", ".join(translated.ignored))
        settings = {"linger.ms": 5, **translated.config}
        timeout_ms = int(settings.get("transaction.timeout.ms", 60_000))
        self.timeout = timeout_ms / 1000
        """Seconds that the broker gives a transaction."""
        self.size: int = 0
        """Records in the open transaction."""
        self._largest = min(int(settings.get("batch.size", _LARGEST)), _LARGEST)
        self._limits: dict[str, int] = {}
        """Most bytes to be under way at once, of topics that did not take larger batches."""
        self._alone: str | None = None
        """The topic of a record that is under way by itself; what is refused of it now is too large alone."""
        self._offsets_topic = ""
        self._open = False
        self._failures = 0
        self._spec = spec
        self._control = control
        self._listener = listener
        self._complaints = Complaints(log, "Transactional producer")
        self._settings = {**settings, "max.block.ms": timeout_ms}
        try:
            self._producer = self._new_producer()
        except ProducerError as error:
            raise explained(error, spec) from error

    @property
    def is_open(self) -> bool:
        return self._open

    def open(self) -> None:
        """Takes the transactional id: whatever held it can write no more, and what it left open is aborted. Raises
        what the task fails with, or Stopped."""
        self._listener.await_fencing()
        try:
            self._init()
        except ProducerError as error:
            raise explained(error, self._spec) from error
        self._listener.confirm_start()

    def close(self) -> None:
        """An open transaction is aborted, unless its commit is under way."""
        self._producer.close(_CLOSE_S)

    def _new_producer(self) -> TransactionalProducer:
        return TransactionalProducer(self._settings, still_mine=self._still_mine, native=ColumnProducer)

    def _init(self) -> None:
        def init(seconds: float) -> None:
            if self._control.stopping:
                raise Stopped("asked to stop before it had its transactional id")
            self._producer.init(seconds)

        self._repeat(init, "The transactional id was not given to us yet")

    # --- one transaction; ProducerErrors come out ---------------------------------------------------------------------

    def send(self, table: pa.Table) -> None:
        """Rows for Kafka, in the open transaction or a new one."""
        self._begin()
        for batch in table.to_batches():
            for start, count, topic in runs(batch.column("topic")):
                self._send_run(topic, batch.slice(start, count))
        self.size += table.num_rows

    def commit(
        self, topic: str, entries: Sequence[tuple[bytes, bytes | None]], consumed: Consumed | None = None
    ) -> int:
        """With these records of the offsets topic, and what a consumer group has consumed, in the open transaction or a
        new one. How many other records it has."""
        self._begin()
        self._offsets_topic = topic
        for key, value in entries:
            self._producer.send(topic, value, key)
        if consumed is not None:
            offsets = [NativePartition(each.topic, each.partition, at) for each, at in consumed.offsets.items()]
            self._producer.send_offsets(offsets, consumed.group_metadata)
        self._repeat(self._producer.flush, "Kafka has not acknowledged all records yet")
        self._repeat(self._producer.commit, "The commit of a transaction was not answered yet", _COMMIT_S)
        self._failures = 0
        return self._end()

    def abort(self) -> None:
        """Drops the open transaction, if there is one."""
        if self._open:
            self._repeat(self._producer.abort, "A transaction is not aborted yet")
            self._end()

    def _begin(self) -> None:
        if not self._open:
            self._repeat(lambda _: self._producer.begin(), "The transactional id was not given to us again yet")
            self._open = True

    def _end(self) -> int:
        size, self.size, self._open = self.size, 0, False
        return size

    def _send_run(self, topic: str, batch: pa.RecordBatch) -> None:
        """Rows of one topic."""
        limit = self._limits.get(topic)
        start = 0
        while start < batch.num_rows:
            rows = batch.slice(start, SLICE)
            if limit is not None:
                rows = rows.slice(0, fitting(rows, limit))
            self._push(topic, rows)
            if limit is not None:
                # Before the next: so no batch has more than these.
                self._alone = topic if rows.num_rows == 1 else None
                self._repeat(self._producer.flush, "Kafka has not acknowledged all records yet")
            start += rows.num_rows

    def _push(self, topic: str, rows: pa.RecordBatch) -> None:
        bulk = RowBulk(topic, rows)
        self._alone = None
        try:
            self._producer.send_all(bulk)
        except ProducerError:
            self._alone = topic if bulk.refused else None
            raise

    def _repeat(self, call: Callable[[float], object], waiting: str, seconds: float = _LOOK_S) -> None:
        """Until it is done; nothing else may be asked of the producer before. Raises Stopped when the task is given up
        on."""
        while True:
            if self._control.cancelled:
                raise Stopped("given up on while Kafka was slow")
            try:
                call(seconds)
                return
            except OperationTimeoutError as error:
                self._complaints.say(f"{waiting}: {error}")
            self._control.check()

    # --- when it goes wrong -------------------------------------------------------------------------------------------

    def give_up(self, error: BaseException) -> BaseException:
        """Ends the transaction in which this was raised, as far as the error allows it; what to make of it: a Rewind,
        Reassigned, or what the task fails with."""
        try:
            if isinstance(error, TransactionAbortableError):
                self._repeat(self._producer.abort, "A transaction is not aborted yet")
            if isinstance(error, Rewind | TransactionAbortableError | TransactionStateError):
                self._start_over()
                return error if isinstance(error, Rewind) else Rewind(error)
        except BaseException as worse:
            if isinstance(worse, ProducerError) and not isinstance(error, type(worse)):
                return self.give_up(worse)
            error = worse
        if isinstance(error, ProducerFencedError) and not self._was_mine():
            return Reassigned()
        return explained(error, self._spec) if isinstance(error, ProducerError) else error

    def _start_over(self) -> None:
        """With a new producer of the same id: its start settles all that came before, also a commit with an unknown
        outcome, or one whose offsets the coordinator has not shown to readers yet. Then the offsets tell the truth."""
        if not self._still_mine():
            raise Reassigned
        self._end()
        self._producer.close(_CLOSE_S)
        self._producer = self._new_producer()
        self._init()

    def bear(self, rewind: Rewind) -> float:
        """Seconds to wait before the task goes on. Raises what it fails with when that has happened too often."""
        error = rewind.error
        if not isinstance(error, ProducerError) or self._shrinks(error):
            return 0.0
        self._failures += 1
        rejected = error.failure_type is FailureType.MESSAGE_REJECTED
        if self._failures >= (_REJECTED_TRIES if rejected else _PATIENCE.tries):
            raise explained(error, self._spec) from error
        pause = _PATIENCE.pause(self._failures)
        log.warning(
            "A transaction failed for the %d. time in a row; the task goes on from its committed offsets in %.1f s: %s",
            self._failures,
            pause,
            error,
        )
        return pause

    def _shrinks(self, error: ProducerError) -> bool:
        """Whether records were refused for the size that they have together; the next time fewer will go together.

        librdkafka does not divide a batch that the broker refused, as the Java client does."""
        if error.code != _TOO_LARGE or not error.failed_records.first:
            return False
        topic = error.failed_records.first[0].topic
        if topic in (self._alone, self._offsets_topic):
            return False
        limit = self._limits[topic] = max(self._limits.get(topic, self._largest) // 2, 1)
        log.warning("Topic %s did not take a batch; from now on it gets at most %d bytes at once", topic, limit)
        return True

    def _was_mine(self) -> bool:
        """Of a task that fails anyway."""
        try:
            return self._still_mine()
        except Exception:
            log.warning("Whether the task is still this worker's could not be found out", exc_info=True)
            return True

    def _still_mine(self) -> bool:
        """What cannot be found out is raised, and then the task fails with it."""
        try:
            self._listener.confirm_start()
        except ConnectError as error:
            log.info("The task is no longer this worker's: %s", error)
            return False
        return True
