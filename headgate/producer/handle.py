"""One native producer. It lives for one `init`; ours replaces it when only a new one can go on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from confluent_kafka import KafkaError, KafkaException, Producer

from headgate.producer import codes
from headgate.producer.classify import Situation, classify
from headgate.producer.errors import KafkaErrorInfo, KafkaFault, Operation
from headgate.producer.reports import Hints, Reports, info_of
from headgate.producer.settings import ONLY_FAILURES, Settings
from headgate.producer.watchdog import Overrun, within

log = logging.getLogger(__name__)

T = TypeVar("T")

MakeNative = Callable[[dict[str, Any]], Any]
"""Makes a native producer of its settings: confluent_kafka's, or what has the methods of it that are needed."""

_SLICE_S: Final = 0.5
"""In between, what was reported meanwhile is looked at."""


@runtime_checkable
class Destroyable(Protocol):
    """A native producer that can be ended at once, before all have let go of it."""

    def destroy(self) -> None: ...


class Handle:
    """Its errors are KafkaFault: plain data, never the library's exception."""

    def __init__(self, settings: Settings, *, only_failures: bool, make: MakeNative | None = None) -> None:
        """`only_failures`: librdkafka says nothing of records that arrived, which costs least. It is the same for all
        records of a handle. Raises InvalidConfigurationError."""
        config = dict(settings.config)
        name = settings.transactional_id or str(config.get("client.id", "producer"))
        self.only_failures = only_failures
        self.reports = Reports(settings.transactional_id)
        self.hints = Hints(name, config.pop("error_cb", None))
        self.broken = False
        """A call did not come back in time: nothing may be asked of it any more."""
        self.occupied = False
        """Another thread is inside, and stays there."""
        self._guard = threading.Lock()
        self._late = False
        """A call is under way that may come back late, or never."""
        self._left = False
        """That call, when it is back, has to end it: nobody else does."""
        config |= {ONLY_FAILURES: only_failures, "on_delivery": self.reports.on_report, "error_cb": self.hints.on_error}
        try:
            self.native = Producer(config, logger=log) if make is None else make(config)
        except KafkaException as error:
            situation = Situation(Operation.CREATE, settings.transactional_id)
            refusal = classify(info_of(error.args[0]), situation)
        else:
            return
        raise refusal

    def call(self, function: Callable[..., T], *args: Any) -> T:
        """Calls a function of the native producer."""
        try:
            return function(*args)
        except KafkaException as error:
            fault = KafkaFault(info_of(error.args[0]))
        except SystemError as error:
            # Fatal errors are raised by the library's error callback; it loses them when a report comes after them.
            fault = KafkaFault(codes.info(KafkaError._FATAL, str(error), fatal=True))
        try:
            raise fault
        finally:
            del fault  # or it holds this frame, which holds it, and both the producer, long after all of it is over

    def call_late(self, function: Callable[..., T], *args: Any) -> T:
        """The same for a call that may not come back in time, in a thread of its own: whoever wanted it may be gone."""
        with self._guard:
            self._late = True
        try:
            return self.call(function, *args)
        finally:
            with self._guard:
                self._late = False
                left = self._left
            if left:
                self._drop()

    def _leave(self) -> bool:
        """Whether it cannot be ended now: who is inside does that, or nobody."""
        with self._guard:
            self._left = self._late
            return self._left or self.occupied

    def serve(self, seconds: float = 0.0) -> None:
        """Takes what came back; waits for it that long."""
        self.call(self.native.poll, seconds)

    def drain(self, deadline: float, until: Callable[[], bool]) -> bool:
        """Whether all records were answered for, or `until` holds, before the deadline."""
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            if not self.call(self.native.flush, min(left, _SLICE_S)) or until():
                return True
            if left <= 0:
                return False

    def init(self, deadline: float) -> None:
        """Gets a producer id; ends what a predecessor with the same transactional id has left open. After a time-out it
        may be called again."""
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            try:
                self.call(self.native.init_transactions, min(left, _SLICE_S))
            except KafkaFault as fault:
                if fault.info.fatal:
                    raise
                self.serve()
                if left > _SLICE_S and fault.info.retriable and not self.hints.login_is_hopeless():
                    continue
                raise self.promoted(fault) from None
            self.hints.forget()
            return

    def promoted(self, fault: KafkaFault) -> KafkaFault:
        """For a time-out, the reason, if the broker refused our login meanwhile."""
        login = self.hints.refused_login
        if login is None or fault.info.fatal or fault.info.requires_abort or fault.info.code != KafkaError._TIMED_OUT:
            return fault
        return KafkaFault(login)

    def stored(self) -> KafkaErrorInfo | None:
        """The error that librdkafka keeps for the next call, if any. Only inside a transaction: a second `begin` is
        refused at once, and with the stored error where there is one."""
        try:
            self.call(self.native.begin_transaction)
        except KafkaFault as fault:
            return fault.info if fault.info.fatal or fault.info.requires_abort else None
        raise AssertionError("a transaction was begun where one should have been open")

    def dispose(self, seconds: float, *, abort: bool) -> None:
        """Lets go of it within that time; with `abort`, its transaction is aborted before, as far as possible."""
        deadline = time.monotonic() + seconds
        self.reports.dropping = True

        def work() -> None:
            if self._leave():
                return
            try:
                if abort and not self.broken:
                    self.call(self.native.abort_transaction, max(deadline - time.monotonic(), 0.0) * 0.8)
            except KafkaFault as fault:
                log.info("The open transaction is left to the coordinator: %s", fault)
            self._drop()

        try:
            within(seconds, work, "producer-close")
        except Overrun:
            log.warning("The producer did not end within %g s; it is left alone", seconds)

    def abandon(self) -> None:
        """Lets go of it without waiting."""
        self.reports.dropping = True
        if not self._leave():
            threading.Thread(target=self._drop, name="producer-abandoned", daemon=True).start()

    def _drop(self) -> None:
        """Forgets what was not sent, tells its callbacks, and destroys the native producer. Its own close would wait
        for the broker."""
        native = self.native
        try:
            native.purge()
            for _ in range(10):  # until the purged records have come back
                self.call(native.poll, 0.0)
                if not len(native):
                    break
                time.sleep(0.01)
        except (KafkaFault, RuntimeError) as error:
            log.debug("While a producer was dropped: %s", error)
        del self.native
        if isinstance(native, Destroyable):  # whoever still holds it, by a traceback that somebody keeps, say
            native.destroy()
