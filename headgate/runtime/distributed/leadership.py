"""What the leader of the group does besides giving out work: it alone writes configs, keys, and tidies up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from headgate.cluster import protocol as messages
from headgate.cluster.work import NOTHING, Work
from headgate.model import SessionKey, TaskId
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.group import GroupMembership, Stores
from headgate.runtime.distributed.signatures import Signatures
from headgate.runtime.loop import HerderLoop

log = logging.getLogger(__name__)

_RETRY_S: Final = 0.25
_RETRY_MOST_S: Final = 10.0
_LONGEST_S: Final = 86_400.0
"""A timer for years is none; whether a key has expired is looked at again."""


@dataclass(eq=False)
class Leadership:
    """On the herder's thread."""

    _loop: HerderLoop
    _stores: Stores
    _signatures: Signatures
    _membership: Callable[[], GroupMembership]
    _claiming: asyncio.Lock = field(default_factory=asyncio.Lock)
    _claimed: bool = False
    _key_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _rotation: asyncio.TimerHandle | None = None

    async def after_rebalance(self, leads: bool, held: Work = NOTHING) -> None:
        """`held`: what members had when they joined; what of it is no more may still be ending."""
        if not leads:
            await self.lost()
            return
        await self.claim_writes()
        self._tidy_up(held)
        await self._see_to_key()

    async def claim_writes(self) -> None:
        """Once for every reign: who led before can no longer write what only the leader may. Tried until it is done or
        another one leads."""
        async with self._claiming:
            delay = _RETRY_S
            while not self._claimed and self._membership().is_leader:
                try:
                    await in_thread(self._stores.claim, "claim")
                    self._claimed = True
                except Exception as error:
                    log.warning("Writing to the config topic could not be claimed, trying again: %s", error)
                    await asyncio.sleep(delay)
                    delay = min(delay * 2, _RETRY_MOST_S)

    async def lost(self) -> None:
        """This worker leads no more, or a write showed that another one does."""
        if self._claimed:
            self._claimed = False
            await in_thread(self._stores.resign, "resign")

    def _tidy_up(self, held: Work) -> None:
        """States of what is no more, e.g. of connectors that were deleted while their worker was down. Who still held
        any of it has to give it up, and joins again after that."""
        view = self._stores.configs.view()
        kept = held.connectors | {task.connector for task in held.tasks}
        for name in self._stores.statuses.connectors():
            connector = view.get(name)
            if connector is None and name not in kept:
                self._stores.statuses.remove(name)
                continue
            left = len(connector.tasks) if connector is not None else 0
            for number in self._stores.statuses.tasks(name):
                task = TaskId(name, number)
                if number >= left and task not in held.tasks:
                    self._stores.statuses.remove(task)

    # --- session keys -------------------------------------------------------------------------------------------------

    async def _see_to_key(self) -> None:
        """A new one if there is none, if it has expired, or is of another kind than this worker makes."""
        async with self._key_turn:  # a rebalance may come when a key expires: one of them makes the new one
            delay = _RETRY_S
            while self._leads_sessions():
                now_ms = time.time_ns() // 1_000_000
                key = self._stores.configs.state().session_key
                if key is None or self._signatures.expires_ms(key) <= now_ms or not self._signatures.fits(key):
                    key = self._signatures.new_key(now_ms)
                    try:
                        await self.claim_writes()
                        await self._write(key)
                    except Exception as error:
                        log.warning("No new session key was written, trying again: %s", error)
                        await self.lost()
                        await asyncio.sleep(delay)
                        delay = min(delay * 2, _RETRY_MOST_S)
                        continue
                self._rotate_at(key, now_ms)
                return

    async def _write(self, key: SessionKey) -> None:
        await in_thread(lambda: self._stores.configs.put_session_key(key), "session-key")

    def _leads_sessions(self) -> bool:
        membership = self._membership()
        return membership.is_leader and membership.protocol is messages.Protocol.SESSIONED and not self._loop.ending

    def _rotate_at(self, key: SessionKey, now_ms: int) -> None:
        if self._rotation is not None:
            self._rotation.cancel()
        seconds = min(max((self._signatures.expires_ms(key) - now_ms) / 1000, 0.1), _LONGEST_S)
        self._rotation = asyncio.get_running_loop().call_later(seconds, self._rotate)

    def _rotate(self) -> None:
        self._rotation = None
        if self._leads_sessions():
            self._loop.spawn(self._see_to_key(), "making a session key")
