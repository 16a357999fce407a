"""Slices: which records are a task's, and how far it is with them.

The sequence of all records is cut into blocks, and these are dealt out to so many slices, whatever `tasks.max` is. A
slice is a source partition. Tasks share the slices, so another number of tasks changes who goes on, not where.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConnectError

SLICES: Final = 32
BLOCK: Final = 100
"""Records that are together in a slice."""
PARTITION: Final = "datagen"
OFFSET: Final = "records"
MOST_RECORDS: Final = 1 << 53


@dataclass(frozen=True, slots=True)
class Run:
    """Records of a slice: those from `first` to before `end`."""

    slice: int
    first: int
    end: int


def partition_map(number: int) -> dict[str, Any]:
    return {PARTITION: number}


def offset_map(end: int) -> dict[str, Any]:
    """All records of the slice that stand before this one are there."""
    return {OFFSET: end}


class Slices:
    """Of one task. The record that comes first in the sequence is always the next."""

    def __init__(self, starts: Mapping[int, int], end: int | None = None) -> None:
        """`starts`: where to go on in each slice. `end`: how many records there are in all."""
        self._end = MOST_RECORDS if end is None else min(end, MOST_RECORDS)
        self._next = [(_first_from(start, number), number) for number, start in starts.items()]
        heapq.heapify(self._next)

    def take(self, count: int) -> list[Run]:
        """Up to so many records; none when there are no more."""
        runs: list[Run] = []
        while count and self._next and self._next[0][0] < self._end:
            first, number = self._next[0]
            end = min(first - first % BLOCK + BLOCK, first + count, self._end)
            runs.append(Run(number, first, end))
            heapq.heapreplace(self._next, (_first_from(end, number), number))
            count -= end - first
        return runs


def slices_of(task: int, tasks: int) -> Iterable[int]:
    return range(task, SLICES, tasks)


def _first_from(start: int, number: int) -> int:
    """The first record of a slice that is not before `start`."""
    ahead = (number - start // BLOCK) % SLICES
    return start if not ahead else (start // BLOCK + ahead) * BLOCK


# --- offsets ----------------------------------------------------------------------------------------------------------


def start_of(number: int, stored: Mapping[str, Any] | None) -> int:
    """Raises ConnectError for what is no offset."""
    if stored is None:
        return 0
    if not _is_count(stored.get(OFFSET), MOST_RECORDS):
        raise ConnectError(f"The stored offset of slice {number} is none: {OFFSET} is {stored.get(OFFSET)!r}")
    return int(stored[OFFSET])


def check_change(partition: Mapping[str, Any] | None, offset: Mapping[str, Any]) -> None:
    """What users want to set. Raises ConnectError."""
    if partition is None or partition.keys() != {PARTITION} or not _is_count(partition[PARTITION], SLICES - 1):
        raise ConnectError(f'A partition is {{"{PARTITION}": n}} with n from 0 to {SLICES - 1}, not {partition}')
    if offset.keys() != {OFFSET} or not _is_count(offset[OFFSET], MOST_RECORDS):
        raise ConnectError(f'An offset is {{"{OFFSET}": n}} with a whole number from 0 to 2^53, not {dict(offset)}')


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most
