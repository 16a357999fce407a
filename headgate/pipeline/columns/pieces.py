"""Texts made of pieces: what each row has of each, and all of them joined at once.

Arrow can join strings, too, but only columns of them: what some rows lack, and what is one of a few texts, would have
to become a column first. Here, strings are taken out of a pool, wherever in it they are. What was taken lies one behind
the other, so that rows of it are texts already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]

_ROWS: Final = 4096
"""So many at a time: what is chosen for them stays in the processor's cache until all pieces are through."""


@dataclass(frozen=True, slots=True)
class Piece:
    texts: pa.Array | str
    """One for each row, or the same for all. Those that no row has may be anything, null included."""
    places: NDArray[Any] | None = None
    """Which of the texts each row has, if there is not one for each."""
    where: Mask | None = None
    """The rows that have it; in others there is nothing in its place."""


Pieces: TypeAlias = list[Piece | str]


def only(pieces: Sequence[Piece | str], where: Mask) -> Pieces:
    """The same, with nothing in other rows."""
    return [_only(each, where) if isinstance(each, Piece) else Piece(each, where=where) for each in pieces]


def _only(piece: Piece, where: Mask) -> Piece:
    return replace(piece, where=where if piece.where is None else piece.where & where)


def joined(pieces: Sequence[Piece | str], count: int, valid: Mask | None = None) -> pa.Array:
    """One text for each row, null where it is not valid."""
    merged = _merged(pieces)
    constants, pool, firsts = [""], [], []
    size = 1 + sum(isinstance(piece.texts, str) for piece in merged)
    for piece in merged:
        if isinstance(piece.texts, str):
            firsts.append(len(constants))
            constants.append(piece.texts)
        else:
            firsts.append(size)
            pool.append(_without_nulls(piece.texts))
            size += len(piece.texts)
    chosen, own = np.tile(np.array(firsts, np.int32), (count, 1)), np.arange(count, dtype=np.int32)
    for first in range(0, count, _ROWS):
        rows = slice(first, first + _ROWS)
        for number, piece in enumerate(merged):
            if not isinstance(piece.texts, str):
                chosen[rows, number] += (own if piece.places is None else piece.places)[rows]
            if piece.where is not None:
                chosen[rows, number] *= piece.where[rows]  # the first text in the pool is empty
    taken = pa.concat_arrays([pa.array(constants), *pool]).take(pa.array(chosen.ravel()))
    return run_together(taken, np.arange(0, chosen.size + 1, len(merged)), valid)


def run_together(texts: pa.Array, ends: NDArray[Any], valid: Mask | None = None) -> pa.Array:
    """Those between one end and the next as one text, null where it is not valid. No text may be null."""
    starts, data = content(texts)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.string(), len(ends) - 1, [bits, pa.py_buffer(starts[ends]), pa.py_buffer(data)])


def content(column: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Of strings or bytes: where each begins, where the last one ends, and what is there."""
    if not len(column):
        return np.zeros(1, np.int32), np.zeros(0, np.uint8)
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int32)[column.offset :][: len(column) + 1]
    return ends - ends[0], np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]]


def _merged(pieces: Sequence[Piece | str]) -> list[Piece]:
    """With what is the same in all rows in as few as can be; at least one."""
    merged: list[Piece] = []
    constant = ""
    for piece in pieces:
        if isinstance(piece, str):
            constant += piece
            continue
        merged += [Piece(constant), piece] if constant else [piece]
        constant = ""
    return [*merged, Piece(constant)] if constant or not merged else merged


def _without_nulls(texts: pa.Array) -> pa.Array:
    """With anything in their place: Arrow need not look for them then."""
    if not texts.null_count:
        return texts
    return pa.Array.from_buffers(pa.string(), len(texts), [None, *texts.buffers()[1:]], offset=texts.offset)
