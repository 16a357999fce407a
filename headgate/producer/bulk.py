"""Many records at once, in whatever form the native producer takes them."""

from __future__ import annotations

from typing import Any, Protocol

from headgate.producer.errors import KafkaErrorInfo


class RowRefused(Exception):
    """The native producer does not take a record."""

    def __init__(
        self, info: KafkaErrorInfo, topic: str, partition: int | None = None, key: bytes | None = None
    ) -> None:
        super().__init__(info, topic, partition, key)
        self.info = info
        self.topic = topic
        self.partition = partition
        self.key = key


class Bulk(Protocol):
    def push(self, native: Any) -> int:
        """Hands over as many records as there is room for, in order; how many are left. Raises RowRefused for the first
        that is not taken: those behind it may have been, or not."""
