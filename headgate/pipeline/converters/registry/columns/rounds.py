"""Rounds: items of lists that are read one of each row at a time, put in order.

In one round come the first items of all rows that have some, in the next the second ones, and so on. In an array of
Arrow, the items of each row stand together.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headgate.pipeline.converters.registry.columns.varints import Longs, Mask


class Rounds:
    def __init__(self, rows: int) -> None:
        self._counts: Longs = np.zeros(rows, np.int64)
        self._parts: list[pa.Array] = []
        self._owners: list[Longs] = []
        self._numbers: list[Longs] = []

    def add(self, rows: Longs, items: pa.Array) -> None:
        """One more item of each of these rows, which are different ones."""
        numbers = self._counts[rows]
        self._counts[rows] = numbers + 1
        self._parts.append(items)
        self._owners.append(rows)
        self._numbers.append(numbers)

    def ordered(self, kind: pa.DataType) -> tuple[Longs, pa.Array]:
        """Where the items of each row begin, with the end of all; and the items, which are of this type."""
        offsets = np.zeros(len(self._counts) + 1, np.int64)
        np.cumsum(self._counts, out=offsets[1:])
        if not self._parts:
            return offsets, pa.array([], kind)
        items = pa.concat_arrays(self._parts)
        if len(self._parts) == 1:
            return offsets, items
        order = np.empty(len(items), np.int64)
        places = offsets[np.concatenate(self._owners)] + np.concatenate(self._numbers)
        order[places] = np.arange(len(items))
        return offsets, items.take(pa.array(order))


def repeating(offsets: Longs, keys: pa.Array) -> Mask:
    """Which rows have one key twice."""
    counts = np.diff(offsets)
    rows = np.repeat(np.arange(len(counts)), counts)
    found = np.zeros(len(counts), np.bool_)
    if counts.max(initial=0) > 1:
        encoded = keys.dictionary_encode()
        both = rows * len(encoded.dictionary) + encoded.indices.to_numpy()
        order = np.argsort(both, kind="stable")
        same = both[order[1:]] == both[order[:-1]]
        found[rows[order[1:][same]]] = True
    return found
