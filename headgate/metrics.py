"""Counters of tasks. Each is written by its task's thread only and read by anybody; numbers may lag by a moment."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


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
        self._window = Window()

    def add(self, count: int) -> None:
        self.total += count
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
class TaskMetrics:
    """What both kinds of task count."""

    batch_size: Window = field(default_factory=Window)
    commit_ms: Window = field(default_factory=Window)
    commits: int = 0
    commit_failures: int = 0
    errors: ErrorMetrics = field(default_factory=ErrorMetrics)
    created: float = field(default_factory=time.monotonic)
    paused_s: float = 0.0
    _paused_since: float | None = None

    def pause(self) -> None:
        if self._paused_since is None:
            self._paused_since = time.monotonic()

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
    poll_ms: Window = field(default_factory=Window)
    active: int = 0
    """Polled, not yet acknowledged by Kafka."""
    transaction_size: Window | None = None
    """Records in each committed transaction; None: the task has no transactions."""


@dataclass
class SinkMetrics(TaskMetrics):
    read: Meter = field(default_factory=Meter)
    sent: Meter = field(default_factory=Meter)
    put_ms: Window = field(default_factory=Window)
    partitions: int = 0
    lag: int = 0
    """Records behind the end, of the partition that is furthest behind."""
    active: int = 0
    """Read, not yet put."""
    commit_seq: int = 0
    commit_skips: int = 0
