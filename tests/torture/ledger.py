"""What was written to the sources' files, and what has to come out of Kafka: every line, once, in order."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stretch:
    """Lines of a file that a connector was told to read, one after the other."""

    first: int
    end: int | None = None
    """None: as far as the file goes."""


@dataclass
class Source:
    """A file that grows, and the connector that reads it. All lines have the same length, so that a byte offset is a
    line's number."""

    name: str
    file: Path
    topic: str
    width: int = 40
    lines: int = 0
    stretches: list[Stretch] = field(default_factory=lambda: [Stretch(0)])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def line(self, number: int) -> str:
        return f"{self.name} {number:010d} ".ljust(self.width - 1, ".")

    def grow(self, count: int) -> None:
        with self.lock, self.file.open("a") as out:
            out.write("".join(f"{self.line(number)}\n" for number in range(self.lines, self.lines + count)))
            self.lines += count

    def position_of(self, number: int) -> int:
        return number * self.width

    def line_at(self, position: int) -> int:
        assert position % self.width == 0, f"{self.name}: offset {position} is in the middle of a line"
        return position // self.width

    def sent_back(self, committed: int, to: int) -> None:
        """An operator has set the offset of a stopped connector, which had read up to line `committed`."""
        self.stretches[-1].end = committed
        self.stretches.append(Stretch(to))

    def expected(self) -> list[str]:
        return [
            self.line(number)
            for stretch in self.stretches
            for number in range(stretch.first, self.lines if stretch.end is None else stretch.end)
        ]


@dataclass(frozen=True)
class Verdict:
    source: str
    expected: int
    found: int
    lost: int
    doubled: int
    disordered: int
    first_difference: str = ""

    @property
    def good(self) -> bool:
        return self.lost == self.doubled == self.disordered == 0 and self.found == self.expected


def judge(source: Source, found: list[str]) -> Verdict:
    """Exactly the lines that were expected, in their order? Which are missing, which came too often?"""
    from collections import Counter

    expected = source.expected()
    if found == expected:
        return Verdict(source.name, len(expected), len(found), 0, 0, 0)
    wanted, got = Counter(expected), Counter(found)
    lost = sum((wanted - got).values())
    doubled = sum((got - wanted).values())
    at = next(
        (n for n, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), min(len(expected), len(found))
    )
    shown = f"at {at}: expected {expected[at : at + 2]}, found {found[at : at + 2]}"
    disordered = 0 if lost or doubled else sum(a != b for a, b in zip(expected, found, strict=True))
    return Verdict(source.name, len(expected), len(found), lost, doubled, disordered, shown)
