"""What the processes of a worker hold: memory, threads, open files; and what of it they do not give back."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final, Self

from faults import descendants
from processes import Process, Tree

from headgate.jars.find import find_java

_JVM: Final = "org.apache.spark.deploy.SparkSubmit"
_GC_S: Final = 20.0
_MB: Final = 2**20

MORE: Final[Mapping[str, tuple[float, int]]] = {
    "memory": (1.25, 200),
    "threads": (1.0, 10),
    "files": (1.0, 20),
    "processes": (1.0, 1),
    "jvm_memory": (1.25, 200),
    "jvm_threads": (1.0, 20),
    "jvm_files": (1.0, 20),
}
"""What may be more than it was: so many times, and so much on top. Allocators keep what they may need again, pools keep
threads; what leaks with each connector or request is far beyond that after hundreds of them."""


@dataclass(frozen=True, slots=True)
class Held:
    """By the worker's Python processes and by its JVM."""

    memory: int
    """MB; pages that several share are counted once."""
    threads: int
    files: int
    processes: int
    jvm_memory: int
    jvm_threads: int
    jvm_files: int

    @classmethod
    def by(cls, pid: int) -> Self:
        """Linux alone tells it."""
        jvms = set(_jvms(pid))
        everything = Tree.of(pid).members
        python = Tree(tuple(each for each in everything if each.pid not in jvms))
        jvm = Tree(tuple(each for each in everything if each.pid in jvms))
        return cls(
            python.memory() // _MB,
            python.threads,
            python.handles(),
            len(everything),
            jvm.memory() // _MB,
            jvm.threads,
            jvm.handles(),
        )

    @classmethod
    def most(cls, several: Collection[Held]) -> Held:
        """Of each, what the one has that has most: who leads has more clients of Kafka, and others may lead later."""
        return Held(*(max(getattr(held, each.name) for held in several) for each in fields(cls)))

    def compared(self, before: Held) -> Iterator[tuple[str, int, int, int]]:
        """What, how much it was, how much it is, how much it may be."""
        for each in fields(self):
            was, now = getattr(before, each.name), getattr(self, each.name)
            times, more = MORE[each.name]
            yield each.name.replace("_", " "), was, now, round(was * times + more)


def collect_garbage(pid: int) -> None:
    """Of the worker's JVM, where Java has the tool for that: its heap shrinks only then."""
    tool = find_java().resolve().with_name("jcmd")
    for jvm in _jvms(pid):
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run([str(tool), str(jvm), "GC.run"], capture_output=True, timeout=_GC_S, check=False)


def thread_names(pid: int) -> str:
    """Of the worker's own process, how many of each: `rdk:` begins those of Kafka clients."""
    names = Counter(path.read_text().strip() for path in Path("/proc", str(pid), "task").glob("*/comm"))
    return ", ".join(f"{count} {name}" for name, count in names.most_common())


def age_s(pid: int) -> float:
    """How long it runs."""
    process = Process.read(pid)
    assert process is not None
    return time.clock_gettime(time.CLOCK_BOOTTIME) - process.start / os.sysconf("SC_CLK_TCK")


def left_behind(ended: set[Process]) -> list[str]:
    """Processes of workers that are no more."""
    return [f"process {each.pid}" for each in ended if each.lives()]


def _jvms(pid: int) -> list[int]:
    return [each for each, command in descendants(pid) if _JVM in command]
