"""/metrics: the worker's metrics as Prometheus reads them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class MetricsEndpoints:
    collect: Callable[[], bytes]

    async def read(self, request: Request) -> Response:
        # In a thread: thousands of metrics take a while to write, and other requests need not wait for that.
        text = await asyncio.to_thread(self.collect)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})
