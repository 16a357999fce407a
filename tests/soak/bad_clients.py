"""Bad clients: they attack all workers all the time, at bounded rates, and count what they are answered."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Self

from cluster_harness import Cluster, Worker

from tests.soak.answers import Answers
from tests.soak.attacks import Attack
from tests.soak.trouble import Trouble

HALF_OPEN: Final = 50
"""Connections to each worker that say nothing."""
_LANES: Final = 4
_SLOW_LANES: Final = 6
_EVERY_S: Final = 0.4
_PATIENCE_S: Final = 60.0
_LOST: Final = (OSError, asyncio.IncompleteReadError)


@dataclass
class BadClients:
    """From `with` to its end, in a thread with an event loop."""

    cluster: Cluster
    quick: Sequence[Attack]
    slow: Sequence[Attack]
    trouble: Trouble
    seed: int
    attacks: Counter[str] = field(default_factory=Counter)
    half_open: int = 0
    """Connections that were opened and said nothing."""
    errors: list[str] = field(default_factory=list)
    """Of their own, after which they did less than they should."""

    def __post_init__(self) -> None:
        self.answers = Answers(self.trouble)
        self._random = random.Random(self.seed)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="bad-clients")
        self._ready = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    # --- in their own thread ------------------------------------------------------------------------------------------

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._ready.set()
        lanes = [self._lane(self.quick) for _ in range(_LANES)] + [self._lane(self.slow) for _ in range(_SLOW_LANES)]
        lanes += [self._hold(worker) for worker in self.cluster.workers]
        tasks = [asyncio.ensure_future(lane) for lane in lanes]
        await self._end.wait()
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        self.errors += [repr(each) for each in ended if isinstance(each, Exception)]

    async def _lane(self, attacks: Sequence[Attack]) -> None:
        while True:
            await asyncio.sleep(_EVERY_S * self._random.uniform(0.5, 1.5))
            await self._attack(self._random.choice(attacks), self._random.choice(self.cluster.workers))

    async def _hold(self, worker: Worker) -> None:
        """Opens connections that say nothing; those that the worker has ended are opened anew."""
        held: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        try:
            while True:
                for reader, writer in [each for each in held if each[0].at_eof() or each[1].is_closing()]:
                    writer.transport.abort()
                    held.remove((reader, writer))
                if len(held) < HALF_OPEN:
                    with suppress(OSError):
                        held.append(await asyncio.open_connection("127.0.0.1", worker.port))
                        self.half_open += 1
                await asyncio.sleep(0.1)
        finally:
            for _, writer in held:
                writer.transport.abort()

    async def _attack(self, attack: Attack, worker: Worker) -> None:
        self.attacks[attack.name] += 1
        began = time.monotonic()
        statuses: list[tuple[int | None, str]]
        try:
            async with asyncio.timeout(_PATIENCE_S):
                statuses = await self._exchange(attack, worker.port)
        except (TimeoutError, *_LOST) as error:
            statuses = [(None, f"{type(error).__name__} {error}")] * max(attack.replies, 1)
        for status, told in statuses:
            what = f"{attack.name} at {worker.name}"
            self.answers.take(what, status, attack.expected, began, told, attack.in_trouble)

    async def _exchange(self, attack: Attack, port: int) -> list[tuple[int | None, str]]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**22)
        # Beside the reading: the worker may have heard enough before all is said.
        saying = asyncio.ensure_future(_say(writer, attack))
        try:
            if attack.replies:
                return [await _answer(reader) for _ in range(attack.replies)]
            await saying
            # As a client that dies: a reset instead of an end.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return [(None, "")]
        finally:
            saying.cancel()
            await asyncio.gather(saying, return_exceptions=True)
            writer.transport.abort()


async def _say(writer: asyncio.StreamWriter, attack: Attack) -> None:
    with suppress(ConnectionError):
        for piece in attack.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(attack.pause_s)


async def _answer(reader: asyncio.StreamReader) -> tuple[int | None, str]:
    try:
        line = await reader.readline()
        if not line:
            return None, "the connection has ended"
        length = 0
        while (header := await reader.readline()) not in (b"\r\n", b""):
            name, _, value = header.decode("latin-1").partition(":")
            length = int(value) if name.lower() == "content-length" else length
        body = await reader.readexactly(length)
        return int(line.split()[1]), body.decode(errors="replace")
    except _LOST as error:
        return None, f"{type(error).__name__} {error}"
