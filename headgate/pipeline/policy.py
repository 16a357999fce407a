"""ErrorPolicy: what the connector's `errors.*` keys say about records that fail."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headgate.model import Config

_FIRST_DELAY_MS: Final = 300


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    retry_timeout_ms: int = 0
    """How long an operation is tried again; 0: never, -1: for ever."""
    retry_delay_max_ms: int = 60_000
    tolerant: bool = False
    """`errors.tolerance=all`: a record that fails is left out, and the task goes on."""
    log: bool = False
    log_records: bool = False
    dead_letter_topic: str = ""
    """Empty: dead letters are not kept."""
    dead_letter_replication: int | None = None
    """None: see NewTopic."""
    dead_letter_headers: bool = False

    @classmethod
    def of(cls, errors: Config) -> ErrorPolicy:
        """From keys that were validated when the connector was created."""

        def read(key: str, default: str) -> str:
            return errors.get(f"errors.{key}", default).strip()

        factor = read("deadletterqueue.topic.replication.factor", "")
        return cls(
            retry_timeout_ms=int(read("retry.timeout", "0")),
            retry_delay_max_ms=int(read("retry.delay.max.ms", "60000")),
            tolerant=read("tolerance", "none").lower() == "all",
            log=read("log.enable", "false").lower() == "true",
            log_records=read("log.include.messages", "false").lower() == "true",
            dead_letter_topic=read("deadletterqueue.topic.name", ""),
            dead_letter_replication=int(factor) if factor else None,
            dead_letter_headers=read("deadletterqueue.context.headers.enable", "false").lower() == "true",
        )

    @property
    def reports(self) -> bool:
        """Whether anybody is told of a failure, besides the counters."""
        return self.log or bool(self.dead_letter_topic)

    @property
    def plain(self) -> bool:
        """The first failure fails the task and that is all: what Kafka Connect does unless told otherwise."""
        return not (self.tolerant or self.retry_timeout_ms or self.reports)

    @property
    def keeps_records(self) -> bool:
        """Whether a failure must have the whole record with it, and not only its place."""
        return bool(self.dead_letter_topic) or (self.log and self.log_records)

    @property
    def keeps_traces(self) -> bool:
        return self.log or (bool(self.dead_letter_topic) and self.dead_letter_headers)

    def delay_ms(
        self, attempts: int, elapsed_ms: float, below: Callable[[int], int] = random.randrange
    ) -> float | None:
        """How long to wait after so many failed attempts, the first of them `elapsed_ms` ago; None: do not try again.

        Twice as long each time, as Apache does it: a delay longer than the longest allowed is drawn by lot below
        that, and none goes past the end of the time for retries."""
        for_ever = self.retry_timeout_ms < 0
        left = self.retry_timeout_ms - elapsed_ms
        if not for_ever and left <= 0:
            return None
        delay = _FIRST_DELAY_MS << (attempts - 1)
        if delay > self.retry_delay_max_ms:
            delay = below(self.retry_delay_max_ms) if self.retry_delay_max_ms > 0 else 0
        return delay if for_ever else min(delay, left)
