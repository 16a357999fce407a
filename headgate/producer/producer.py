"""TransactionalProducer: init, begin, send, send_offsets, commit, abort (KIP-691)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Final, NoReturn, Self

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from headgate.producer import codes
from headgate.producer.bulk import Bulk, RowRefused
from headgate.producer.classify import build
from headgate.producer.errors import (
    GroupFencedError,
    KafkaErrorInfo,
    KafkaFault,
    Operation,
    OperationTimeoutError,
    ProducerStateError,
    TransactionAbortableError,
    TransactionStateError,
    TransactionTimedOutError,
)
from headgate.producer.machine import Machine
from headgate.producer.reports import OnDelivery, info_of
from headgate.producer.states import Event, State
from headgate.producer.watchdog import Overrun, within

_RESETTABLE: Final = (GroupFencedError, TransactionTimedOutError, TransactionStateError)
_ROOM_S: Final = 0.05
_NOT_OF_THE_RECORD: Final = frozenset(
    {KafkaError._STATE, KafkaError._CONFLICT, KafkaError._PREV_IN_PROGRESS, KafkaError._FATAL, KafkaError._FENCED}
)


class TransactionalProducer(Machine):
    """A producer whose errors say what can be done. `config` has librdkafka's keys, and `max.block.ms`.

    With a `transactional.id`: call `init` once, then `begin`, `send`, `send_offsets`, and `commit` or `abort`, over and
    over. After any TransactionAbortableError, `abort`; the very next transaction works. Every call ends within its
    time, by default some multiple of `transaction.timeout.ms`. Without an id: `send`, which returns futures, and
    `flush`.

    `still_mine` is asked before a new native producer takes the transactional id, which fences whoever has it: whether
    this task is still the owner's. Without it, none takes the id again once a transaction was open for longer than its
    time-out. `native` makes the native producers, where they shall not be confluent_kafka's. One thread calls it;
    `close` may come from another. Not to be pickled, nor inherited by a forked process. As a context manager it closes
    at the end."""

    @property
    def transactional_id(self) -> str | None:
        return self._settings.transactional_id

    @property
    def state(self) -> State:
        return self._state

    # --- a transaction ------------------------------------------------------------------------------------------------

    def init(self, timeout: float | None = None) -> None:
        """Takes the transactional id: fences its last owner and ends what that left open. Call it before reading any
        position. After OperationTimeoutError it may be repeated."""
        with self._call(Operation.INIT):
            try:
                self._initialise(self._deadline(timeout, self._settings.limits.init))
            except OperationTimeoutError:
                self._step(Event.INIT_TIMED_OUT)
                raise
            self._step(Event.INITIALISED)

    def begin(self) -> None:
        """Begins a transaction. Asks nothing of the broker, except after a commit that had timed out: then it may raise
        OperationTimeoutError, and be repeated."""
        with self._call(Operation.BEGIN):
            if self._stale or self._fresh:
                self._replace(time.monotonic() + self._settings.limits.init)
            self._begin()
            self._step(Event.BEGUN)

    def send(
        self,
        topic: str,
        value: str | bytes | None,
        # Named in calls, as the page shows; but to enforce that would cost a tenth of a send.
        key: str | bytes | None = None,
        partition: int | None = None,
        headers: Any = None,
        timestamp: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Future[Message] | None:
        """Sends a record, without waiting for it, unless there is no room.

        In a transaction it returns None: what becomes of the records is what `commit` says. A record that cannot be
        sent raises and costs the transaction; so does one that failed earlier. Without transactions it returns a future
        of the delivered message; its exception is a ProduceFailedError.

        `on_delivery(error, message)` is called for each record, from inside later calls (without transactions: from
        another thread); what it raises is logged. `error` is None, a ProduceFailedError, or a TransactionAbortedError,
        to be ignored. In transactions only failures are reported until a callback is asked for; so ask for it from the
        first record of a transaction on, or set `delivery.report.only.error` to false."""
        produce = self._produce
        if produce is None or on_delivery is not None:
            return self._send_otherwise(topic, value, key, partition, headers, timestamp, on_delivery)
        try:
            if partition is None and headers is None and timestamp is None:
                produce(topic, value, key)
            else:
                produce(topic, value, key, -1 if partition is None else partition, None, None, timestamp or 0, headers)
        except (KafkaException, BufferError) as error:
            at = -1 if partition is None else partition
            self._send_again(error, (topic, value, key, at, None, None, timestamp or 0, headers))
        self._sent = sent = self._sent + 1
        if sent >= self._look_at:
            self._look()
        return None

    def send_all(self, bulk: Bulk) -> None:
        """Sends many records of a transaction as `send` does one: in order, and the first that cannot be sent raises
        and costs the transaction. What `bulk` must be is up to the native producer."""
        with self._call(Operation.SEND):
            if self._plain is not None:
                raise ProducerStateError("send_all is for transactions")
            self._sent += 1
            before, deadline = -1, 0.0
            while left := self._push(bulk):
                now = time.monotonic()
                if left != before:
                    before, deadline = left, now + self._settings.limits.block
                elif now > deadline:
                    self._fail(self._no_room(), Operation.SEND)
                self._look(seconds=_ROOM_S)
            self._look()

    def send_offsets(
        self, offsets: Sequence[TopicPartition], group_metadata: object, timeout: float | None = None
    ) -> None:
        """Makes a consumer's positions part of the transaction: next offsets to read, and the consumer's
        `consumer_group_metadata()` of this moment. Whatever it raises costs the transaction, wrong types apart."""
        with self._call(Operation.SEND_OFFSETS):
            if not all(isinstance(each, TopicPartition) for each in offsets):
                raise TypeError("send_offsets takes TopicPartitions")
            wanted = [each for each in offsets if each.offset >= 0]
            if not wanted:
                return
            self._with_offsets = True
            seconds = self._seconds(timeout, self._settings.limits.send_offsets)
            handle = self._handle
            native = handle.native.send_offsets_to_transaction
            # The library comes back late or, waiting for a coordinator, not at all. It is given so much less time that
            # being late is not taken for the other: being given up on costs more than a second.
            late = self._settings.limits.late
            patience = max(seconds - late, seconds / 5)
            limit = max(seconds, late)
            try:
                within(limit, lambda: handle.call_late(native, wanted, group_metadata, patience), "producer-offsets")
            except KafkaFault as fault:
                self._fail(fault.info, Operation.SEND_OFFSETS)
            except Overrun as overrun:
                handle.broken = True
                lost = codes.info(KafkaError._TIMED_OUT, str(overrun))
                situation = self._situation(Operation.SEND_OFFSETS)
                self._raise(build(TransactionStateError, lost, situation, codes.TRANSACTION))
            except (TypeError, ValueError):
                raise
            except BaseException:
                # Ctrl-C while it goes on: nobody may ask this handle for anything else.
                handle.broken = True
                lost = codes.info(KafkaError._TIMED_OUT, "interrupted")
                self._keep(
                    build(TransactionAbortableError, lost, self._situation(Operation.SEND_OFFSETS), codes.TRANSACTION)
                )
                raise

    def flush(self, timeout: float | None = None) -> int:
        """Waits until every record sent so far is answered for, and returns 0. Raises OperationTimeoutError if that
        takes longer, and, in a transaction, what made a record fail."""
        with self._call(Operation.FLUSH):
            self._deliver(self._deadline(timeout, self._settings.limits.finish), Operation.FLUSH)
        return 0

    def commit(self, timeout: float | None = None) -> None:
        """Returns only if everything sent since `begin` is committed, offsets included.

        CommitFailedError: abort and go on. CommitTimeoutError: call it again; nothing else is possible but close."""
        with self._call(Operation.COMMIT):
            deadline = self._deadline(timeout, self._settings.limits.finish)
            self._step(Event.COMMIT_STARTED)
            if not self._ending:
                # First everything is delivered, and nothing has failed: what fails from now on, the coordinator said.
                self._deliver(deadline, Operation.COMMIT)
                stored = self._handle.stored()
                if stored is not None:
                    self._fail(stored, Operation.COMMIT)
            self._ending = True
            fault = self._end(self._handle.native.commit_transaction, deadline)
            if fault is not None:
                self._stale |= fault.info.retriable
                self._fail(self._handle.promoted(fault).info, Operation.COMMIT)
            self._open = self._ending = False
            self._step(Event.COMMITTED)

    def abort(self, timeout: float | None = None) -> None:
        """Drops the transaction; afterwards the next one can begin. May need a new native producer for that, see
        `still_mine`. After OperationTimeoutError it may be repeated."""
        with self._call(Operation.ABORT):
            deadline = self._deadline(timeout, self._settings.limits.finish)
            again = self._state is State.ABORTING
            self._step(Event.ABORT_STARTED)
            if not self._fresh:
                self._abort(deadline, again)
            if self._stale or self._fresh:
                self._replace(deadline)
            self._open = self._ending = False
            self._error = None
            self._step(Event.ABORTED)

    # --- its life -----------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """After GroupFencedError, TransactionTimedOutError or TransactionStateError: the same object as it was before
        `init`. ProducerFencedError if `still_mine` says no; so also without one when the transaction was open for
        longer than its time-out. After any other fatal error it raises that again."""
        with self._call(Operation.RESET):
            if self._state is State.UNINITIALISED:
                return
            error = self._error
            if not isinstance(error, _RESETTABLE):
                assert error is not None
                raise error.with_traceback(None)
            # Who was late looks like who was fenced. Who rejoins its group has been told by it that it may go on.
            late = isinstance(error, TransactionTimedOutError) or self._overdue()
            self._require_ours(unasked=isinstance(error, GroupFencedError) or not late)
            self._renew()
            self._fresh = self._stale = self._open = self._ending = False
            self._error = None
            self._step(Event.RESET)

    def close(self, timeout: float | None = None) -> None:
        """Ends it within that time, 10 s by default, whatever the broker does. An open transaction is aborted, unless a
        commit of it has timed out. Without transactions, waits for what was sent before. May be repeated."""
        if self._state is State.CLOSED or self._forked():
            return
        deadline = self._deadline(timeout, self._settings.limits.close)
        failed = self._state is State.FATAL_ERROR
        abort = self._open and self._state is not State.COMMITTING and not self._ending
        self._step(Event.CLOSED)
        handle = self._handle
        if self._plain is not None and not failed:
            with contextlib.suppress(KafkaFault):  # told by the records' futures
                handle.drain(deadline - 0.2, lambda: False)
        if self._plain is not None:
            self._plain.close()
        if not self._busy.acquire(timeout=max(deadline - time.monotonic(), 0.0)):
            handle.occupied = True
        handle.dispose(max(deadline - time.monotonic(), 0.1), abort=abort)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a producer cannot be pickled: make it in the process that uses it")

    # --- what is not the rule -----------------------------------------------------------------------------------------

    def _send_otherwise(
        self,
        topic: str,
        value: str | bytes | None,
        key: str | bytes | None,
        partition: int | None,
        headers: Any,
        timestamp: int | None,
        on_delivery: OnDelivery | None,
    ) -> Future[Message] | None:
        """A send with a callback, without transactions, or in a state in which it may not be."""
        at = -1 if partition is None else partition
        self._allow(Operation.SEND)
        if self._plain is not None:
            if self._plain.fault is not None:
                self._fail(self._plain.fault, Operation.SEND)
            try:
                return self._plain.send(topic, value, key, at, timestamp or 0, headers, on_delivery)
            except KafkaFault as fault:
                self._fail(fault.info, Operation.SEND)
        assert on_delivery is not None
        if self._handle.only_failures and self._settings.only_failures is None:
            self._report_all()
        tell = self._handle.reports.telling(on_delivery)
        arguments = (topic, value, key, at, tell, tell, timestamp or 0, headers)
        try:
            self._handle.native.produce(*arguments)
        except (KafkaException, BufferError) as error:
            self._send_again(error, arguments)
        self._sent += 1
        self._look()
        return None

    def _push(self, bulk: Bulk) -> int:
        try:
            return bulk.push(self._handle.native)
        except RowRefused as raised:
            refused = raised
        info = refused.info
        if info.code not in _NOT_OF_THE_RECORD:
            self._handle.reports.refuse(info, refused.topic, refused.partition, refused.key)
        return self._fail(info, Operation.SEND)

    def _no_room(self) -> KafkaErrorInfo:
        return codes.info(KafkaError._QUEUE_FULL, f"no room in the queue for {self._settings.limits.block:g} s")

    def _send_again(self, error: Exception, arguments: tuple[Any, ...]) -> None:
        """The library did not take a record: for want of room it is sent again, for anything else the transaction is
        lost. The record would be missing from it, and the library would commit it all the same."""
        deadline = time.monotonic() + self._settings.limits.block
        while True:
            if isinstance(error, KafkaException):
                info = info_of(error.args[0])
                break
            if time.monotonic() > deadline:
                info = self._no_room()
                break
            self._look(seconds=_ROOM_S)
            try:
                self._handle.native.produce(*arguments)
                return
            except (KafkaException, BufferError) as raised:
                error = raised
        if info.code not in _NOT_OF_THE_RECORD:
            topic, _, key, partition, *_ = arguments
            self._handle.reports.refuse(info, topic, partition, key)
        self._fail(info, Operation.SEND)
