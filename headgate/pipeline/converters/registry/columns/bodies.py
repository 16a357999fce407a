"""Bodies: what stands behind the schema ids in a column of bytes, read and written some thousands at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.api import Schema
from headgate.api.frame import Group, NotByColumns, Values
from headgate.pipeline.converters.registry.columns import views
from headgate.pipeline.converters.registry.columns.cursors import Cursors, Source
from headgate.pipeline.converters.registry.columns.pieces import Pieces
from headgate.pipeline.converters.registry.columns.varints import Bytes, Longs, Mask
from headgate.pipeline.converters.registry.columns.words import parts
from headgate.pipeline.converters.registry.wire import HEADER, MAGIC

# So much goes at once: enough for numpy's calls not to matter, and not more than the cache of a processor holds.
_ROWS: Final = 8192
_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Bodies:
    """Of rows that have one schema id."""

    rows: Longs
    """Which they are in the column, in ascending order."""
    data: Bytes
    starts: Longs
    ends: Longs

    def __len__(self) -> int:
        return len(self.rows)

    def first(self) -> bytes:
        """All of the first row, its schema id included."""
        return self.data[self.starts[0] - HEADER : self.ends[0]].tobytes()

    def behind(self, start: bytes) -> Bodies:
        """Of the rows that start so, what follows."""
        has = self.ends - self.starts >= len(start)
        for place, byte in enumerate(start):
            has &= self.data.take(self.starts + place, mode="clip") == byte
        return Bodies(self.rows[has], self.data, self.starts[has] + len(start), self.ends[has])

    def texts(self) -> pa.Array:
        """As they are, in a binary array."""
        return parts(self.data, self.starts, self.ends - self.starts)

    def chunks(self) -> Iterator[Bodies]:
        """Of sizes that are quick to read."""
        first = 0
        while first < len(self):
            within = int(np.searchsorted(self.ends, self.starts[first] + _BYTES, "right"))
            end = min(first + _ROWS, max(within, first + 1))
            yield Bodies(self.rows[first:end], self.data, self.starts[first:end], self.ends[first:end])
            first = end

    def source(self) -> Source:
        base = self.starts[0]
        return Source(self.data[base : self.ends[-1]], self.starts - base, self.ends - base)


def by_schema_id(column: pa.Array) -> Iterator[tuple[int, Bodies]]:
    """The bodies of a binary array. Null, and what does not begin with an id, is in none of them."""
    _, offsets, data = column.buffers()
    if data is None or len(column) == 0:
        return
    bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content, starts, ends = np.frombuffer(data, np.uint8), bounds[:-1], bounds[1:]
    has_id = ends - starts >= HEADER
    if column.null_count:
        has_id &= column.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(has_id)
    rows = rows[content[starts[rows]] == MAGIC]
    ids = np.ndarray(max(0, len(content) - 3), ">u4", content, strides=(1,))[starts[rows] + 1]
    for number in np.unique(ids) if len(ids) and (ids != ids[0]).any() else ids[:1]:
        these = rows[ids == number]
        yield int(number), Bodies(these, content, starts[these] + HEADER, ends[these])


def read_all(bodies: Bodies, read: Callable[[Cursors], pa.Array], schema: Schema) -> list[Group]:
    """What these are, all in one group, without those of which that is not certain."""
    rows: list[Longs] = []
    values: list[pa.Array] = []
    for part in bodies.chunks():
        source = part.source()
        cursors = Cursors(source, np.arange(len(part)), source.starts)
        made = read(cursors)
        sound = ~source.wrong & (cursors.at <= source.ends)
        if sound.all():
            rows.append(part.rows)
            values.append(made)
        else:
            rows.append(part.rows[sound])
            values.append(made.filter(pa.array(sound)))
    return [Group(pa.array(np.concatenate(rows)), Values(pa.concat_arrays(values), schema))]


def write_all(array: pa.Array, write: Callable[[pa.Array, Mask | None, Pieces], None], start: bytes) -> pa.Array:
    """A binary array of what is written of each item, behind these bytes; null for null. Raises NotByColumns."""
    made: list[pa.Array] = []
    wrong: list[Mask] = []
    rows = max(1, min(_ROWS, len(array) * _BYTES // max(array.nbytes, 1)))
    for first in range(0, len(array), rows):
        part = array.slice(first, rows)
        live, pieces = views.validity(part), Pieces(len(part))
        pieces.constant(start, live)
        write(part, live, pieces)
        wrong.append(np.zeros(len(part), np.bool_) if pieces.wrong is None else pieces.wrong)
        _, offsets, data = pieces.joined().buffers()
        null = None if live is None else pa.py_buffer(np.packbits(live, bitorder="little"))
        made.append(pa.Array.from_buffers(pa.binary(), len(part), [null, offsets, data]))
    refused = np.concatenate(wrong)
    if refused.any():
        raise NotByColumns("a value that is missing or unknown", pa.array(refused))
    return pa.concat_arrays(made)
