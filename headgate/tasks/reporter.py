"""Who is told of a record that failed: the counters, the log, the dead letter queue; and how a sink task tells."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from headgate.api.errors import ConnectError
from headgate.api.record import SinkRecord
from headgate.metrics import ErrorMetrics
from headgate.model import TaskSpec
from headgate.pipeline.dead_letter import DeadLetter
from headgate.pipeline.failure import Failure, Stage, class_name, message_of, plugin_name
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.tolerance import ToleranceExceeded
from headgate.pipeline.trace import Traces
from headgate.tasks.control import Control
from headgate.tasks.dead_letters import DeadLetters, ensure_topic, producer_config
from headgate.tasks.ports import AskAgain, Ports

if TYPE_CHECKING:
    from headgate.pipeline.sink_chain import SinkChain

log = logging.getLogger(__name__)

_LAST_LETTERS_S: Final = 5.0
_TRIES: Final = 6
"""How often a broker that is away is asked about the dead letter queue."""


class Reporter:
    """Of one task. May be used from any thread."""

    def __init__(self, spec: TaskSpec, metrics: ErrorMetrics, control: Control, ports: Ports) -> None:
        """Raises ConnectError when there shall be a dead letter queue and cannot be."""
        self._task = spec.id
        self._task_class = spec.task_class
        self._metrics = metrics
        self._lock = threading.Lock()
        self.policy = policy = ErrorPolicy.of(spec.chain.errors)
        self._letters: DeadLetters | None = None
        if policy.dead_letter_topic:
            patience = AskAgain(lambda: not control.cancelled, control.wait, _TRIES)
            ensure_topic(ports.topics(spec.admin, patience), policy.dead_letter_topic, policy.dead_letter_replication)
            sender = ports.letters(producer_config(spec), f"dead-letters-{spec.id}", patience.may_go_on)
            self._letters = DeadLetters(policy.dead_letter_topic, sender, metrics)

    def retried(self) -> None:
        """An attempt failed and is made again."""
        with self._lock:
            self._metrics.failures += 1
            self._metrics.retries += 1

    def failed(self, failure: Failure) -> Future[None]:
        """A record ended in failure. Done when its dead letter, if there is to be one, is in Kafka."""
        policy = self.policy
        self.count(1)
        if policy.log:
            _write(failure.report(self._task, policy.log_records), "".join(failure.trace))
        if self._letters is not None:
            return self._letters.send(DeadLetter.of(failure, self._task, policy.dead_letter_headers))
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def count(self, records: int) -> None:
        """So many records ended in failure, and nobody else is told."""
        policy, metrics = self.policy, self._metrics
        with self._lock:
            metrics.failures += records
            metrics.errors += records
            metrics.skipped += records if policy.tolerant else 0
            metrics.last_error_ms = int(time.time() * 1000)
            metrics.logged += records if policy.log else 0

    def flush(self, seconds: float) -> bool:
        """Waits for the dead letters; False when Kafka has not answered for all of them within this time."""
        return self._letters is None or self._letters.flush(seconds)

    def close(self) -> None:
        """Gives the letters on their way, such as that of the record that failed the task, a moment to arrive."""
        if self._letters is not None:
            with suppress(ConnectError):  # that it cannot send was told where it matters: before offsets are stored
                self._letters.flush(_LAST_LETTERS_S)
            self._letters.close()

    def errant(self, chain: SinkChain) -> ErrantReporter | None:
        """For the context of a sink task (KIP-610)."""
        return ErrantReporter(self, chain, self._task_class) if self.policy.reports else None


class ErrantReporter:
    """Fits `headgate.api.ErrantRecordReporter`."""

    def __init__(self, reporter: Reporter, chain: SinkChain, task_class: type) -> None:
        self._reporter = reporter
        self._chain = chain
        self._plugin = plugin_name(task_class)
        self._lock = threading.Lock()

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Raises ToleranceExceeded where errors are not tolerated, after it was reported all the same."""
        with self._lock:  # the chain's converters are not for two threads at once
            consumed = self._chain.consumed(record)
        policy = self._reporter.policy
        trace = Traces().of(error) if policy.keeps_traces else ()
        name = class_name(type(error))
        failure = Failure(Stage.TASK_PUT, self._plugin, name, message_of(error), trace, consumed)
        done = self._reporter.failed(failure)
        if not policy.tolerant:
            raise ToleranceExceeded(failure) from error
        return done


def _write(message: str, trace: str) -> None:
    """With the traceback that came from the executor, where a log line has that of an exception."""
    if log.isEnabledFor(logging.ERROR):
        record = log.makeRecord(log.name, logging.ERROR, __file__, 0, message, (), None)
        record.exc_text = trace.rstrip("\n")
        log.handle(record)
