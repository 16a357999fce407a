"""Frozen records that everyone shares: names, states, and what a worker needs to know to run a task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

TaskClass = type[Any]
"""A subclass of `headgate.api.Task`."""

Config = Mapping[str, str]
"""A connector or task configuration, as text."""

DEV_CLUSTER: Final = "headgate"
"""How the ids of clusters begin that `headgate broker` makes: they have one node, and are for trying things out."""


@dataclass(frozen=True, slots=True, order=True)
class TaskId:
    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class PartitionStart:
    """Where a consumer group begins with a partition, and what the topic has of it."""

    offset: int
    known: bool
    """Whether the group has this offset; else it is an end of the topic."""
    low: int
    high: int


class TargetState(Enum):
    """What the user wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


INITIAL_STATES: Final = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}
"""By the words of a create request (KIP-980)."""


class NumberText(str):
    """A JSON number as it was written: `1.50` and integers of any length keep their digits in a configuration."""

    __slots__ = ()

    def value(self) -> int | float:
        return float(self) if any(char in self for char in ".eE") else int(self)


class State(Enum):
    """What a connector or a task is."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    DESTROYED = "DESTROYED"


class ConnectorType(Enum):
    SOURCE = "source"
    SINK = "sink"
    UNKNOWN = "unknown"


class Verdict(Enum):
    """How a connector or a task fares, beside its state."""

    STARTING = "starting"
    OK = "ok"
    IDLE = "idle"
    HELD = "held"
    RETRYING = "retrying"
    STALLED = "stalled"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Health:
    """A verdict, and what it was given for. Times are in milliseconds since 1970."""

    verdict: Verdict
    since_ms: int
    reason: str | None = None
    """In one line."""
    last_error: str | None = None
    """In one line; it may be over."""
    last_progress_ms: int | None = None
    lag: int | None = None
    rate: float | None = None
    """Records per second."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What is known of a task where it runs. Times are in milliseconds since 1970."""

    doing: str
    """The call that its thread is in."""
    doing_since_ms: int
    trouble: str | None = None
    """What is in its way, in one line, while it is tried again."""
    last_error: str | None = None
    last_progress_ms: int | None = None
    """When Kafka last took something of a source, or a sink something of Kafka's."""
    under_way_since_ms: int | None = None
    """Since when there have been records that are not done; None: there are none."""
    asked_ms: int | None = None
    """When it was asked to pause or to stop, which it has not done."""
    lag: int | None = None
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class Status:
    state: State
    worker_id: str
    trace: str | None = None
    version: str | None = None
    generation: int = 0
    health: Health | None = field(default=None, compare=False)
    """None: who wrote it knows no verdicts."""
    again: bool = field(default=False, compare=False)
    """Told for its health alone: it takes nothing from another worker that has told a state meanwhile."""


@dataclass(frozen=True, slots=True)
class TaskStatus:
    id: int
    status: Status


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """A connector's status with those of its tasks, sorted by number."""

    name: str
    connector: Status
    tasks: tuple[TaskStatus, ...]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class ConnectorInfo:
    name: str
    config: Config
    tasks: tuple[TaskId, ...]
    type: ConnectorType


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """KIP-745: which instances of a connector to restart."""

    connector: str
    include_tasks: bool = False
    only_failed: bool = False

    @property
    def forceful(self) -> bool:
        """The connector alone, whatever its state: KIP-52's restart, which needs no plan."""
        return not (self.include_tasks or self.only_failed)


@dataclass(frozen=True, slots=True)
class TargetChange:
    """Another state is wanted of a connector."""

    connector: str
    target: TargetState


@dataclass(frozen=True, slots=True)
class LevelChange:
    """All workers shall log so."""

    logger: str
    level: str


PassingEvent = TargetChange | RestartRequest | LevelChange
"""What comes by in the config topic, and cannot be found by comparing what the topic says before and after."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """KIP-507: what workers sign their requests to each other with."""

    key: bytes
    algorithm: str
    created_ms: int

    def __repr__(self) -> str:  # the key is a secret
        return f"SessionKey(algorithm={self.algorithm!r}, created_ms={self.created_ms})"


Partition = Mapping[str, Any]
"""A source partition: connector-defined, string keys, primitive values."""

Offset = Mapping[str, Any]
"""A source offset: connector-defined, string keys, primitive values."""


@dataclass(frozen=True, slots=True)
class PluginRef:
    """Where a plugin's class can be imported from, in this process and on any executor."""

    module: str
    qualname: str

    def __str__(self) -> str:
        return f"{self.module}.{self.qualname}"


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """A plugin to be built on an executor: its class and its configuration."""

    ref: PluginRef
    config: Config = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepSpec:
    """One transform of a chain, with the predicate that guards it."""

    alias: str
    transform: PluginSpec
    predicate: PluginSpec | None = None
    negate: bool = False


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """All that happens to a task's records between the connector and Kafka. Plain values: it travels to executors."""

    task: TaskId
    type: ConnectorType
    key_converter: PluginSpec
    value_converter: PluginSpec
    header_converter: PluginSpec
    steps: tuple[StepSpec, ...] = ()
    errors: Config = field(default_factory=dict)
    """The connector's `errors.*` keys."""


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """How topics are created whose name matches (KIP-158). -1: as the broker does."""

    name: str
    include: str
    exclude: str
    replication_factor: int
    partitions: int
    configs: Config = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is to be."""

    name: str
    partitions: int = -1
    """-1: as many as the broker gives; likewise of replicas."""
    replication: int | None = -1
    """None: nobody has said. Three, as Kafka Connect has it; where `headgate broker` made the cluster, as it gives."""
    configs: Config = field(default_factory=dict)


class Boundary(Enum):
    """Where a source's transactions end (KIP-618)."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


@dataclass(frozen=True, slots=True)
class TransactionSpec:
    """A source task whose records and offsets are one transaction."""

    id: str
    """The transactional id."""
    boundary: Boundary = Boundary.POLL
    interval_ms: int = 60_000


BUFFER_BYTES: Final = 64 * 1024 * 1024
"""Room of a task for records that wait, unless the worker file says otherwise."""


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """All that a task runner needs to run one task."""

    id: TaskId
    task_class: TaskClass
    type: ConnectorType
    version: str | None
    config: Config
    """The task configuration, as the connector generated it."""
    connector_config: Config
    chain: ChainSpec
    target_state: TargetState
    producer: Config = field(default_factory=dict)
    """Kafka producer settings by Apache's names: worker's `producer.*`, then the connector's overrides."""
    consumer: Config = field(default_factory=dict)
    admin: Config = field(default_factory=dict)
    cluster: Config = field(default_factory=dict)
    """What any client needs to reach the cluster that a source's records go to."""
    flush_interval_ms: int = 60_000
    flush_timeout_ms: int = 5_000
    buffer_bytes: int = BUFFER_BYTES
    """Most that it holds of records that wait: polled and not yet sent, or fetched ahead."""
    topic_groups: tuple[TopicGroup, ...] = ()
    """Tried in this order, the last one matches every topic; none: the broker creates topics, if it does."""
    transaction: TransactionSpec | None = None
    """None: at least once."""
    generation: int = 0
    """Counts the sets of task configs of the connector."""


SINK_GROUP_PREFIX: Final = "connect-"
"""A sink's consumer group is this and the connector's name, unless overridden."""


class EngineUnavailable(Exception):
    """The engine that runs the pipeline cannot be had: it did not start, keeps dying, or is being stopped. The message
    says which."""


class RangeUnread(Exception):
    """The engine could not read a range of offsets; the message says why. Who has a consumer reads for itself."""
