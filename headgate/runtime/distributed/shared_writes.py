"""Writes to the config topic, off the herder's thread: they take as long as Kafka takes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.group import GroupMembership
from headgate.runtime.distributed.leadership import Leadership
from headgate.runtime.errors import ConfigWriteFailed, HerderError

log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(eq=False)
class SharedWrites:
    """On the herder's thread."""

    _leadership: Leadership
    _membership: Callable[[], GroupMembership]
    _transactional: bool
    """What only the leader may write goes by transactions."""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    """What is looked at inside stays so until it is written: nobody else of this worker writes meanwhile."""

    async def write(self, call: Callable[[], T], what: str) -> T:
        """Any worker may. `what` completes "Error … Kafka". Raises ConfigWriteFailed."""
        try:
            return await in_thread(call, "write")
        except HerderError:
            raise
        except Exception as error:
            log.error("Error %s Kafka: %s", what, error)
            raise ConfigWriteFailed(f"Error {what} Kafka") from error

    async def lead(self, call: Callable[[], T], what: str) -> T:
        """What only the leader may write. Raises ConfigWriteFailed."""
        if not self._transactional:
            return await self.write(call, what)
        await self._leadership.claim_writes()
        try:
            return await self.write(call, what)
        except ConfigWriteFailed as error:
            # Only a new claim makes certain whose writes count; and whether this worker leads, the group knows.
            await self._leadership.lost()
            self._membership().request_rejoin()
            raise ConfigWriteFailed(
                "Failed to write to config topic; this may be due to a transient error and the request can be safely"
                " retried"
            ) from error.__cause__
