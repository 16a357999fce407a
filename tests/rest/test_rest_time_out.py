"""How long a request waits for the herder; minutes pass as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from rest_fakes import FakeHerder

from headgate.rest.app import build_app
from headgate.rest.settings import RestSettings
from headgate.runtime.loop import HerderLoop


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    async def put_forward(self, seconds: float) -> None:
        self.ahead += seconds
        await asyncio.sleep(0.02)  # what was due meanwhile is done


class Busy(FakeHerder):
    """Takes commands as a real one does, and never gets done with one."""

    def __init__(self) -> None:
        super().__init__("a")
        self.loop = HerderLoop()
        self.never = asyncio.Event()
        self.call = self.loop.call  # type: ignore[method-assign]
        self.loop.start()

    async def forever(self, *_: Any) -> Any:
        async with self.loop.exclusive("a", "doing something to connector"):
            self.calls.append(("began",))
            await self.never.wait()

    restart = restart_task = alter_offsets = reset_offsets = stop = forever  # type: ignore[assignment]


@pytest.fixture
def busy() -> Iterator[Busy]:
    made = Busy()
    yield made
    made.loop.end(_nothing, 5)


async def _nothing() -> None: ...


@pytest.mark.kip(745, "500 Internal Server Error when the request timed out (takes more than 90 seconds)")
@pytest.mark.kip(875, "if anything fails, 500 with the message")
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "restart?includeTasks=true", None),
        ("POST", "tasks/0/restart", None),
        ("PUT", "stop", None),
        ("DELETE", "offsets", None),
        ("PATCH", "offsets", {"offsets": [{"partition": {"f": 1}}]}),
    ],
)
def test_a_command_that_is_not_done_after_90_s_is_answered_with_500(
    busy: Busy, method: str, path: str, body: Any
) -> None:
    async def ask() -> tuple[bool, httpx2.Response | None]:
        """Whether there is an answer after 89 s, and the one after 90 s."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clock)
        transport = httpx2.ASGITransport(build_app(busy.as_herder(), RestSettings()))
        async with httpx2.AsyncClient(transport=transport, base_url="http://worker:8083", timeout=None) as http:
            asked = asyncio.ensure_future(http.request(method, f"/connectors/a/{path}", json=body))
            while not busy.calls:
                await asyncio.sleep(0.002)
            await loop.put_forward(89)
            early = asked.done()
            await loop.put_forward(1.1)
            await asyncio.wait({asked}, timeout=5)
            return early, asked.result() if asked.done() else None

    with asyncio.Runner(loop_factory=Clock) as runner:
        early, answer = runner.run(ask())
    assert not early
    assert answer is not None
    assert answer.status_code == 500
    message = answer.json()["message"]
    assert message.startswith("Request timed out. The worker is currently doing something to connector a, which began")
