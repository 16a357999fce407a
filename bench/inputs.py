"""What workloads read: the same records for both sides, made when they are first wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orders import orders_in_avro, orders_in_json
from sales import sales_in_json
from topics import Topics

PARTITIONS: Final = 4
"""Of every topic that a workload reads or writes."""


@dataclass(frozen=True, slots=True)
class Input:
    name: str
    count: int
    """How many records there are, unless told; fewer of large ones."""
    records: Callable[[int, str], Callable[[int], bytes]]
    """A record by its number, for a size in bytes and the URL of a registry."""
    most_bytes: int = 1_000_000_000


def _texts(size: int, registry: str) -> Callable[[int], bytes]:
    return lambda number: f"{number:012d}".ljust(size - 1, "x").encode()


def _objects(size: int, registry: str) -> Callable[[int], bytes]:
    def record(number: int) -> bytes:
        start = f'{{"id":{number},"name":"user-{number:08d}","price":{number % 1000}.25,"active":true,"note":"'
        return f'{start}{"x" * (size - 3 - len(start))}"}}'.encode()

    return record


TEXTS: Final = Input("texts", 2_000_000, _texts)
BACKLOG: Final = Input("backlog", 20_000_000, _texts, most_bytes=2_000_000_000)
OBJECTS: Final = Input("objects", 2_000_000, _objects)
FEWER_TEXTS: Final = Input("fewer-texts", 300_000, _texts)
ORDERS_IN_JSON: Final = Input("orders-in-json", 300_000, orders_in_json)
SALES: Final = Input("sales", 1_000_000, sales_in_json)
ORDERS_IN_AVRO: Final = Input("orders-in-avro", 300_000, orders_in_avro)


class Inputs:
    """As files for sources, as topics for sinks; each record is `size` bytes long with its line's end, or as near to it
    as its kind can be."""

    def __init__(self, topics: Topics, folder: Path, registry: str, lines: int | None, size: int) -> None:
        self.registry = registry
        self._topics, self._folder, self._lines, self._size = topics, folder, lines, size
        self._filled: set[str] = set()

    def count(self, wanted: Input) -> int:
        return self._lines or min(wanted.count, wanted.most_bytes // self._size)

    def file(self, wanted: Input) -> Path:
        path = self._folder / f"{wanted.name}.txt"
        if not path.exists():
            with path.open("wb") as file:
                file.writelines(record + b"\n" for record in self._records(wanted))
        return path

    def topic(self, wanted: Input) -> str:
        if wanted.name not in self._filled:
            self._topics.make([wanted.name], PARTITIONS)
            self._topics.fill(wanted.name, self._records(wanted), PARTITIONS)
            self._filled.add(wanted.name)
        return wanted.name

    def _records(self, wanted: Input) -> Iterator[bytes]:
        return map(wanted.records(self._size, self.registry), range(self.count(wanted)))
