"""Gathered: rows that were put and are not written yet, with where in Kafka they were."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import TopicPartition
from headgate.connectors.spark.sink.config import Rotation
from headgate.connectors.spark.sink.rows import OFFSET, PARTITION, TOPIC

ORDER: Final = "_headgate_order"


@dataclass(frozen=True, slots=True)
class PutRows:
    """Rows of one put."""

    rows: pa.Table
    """As they fit; some columns may be missing."""
    places: pa.Table
    """TOPIC, PARTITION, OFFSET of each, and ORDER: later rows have greater numbers."""
    deleted: bool = False
    """The rows with these keys are to go."""

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.places.nbytes)

    def where(self, mask: pa.Array) -> PutRows:
        numbers = pc.indices_nonzero(mask)
        return replace(self, rows=self.rows.take(numbers), places=self.places.take(numbers))

    def split(self, until: Mapping[TopicPartition, int]) -> tuple[PutRows | None, PutRows | None]:
        """Those that stand before these offsets, and the others; None where there are none."""
        bounds = bounds_of(self.places)
        if all(highest < until.get(where, -1) for where, (_, highest) in bounds.items()):
            return self, None
        if all(lowest >= until.get(where, -1) for where, (lowest, _) in bounds.items()):
            return None, self
        before = before_mask(self.places, {where: until[where] for where in bounds if where in until})
        return self.where(before), self.where(pc.invert(before))


def bounds_of(places: pa.Table) -> dict[TopicPartition, tuple[int, int]]:
    """The lowest and the highest offset of each partition."""
    found = places.group_by([TOPIC, PARTITION], use_threads=False).aggregate([(OFFSET, "min"), (OFFSET, "max")])
    return {
        TopicPartition(each[TOPIC], each[PARTITION]): (each[f"{OFFSET}_min"], each[f"{OFFSET}_max"])
        for each in found.to_pylist()
    }


def before_mask(places: pa.Table, until: Mapping[TopicPartition, int]) -> pa.ChunkedArray:
    """Which rows stand before these offsets; those of other partitions do not."""
    topic, partition, offset = (places.column(name) for name in (TOPIC, PARTITION, OFFSET))
    found = pc.less(offset, 0)
    for where, end in until.items():
        same = pc.and_(pc.equal(topic, where.topic), pc.equal(partition, where.partition))
        found = pc.or_(found, pc.and_(same, pc.less(offset, end)))
    return found


@dataclass(eq=False)
class Gathered:
    pieces: list[PutRows] = field(default_factory=list)
    count: int = 0
    nbytes: int = 0
    since: float = 0.0
    """When the oldest of them came."""
    first: dict[TopicPartition, int] = field(default_factory=dict)
    """The lowest offset of each partition."""

    def add(self, piece: PutRows, now: float) -> None:
        if not piece.places.num_rows:
            return
        if not self.count:
            self.since = now
        self.pieces.append(piece)
        self.count += piece.places.num_rows
        self.nbytes += piece.nbytes
        for where, (lowest, _) in bounds_of(piece.places).items():
            self.first[where] = min(lowest, self.first.get(where, lowest))

    def due(self, rotation: Rotation, now: float) -> bool:
        return self.full(rotation) or (self.count > 0 and now - self.since >= rotation.seconds)

    def full(self, rotation: Rotation) -> bool:
        return self.count >= rotation.records or self.nbytes >= rotation.bytes

    def take(self, until: Mapping[TopicPartition, int]) -> list[PutRows]:
        """Those that stand before these offsets, which are no longer gathered then."""
        pieces, since = self.pieces, self.since
        self.clear()
        taken = []
        for before, after in (piece.split(until) for piece in pieces):
            if before is not None:
                taken.append(before)
            if after is not None:
                self.add(after, since)
        return taken

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """They come again, to whoever has the partitions next."""
        if any(where in self.first for where in partitions):
            self.take(dict.fromkeys(partitions, 2**63 - 1))

    def clear(self) -> None:
        self.pieces, self.count, self.nbytes, self.first = [], 0, 0, {}
