"""A process and all that it started, as /proc shows them: what they use, and that none is left behind."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_PROC: Final = Path("/proc")
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_GONE: Final = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class Process:
    """The start is part of what it is: a pid alone may be someone else's by now."""

    pid: int
    parent: int
    session: int
    start: int
    ticks: int
    """Of the processor, also for the children that it has waited for."""
    threads: int
    zombie: bool

    @classmethod
    def read(cls, pid: int) -> Self | None:
        try:
            text = (_PROC / str(pid) / "stat").read_text()
        except _GONE:
            return None
        state, *fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold anything
        numbers = [int(field) for field in fields[:19]]
        return cls(pid, numbers[0], numbers[2], numbers[18], sum(numbers[10:14]), numbers[16], state == "Z")

    def lives(self) -> bool:
        now = Process.read(self.pid)
        return now is not None and now.start == self.start and not now.zombie


@dataclass(frozen=True, slots=True)
class Tree:
    """The leader of a session and its offspring at one moment. What ended since, and was waited for, is still in the
    processor time of its parent, so that the difference of two looks is all that was used between them."""

    members: tuple[Process, ...]

    @classmethod
    def of(cls, root: int) -> Self:
        known = [each for each in map(Process.read, _pids()) if each is not None]
        # Whose parent has died is somebody else's child by now, but still in the session.
        found = {each.pid: each for each in known if root in (each.pid, each.session)}
        waiting = list(found)
        for parent in waiting:  # grows on the way
            children = {each.pid: each for each in known if each.parent == parent and each.pid not in found}
            found |= children
            waiting += children
        return cls(tuple(found.values()))

    @property
    def cpu_s(self) -> float:
        return sum(each.ticks for each in self.members) / _TICKS

    @property
    def threads(self) -> int:
        return sum(each.threads for each in self.members)

    def handles(self) -> int:
        """Files, sockets and pipes that are open now."""
        return sum(_handles(each.pid) for each in self.members)

    def memory(self) -> int:
        """Bytes. What several share counts once in all, where the kernel tells; otherwise once for each."""
        return sum(_memory(each.pid) for each in self.members)

    def end(self, seconds: float) -> None:
        """Waits for those that still live, then ends them."""
        deadline = time.monotonic() + seconds
        while (left := [each for each in self.members if each.lives()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        for each in left:
            with suppress(ProcessLookupError):
                os.kill(each.pid, signal.SIGKILL)


def _pids() -> Iterator[int]:
    return (int(each.name) for each in _PROC.iterdir() if each.name.isdigit())


def _handles(pid: int) -> int:
    try:
        return len(os.listdir(_PROC / str(pid) / "fd"))
    except _GONE:
        return 0


def _memory(pid: int) -> int:
    for file, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        with suppress(*_GONE, PermissionError):
            for line in (_PROC / str(pid) / file).read_text().splitlines():
                if line.startswith(key):
                    return int(line.split()[1]) * 1024
    return 0
