"""Rows that executors read, as blocks of Arrow that the worker fetches piece by piece.

Executors keep the blocks of some partitions at a time, in memory or on their disks: nothing is read twice, and the
worker never has more than a few of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark import RDD

BLOCK_BYTES: Final = 4 * 1024 * 1024
FETCH_BYTES: Final = 16 * 1024 * 1024
"""Most that is fetched at once."""
_MORE: Final = 4


class Block(NamedTuple):
    place: int
    """What the rows are of: the number of a partition or of a file."""
    start: int
    """Where in the file the part begins that an executor read as a whole."""
    rows: int
    data: bytes
    """Arrow's stream format."""


@dataclass(frozen=True, slots=True)
class ReadPiece:
    """Some rows that follow each other."""

    table: pa.Table
    place: int
    end: int
    """So many rows of the place are behind the last of these."""
    last: bool
    """Nothing comes after it."""


# --- on the executors -------------------------------------------------------------------------------------------------


def packed(place: int, batches: Iterable[pa.RecordBatch], rows: int, start: int = 0) -> Iterator[Block]:
    """Blocks of at most so many rows, and of about BLOCK_BYTES: small batches are put together, large ones cut."""
    waiting: list[pa.RecordBatch] = []
    count = size = 0
    for batch in _cut(batches, rows):
        if waiting and (count + batch.num_rows > rows or size + batch.nbytes > BLOCK_BYTES):
            yield Block(place, start, count, _written(waiting))
            waiting, count, size = [], 0, 0
        waiting.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
    if waiting:
        yield Block(place, start, count, _written(waiting))


def _cut(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        step = max(1, min(rows, batch.num_rows * BLOCK_BYTES // max(batch.nbytes, 1)))
        yield from (batch.slice(at, step) for at in range(0, batch.num_rows, step))


def _written(batches: Sequence[pa.RecordBatch]) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batches[0].schema) as stream:
        stream.write_table(pa.Table.from_batches(batches).combine_chunks())
    data: bytes = out.getvalue().to_pybytes()
    return data


_Sized = tuple[int, int, int, int]
"""Of a block: place, start, rows, bytes."""


@dataclass(frozen=True, slots=True)
class _Listing:
    """Of a partition: what blocks there are, and the blocks themselves if all are no more than this many bytes."""

    small: int

    def __call__(self, blocks: Iterable[Any]) -> Iterator[tuple[list[_Sized], list[bytes] | None]]:
        sizes, kept, total = [], [], 0
        for place, start, rows, data in blocks:
            sizes.append((place, start, rows, len(data)))
            total += len(data)
            if total <= self.small:
                kept.append(bytes(data))
            else:
                kept.clear()
        yield sizes, kept if total <= self.small else None


@dataclass(frozen=True, slots=True)
class _Slice:
    start: int
    end: int

    def __call__(self, blocks: Iterable[Any]) -> Iterator[bytes]:
        return (bytes(data) for *_, data in islice(blocks, self.start, self.end))


# --- in the worker ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kept:
    """A block that executors have."""

    partition: int
    index: int
    place: int
    start: int
    rows: int
    size: int
    data: bytes | None
    """If it came with the list."""

    def follows(self, other: _Kept) -> bool:
        return (self.partition, self.index) == (other.partition, other.index + 1)


def pieces(blocks: RDD[Any], place: int, skip: int, most: int, mixed: bool = False) -> Generator[ReadPiece, None, None]:
    """All rows, but for the first `skip` of this place, which is the first; at most so many at a time. They come in the
    order of partitions; or, if places are `mixed` among these, of places, after all of them have been read. Whoever
    does not want them all closes it. What Spark raises comes out; then nothing more does."""
    from pyspark import StorageLevel

    total, cores = blocks.getNumPartitions(), max(1, blocks.context.defaultParallelism)
    at = behind = place, 0
    first, wave = 0, total if mixed else cores
    try:
        while first < total:
            numbers = range(first, min(first + wave, total))
            blocks.persist(StorageLevel.MEMORY_AND_DISK)
            wanted: list[tuple[_Kept, int, int]] = []
            size = 0
            for each in sorted(_listed(blocks, numbers), key=lambda kept: (kept.place, kept.start) if mixed else ()):
                size += each.size
                before = at[1] if each.place == at[0] else 0
                at = each.place, before + each.rows
                done = skip if each.place == place else 0
                if at[1] > done:
                    wanted.append((each, max(0, done - before), at[1]))
            left = len(wanted)
            waiting: list[pa.Table] = []
            for data, (each, done, end) in _fetched(blocks, wanted):
                with pa.ipc.open_stream(data) as stream:
                    read = stream.read_all().slice(done)
                if waiting and not _fit([*waiting, read], most):
                    yield ReadPiece(pa.concat_tables(waiting), *behind, last=False)
                    waiting = []
                waiting.append(read)
                behind, left = (each.place, end), left - 1
                if not left:
                    yield ReadPiece(pa.concat_tables(waiting), *behind, last=numbers.stop == total)
            blocks.unpersist(blocking=True)
            # A job for a few small partitions would cost more than reading them.
            first, wave = numbers.stop, wave * _MORE if size <= FETCH_BYTES // _MORE else cores
    finally:
        with suppress(Exception):  # its JVM may be gone, and with it what was kept
            blocks.unpersist()


def _fit(tables: Sequence[pa.Table], most: int) -> bool:
    """Whether they are one piece together. Those of small partitions and files are."""
    rows, size = sum(each.num_rows for each in tables), sum(each.nbytes for each in tables)
    return bool(rows <= most and size <= BLOCK_BYTES)


def _listed(blocks: RDD[Any], numbers: range) -> Iterator[_Kept]:
    found = blocks.context.runJob(blocks, _Listing(FETCH_BYTES // len(numbers)), list(numbers))
    for number, (sizes, kept) in zip(numbers, found, strict=True):
        for index, sized in enumerate(sizes):
            yield _Kept(number, index, *sized, None if kept is None else kept[index])


def _fetched(
    blocks: RDD[Any], wanted: Sequence[tuple[_Kept, int, int]]
) -> Iterator[tuple[bytes, tuple[_Kept, int, int]]]:
    """With their data, some at a time."""
    at = 0
    while at < len(wanted):
        first = wanted[at][0]
        if first.data is not None:
            yield first.data, wanted[at]
            at += 1
            continue
        end, size = at + 1, first.size
        while end < len(wanted) and wanted[end][0].follows(wanted[end - 1][0]):
            size += wanted[end][0].size
            if size > FETCH_BYTES:
                break
            end += 1
        part = _Slice(first.index, wanted[end - 1][0].index + 1)
        data = blocks.context.runJob(blocks, part, [first.partition])
        yield from zip(data, wanted[at:end], strict=True)
        at = end
