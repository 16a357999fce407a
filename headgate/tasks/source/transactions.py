"""The transactions of a source task, one after the other, whatever becomes of its instances.

Errors are KIP-691's: what an abort puts right is aborted, and the task goes on where the last committed transaction
ended; whatever else fails the task. A commit that did not answer in time is only ever repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from headgate.api.errors import ConnectError
from headgate.api.task import Consumed
from headgate.backoff import Backoff
from headgate.log import Complaints
from headgate.model import TaskSpec
from headgate.producer.errors import (
    FailureType,
    OperationTimeoutError,
    ProducerError,
    ProducerFencedError,
    TransactionAbortableError,
    TransactionStateError,
    TransactionTimedOutError,
)
from headgate.tasks.control import Control, Reassigned, Rewind, Stopped
from headgate.tasks.ports import Ports, TaskListener
from headgate.tasks.source.transaction_errors import explained

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_LOOK_S: Final = 1.0
"""In between, whether the task was given up on is looked at."""
_COMMIT_S: Final = 10.0
"""One try of a commit; it is repeated."""
_BACKOFF: Final = Backoff(0.1, 2.0, 10.0)
_TRIES: Final = 10
_REJECTED_TRIES: Final = 3
"""A record that Kafka does not take for what it is will hardly be taken later."""


class Transactions:
    """`open` is called by the task's thread, all else by the one that sends; `close` by either."""

    def __init__(self, spec: TaskSpec, control: Control, listener: TaskListener, ports: Ports) -> None:
        """Raises TransactionFailed when there can be no such producer."""
        assert spec.transaction is not None
        self.size: int = 0
        """Records in the open transaction."""
        self.is_open = False
        self._failures = 0
        self._spec = spec
        self._control = control
        self._listener = listener
        self._complaints = Complaints(log, "Transactional producer")
        try:
            config = {**spec.producer, "transactional.id": spec.transaction.id}
            self._sender = ports.transactional(config, self._still_mine)
        except ProducerError as error:
            raise explained(error, spec) from error

    @property
    def timeout(self) -> float:
        """Seconds that the broker gives a transaction."""
        return self._sender.timeout

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
        self._sender.close()

    def _init(self) -> None:
        def init(seconds: float) -> None:
            if self._control.stopping:
                raise Stopped("asked to stop before it had its transactional id")
            self._sender.init(seconds)

        self._repeat(init, "The transactional id was not given to us yet")

    # --- one transaction; ProducerErrors come out ---------------------------------------------------------------------

    def send(self, table: pa.Table) -> None:
        """Rows for Kafka, in the open transaction or a new one."""
        self._begin()
        self._sender.send_table(table, self._flush)
        self.size += table.num_rows

    def commit(
        self, topic: str, entries: Sequence[tuple[bytes, bytes | None]], consumed: Consumed | None = None
    ) -> int:
        """With these records of the offsets topic, and what a consumer group has consumed, in the open transaction or a
        new one. How many other records it has."""
        self._begin()
        for key, value in entries:
            self._sender.send(topic, value, key)
        if consumed is not None:
            self._sender.send_offsets(consumed.offsets, consumed.group_metadata)
        self._flush()
        self._repeat(self._sender.commit, "The commit of a transaction was not answered yet", _COMMIT_S)
        self._failures = 0
        return self._end()

    def abort(self) -> None:
        """Drops the open transaction, if there is one."""
        if self.is_open:
            self._abort()
            self._end()

    def _begin(self) -> None:
        if not self.is_open:
            self._repeat(lambda _: self._sender.begin(), "The transactional id was not given to us again yet")
            self.is_open = True

    def _end(self) -> int:
        size, self.size, self.is_open = self.size, 0, False
        return size

    def _flush(self) -> None:
        self._repeat(self._sender.flush, "Kafka has not acknowledged all records yet")

    def _abort(self) -> None:
        self._repeat(self._sender.abort, "A transaction is not aborted yet")

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
                self._abort()
            if isinstance(error, Rewind | TransactionAbortableError | TransactionStateError):
                self._start_over()
                return error if isinstance(error, Rewind) else Rewind(error)
        except BaseException as worse:
            if isinstance(worse, ProducerError) and not isinstance(error, type(worse)):
                return self.give_up(worse)
            error = worse
        # Fenced after its time looks as if only the time were over.
        if isinstance(error, ProducerFencedError | TransactionTimedOutError) and not self._was_mine():
            return Reassigned()
        return explained(error, self._spec) if isinstance(error, ProducerError) else error

    def _start_over(self) -> None:
        """With a new producer of the same id: its start settles all that came before, also a commit with an unknown
        outcome, or one whose offsets the coordinator has not shown to readers yet. Then the offsets tell the truth."""
        self._end()
        self._sender.renew()
        self._require_mine()  # now, and not before the wait for what ends: its init fences whoever has the id
        self._init()
        self._require_mine()

    def _require_mine(self) -> None:
        if not self._still_mine():
            raise Reassigned

    def retry_delay(self, rewind: Rewind) -> float:
        """Seconds to wait before the task goes on. Raises what it fails with when that has happened too often."""
        error = rewind.error
        if not isinstance(error, ProducerError) or self._sender.shrinks(error):
            return 0.0
        self._failures += 1
        rejected = error.failure_type is FailureType.MESSAGE_REJECTED
        if self._failures >= (_REJECTED_TRIES if rejected else _TRIES):
            raise explained(error, self._spec) from error
        pause = _BACKOFF.after(self._failures)
        log.warning(
            "A transaction failed for the %d. time in a row; the task goes on from its committed offsets in %.1f s: %s",
            self._failures,
            pause,
            error,
        )
        return pause

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
