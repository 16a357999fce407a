"""TaskRunner: start, pause, stop, report failure as an event. One thread for each task."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from headgate.backoff import Backoff
from headgate.log import about, cause_of, trace_of
from headgate.metrics import SinkMetrics, SourceMetrics, TaskMetrics, Window, since_1970
from headgate.model import ConnectorType, EngineUnavailable, TargetState, TaskFacts, TaskId, TaskSpec
from headgate.tasks.control import Control, Stopped
from headgate.tasks.ports import Engine, Ports, TaskListener
from headgate.tasks.sink.loop import SinkLoop
from headgate.tasks.source.loop import SourceLoop
from headgate.tasks.sweep import Sweep
from headgate.tasks.waiting import short_of_files

log = logging.getLogger(__name__)

_FILES: Final = "opening files"
_SHORTAGE: Final = Backoff(1.0, 2.0, 30.0)
_LONG_S: Final = 60.0
"""What has run for so long begins to count anew."""

Made = tuple[SourceLoop | SinkLoop, SourceMetrics | SinkMetrics]
"""A loop and its counters."""


class ThreadRunner:
    """Fits `runtime.ports.TaskRunner`. `metrics` has the counters of every task that lives, or has failed, until it is
    stopped."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.metrics: dict[TaskId, TaskMetrics] = {}
        self._sweep = Sweep()

    def start(self, spec: TaskSpec, listener: TaskListener) -> TaskThread:
        control = Control(paused=spec.target_state is not TargetState.STARTED)
        loop, counters = self._loop(spec, control, listener)
        engine = self._ports.engine
        thread = TaskThread(
            spec, control, loop, listener, engine, counters,
            lambda counters: self._forget(spec.id, counters), lambda: self._loop(spec, control, listener),
        )  # fmt: skip
        thread.when_ended(lambda: engine.forget(spec.id))
        thread.when_ended(self._sweep.soon)
        thread.start()
        return thread

    def _loop(self, spec: TaskSpec, control: Control, listener: TaskListener) -> Made:
        made: Made
        if spec.type is ConnectorType.SOURCE:
            source = SourceMetrics(transaction_size=Window() if spec.transaction else None)
            made = SourceLoop(spec, control, listener, self._ports, source), source
        else:
            sink = SinkMetrics()
            made = SinkLoop(spec, control, listener, self._ports, sink), sink
        self.metrics[spec.id] = made[1]
        return made

    def _forget(self, task: TaskId, counters: TaskMetrics) -> None:
        if self.metrics.get(task) is counters:
            del self.metrics[task]


@dataclass(eq=False)
class TaskThread:
    """Fits `runtime.ports.RunningTask`."""

    _spec: TaskSpec
    _control: Control
    _loop: SourceLoop | SinkLoop
    _listener: TaskListener
    _engine: Engine
    _metrics: SourceMetrics | SinkMetrics
    _forget: Callable[[TaskMetrics], None] = lambda _: None
    """Nobody asks for them any more."""
    _again: Callable[[], Made] | None = None
    """A loop that begins where the offsets say, and its counters."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: bool = False
    _busy_since: float | None = None
    """Since when records have been under way, as far as somebody has looked."""
    _callbacks: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run, name=f"task-{self._spec.id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def pause(self) -> None:
        self._control.pause(True)

    def resume(self) -> None:
        self._control.pause(False)

    def stop(self) -> None:
        self._control.stop()
        self._loop.wake()
        self.when_ended(lambda: self._forget(self._metrics))

    def cancel(self) -> None:
        self._control.cancel()
        self._loop.wake()
        self._engine.cancel(self._spec.id)

    def facts(self) -> TaskFacts:
        control, metrics, activity = self._control, self._metrics, self._metrics.activity
        done, lag = (metrics.sent, metrics.lag) if isinstance(metrics, SinkMetrics) else (metrics.written, None)
        self._busy_since = (self._busy_since or time.monotonic()) if metrics.active else None
        # A task that sees that it shall pause says so; one that sees that it shall stop ends.
        deaf = control.stopping or (control.paused and not metrics.paused)
        trouble = activity.trouble
        return TaskFacts(
            doing=activity.call,
            doing_since_ms=since_1970(activity.since) or 0,
            trouble=trouble,
            last_error=activity.last_error,
            last_progress_ms=since_1970(done.last),
            under_way_since_ms=since_1970(self._busy_since),
            asked_ms=since_1970(control.asked) if deaf else None,
            lag=lag,
            rate=done.rate,
        )

    def when_ended(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self._ended:
                self._callbacks.append(callback)
                return
        callback()

    def _run(self) -> None:
        with about(self._spec.id):
            try:
                self._run_loop()
            except BaseException as error:
                self._report(error)
            else:
                self._listener.on_stopped()
            finally:
                self._end()

    def _run_loop(self) -> None:
        """While no file can be opened, the task is begun anew, later and later: that passes, and is no fault of it."""
        failures, began = 0, time.monotonic()
        while True:
            try:
                if failures:
                    if not self._control.wait(_SHORTAGE.after(failures)):
                        return
                    assert self._again is not None
                    self._loop, self._metrics = self._again()
                    began = time.monotonic()
                self._loop.run()
                return
            except Exception as error:
                if self._again is None or self._control.stopping or not short_of_files(error):
                    raise
                failures = 1 if time.monotonic() - began > _LONG_S else failures + 1
                why = cause_of(error)
                log.warning(
                    "Too many files are open, the task begins anew in %.0f s: %s", _SHORTAGE.after(failures), why
                )
                self._metrics.activity.fails(_FILES, why)
                self._control.recover()

    def _report(self, error: BaseException) -> None:
        if self._control.stopping:
            if isinstance(error, Stopped | EngineUnavailable):
                log.info("Task was stopped: %s", error)
            else:
                log.warning("Task failed while it was stopping", exc_info=error)
            self._listener.on_stopped()
        elif isinstance(error, EngineUnavailable):
            self._listener.on_failed(f"{type(error).__module__}.{type(error).__name__}: {error}")
        else:
            self._listener.on_failed(trace_of(error))

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
