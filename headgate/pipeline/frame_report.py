"""FrameReport: what became of the records of a frame that executors sent to Kafka, or of a part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.pipeline.blob import JobFailed


@dataclass(frozen=True, slots=True)
class FrameReport:
    """Plain values, it travels. A part that was not finished says why, in one of the last three fields."""

    rows: int = 0
    """Read."""
    sent: Counter[str] = field(default_factory=Counter)
    """How many records Kafka has acknowledged, by topic; of parts that were finished."""
    errors: int = 0
    """Records that failed: left out, or the one that was not tolerated."""
    by_records: Counter[str] = field(default_factory=Counter)
    """As in `blob.Result`."""
    failed: JobFailed | None = None
    """What the chain or the producer raised."""
    refused: Any = None
    """A record that Kafka does not take, as `tasks.ports.RefusedRecord` has it."""
    unread: str | None = None
    """Why there were no further rows to send."""

    @classmethod
    def joined(cls, parts: Sequence[FrameReport]) -> FrameReport:
        """Of all parts; of what went wrong, what did so in the first of them."""
        return cls(
            sum(part.rows for part in parts),
            sum((part.sent for part in parts), Counter()),
            sum(part.errors for part in parts),
            sum((part.by_records for part in parts), Counter()),
            next((part.failed for part in parts if part.failed), None),
            next((part.refused for part in parts if part.refused), None),
            next((part.unread for part in parts if part.unread), None),
        )
