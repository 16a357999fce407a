"""What there is to do, from what is wanted, what this worker holds, and what was begun here. Pure.

By level: it may be asked at any time and any number of times, and says what is still missing; nothing, once all is as
it should be. What failed has been begun, and stays as it is until somebody restarts it. Both modes carry the same
actions out: a worker alone one command after the other, one in a group each connector and each task in its turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import ClassVar

from headgate.cluster.work import Work
from headgate.model import Config, TargetState, TaskId
from headgate.runtime.view import ClusterView, ConnectorView


@dataclass(frozen=True, slots=True)
class SwitchTasks:
    """Tell these tasks what is wanted of their connector now."""

    doing: ClassVar[str] = "pausing or resuming task"
    tasks: tuple[TaskId, ...]
    target: TargetState


@dataclass(frozen=True, slots=True)
class Shutdown:
    """End the connector instance and wait for it."""

    doing: ClassVar[str] = "stopping connector"
    connector: str


@dataclass(frozen=True, slots=True)
class StopTasks:
    """End these tasks and wait for them, one deadline for all."""

    doing: ClassVar[str] = "stopping task"
    tasks: tuple[TaskId, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """Bring the connector instance, a new one if there is none, to this state; None: to its target state."""

    doing: ClassVar[str] = "changing the state of connector"
    connector: str
    state: TargetState | None = None


@dataclass(frozen=True, slots=True)
class StartTask:
    doing: ClassVar[str] = "starting task"
    task: TaskId


@dataclass(frozen=True, slots=True)
class Regenerate:
    """Ask the connector for its task configs, if it is started: one that is paused or stopped makes none (KIP-875).
    `at_once`: nothing else is done with it before they are published."""

    doing: ClassVar[str] = "reconfiguring the tasks of connector"
    connector: str
    at_once: bool = False


Action = SwitchTasks | Shutdown | StopTasks | Apply | StartTask | Regenerate


@dataclass(frozen=True, slots=True)
class Begun:
    """A connector that was begun here, whatever became of it."""

    config: Config
    """As it was then."""
    made_tasks: bool = False
    """It has published its task configs, and was not stopped since."""


@dataclass(frozen=True, slots=True)
class Running:
    """What was begun here and not ended since."""

    connectors: Mapping[str, Begun] = field(default_factory=dict)
    tasks: frozenset[TaskId] = frozenset()


Passed = Mapping[str, Sequence[TargetState]]
"""By connector: the states that were wanted of it since the last time, one after the other, up to the present one."""


def reconcile(wanted: ClusterView, held: Work, running: Running, passed: Passed) -> list[Action]:
    """In the order in which they are to be carried out."""
    ends: list[Action] = []
    begins: list[Action] = []
    generates: list[Action] = []

    def bring_up(connector: ConnectorView, made_tasks: bool) -> None:
        if _lacks_tasks(connector, made_tasks):
            begins.append(Apply(connector.name, TargetState.STARTED))
            generates.extend([Regenerate(connector.name, at_once=True), Apply(connector.name)])
        else:
            begins.append(Apply(connector.name))
            if connector.target is TargetState.STARTED:
                generates.append(Regenerate(connector.name))

    for name in sorted(held.connectors | running.connectors.keys()):
        connector, begun = wanted.get(name), running.connectors.get(name)
        if name not in held.connectors:
            ends.append(Shutdown(name))
        elif connector is None:
            continue  # it was deleted, and waits to be taken away
        elif begun is None:
            bring_up(connector, made_tasks=False)
        elif begun.config is not connector.config:  # also if it was given the same one again
            ends.append(Shutdown(name))
            bring_up(connector, made_tasks=False)
        elif passed.get(name):
            stopped = TargetState.STOPPED in passed[name] and connector.target is not TargetState.STOPPED
            if stopped:  # its tasks went with the stop, also if that was overtaken: only a new start brings others
                begins.append(Apply(name, TargetState.STOPPED))
            bring_up(connector, begun.made_tasks and not stopped)
    switches: list[Action] = [
        SwitchTasks(tuple(tasks), connector.target)
        for name, tasks in groupby(sorted(running.tasks & held.tasks), lambda task: task.connector)
        if passed.get(name) and (connector := wanted.get(name)) is not None
    ]
    if gone := running.tasks - held.tasks:
        ends.append(StopTasks(tuple(sorted(gone))))
    begins += [StartTask(task) for task in sorted(held.tasks - running.tasks) if wanted.has_task(task)]
    return [*switches, *ends, *begins, *generates]


def _lacks_tasks(connector: ConnectorView, made_tasks: bool) -> bool:
    """It was stopped and shall be paused. KIP-875 sees no difference to resuming: it is started and makes its tasks,
    which come up paused."""
    paused = connector.target is TargetState.PAUSED
    return paused and not connector.tasks and not connector.never_resumed and not made_tasks
