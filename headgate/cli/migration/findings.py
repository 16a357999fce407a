"""Findings: what a check of a Kafka Connect cluster found, as plain values that hold no secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.cluster.roster import Roster
from headgate.model import ConnectorType, State, TargetState
from headgate.storage.snapshot import Topic


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps Headgate from running it, and what to do about it."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class WorkerFinding:
    """About the worker file."""

    known: tuple[str, ...]
    """Keys that have effect here."""
    without_effect: Mapping[str, str]
    """Keys of Kafka Connect that have none, and what there is instead."""
    unknown: tuple[str, ...]
    """Each with a guess at what was meant."""
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatusFinding:
    """The last that a worker said of a connector or task."""

    state: State
    worker_id: str
    trace: str | None = None
    """The line of it that says what was wrong."""


@dataclass(frozen=True, slots=True)
class OffsetsFinding:
    """Where a connector will go on."""

    where: str
    """A topic, for a source; a consumer group, for a sink."""
    partitions: int | None
    """With an offset; None if Kafka did not tell."""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectorFinding:
    name: str
    connector_class: str
    type: ConnectorType
    """By its keys, where the class is not there to ask."""
    target: TargetState
    tasks: int
    """By its last commit."""
    consistent: bool = True
    """Whether the configurations of all these tasks are there."""
    status: StatusFinding | None = None
    task_statuses: Mapping[int, StatusFinding] | None = None
    offsets: OffsetsFinding | None = None
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether Headgate can run it."""
        return not self.problems


@dataclass(frozen=True, slots=True)
class Findings:
    file: str
    bootstrap_servers: str
    cluster_id: str | None
    group: str
    roster: Roster | str
    """Who is in the group; or why Kafka did not tell."""
    worker: WorkerFinding
    topics: tuple[Topic, ...]
    connectors: tuple[ConnectorFinding, ...]

    @property
    def all_can_run(self) -> bool:
        return not self.worker.problems and all(each.runs for each in self.connectors)
