"""The herder's thread: an event loop on which commands are coroutines.

A command that waits for a task to end leaves the thread free for others; only commands for one connector queue up.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

from headgate.log import about
from headgate.model import TaskId
from headgate.runtime.errors import HerderError, RequestTimeout, ShuttingDown
from headgate.runtime.stage import Stages

log = logging.getLogger(__name__)
T = TypeVar("T")


class HerderLoop:
    def __init__(self) -> None:
        self.stages = Stages()
        self.ending = False
        self._locks: dict[str | TaskId, asyncio.Lock] = {}
        self._users: Counter[str | TaskId] = Counter()
        self._background: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="herder", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=1))
        self._loop.close()

    def post(self, call: Callable[[], None]) -> None:
        """From any thread: runs `call` on the herder's thread."""
        with suppress(RuntimeError):  # the loop may have been closed
            self._loop.call_soon_threadsafe(call)

    def submit(self, command: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """From any thread: runs `command` on the herder's thread."""
        if self.ending or self._loop.is_closed():
            raise ShuttingDown
        return asyncio.run_coroutine_threadsafe(command(), self._loop)

    async def call(self, command: Callable[[], Coroutine[Any, Any, T]], timeout: float = 90.0) -> T:
        """From another event loop: the command's result, or RequestTimeout; the command itself goes on then.
        ShuttingDown, if the herder ended before the command did."""
        waiting = asyncio.wrap_future(self.submit(command))
        done, _ = await asyncio.wait({waiting}, timeout=timeout)
        if not done:
            waiting.add_done_callback(lambda late: late.cancelled() or late.exception())
            summary = self.stages.summary
            raise RequestTimeout(f"Request timed out. {summary}" if summary else "Request timed out")
        if waiting.cancelled():
            raise ShuttingDown
        return waiting.result()

    def spawn(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Runs `work` without anybody waiting for it; an error is logged with what was being done."""

        async def guarded() -> None:
            try:
                await work
            except HerderError as error:
                log.error("Failed %s: %s", what, error)
            except Exception:
                log.exception("Failed %s", what)

        task = self._loop.create_task(guarded())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """On the herder's thread: runs `call` there, unless it ends before."""
        self._loop.call_later(seconds, lambda: None if self.ending else call())

    @asynccontextmanager
    async def exclusive(
        self, name: str | TaskId, doing: str, patience_s: float | None = None, give_up: Callable[[], None] | None = None
    ) -> AsyncIterator[None]:
        """One command at a time for each connector, or task. A command that ends the connector anyway calls `give_up`
        on who is in its way after `patience_s`, so that plugin code which never returns can still be got rid of."""
        lock = self._locks.setdefault(name, asyncio.Lock())
        self._users[name] += 1
        try:
            await asyncio.wait_for(lock.acquire(), patience_s)
        except TimeoutError:
            if give_up is not None:
                give_up()
            await lock.acquire()
        try:
            with about(name), self.stages.doing(f"{doing} {name}"):
                yield
        finally:
            lock.release()
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]

    def end(self, last: Callable[[], Coroutine[Any, Any, None]], timeout: float) -> None:
        """From any thread: refuses new commands, runs `last`, ends the thread."""
        if not self._thread.is_alive():
            return
        ending = asyncio.run_coroutine_threadsafe(last(), self._loop)
        self.ending = True
        try:
            ending.result(timeout)
        except TimeoutError:
            log.error("The worker did not shut down within %.0f s; what still runs is left behind", timeout)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
