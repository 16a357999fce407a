"""Counters of tasks and figures of the worker: each is written by one thread, and read by anybody a moment later."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

_LAG_KNOWN_S: Final = 15.0
"""So long what was known of a sink's lag is worth telling; it is looked at every five seconds, but for long puts."""


class Window:
    """Average, extremes and rate over the last windows, like Kafka's sampled metrics."""

    def __init__(self, seconds: float = 30.0, samples: int = 2, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._samples = samples
        self._clock = clock
        self._buckets: list[list[float]] = []  # [start, count, sum, max, min]

    def add(self, value: float) -> None:
        now = self._clock()
        if not self._buckets or now - self._buckets[-1][0] >= self._seconds:
            self._buckets = [*self._buckets, [now, 0, 0.0, float("-inf"), float("inf")]][-self._samples :]
        bucket = self._buckets[-1]
        bucket[1] += 1
        bucket[2] += value
        bucket[3] = max(bucket[3], value)
        bucket[4] = min(bucket[4], value)

    def _live(self) -> list[list[float]]:
        oldest = self._clock() - self._seconds * self._samples
        return [bucket for bucket in self._buckets if bucket[0] > oldest]

    @property
    def average(self) -> float:
        live = self._live()
        count = sum(bucket[1] for bucket in live)
        return sum(bucket[2] for bucket in live) / count if count else float("nan")

    @property
    def maximum(self) -> float:
        return max((bucket[3] for bucket in self._live()), default=float("nan"))

    @property
    def minimum(self) -> float:
        return min((bucket[4] for bucket in self._live()), default=float("nan"))

    @property
    def rate(self) -> float:
        """Sum of the values per second."""
        live = self._live()
        if not live:
            return 0.0
        return sum(bucket[2] for bucket in live) / max(self._clock() - live[0][0], self._seconds)


class Meter:
    """A total with its rate."""

    def __init__(self) -> None:
        self.total = 0
        self.last: float | None = None
        """When something was counted last, by the monotonic clock."""
        self._window = Window()

    def add(self, count: int) -> None:
        self.total += count
        self.last = time.monotonic()
        self._window.add(count)

    @property
    def rate(self) -> float:
        return self._window.rate


@dataclass
class ErrorMetrics:
    failures: int = 0
    """Failed attempts."""
    errors: int = 0
    """Records that ended in failure."""
    skipped: int = 0
    retries: int = 0
    logged: int = 0
    dead_letters: int = 0
    dead_letter_failures: int = 0
    last_error_ms: int = 0


@dataclass
class Activity:
    """The call that a task is in, and what is in its way. A reader sees it a moment late."""

    call: str = "start()"
    since: float = field(default_factory=time.monotonic)
    last_error: str | None = None
    witnesses: dict[str, Callable[[], str | None]] = field(default_factory=dict)
    """Asked from any thread what is in the task's way, by whom they speak for."""
    _troubles: Mapping[str, str] = field(default_factory=dict)

    def enter(self, call: str) -> None:
        self.call, self.since = call, time.monotonic()

    def stay(self, call: str) -> None:
        """The same, for what is entered again and again and is one wait to whoever watches."""
        if self.call != call:
            self.enter(call)

    def fails(self, what: str, why: str) -> None:
        """It is tried again, for this reason."""
        self.last_error = f"{what}: {why}"
        self._troubles = {**self._troubles, what: self.last_error}

    def goes(self, what: str) -> None:
        """It works, perhaps again."""
        if what in self._troubles:
            self._troubles = {each: why for each, why in self._troubles.items() if each != what}

    @property
    def trouble(self) -> str | None:
        """What began to fail first, in one line; else what the first witness says."""
        for why in self._troubles.values():
            return why
        for who, asked in list(self.witnesses.items()):
            said = asked()
            if said is not None:
                self.last_error = f"{who}: {said}"
                return self.last_error
        return None


@dataclass
class TaskMetrics:
    """What both kinds of task count."""

    activity: Activity = field(default_factory=Activity)

    batch_size: Window = field(default_factory=Window)
    commit_ms: Window = field(default_factory=Window)
    commits: int = 0
    commit_failures: int = 0
    errors: ErrorMetrics = field(default_factory=ErrorMetrics)
    by_records: Counter[str] = field(default_factory=Counter)
    """Records that did not go by columns, though the chain can, by the reason."""
    created: float = field(default_factory=time.monotonic)
    paused_s: float = 0.0
    _paused_since: float | None = None

    def pause(self) -> None:
        if self._paused_since is None:
            self._paused_since = time.monotonic()

    @property
    def paused(self) -> bool:
        return self._paused_since is not None

    def resume(self) -> None:
        if self._paused_since is not None:
            self.paused_s += time.monotonic() - self._paused_since
            self._paused_since = None

    @property
    def pause_ratio(self) -> float:
        now = time.monotonic()
        paused = self.paused_s + (now - self._paused_since if self._paused_since is not None else 0.0)
        return paused / max(now - self.created, 1e-9)

    def committed(self, started: float, ok: bool) -> None:
        """A commit that began at `started` (monotonic) has ended."""
        self.commit_ms.add((time.monotonic() - started) * 1000)
        if ok:
            self.commits += 1
        else:
            self.commit_failures += 1


@dataclass
class SourceMetrics(TaskMetrics):
    polled: Meter = field(default_factory=Meter)
    written: Meter = field(default_factory=Meter)
    """Acknowledged by Kafka; in transactions: committed."""
    poll_ms: Window = field(default_factory=Window)
    taken: int = 0
    """Polled rows that were given to the pump."""
    passed: int = 0
    """Those of them that the pump has done with."""
    unacknowledged: int = 0
    """Rows that were sent, and Kafka has not answered for."""
    transaction_size: Window | None = None
    """Records in each committed transaction; None: the task has no transactions."""

    @property
    def active(self) -> int:
        """Polled, not yet acknowledged by Kafka."""
        return self.taken - self.passed + self.unacknowledged


@dataclass
class SinkMetrics(TaskMetrics):
    read: Meter = field(default_factory=Meter)
    sent: Meter = field(default_factory=Meter)
    put_ms: Window = field(default_factory=Window)
    partitions: int = 0
    active: int = 0
    """Read, not yet put."""
    commit_seq: int = 0
    commit_skips: int = 0
    _lag: int | None = None
    _lag_seen: float = 0.0

    @property
    def lag(self) -> int | None:
        """Records behind the end, of the partition that is furthest behind; None: nobody has known it lately."""
        return self._lag if time.monotonic() - self._lag_seen < _LAG_KNOWN_S else None

    def see_lag(self, lag: int | None) -> None:
        self._lag, self._lag_seen = lag, time.monotonic()


def since_1970(moment: float | None) -> int | None:
    """Of a moment of the monotonic clock, in milliseconds."""
    return None if moment is None else round((time.time() - (time.monotonic() - moment)) * 1000)


# --- of the worker ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientFigures:
    """One Kafka client of this worker."""

    kind: str
    """As Kafka's metrics have it: `producer`, `consumer` or `admin_client`."""
    client_id: str
    connections: int
    sent: int
    """Bytes, as they went over the network."""
    received: int


@dataclass(frozen=True, slots=True)
class AccessFigures:
    """Of the REST API's door."""

    certificate_ends: Mapping[str, float] = field(default_factory=dict)
    """When those of https listeners expire, by their URLs, in Unix time."""
    failed_logins: Mapping[str, int] = field(default_factory=dict)
    """By the way that was tried."""
    failed_audits: int = 0


@dataclass(frozen=True, slots=True)
class JvmFigures:
    memory: Mapping[str, int]
    """Bytes in use, by area: `heap`, `nonheap`."""
    collections: Mapping[str, tuple[int, float]]
    """By garbage collector: how often it ran, and the seconds that took."""
    threads: int


@dataclass
class RebalanceMetrics:
    """Of this worker in its group; written by the herder's thread."""

    completed: int = 0
    ms: Window = field(default_factory=Window)
    last: float | None = None
    """When the last one was over, by the monotonic clock."""
    _began: float | None = None

    def begin(self) -> None:
        self._began = self._began or time.monotonic()

    def complete(self) -> None:
        self.completed += 1
        self.last = time.monotonic()
        self.ms.add((self.last - (self._began or self.last)) * 1000)
        self._began = None


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """This worker's place in its group."""

    connectors: int
    tasks: int
    rebalancing: bool
    generation: int
    leader_url: str
    protocol: str
    rebalances: RebalanceMetrics
