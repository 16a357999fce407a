"""What `runtime` needs from others, as Protocols. `storage`, `cluster` and `spark` fit them by shape; `cli` joins them.

The herder thread is the only caller, unless a method says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from headgate.model import Config, Offset, Partition, Status, TargetState, TaskFacts, TaskId, TaskSpec, TopicPartition
from headgate.runtime.errors import HerderError, OffsetsError
from headgate.runtime.view import ClusterView


class ConfigStore(Protocol):
    """Connector configs, task configs and target states. A write has happened when the call returns."""

    def view(self) -> ClusterView:
        """All of it now, as one value that never changes."""

    def put_connector(self, name: str, config: Config, target: TargetState | None = None) -> None:
        """Create or replace; the target state, if given, is written first."""

    def remove_connector(self, name: str) -> None: ...

    def put_tasks(self, name: str, configs: Sequence[Config]) -> None: ...

    def put_target_state(self, name: str, target: TargetState) -> None: ...


class StatusStore(Protocol):
    """States of connectors, by their names, and of tasks. Reads may come from any thread."""

    def get(self, whose: str | TaskId) -> Status | None: ...

    def tasks(self, name: str) -> Mapping[int, Status]: ...

    def connectors(self) -> Iterable[str]: ...

    def put(self, whose: str | TaskId, status: Status) -> None: ...

    def remove(self, whose: str | TaskId) -> None:
        """A connector's tasks go with it."""


class OffsetStore(Protocol):
    """Source offsets. May be used from any thread; a write is durable when the call returns."""

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]: ...

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        """Every partition of this connector that has an offset. Raises KafkaAway, OffsetsLost."""

    def put(self, connector: str, offsets: Sequence[tuple[Partition, Offset | None]]) -> None:
        """All of them or none; None removes a partition's offset."""


class KafkaAway(OffsetsError):
    """No broker answers."""

    def __init__(self, servers: str, said: str) -> None:
        super().__init__(
            f"Kafka does not answer at {servers} ({said}): see that it runs there and that this worker can reach it,"
            " then ask again."
        )


class OffsetsLost(OffsetsError):
    """Kafka has their topic no more, or only some of its partitions; `known` is what had been read of it."""

    def __init__(self, topic: str, known: list[tuple[Partition, Offset]]) -> None:
        super().__init__(
            f"Topic {topic} of source offsets was deleted: they cannot be changed before it is there again, as it was."
            " Reading them still tells what this worker remembers."
        )
        self.topic = topic
        self.known = known


class ConfigsLost(HerderError):
    """Nothing can be written: the config topic is not the one that was read."""


class OpenOffsets(Protocol):
    """The offsets of one source: the worker's store or, over it, a topic of the connector's own (KIP-618)."""

    def __call__(
        self, connector: str, config: Config, *, to_change: bool, at_once: bool = False
    ) -> AbstractContextManager[OffsetStore]:
        """`config` has its variables looked up. `to_change`: all of a `put` is to count or nothing, if the worker has
        exactly-once sources. Opening blocks; `at_once`: but does not wait for Kafka if it is away."""


class GroupOffsets(Protocol):
    """The offsets of sinks' consumer groups, through Kafka's admin API. Blocks: called from a helper thread."""

    def read(self, admin: Config, group: str) -> Mapping[TopicPartition, int]: ...

    def alter(self, admin: Config, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        """None deletes a partition's offset. Raises GroupNotEmpty, GroupOffsetsError."""

    def delete(self, admin: Config, group: str) -> None:
        """A group that does not exist counts as deleted. Raises GroupNotEmpty, GroupOffsetsError."""


class GroupNotEmpty(Exception):
    """The group still has members: wait until the tasks have ended, then try again."""


class TaskListener(Protocol):
    """Told by a task's thread what became of it. Each call names the instance, so that one that was given up on can
    no longer speak for the task that replaced it."""

    def on_running(self) -> None: ...

    def on_paused(self) -> None: ...

    def on_failed(self, trace: str) -> None: ...

    def on_stopped(self) -> None:
        """The last word of an instance that was asked to stop."""

    def on_topic(self, topic: str) -> None:
        """The task uses this topic (KIP-558). Told for every batch, so that one is known again after a reset; cheap."""

    def await_fencing(self) -> None:
        """Of a source task with transactions, before its producer's first one: returns when nothing that earlier tasks
        of the connector may still send can count any more (KIP-618). Blocks; raises when the task must not start."""

    def confirm_start(self) -> None:
        """Of a source task with transactions, before it reads offsets, and before its producer is replaced: returns
        when it is certain that the task is still this worker's and its config still the newest. Blocks; raises
        ConnectError when it must not run, anything else when that could not be found out."""


class RunningTask(Protocol):
    """A task that was started. None of these calls blocks."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None:
        """Ask it to finish its batch, commit and end."""

    def cancel(self) -> None:
        """Give up on it: abandon its clients, cancel its Spark jobs, and let it never write again."""

    def facts(self) -> TaskFacts:
        """What is known of it now."""

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Calls back, from any thread, once the task's thread has ended; at once if it has already."""


class Peers(Protocol):
    """The other workers of the group, by their URLs. Blocks: called from a helper thread. Raises PeerError."""

    def put_task_configs(self, url: str, connector: str, configs: Sequence[Config], sign: Signer | None) -> None:
        """New task configs of a connector, for the leader to write."""

    def fence(self, url: str, connector: str, sign: Signer | None) -> None:
        """Asks the leader for a round of fencing (KIP-618)."""

    def take_leave(self, url: str, member: str, sign: Signer | None) -> None:
        """Tells the leader that this member ends and will not be back."""


class PeerError(Exception):
    """Another worker could not be reached, or did not do what it was asked."""

    def __init__(self, message: str, status: int | None = None) -> None:
        """`status`: of its HTTP answer; None when there was none."""
        super().__init__(message)
        self.status = status


class PeerRequest(NamedTuple):
    """As much of a request between workers as is signed."""

    method: str
    target: str
    """Path and query, as they are sent."""
    body: bytes = b""


Signer = Callable[[PeerRequest], Mapping[str, str]]
"""The headers that prove a request to come from a worker of the group (KIP-507)."""


class PeerProofs(Protocol):
    """By which workers of a group know each other's requests (KIP-507). From any thread; header names of requests that
    were received are in lower case."""

    def check(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        """Of a request that only workers may make: whether one has proved that it asks, for some groups do without.
        Raises HerderError where they do not."""

    def sign(self, asked: PeerRequest) -> Mapping[str, str]:
        """The headers for a request that is passed on; none where workers do not sign."""

    def vouches(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        """Whether another worker has passed this on, just now."""


class NoPeers:
    """PeerProofs of a worker alone."""

    def check(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        return False

    def sign(self, asked: PeerRequest) -> Mapping[str, str]:
        return {}

    def vouches(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        return False


class TaskRunner(Protocol):
    def start(self, spec: TaskSpec, listener: TaskListener) -> RunningTask:
        """Starts the task's thread. Raises when the task cannot even be built."""
