"""Connectors and tasks living on this node. Used from the herder's thread only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from headgate.cluster.work import Work
from headgate.log import about, masked, trace_of
from headgate.model import Config, TargetState, TaskFacts, TaskId, TaskSpec
from headgate.runtime.board import StatusBoard
from headgate.runtime.connector import ConnectorInstance
from headgate.runtime.lifecycle import InstanceEvent
from headgate.runtime.ports import RunningTask, TaskRunner
from headgate.runtime.reconcile import Begun, Running

log = logging.getLogger(__name__)

Post = Callable[[Callable[[], None]], None]
"""Runs something on the herder's thread, from any thread."""


@dataclass
class StartCounts:
    """How often something was started here, and how often that failed."""

    attempts: int = 0
    failures: int = 0


@dataclass
class LiveTask:
    spec: TaskSpec
    running: RunningTask | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    given_up: bool = False
    started: bool = False
    """It has been running: a failure from now on is no failed start."""


class Preflight(Protocol):
    """What a source task with transactions has to wait for. Called from its thread; blocks."""

    def await_fencing(self, spec: TaskSpec) -> None: ...

    def confirm_start(self, spec: TaskSpec) -> None: ...


@dataclass(eq=False)
class Worker:
    _runner: TaskRunner
    _board: StatusBoard
    _graceful_timeout_s: float
    post: Post
    knows_topic: Callable[[str, str], bool]
    """Whether a connector is known to use a topic; from any thread."""
    _on_topic: Callable[[TaskId, str], None]
    preflight: Preflight | None = None
    connectors: dict[str, ConnectorInstance] = field(default_factory=dict)
    tasks: dict[TaskId, LiveTask] = field(default_factory=dict)
    _leaving: dict[TaskId, LiveTask] = field(default_factory=dict)
    """Asked to stop, and not yet gone or given up on."""
    begun: dict[str, Config] = field(default_factory=dict)
    """Connectors that were begun here and not ended since, also those that could not be built; by what config."""
    begun_tasks: set[TaskId] = field(default_factory=set)
    connector_starts: StartCounts = field(default_factory=StartCounts)
    task_starts: StartCounts = field(default_factory=StartCounts)

    def has_begun(self, what: str | TaskId) -> bool:
        return what in (self.begun_tasks if isinstance(what, TaskId) else self.begun)

    def running(self, part: Work) -> Running:
        """What of this part was begun here."""
        connectors = {name: self._begun(name) for name in part.connectors if name in self.begun}
        return Running(connectors, part.tasks & self.begun_tasks)

    def _begun(self, name: str) -> Begun:
        instance = self.connectors.get(name)
        return Begun(self.begun[name], instance is not None and instance.made_tasks)

    def facts(self) -> dict[TaskId, TaskFacts]:
        """Of every task that runs, or should have ended."""
        living = {**self._leaving, **self.tasks}.items()
        return {task: live.running.facts() for task, live in living if live.running is not None}

    def start_task(self, spec: TaskSpec) -> None:
        """Starts a task; one that cannot be built is FAILED, which is not the caller's problem."""
        live = LiveTask(spec)
        self.tasks[spec.id] = live
        self.task_starts.attempts += 1
        self._board.put(spec.id, InstanceEvent.WAITING)
        try:
            with about(spec.id):
                live.running = self._runner.start(spec, _Listener(self, live))
        except Exception as error:
            self.fail_task(spec.id, trace_of(error), live)
            live.ended.set()
            return
        live.running.when_ended(lambda: self.post(live.ended.set))

    def fail_task(self, task: TaskId, trace: str, live: LiveTask | None = None) -> None:
        """A task that never came to live as an instance, or whose instance failed."""
        if live is None or not live.started:
            self.task_starts.failures += 1
        with about(task):
            log.error("Task failed and will not run again until it is restarted: %s", masked(trace))
        self._board.put(task, InstanceEvent.FAILURE, trace, live.spec.version if live else None)

    async def stop_tasks(self, tasks: Sequence[TaskId]) -> None:
        """Stops these and waits for them, one deadline for all; those that are late are given up on."""
        stopping = [(task, live) for task in tasks if (live := self.tasks.pop(task, None)) is not None]
        self._leaving.update(stopping)
        for _, live in stopping:
            if live.running is not None:
                live.running.stop()
        waits = [asyncio.create_task(live.ended.wait()) for _, live in stopping]
        if waits:
            await asyncio.wait(waits, timeout=self._graceful_timeout_s)
        for (task, live), wait in zip(stopping, waits, strict=True):
            if not live.ended.is_set() and live.running is not None:
                wait.cancel()
                with about(task):
                    log.error("Task did not stop within %.1f s and is given up on", self._graceful_timeout_s)
                live.running.cancel()
            live.given_up = True  # whatever it still says is not about the task that may replace it
            if self._leaving.get(task) is live:
                del self._leaving[task]
        for task in tasks:  # also those that never came to live: what comes next begins anew
            self.begun_tasks.discard(task)
            self._board.put(task, InstanceEvent.SHUTDOWN)

    def switch_tasks(self, tasks: Sequence[TaskId], target: TargetState) -> None:
        """Pause or resume what runs; a task that failed stays failed."""
        for task in tasks:
            live = self.tasks.get(task)
            if live is not None and live.running is not None:
                (live.running.resume if target is TargetState.STARTED else live.running.pause)()

    def on_task(self, live: LiveTask, event: InstanceEvent, trace: str | None = None) -> None:
        """A task's thread reported something; on the herder's thread by now."""
        task = live.spec.id
        if self.tasks.get(task) is not live:  # it is being stopped: who asked for that writes its status
            if event is InstanceEvent.FAILURE:
                with about(task):
                    log.error("Task failed while it was stopped: %s", masked(trace or ""))
        elif event is InstanceEvent.FAILURE:
            self.fail_task(task, trace or "", live)
        elif event is not InstanceEvent.SHUTDOWN:
            live.started = live.started or event is InstanceEvent.STARTUP
            self._board.put(task, event, version=live.spec.version)

    def on_topic(self, live: LiveTask, topic: str) -> None:
        if not live.given_up:
            self._on_topic(live.spec.id, topic)


@dataclass(frozen=True, slots=True)
class _Listener:
    """Carries the reports of one task instance to the herder's thread."""

    _worker: Worker
    _live: LiveTask

    def _report(self, event: InstanceEvent, trace: str | None = None) -> None:
        self._worker.post(lambda: self._worker.on_task(self._live, event, trace))

    def on_running(self) -> None:
        self._report(InstanceEvent.STARTUP)

    def on_paused(self) -> None:
        self._report(InstanceEvent.PAUSE)

    def on_failed(self, trace: str) -> None:
        self._report(InstanceEvent.FAILURE, trace)

    def on_stopped(self) -> None:
        self._report(InstanceEvent.SHUTDOWN)

    def on_topic(self, topic: str) -> None:
        if not self._worker.knows_topic(self._live.spec.id.connector, topic):
            self._worker.post(lambda: self._worker.on_topic(self._live, topic))

    def await_fencing(self) -> None:
        if self._worker.preflight is not None:
            self._worker.preflight.await_fencing(self._live.spec)

    def confirm_start(self) -> None:
        if self._worker.preflight is not None:
            self._worker.preflight.confirm_start(self._live.spec)
