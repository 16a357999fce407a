"""A TCP proxy in front of a broker that spoils single requests and responses, by rules.

The broker needs a listener of its own that advertises the proxy, or else clients go round it.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Self

import spoken
from spoken import Api

HOST: Final = "127.0.0.1"
ALWAYS: Final = 10**9


class Side(Enum):
    REQUEST = "before the broker sees it"
    RESPONSE = "after the broker acted"


class Action(Enum):
    CODE = "answer with an error code"
    EMPTY = "answer with nothing but the number of the request"
    DROP = "close the connection instead"
    SWALLOW = "pass nothing on, keep the connection"
    DELAY = "pass it on late"


@dataclass
class Rule:
    """What happens to `count` messages of an API, after the first `skip` ones; `kind` as `spoken.kind` tells it."""

    api: Api
    side: Side
    action: Action
    code: int = 0
    count: int = 1
    skip: int = 0
    kind: str = ""
    seconds: float = 0.0
    hits: int = 0
    hit: threading.Event = field(default_factory=threading.Event)

    def takes(self, api: int, side: Side, kind: str) -> bool:
        """Whether this very message is meant; counts it."""
        if (api, side) != (self.api, self.side) or self.kind not in ("", kind) or self.hits >= self.count:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.hits += 1
        self.hit.set()
        return True


class Asked(NamedTuple):
    api: int
    version: int
    kind: str


class Proxy:
    """On a free port from `with` to its end; forwards to `upstream`, which is known once the broker has started."""

    def __init__(self) -> None:
        self.upstream = ""
        self.port = 0
        self.seen: list[Asked] = []
        """Each request since the last `clear`."""
        self.problems: list[str] = []
        """What makes a test worthless: a rule that met nothing, or a message in a version that it is not for."""
        self._rules: list[Rule] = []
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="proxy", daemon=True)
        self._ready = threading.Event()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def before(self, api: Api, action: Action, code: int = 0, *, count: int = 1, skip: int = 0, kind: str = "") -> Rule:
        """The broker never sees the message, so it does nothing. The first rule that takes a message decides."""
        return self._add(Rule(api, Side.REQUEST, action, code, count, skip, kind))

    def after(self, api: Api, action: Action, code: int = 0, *, count: int = 1, skip: int = 0, kind: str = "") -> Rule:
        """The broker has done what it was asked for; the client hears something else, or nothing."""
        return self._add(Rule(api, Side.RESPONSE, action, code, count, skip, kind))

    def late(self, api: Api, seconds: float, *, count: int = 1, skip: int = 0, kind: str = "") -> Rule:
        """The response comes that much later."""
        return self._add(Rule(api, Side.RESPONSE, Action.DELAY, 0, count, skip, kind, seconds))

    def unmet(self) -> list[Rule]:
        """Rules that no message came for: what they were for was not tested."""
        return [rule for rule in self._rules if not rule.hits]

    def heal(self) -> None:
        """No rule holds any longer; one that was not met so far is a problem."""
        self.problems += [f"no message came for {rule}" for rule in self.unmet()]
        self._rules.clear()

    def clear(self) -> None:
        """Forget rules, requests and problems; connections stay."""
        self._rules.clear()
        self.seen.clear()
        self.problems.clear()

    def requests(self, api: Api, kind: str = "") -> int:
        return sum(1 for asked in list(self.seen) if asked.api == api and kind in ("", asked.kind))

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _add(self, rule: Rule) -> Rule:
        self._rules.append(rule)
        return rule

    # In the proxy's own thread

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()

    async def _serve(self, from_client: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        host, _, port = self.upstream.partition(":")
        async with _closing(client):
            try:
                from_broker, broker = await asyncio.open_connection(host, int(port))
            except OSError:
                return
            async with _closing(broker):
                asked: dict[int, Asked] = {}
                requests = self._requests(from_client, broker, client, asked)
                responses = self._responses(from_broker, client, asked)
                await self._until_one_ends([asyncio.ensure_future(requests), asyncio.ensure_future(responses)])

    async def _until_one_ends(self, ways: list[asyncio.Future[None]]) -> None:
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            ends = await asyncio.gather(*ways, return_exceptions=True)
            self.problems += [f"the proxy is wrong: {end!r}" for end in ends if isinstance(end, Exception)]

    async def _requests(
        self,
        reader: asyncio.StreamReader,
        broker: asyncio.StreamWriter,
        client: asyncio.StreamWriter,
        asked: dict[int, Asked],
    ) -> None:
        async for frame in _frames(reader):
            api, version, number = struct.unpack_from(">hhi", frame)
            asked[number] = about = Asked(api, version, spoken.kind(api, version, frame))
            self.seen.append(about)
            rule = self._rule(about, Side.REQUEST)
            if rule is not None:
                if rule.action is Action.DROP:
                    return
                if rule.action is Action.CODE:
                    await _send(client, spoken.refusal(rule.api, frame, number, rule.code))
                if rule.action is Action.EMPTY:
                    await _send(client, struct.pack(">i", number))
                if rule.action in (Action.CODE, Action.EMPTY, Action.SWALLOW):
                    continue
            await _send(broker, frame)

    async def _responses(
        self, reader: asyncio.StreamReader, client: asyncio.StreamWriter, asked: dict[int, Asked]
    ) -> None:
        async for frame in _frames(reader):
            (number,) = struct.unpack_from(">i", frame)
            rule = self._rule(asked.pop(number), Side.RESPONSE)
            if rule is not None:
                if rule.action is Action.DROP:
                    return
                if rule.action is Action.SWALLOW:
                    continue
                if rule.action is Action.CODE:
                    frame = spoken.rewritten(rule.api, frame, number, rule.code)
                if rule.action is Action.EMPTY:
                    frame = frame[:4]
                await asyncio.sleep(rule.seconds)
            await _send(client, frame)

    def _rule(self, about: Asked, side: Side) -> Rule | None:
        rule = next((rule for rule in list(self._rules) if rule.takes(about.api, side, about.kind)), None)
        if rule is not None and about.version != spoken.VERSIONS[rule.api]:
            self.problems.append(f"{rule.api.name} is spoken in version {about.version}: {rule}")
            return None
        return rule


@contextlib.asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    try:
        yield
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _frames(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            yield await reader.readexactly(size)


async def _send(writer: asyncio.StreamWriter, frame: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        writer.write(struct.pack(">i", len(frame)) + frame)
        await writer.drain()
