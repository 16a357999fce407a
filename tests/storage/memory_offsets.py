"""Source offsets in memory, for tests of whoever uses a store of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from headgate.model import Offset, Partition
from headgate.storage.offset_table import Offsets, OffsetTable


class MemoryOffsetStore:
    def __init__(self) -> None:
        self._table = OffsetTable()
        self._writing = threading.Lock()

    def get(self, connector: str, partitions: Sequence[Partition | None]) -> list[Offset | None]:
        return self._table.get(connector, partitions)

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        return self._table.all(connector)

    def put(self, connector: str, offsets: Offsets) -> None:
        with self._writing:
            self._table = self._table.changed(connector, offsets)
