"""What a producer is made of: its state, the native handle under it, and the error it keeps for the next call."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NoReturn

from confluent_kafka import KafkaError

from headgate.producer import codes
from headgate.producer.classify import Situation, as_commit_failed, build, classify, needs_new_handle
from headgate.producer.errors import (
    FatalProducerError,
    KafkaErrorInfo,
    KafkaFault,
    Operation,
    OperationTimeoutError,
    ProducerClosedError,
    ProducerError,
    ProducerFencedError,
    ProducerStateError,
    TransactionAbortableError,
    TransactionStateError,
)
from headgate.producer.handle import Handle, MakeNative
from headgate.producer.plain import Plain
from headgate.producer.settings import Settings
from headgate.producer.states import CALLS, Answer, Event, State, step

_EAGER: Final = 16
"""So many sends of a transaction look each for failures of those before; later ones now and then."""
_OFTEN: Final = 1024
_ABORT_TRIES: Final = 2
_ANSWERS_S: Final = 2.0
_UNDER_WAY: Final = (State.IN_TRANSACTION, State.COMMITTING)
_VAGUE: Final = codes.SYMPTOMS | {KafkaError._STATE, KafkaError._CONFLICT}
"""They may hide an error that librdkafka has stored."""


class Machine:
    """Everything but the calls themselves."""

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        still_mine: Callable[[], bool] | None = None,
        native: MakeNative | None = None,
    ) -> None:
        """Raises InvalidConfigurationError. Asks nothing of a broker yet."""
        self._settings = Settings.of(config)
        self._still_mine = still_mine
        self._native = native
        self._pid = os.getpid()
        self._busy = threading.Lock()
        self._error: ProducerError | None = None
        plain = self._settings.transactional_id is None
        self._state = State.WITHOUT_TRANSACTIONS if plain else State.UNINITIALISED
        self._only_failures = not plain and self._settings.only_failures is not False
        self._handle = self._new_handle()
        self._plain = Plain(self._handle, self._settings.limits.block) if plain else None
        self._produce: Callable[..., None] | None = None
        """Only inside a healthy transaction: then a send needs to look at nothing else."""
        self._sent = 0
        self._look_at = 1
        self._with_offsets = False
        self._began = 0.0
        self._open = False
        """librdkafka has a transaction."""
        self._ending = False
        """The coordinator may have been asked to commit it."""
        self._interrupted = False
        """Commit or abort was left by an exception of somebody else's, such as Ctrl-C, with whatever result."""
        self._stale = False
        """This handle must not begin another transaction."""
        self._fresh = False
        """The handle was replaced, and has not been initialised yet."""

    # --- may this call be made ----------------------------------------------------------------------------------------

    @contextmanager
    def _call(self, call: Operation) -> Iterator[None]:
        self._allow(call)
        if not self._busy.acquire(blocking=False):
            raise ProducerStateError(f"{call.value}: another call of this producer is under way")
        try:
            yield
        finally:
            self._busy.release()

    def _allow(self, call: Operation) -> None:
        if self._forked():
            raise ProducerStateError("this producer belongs to another process: make one after the fork")
        answer = CALLS[self._state, call]
        if answer is Answer.ALLOWED:
            return
        if answer is Answer.CLOSED:
            raise ProducerClosedError(f"{call.value}: the producer is closed")
        if answer is Answer.MISUSE:
            raise ProducerStateError(f"{call.value} is not allowed in state {self._state.name}")
        error = self._error
        assert error is not None
        if call is Operation.COMMIT and isinstance(error, TransactionAbortableError):
            error = as_commit_failed(error)
        raise error.with_traceback(None)

    def _forked(self) -> bool:
        return os.getpid() != self._pid

    def _step(self, event: Event) -> None:
        if self._state is State.CLOSED:
            return  # by another thread, while this call was under way
        self._state = step(self._state, event)
        self._produce = self._handle.native.produce if self._state is State.IN_TRANSACTION else None

    @staticmethod
    def _seconds(timeout: float | None, default: float) -> float:
        return default if timeout is None else max(timeout, 0.0)

    def _deadline(self, timeout: float | None, default: float) -> float:
        return time.monotonic() + self._seconds(timeout, default)

    # --- errors -------------------------------------------------------------------------------------------------------

    def _situation(self, operation: Operation) -> Situation:
        reports = self._handle.reports
        return Situation(
            operation,
            self._settings.transactional_id,
            overdue=self._overdue(),
            ending=self._ending,
            failed=reports.records,
            failed_codes=frozenset(reports.codes),
            first_failure=reports.first,
        )

    def _overdue(self) -> bool:
        """By now the coordinator may have ended the transaction, and given the id to somebody else."""
        return self._open and time.monotonic() - self._began >= self._settings.transaction_timeout

    def _fail(self, info: KafkaErrorInfo, operation: Operation) -> NoReturn:
        """Raises the exception of an error, and keeps it."""
        if info.code in _VAGUE and self._open and not self._ending and self._state in _UNDER_WAY:
            info = self._handle.stored() or info
        error = classify(info, self._situation(operation))
        if self._plain is not None and isinstance(error, TransactionAbortableError):
            error = build(FatalProducerError, info, self._situation(operation), error.failure_type)
        self._raise(error)

    def _fail_for_records(self, operation: Operation) -> NoReturn:
        """Records of this transaction failed. librdkafka may have taken it worse than that, so it is asked first."""
        inconsistent = codes.info(KafkaError._INCONSISTENT, "records were not delivered")
        self._fail(self._handle.stored() or self._handle.reports.first or inconsistent, operation)

    def _raise(self, error: BaseException) -> NoReturn:
        if isinstance(error, ProducerError):
            self._keep(error)
        raise error

    def _keep(self, error: ProducerError) -> None:
        """The first error of a transaction stays; only a fatal one takes its place."""
        if isinstance(error, FatalProducerError):
            self._error = error
            self._step(Event.FATAL_FAILURE)
        elif isinstance(error, TransactionAbortableError):
            if not isinstance(self._error, TransactionAbortableError):
                self._error = error
            self._step(Event.ABORTABLE_FAILURE)

    # --- inside a transaction -----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """In librdkafka."""
        self._handle.reports.begin()
        self._began = time.monotonic()
        try:
            self._handle.call(self._handle.native.begin_transaction)
        except KafkaFault as fault:
            self._fail(fault.info, Operation.BEGIN)
        self._open = True
        self._ending = self._interrupted = self._with_offsets = False
        self._sent = 0
        self._look_at = 1

    def _look(self, operation: Operation = Operation.SEND, seconds: float = 0.0) -> None:
        """Whether something has failed; after a send, now and then."""
        self._look_at = self._sent + (1 if self._sent < _EAGER else _OFTEN)
        try:
            self._handle.serve(seconds)
        except KafkaFault as fault:
            self._fail(fault.info, operation)
        if self._handle.reports.failed:
            self._fail_for_records(operation)

    def _deliver(self, deadline: float, operation: Operation) -> None:
        """Waits until all records are answered for."""
        reports = self._handle.reports
        matters = self._open and self._state in _UNDER_WAY and not self._ending
        try:
            done = self._handle.drain(deadline, lambda: matters and bool(reports.failed))
        except KafkaFault as fault:
            self._fail(fault.info, operation)
        if matters and reports.failed:
            self._fail_for_records(operation)
        if self._plain is not None and self._plain.fault is not None:
            self._fail(self._plain.fault, operation)
        if not done:
            waiting = codes.info(KafkaError._TIMED_OUT, "records are still under way")
            self._fail(self._handle.promoted(KafkaFault(waiting)).info, operation)

    # --- the end of a transaction -------------------------------------------------------------------------------------

    def _end(self, function: Callable[[float], None], deadline: float) -> KafkaFault | None:
        """Calls the library's commit or abort: what it has against it, or None."""
        interrupted, self._interrupted = self._interrupted, True
        fault = None
        try:
            self._handle.call(function, max(deadline - time.monotonic(), 0.0))
        except KafkaFault as raised:
            fault = raised
        self._interrupted = False
        if fault is None:
            self._handle.hints.forget()
        elif interrupted and fault.info.code == KafkaError._STATE:
            return None  # it had finished when somebody's exception hid it
        return fault

    def _abort(self, deadline: float, again: bool) -> None:
        """As far as this handle can; sets `_stale` if only another one can go on."""
        handle = self._handle
        reports = handle.reports
        reports.dropping = True
        if handle.broken:
            self._stale = True
            return
        stored = None if again else handle.stored()
        before = frozenset(reports.codes)
        if stored is not None and stored.fatal:
            self._unless_repaired(stored)
            return
        for tries_left in reversed(range(_ABORT_TRIES)):
            fault = self._ask_to_abort(deadline)
            if fault is None:
                break
            info = fault.info
            if info.fatal:
                self._unless_repaired(info)
                return
            if not info.requires_abort:
                self._stale = True  # the request may still be under way
                self._fail(handle.promoted(fault).info, Operation.ABORT)
            if not tries_left:
                self._unless_repaired(info)
                return
        meanwhile = frozenset(reports.codes) - before
        self._stale |= needs_new_handle(stored, frozenset(reports.codes), meanwhile)

    def _ask_to_abort(self, deadline: float) -> KafkaFault | None:
        """Of the library. It drops what was not sent by itself; were that done for it, it would miss their sequence
        numbers in the next transaction. Then it waits for answers to what is under way, which may never come."""
        native = self._handle.native
        now = time.monotonic()
        fault = self._end(native.abort_transaction, now + min(_ANSWERS_S, (deadline - now) / 2))
        if fault is None or fault.info.fatal or fault.info.requires_abort:
            return fault
        native.purge()
        self._stale = True  # it cannot know any more what the broker has got
        return self._end(native.abort_transaction, deadline)

    def _unless_repaired(self, info: KafkaErrorInfo) -> None:
        """librdkafka cannot abort. A new handle can, unless it must not, or would hide that the broker committed."""
        error = classify(info, self._situation(Operation.ABORT))
        unknown = info.code == KafkaError.INVALID_TXN_STATE
        if not (unknown or isinstance(error, TransactionAbortableError)):
            self._raise(error)
        if self._ending:
            self._raise(build(TransactionStateError, info, self._situation(Operation.ABORT), codes.TRANSACTION))
        self._stale = True

    # --- another handle -----------------------------------------------------------------------------------------------

    def _replace(self, deadline: float) -> None:
        """The same transactional id with another native producer, which first ends what the old one has left open.
        After a time-out it goes on where it was."""
        if not self._fresh:
            self._require_ours(unasked=not self._overdue())
            self._renew()
        self._initialise(deadline)

    def _require_ours(self, *, unasked: bool) -> None:
        """Another native producer fences whoever has the id by then. `unasked`: whether it may where nobody can be
        asked whose that is."""
        if self._still_mine is not None:
            ours, why = self._still_mine(), "this task is no longer ours"
        else:
            ours, why = unasked, "nobody says that the id is still ours after this time: see still_mine"
        if not ours:
            lost, situation = codes.info(KafkaError._FENCED, why), self._situation(Operation.INIT)
            self._raise(build(ProducerFencedError, lost, situation, codes.TRANSACTION))

    def _renew(self) -> None:
        old = self._handle
        self._handle = self._new_handle()
        self._fresh, self._stale, self._open = True, False, False
        old.abandon()

    def _new_handle(self) -> Handle:
        return Handle(self._settings, only_failures=self._only_failures, make=self._native)

    def _initialise(self, deadline: float) -> None:
        try:
            self._handle.init(deadline)
        except KafkaFault as fault:
            self._fail(fault.info, Operation.INIT)
        self._fresh = False

    def _report_all(self) -> None:
        """Somebody wants to know of records that arrive, too; that needs another handle."""
        self._only_failures = False
        if self._sent or self._with_offsets:
            self._stale = True  # so that the next transaction can
            raise ProducerStateError(
                "on_delivery: use it from the first record of a transaction on, or set delivery.report.only.error=false"
            )
        try:
            self._replace(time.monotonic() + self._settings.limits.init)
        except OperationTimeoutError:
            lost = codes.info(KafkaError._TIMED_OUT, "another native producer was not ready in time")
            self._raise(build(TransactionAbortableError, lost, self._situation(Operation.SEND), codes.UNDELIVERED))
        self._begin()
        self._produce = self._handle.native.produce
