"""/, /health and /metrics: which worker this is, whether it can do anything, and how much it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate import __version__
from headgate.rest.body import JsonResponse
from headgate.rest.errors import error_response
from headgate.runtime.errors import HerderError
from headgate.runtime.herder import Herder
from headgate.runtime.verdict import at

METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
CONNECT_VERSION: Final = "4.3.1"
"""The Kafka Connect whose API this is: clients decide by `version` what they may call."""
STARTING: Final = "Worker is still starting up."
HEALTHY: Final = "Worker has completed startup and is ready to handle requests."
UNHEALTHY: Final = "Worker was unable to handle this request and may be unable to handle other requests."


@dataclass(frozen=True, slots=True)
class RootEndpoints:
    herder: Herder
    commit: str
    health_timeout: float
    warnings: Callable[[], Sequence[str]] = tuple
    """What is wrong, and keeps the worker from nothing."""

    async def describe(self, request: Request) -> Response:
        cluster = self.herder.kafka_cluster_id
        known = {"version": CONNECT_VERSION, "commit": self.commit, "kafka_cluster_id": cluster}
        return JsonResponse({**known, "headgate_version": __version__})

    async def health(self, request: Request) -> Response:
        """Healthy means that the herder's thread got to a request of ours, and that what it lives by is still there;
        before it is ready nobody waits for it."""
        if self.herder.ready:
            try:
                await self.herder.call(self.herder.noop, self.health_timeout)
            except HerderError:
                if self.herder.ready:
                    return self._answer("unhealthy", with_stage(UNHEALTHY, self.herder), 500)
            else:
                trouble = self.herder.trouble()
                return self._answer(*("unhealthy", trouble, 500) if trouble else ("healthy", HEALTHY, 200))
        return self._answer("starting", with_stage(STARTING, self.herder), 503)

    def _answer(self, status: str, message: str, code: int) -> Response:
        """A worker is healthy without Kafka, too; whether that was reached stands beside it."""
        kafka = self.herder.kafka
        reached = None if kafka is None else {"reached": kafka.reached, "since": at(kafka.since_ms)}
        told = {"status": status, "message": message, "kafka": reached, "warnings": list(self.warnings())}
        return JsonResponse(told, code)


@dataclass(frozen=True, slots=True)
class MetricsEndpoints:
    collect: Callable[[], bytes]

    async def read(self, request: Request) -> Response:
        # In a thread: thousands of metrics take a while to write, and other requests need not wait for that.
        return Response(await asyncio.to_thread(self.collect), headers={"Content-Type": METRICS_TYPE})


@dataclass(frozen=True, slots=True)
class Readiness:
    """ASGI middleware: until the herder can take commands every path but /health says that the worker is starting."""

    app: ASGIApp
    herder: Herder

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.herder.ready or scope["path"] in ("/health", "/health/"):
            await self.app(scope, receive, send)
            return
        response = error_response(503, with_stage(STARTING, self.herder), {"Retry-After": "1"})
        await response(scope, receive, send)


def with_stage(message: str, herder: Herder) -> str:
    """The message, and the sentence about what the herder is doing if there is one."""
    stage = herder.stage
    return f"{message} {stage}" if stage else message
