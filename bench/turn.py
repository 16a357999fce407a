"""One side's turn at one row: what it may use, and the figures that it gives."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from inputs import Inputs
from side import Side, warm_up
from topics import Topics


class Quantity(Enum):
    """What a figure is, and whether more of it is better."""

    TIME = ("time", False)
    RATE = ("rate", True)
    CPU = ("CPU", False)
    MEMORY = ("memory", False)
    COUNT = ("number", False)

    def __init__(self, word: str, more_is_better: bool) -> None:
        self.word, self.more_is_better = word, more_is_better

    def show(self, value: float) -> str:
        match self:
            case Quantity.TIME:
                return f"{value * 1000:,.1f} ms" if value < 1 else f"{value:,.2f} s"
            case Quantity.RATE:
                return f"{value:,.0f}/s"
            case Quantity.CPU:
                return f"{value:,.2f} s"
            case Quantity.MEMORY:
                return f"{value / 1e6:,.0f} MB"
            case Quantity.COUNT:
                return f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Figure:
    what: str
    value: float
    quantity: Quantity


@dataclass(frozen=True, slots=True)
class Sizes:
    lines: int | None
    """None, here and below: as many as the row wants."""
    size: int
    """Bytes of a record, with the end of its line."""
    tasks: int
    records: int = 0
    seconds: float = 0
    connectors: int | None = None
    settle: float = 0


def add_sizes(parser: ArgumentParser) -> None:
    """The options of all workloads."""
    parser.add_argument("--lines", type=int, help="of each workload (2,000,000, fewer of large records)")
    parser.add_argument("--size", type=int, choices=(100, 1000, 10_000), default=100, help="bytes of a record (100)")
    parser.add_argument(
        "--tasks", type=int, choices=(1, 4), default=1, help="of each sink; topics have 4 partitions (1)"
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """Its folder is new; its name is its own, and topics whose names begin with it are deleted afterwards."""

    kind: str
    round: int
    name: str
    folder: Path
    topics: Topics
    inputs: Inputs
    sizes: Sizes

    @contextmanager
    def worker(self, group: str | None = None, more: Mapping[str, str] | None = None) -> Iterator[Side]:
        """One that has done a first record."""
        with Side(self.kind, self.topics.bootstrap, self.folder, group=group, more=more) as side:
            warm_up([side], f"{self.name}-warm", self.folder)
            yield side


Row = Callable[[Turn], Iterator[Figure]]


class Lines:
    """Of a growing file, counted by reading only what is new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._at = self._count = 0

    def count(self) -> int:
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._at)
                while block := file.read(1 << 22):
                    self._count += block.count(b"\n")
                    self._at += len(block)
        return self._count
