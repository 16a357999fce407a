"""A batch of a source on its way through the engine: what was polled, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from headgate.api.record import SourceRecord
from headgate.api.task import SourceTable
from headgate.tasks.outcomes import Place
from headgate.tasks.source.polled import End, Polled

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.pipeline.blob import Packed
    from headgate.pipeline.shelf import Payload

Origin: TypeAlias = Callable[[int], SourceRecord]
"""What a row was polled as."""

Made: TypeAlias = "tuple[pa.Table, Origin]"
"""Rows for Kafka, and who knows what they were made of."""


@dataclass(frozen=True, slots=True)
class Batch:
    polled: Sequence[Polled]
    rows: Sequence[int]
    """Of each blob."""
    payloads: Sequence[Payload]
    results: Future[list[Packed]]
    first: int = 0
    """Which of the results is that of the first blob: several batches may share a job."""
    more: bool = False
    """It is as large as a batch may be, and more waits behind it."""

    @property
    def end(self) -> End | None:
        return self.polled[-1].end

    def place(self, row: int) -> Place | None:
        """Where a row of a table came from; records know it themselves."""
        for polled in self.polled:
            if row < polled.rows:
                content = polled.content
                return content.place(row) if isinstance(content, SourceTable) else None
            row -= polled.rows
        return None

    def record(self, row: int) -> SourceRecord:
        """What a row was polled as."""
        for polled in self.polled:
            if row < polled.rows:
                return polled.record(row)
            row -= polled.rows
        raise IndexError(row)


class Outlet(Protocol):
    """Where a source's batches go when the engine is done with them. Used by the pump's thread only."""

    forbidden: str | None
    """A topic that the task must not write to."""

    def add(self, made: Made) -> None:
        """A part of the batch that ends next, in order."""

    def end(self, batch: Batch) -> None:
        """All of the batch was added."""

    def due(self) -> float | None:
        """Seconds until something is to be committed, if nothing comes before; None: it need not be."""

    def commit_if_due(self) -> None: ...

    def settle(self) -> None:
        """Stores the offsets of everything that it took, as far as it can."""

    def failed(self, error: BaseException) -> BaseException:
        """The pump ends with this error; with which one the task shall."""

    def close(self) -> None: ...
