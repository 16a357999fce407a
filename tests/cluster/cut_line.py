"""A line to a broker that can be cut and mended.

The broker needs a listener of its own that advertises the line, or else clients go round it.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Final, Self

HOST: Final = "127.0.0.1"


class Line:
    """On a free port from `with` to its end; leads to `upstream`, which is known once the broker has started."""

    def __init__(self) -> None:
        self.upstream = ""
        self.port = 0
        self._refuses = False
        self._delay_s = 0.0
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="line", daemon=True)
        self._ready = threading.Event()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def cut(self) -> None:
        """As a pulled cable: nothing comes through, and nobody is told. What is under way arrives after `mend`."""
        self._loop.call_soon_threadsafe(self._through.clear)

    def slow(self, seconds: float) -> None:
        """Whatever passes takes so much longer."""
        self._delay_s = seconds

    def drop(self) -> None:
        """As a proxy that dies: connections end, and new ones are closed at once."""
        self._loop.call_soon_threadsafe(self._drop)

    def mend(self) -> None:
        self._loop.call_soon_threadsafe(self._mend)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(10)
        assert not self._thread.is_alive()

    # In the line's own thread

    async def _main(self) -> None:
        self._loop, self._end, self._through = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._through.set()
        server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()

    def _drop(self) -> None:
        self._refuses = True
        for writer in self._open:
            writer.transport.abort()

    def _mend(self) -> None:
        self._refuses = False
        self._delay_s = 0.0
        self._through.set()

    async def _serve(self, from_client: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._refuses:
            client.transport.abort()
            return
        await self._through.wait()
        host, _, port = self.upstream.partition(":")
        try:
            from_broker, broker = await asyncio.open_connection(host, int(port))
        except OSError:
            client.transport.abort()
            return
        both = {client, broker}
        self._open |= both
        ways = [asyncio.ensure_future(self._pass(*way)) for way in ((from_client, broker), (from_broker, client))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._open -= both
            for writer in both:
                writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                await self._through.wait()
                await asyncio.sleep(self._delay_s)
                writer.write(data)
                await writer.drain()
