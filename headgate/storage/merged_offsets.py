"""MergedOffsets: what a connector's own offsets topic (KIP-618) says, over what the worker's says."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.model import Offset, Partition
from headgate.runtime.ports import OffsetsLost
from headgate.storage.offset_log import OffsetLog
from headgate.storage.offset_table import Offsets, identity

_log: Final = logging.getLogger(__name__)


@dataclass(eq=False)
class MergedOffsets:
    """What the connector's topic does not have is looked for in the worker's: there the connector began, and there it
    goes on when it loses its own topic."""

    _own: OffsetLog
    _shared: OffsetLog

    @property
    def topic(self) -> str:
        """The connector's own."""
        return self._own.topic

    def entries(self, connector: str, offsets: Offsets) -> list[tuple[bytes, bytes | None]]:
        """The records of that topic that say so; `copy` is for the worker's."""
        return self._own.entries(connector, offsets)

    def get(self, connector: str, partitions: Sequence[Partition | None]) -> list[Offset | None]:
        found = self._own.get(connector, partitions)
        missing = [number for number, offset in enumerate(found) if offset is None]
        if missing:
            others = self._shared.get(connector, [partitions[number] for number in missing])
            for number, offset in zip(missing, others, strict=True):
                found[number] = offset
        return found

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        lost: OffsetsLost | None = None
        try:
            shared = self._shared.all(connector)
        except OffsetsLost as error:
            lost, shared = error, error.known
        merged = {identity(each[0]): each for each in [*shared, *self._own.all(connector)]}
        if lost is not None:
            raise OffsetsLost(lost.topic, list(merged.values())) from lost
        return list(merged.values())

    def put(self, connector: str, offsets: Offsets) -> None:
        removed = [each for each in offsets if each[1] is None]
        kept = [each for each in offsets if each[1] is not None]
        if removed:
            # First, and without fail: removed from the connector's topic alone, the worker's would show through.
            self._shared.put(connector, removed)
        self._own.put(connector, offsets)
        if kept:
            self.copy(connector, kept)

    def copy(self, connector: str, offsets: Offsets) -> None:
        """To the worker's topic, as well as it goes: they are safe in the connector's."""
        try:
            self._shared.put_soon(connector, offsets)
        except Exception as error:
            _log.warning("Offsets of %s were not copied to the worker's offsets topic: %s", connector, error)

    def close(self) -> None:
        """The connector's topic alone."""
        self._own.close()
