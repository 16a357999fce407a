"""What a worker in a group needs from others, as Protocols: stores that all workers share, and its place among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from headgate.cluster import protocol as messages
from headgate.model import PassingEvent, RestartRequest, SessionKey, TaskId
from headgate.runtime.ports import ConfigStore, StatusStore
from headgate.runtime.view import ClusterView


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Of the worker file."""

    sync_timeout_ms: int = 3_000
    unsync_backoff_ms: int = 300_000
    max_delay_ms: int = 300_000


class ConfigSnapshot(Protocol):
    """The config topic up to an offset, as a value that never changes."""

    @property
    def offset(self) -> int:
        """The next one to read."""

    @property
    def view(self) -> ClusterView: ...

    @property
    def session_key(self) -> SessionKey | None: ...

    @property
    def pending_fencing(self) -> frozenset[str]:
        """KIP-618: connectors with task configs that came after their last task count."""

    @property
    def generations(self) -> Mapping[str, int]:
        """How many sets of task configs connectors have had."""

    @property
    def task_count_records(self) -> Mapping[str, int]: ...


class SharedConfigs(ConfigStore, Protocol):
    """May be used from any thread. Writes block until they were read back, half a minute at most."""

    def state(self) -> ConfigSnapshot: ...

    def refresh(self, timeout: float) -> ConfigSnapshot:
        """With all that was there when this was called."""

    def put_restart_request(self, request: RestartRequest) -> None: ...

    def put_session_key(self, key: SessionKey) -> None: ...

    def put_logger_level(self, namespace: str, level: str) -> None: ...

    def put_task_count(self, name: str, count: int) -> None: ...


class SharedStatuses(StatusStore, Protocol):
    def flush(self, timeout: float) -> bool:
        """Whether all that was put has been written. Blocks."""

    def refresh(self, timeout: float) -> None:
        """Reads all that was there when this was called. Blocks."""

    def age(self, whose: str | TaskId) -> float:
        """Seconds since it was last put or read here; 0 for what has no status."""

    def topics(self, connector: str) -> tuple[str, ...]: ...

    def has_topic(self, connector: str, topic: str) -> bool: ...

    def put_topic(self, connector: str, topic: str, task: int) -> None: ...

    def remove_topics(self, connector: str) -> None: ...


class Stores(Protocol):
    """What all workers of the group share."""

    @property
    def configs(self) -> SharedConfigs: ...

    @property
    def statuses(self) -> SharedStatuses: ...

    def start(self, on_change: Callable[[PassingEvent | None], None]) -> None:
        """Reads all of it. Blocks; raises when it cannot be read or must not be used. `on_change` is told, from a
        thread of the store's, of what comes to the config topic after that; the snapshot has it by then."""

    def claim(self) -> None:
        """This worker leads from now on: nobody who led before can write what only the leader may. Blocks."""

    def resign(self) -> None: ...

    def close(self) -> None: ...


class GroupMembership(Protocol):
    """This worker's place in the group. From any thread."""

    def start(self) -> None: ...

    def stop(self) -> None:
        """Leaves. Blocks."""

    def request_rejoin(self) -> None: ...

    def leave(self, reason: str) -> Future[None]: ...

    @property
    def member_id(self) -> str: ...

    @property
    def generation(self) -> int: ...

    @property
    def protocol(self) -> messages.Protocol: ...

    @property
    def is_leader(self) -> bool: ...

    @property
    def leader_url(self) -> str: ...

    @property
    def rebalancing(self) -> bool: ...

    @property
    def in_session(self) -> bool:
        """Whether the group has confirmed it so lately that nobody else can have its work."""
