"""MirrorTask: reads some partitions and gives what it finds, as it is."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headgate.api import Consumed, SourceRecord, SourceTable, SourceTask, TopicPartition
from headgate.connectors.mirror.batches import Given, MirrorBatches
from headgate.connectors.mirror.config import MirrorConfig
from headgate.connectors.mirror.offset_policy import OffsetPolicy
from headgate.connectors.mirror.positions import partition_map, place, position, read
from headgate.connectors.mirror.reader import MirrorReader

log = logging.getLogger(__name__)

PARTITIONS: Final = "mirror.partitions"
ONE_CLUSTER: Final = "mirror.one.cluster"
"""Keys that the connector gives to its tasks."""

_MOST: Final = 10_000
"""Messages read in one go."""
_IDLE_S: Final = 0.5
_AGAIN_S: Final = 2.0


class MirrorTask(SourceTask):
    """Where it begins in a partition is stored at once, before any record: whatever happens then, it is begun there
    again. Its consumer is no member of the group. Nobody else has the partitions, by the configurations of the tasks;
    with exactly-once delivery, the transactional id keeps out who had them before."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._reader: MirrorReader | None = None
        self._ready: deque[Given] = deque()
        self._positions: dict[TopicPartition, int] = {}
        """Of partitions that are read: the offset after the last message that was fetched."""
        self._next_try = 0.0
        self._waiting: dict[TopicPartition, int | None] = {}
        """Partitions for which it is not known yet where to begin; with the offset at which it could not go on."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = MirrorConfig.of(config)
        self._one_cluster = config.get(ONE_CLUSTER) == "true"
        self._batches = MirrorBatches(self._config)
        places = read(config[PARTITIONS])
        alias = self._config.naming.alias
        stored = self.context.offset_reader.offsets([partition_map(alias, where) for where in places])
        for where, offset in zip(places, stored, strict=True):
            at = position(where, offset)
            if at is None:
                self._waiting[where] = None
            else:
                self._positions[where] = at
        self._reader = MirrorReader(self._config.clients(self.context.cluster), self._config.group)
        self._group_metadata = self._reader.group_metadata
        self._reader.assign(self._positions)

    def poll(self) -> Sequence[SourceRecord] | SourceTable | None:
        reader = self._reader
        assert reader is not None
        if not self._ready and self._waiting and time.monotonic() >= self._next_try:
            self._place(reader)
        if not self._ready:
            self._fetch(reader)
        return self._ready.popleft() if self._ready else None

    def consumed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Consumed | None:
        if not self._one_cluster:
            return None
        found = {place(partition): position(place(partition), offset) for partition, offset in offsets}
        return Consumed({where: at for where, at in found.items() if at is not None}, self._group_metadata)

    def stop_requested(self) -> None:
        self._stop.set()

    def stop(self) -> None:
        self._stop.set()
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _fetch(self, reader: MirrorReader) -> None:
        if not self._positions:  # nothing is assigned: nothing can come
            self._stop.wait(_IDLE_S)
            return
        messages = reader.fetch(_MOST, 0.0 if self._stop.is_set() else _IDLE_S)
        for where, given in self._batches.of(messages):
            last = given.source_offset if isinstance(given, SourceTable) else given[-1].source_offset
            self._positions[where] = position(where, last) or 0
            self._ready.append(given)
        for where in reader.lost & self._positions.keys():
            self._waiting[where] = self._positions.pop(where)
        reader.lost.clear()

    def _place(self, reader: MirrorReader) -> None:
        """Finds out where to begin, as far as there are answers."""
        policy = self._config.offset_policy
        wanted = reader.wanted(policy, list(self._waiting))
        begun, deadline = False, time.monotonic() + _IDLE_S
        for where, offset in wanted.items():
            bounds = reader.bounds(where)
            was = self._waiting.pop(where)
            if bounds is None:
                self._waiting[where] = was  # behind the others: next time they are asked first
                if self._stop.is_set() or time.monotonic() > deadline:
                    break
                continue
            at = was if was is not None and bounds[0] <= was <= bounds[1] else policy.start(offset, *bounds)
            if was is None:
                log.info("Topic %s, partition %d is begun at offset %d", where.topic, where.partition, at)
            elif at != was:
                _warn(where, was, at, *bounds, policy)
            self._positions[where] = at
            self._ready.append(self._batches.mark(where, at))
            begun = True
        if begun:
            reader.assign(self._positions)
        else:
            self._next_try = time.monotonic() + _AGAIN_S


def _warn(where: TopicPartition, was: int, at: int, low: int, high: int, policy: OffsetPolicy) -> None:
    """Reading was to go on at `was`, which the partition does not have; it goes on at `at`."""
    if was < low:
        log.warning(
            "Topic %s, partition %d: offsets %d to %d were deleted before they were read. Up to %d records were missed;"
            " going on at offset %d, as offset.policy=%s says",
            *(where.topic, where.partition, was, low - 1, max(at, low) - was, at, policy),
        )
    else:
        log.warning(
            "Topic %s, partition %d ends at offset %d, before %d, where reading was to go on: it was made anew, or has"
            " lost records. Up to %d records were missed; going on at offset %d, as offset.policy=%s says",
            *(where.topic, where.partition, high, was, at - low, at, policy),
        )
