"""One side's turn at one row: what it may use, and the figures that it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Final

from side import Side, warm_up
from topics import Topics

WIDTH: Final = 107
"""Of every line, with its end."""


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
    lines: int
    records: int
    seconds: float
    connectors: int | None
    """None: as many as the row wants."""


class Inputs:
    """The same lines for all, made when they are first wanted: files for sources, topics for sinks."""

    def __init__(self, topics: Topics, folder: Path, lines: int) -> None:
        self._topics, self._folder, self._lines = topics, folder, lines

    @cached_property
    def text_file(self) -> Path:
        path = self._folder / "in.txt"
        with path.open("wb") as file:
            file.writelines(line + b"\n" for line in self._texts())
        return path

    @cached_property
    def text_topic(self) -> str:
        return self._topic("in-text", self._texts())

    @cached_property
    def json_topic(self) -> str:
        return self._topic("in-json", self._objects())

    def _topic(self, name: str, values: Iterable[bytes]) -> str:
        self._topics.make([name])
        self._topics.fill(name, values)
        return name

    def _texts(self) -> Iterator[bytes]:
        return (f"{number:012d}".ljust(WIDTH - 1, "x").encode() for number in range(self._lines))

    def _objects(self) -> Iterator[bytes]:
        for number in range(self._lines):
            start = f'{{"id":{number},"name":"user-{number:08d}","price":{number % 1000}.25,"active":true,"note":"'
            yield f'{start}{"x" * (WIDTH - 3 - len(start))}"}}'.encode()


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
