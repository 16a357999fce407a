"""Texts and bytes that are put together of parts: names, addresses, sentences, ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Schema, schema
from headgate.connectors.datagen.generator import LEAST_WIDTH, BadSchema, Choices, Generator
from headgate.connectors.datagen.pattern import texts_of
from headgate.connectors.datagen.random_rows import RandomRows, part_of

_HEX: Final = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), np.uint16)
_DASHES: Final = (8, 13, 18, 23)
_LONGEST: Final = 1 << 16


def chosen(options: Sequence[str]) -> Choices:
    return Choices(schema.STRING, options)


@dataclass(frozen=True)
class JoinedTexts(Generator):
    """One text of each part, one behind the other."""

    parts: tuple[Generator, ...]
    between: str = ""
    schema: Schema = schema.STRING

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts) + len(self.parts) * len(self.between.encode())

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        made = [part.column(rows, part_of(stream, number)) for number, part in enumerate(self.parts)]
        return pc.binary_join_element_wise(*made, self.between)


@dataclass(frozen=True)
class Sentences(Generator):
    words: Choices
    least: int
    most: int
    schema: Schema = schema.STRING

    def __post_init__(self) -> None:
        check_size(self.least, self.most)
        if not self.least:
            raise BadSchema("a sentence has at least one word")

    @property
    def width(self) -> int:
        return (self.words.width + 1) * self.most + 1

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        counts = self.least + rows.below(self.most - self.least + 1, part_of(stream, 0)).view(np.int64)
        words = self.words.column(rows.items(counts), part_of(stream, 1))
        lists = pa.ListArray.from_arrays(offsets_of(counts), words)
        return pc.binary_join_element_wise(pc.utf8_capitalize(pc.binary_join(lists, " ")), "", ".")


@dataclass(frozen=True)
class Uuids(Generator):
    """Random ones, of version 4."""

    schema: Schema = schema.STRING

    @property
    def width(self) -> int:
        return 36

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        raw = np.stack([rows.bits(part_of(stream, half)) for half in (0, 1)], axis=1).view(np.uint8)
        raw[:, 6] = raw[:, 6] & 0x0F | 0x40
        raw[:, 8] = raw[:, 8] & 0x3F | 0x80
        digits = _HEX[raw].view(np.uint8)
        return texts_of(np.insert(digits, [at - number for number, at in enumerate(_DASHES)], ord("-"), axis=1))


@dataclass(frozen=True)
class RandomBytes(Generator):
    least: int
    most: int
    schema: Schema = schema.BYTES

    def __post_init__(self) -> None:
        check_size(self.least, self.most)

    @property
    def width(self) -> int:
        return max(LEAST_WIDTH, self.most)

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        counts = self.least + rows.below(self.most - self.least + 1, part_of(stream, 0)).view(np.int64)
        # Eight bytes at a time; what is too much of the last eight is left out.
        words = (counts + 7) // 8
        data = rows.items(words).bits(part_of(stream, 1)).view(np.uint8)
        ends = np.cumsum(words) * 8
        kept = np.arange(len(data)) < np.repeat(ends - words * 8 + counts, words * 8)
        buffers = [None, offsets_of(counts).buffers()[1], pa.py_buffer(np.ascontiguousarray(data[kept]))]
        return pa.Array.from_buffers(pa.binary(), len(rows), buffers)


def offsets_of(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Array:
    """Where lists of these lengths begin, and the last one ends."""
    return pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def check_size(least: int, most: int) -> None:
    if not 0 <= least <= most <= _LONGEST:
        raise BadSchema(f"a size is from 0 to {_LONGEST}, and the least not above the most: not {least} to {most}")
