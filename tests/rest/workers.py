"""Workers of a group, as far as HTTP goes: real servers in front of herders of plain values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson
from rest_fakes import FakeHerder
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.rest.app import build_app
from headgate.rest.listeners import Listener
from headgate.rest.server import Server
from headgate.rest.settings import RestSettings
from headgate.runtime.errors import Elsewhere

LOCAL = Listener("http", "127.0.0.1", 0)
PLACED = (
    "create", "put_config", "patch_config", "delete", "stop", "restart", "restart_task", "alter_offsets",
    "reset_offsets", "put_task_configs", "fence",
)  # fmt: skip
"""Commands that are not done by whoever is asked."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    client: tuple[str, int]
    """Where the connection came from."""


class Recorder:
    """ASGI middleware that remembers requests."""

    def __init__(self, app: ASGIApp, seen: list[Seen]) -> None:
        self._app = app
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
            self._seen.append(
                Seen(
                    scope["method"],
                    scope["raw_path"].decode(),
                    scope["query_string"].decode(),
                    headers,
                    scope["client"],
                )
            )
        await self._app(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Worker:
    herder: FakeHerder
    server: Server
    seen: list[Seen] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.advertised_url

    def reset(self) -> Worker:
        """As it was when it was made: servers are slow to end, so tests share them."""
        FakeHerder.__init__(self.herder, "a")
        self.seen.clear()
        return self

    def follow(self, url: str) -> None:
        """From now on, others have to do what not everybody may do: the worker at `url`, empty if nobody knows."""
        self.herder.errors |= dict.fromkeys(PLACED, Elsewhere(url))

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx2.Response:
        """The path is sent as it is written."""
        content = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        return httpx2.request(method, self.url.rstrip("/") + path, content=content, headers=sent, trust_env=False)


@contextmanager
def worker(settings: RestSettings | None = None, herder: FakeHerder | None = None) -> Iterator[Worker]:
    settings = settings or RestSettings(listeners=(LOCAL,))
    with Server(settings) as server:
        made = Worker(herder or FakeHerder("a"), server)
        app = build_app(made.herder.as_herder(), settings)
        app.add_middleware(Recorder, seen=made.seen)
        server.start(app)
        yield made


@contextmanager
def other(app: ASGIApp) -> Iterator[str]:
    """The URL of a server that is no worker of ours."""
    with Server(RestSettings(listeners=(LOCAL,))) as server:
        server.start(app)
        yield server.advertised_url
