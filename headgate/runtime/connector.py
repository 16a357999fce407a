"""One connector on this worker: its plugin object and the phase it is in.

Used from the herder's thread only. The plugin's methods may block for as long as they like, so each call runs in a
thread of its own; the herder awaits it, and gives up on it where it must.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from headgate.api.connector import Connector
from headgate.api.plugin import public_name
from headgate.log import about, trace_of
from headgate.model import Config, TargetState
from headgate.runtime.config.connector_config import TASK_CLASS, TOPICS, TOPICS_REGEX
from headgate.runtime.errors import StartFailed, Superseded
from headgate.runtime.lifecycle import PHASES, Phase, PluginCall
from headgate.runtime.plugins import Found

log = logging.getLogger(__name__)
T = TypeVar("T")

GRACEFUL_STOP_S: Final = 5.0
"""How long a connector's `stop` may take before it is given up on."""


def in_thread(call: Callable[[], T], name: str, late: Callable[[T], None] | None = None) -> asyncio.Future[T]:
    """Runs `call` in a daemon thread: one that never returns neither blocks the herder nor the end of the process.
    If it returns after all, when it was given up on, `late` gets the result, in a thread too."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def finish(result: T | None, error: BaseException | None) -> None:
        if future.done():  # given up on
            if late is not None and error is None:
                in_thread(lambda: late(result), f"{name}-late")  # type: ignore[arg-type]
        elif error is None:
            future.set_result(result)  # type: ignore[arg-type]
        else:
            future.set_exception(error)

    def run() -> None:
        result: T | None = None
        caught: BaseException | None = None
        try:
            result = call()
        except StopIteration as error:
            caught = RuntimeError(f"StopIteration: {error}")  # a future refuses to carry one
        except BaseException as error:
            caught = error
        with suppress(RuntimeError):  # the loop may have been closed meanwhile
            loop.call_soon_threadsafe(finish, result, caught)

    context = contextvars.copy_context()
    threading.Thread(target=lambda: context.run(run), name=name, daemon=True).start()
    return future


class ConnectorInstance:
    """`phase` says where it is; `trace` why it failed."""

    def __init__(self, name: str, config: Config, found: Found, context: Any) -> None:
        self.name = name
        self.config = config
        self.version = found.version
        self.phase = Phase.INIT
        self.trace: str | None = None
        self.made_tasks = False
        """Its task configs were published since it was last stopped."""
        self.outdated = False
        """Its task configs may no longer be what it would generate."""
        self.asked = False
        """It is being asked for them."""
        self._found = found
        self._context = context
        self._plugin: Connector | None = None
        self._running: asyncio.Future[Any] | None = None

    @property
    def silent(self) -> bool:
        """It is stopped: what threads of its plugin may still say is no longer about it."""
        called = self._running is not None and not self._running.done()
        return self.phase is Phase.STOPPED and not called

    async def to(self, target: TargetState) -> bool:
        """Brings it to `target`; whether anything changed. Raises StartFailed; the phase is then FAILED."""
        call, following = PHASES[self.phase, target]
        if call is PluginCall.REFUSED:
            raise StartFailed(f"Cannot transition connector to {target.value} since it has failed")
        changed = following is not self.phase
        if call is PluginCall.START:
            await self._start()
        elif call is PluginCall.STOP:
            await self._stop(forgiving=target is TargetState.STOPPED)
        if self.phase is Phase.FAILED and following is not Phase.STOPPED:  # it told so itself, while it was called
            raise StartFailed(f"Failed to transition connector {self.name} to state {target.value}")
        self.phase = following
        if following is Phase.STOPPED:
            # KIP-875: whatever it was before, it can be started again; so the next start gets a new object.
            self._plugin, self.trace, self.made_tasks = None, None, False
        return changed

    async def shutdown(self) -> None:
        """Ends it for good, within the grace period; what its `stop` raised is kept in `trace`."""
        if self.phase is Phase.STARTED:
            try:
                await self._stop(forgiving=False)
            except StartFailed:
                return
        self.phase = Phase.STOPPED

    async def task_configs(self, limit: int, sink: bool) -> list[Config]:
        """What the connector generates, with the keys that the runtime adds. Raises what the plugin raises."""
        plugin = self._plugin
        assert plugin is not None
        generated = await self._run(lambda: list(plugin.task_configs(limit)), "generating task configs")
        task_class = self._found.connector.task_class_for(self.config)
        # By the name that Java workers know, if there is one: they may have to start the task as it is written here.
        added = {TASK_CLASS: public_name(task_class)}
        if sink:
            added |= {key: self.config[key] for key in (TOPICS, TOPICS_REGEX) if self.config.get(key)}
        return [{**{str(key): str(value) for key, value in each.items()}, **added} for each in generated]

    def fail(self, trace: str) -> None:
        self.phase, self.trace = Phase.FAILED, trace

    def abandon(self) -> None:
        """Gives up on a call that does not come back; who waits for it gets Superseded."""
        if self._running is not None and not self._running.done():
            log.warning("Connector %s did not return from a call in time and is given up on", self.name)
            self._running.set_exception(Superseded(f"Connector {self.name} was given up on: a newer request came in"))

    async def _start(self) -> None:
        known = self._plugin

        def start() -> Connector:
            plugin = self._found.connector() if known is None else known
            plugin.context = self._context
            plugin.start(dict(self.config))
            return plugin

        try:
            self._plugin = await self._run(start, "starting", self._stop_late)
        except Superseded:
            self.fail("The connector did not return from start() before a newer request came in")
            raise
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.fail(trace_of(error))
            raise StartFailed(f"Failed to transition connector {self.name} to state STARTED") from error

    async def _stop(self, forgiving: bool) -> None:
        plugin = self._plugin
        assert plugin is not None
        try:
            await asyncio.wait_for(self._run(plugin.stop, "stopping"), GRACEFUL_STOP_S)
        except TimeoutError:
            log.error("Connector %s did not stop within %.0f s and is given up on", self.name, GRACEFUL_STOP_S)
            self._plugin = None
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            if forgiving:
                log.exception("Connector %s failed while it was stopped", self.name)
                return
            self.fail(trace_of(error))
            raise StartFailed(f"Connector {self.name} failed while it was stopped") from error

    def _stop_late(self, plugin: Connector) -> None:
        log.warning("Connector %s came back from start() after it had been given up on, and is stopped", self.name)
        try:
            plugin.stop()
        except Exception:
            log.exception("Connector %s failed while it was stopped", self.name)

    def _run(self, call: Callable[[], T], doing: str, late: Callable[[T], None] | None = None) -> asyncio.Future[T]:
        with about(self.name):
            self._running = in_thread(call, f"connector-{self.name}-{doing}", late)
        return self._running
