"""ConfigReconciler: what is new in the config topic is carried out on what this worker holds.

It listens on the topic's thread and acts on the herder's. How far the topic has been carried out, not how far it was
read, is what this worker tells the group when it joins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from headgate.model import LevelChange, PassingEvent, RestartRequest, TargetChange, TargetState
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed import changes
from headgate.runtime.distributed.group import ConfigSnapshot, SharedConfigs
from headgate.runtime.distributed.holdings import GroupHoldings
from headgate.runtime.loop import HerderLoop

log = logging.getLogger(__name__)


@dataclass(eq=False)
class ConfigReconciler:
    """`carried_out` is the snapshot that this worker lives by."""

    _loop: HerderLoop
    _configs: SharedConfigs
    _holdings: GroupHoldings
    _rebalance: Callable[[int], None]
    """Asks for one that knows the config topic up to an offset."""
    _set_level: Callable[[str, str], None]
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _due: bool = False
    _passed: dict[str, list[TargetState]] = field(default_factory=dict)
    """By connector: the states that have been wanted of it, one after the other, and are not carried out yet."""
    carried_out: ConfigSnapshot = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """What was there before is nobody's news."""
        self.carried_out = self._configs.state()

    @property
    def behind(self) -> bool:
        """The topic says what needs a rebalance, and that is not carried out yet."""
        return changes.between(self.carried_out.view, self._configs.view()).needs_rebalance

    async def catch_up(self, timeout: float) -> None:
        """Carries out all that is in the topic now. Raises what reading raises."""
        await in_thread(lambda: self._configs.refresh(timeout), "catch-up")
        await self._carry_out()

    async def finish(self, timeout: float) -> None:
        """Returns when what is being carried out is done: tasks of an older set have ended."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._turn.acquire(), timeout)
            self._turn.release()

    async def _carry_out(self) -> None:
        async with self._turn:
            self._due = False
            before, now = self.carried_out, self._configs.state()
            found = changes.between(before.view, now.view)
            # Of one that was deleted and made anew before any rebalance, this worker may still hold the old one.
            await self._holdings.end_tasks(found.recommitted | found.added, now.offset)
            self.carried_out = now
            passed, self._passed = self._passed, {}
        if found.needs_rebalance:
            self._rebalance(now.offset)
        self._holdings.see_to_all(passed)

    def on_change(self, event: PassingEvent | None) -> None:
        """From the topic's thread."""
        self._loop.post(lambda: self._note(event))

    def _note(self, event: PassingEvent | None) -> None:
        match event:
            case RestartRequest():
                self._holdings.request_restart(event)
            case LevelChange(logger, level):
                log.info("All workers set logger %s to level %s", logger, level)
                self._set_level(logger, level)
            case TargetChange(name, target):
                self._passed.setdefault(name, []).append(target)
                self._news()
            case None:
                self._news()

    def _news(self) -> None:
        """Many records may come at once; they are carried out together."""
        if not self._due and not self._loop.ending:
            self._due = True
            self._loop.spawn(self._carry_out(), "carrying out what the config topic says")
