"""A client whose requests are answered on the thread that makes them."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from starlette.testclient import TestClient
from starlette.types import ASGIApp


class StraightClient(TestClient):
    """Starlette's own goes to and fro between two threads nine times for each request, which takes longer than all that
    the application does."""

    def __init__(self, app: ASGIApp, **options: Any) -> None:
        super().__init__(app, **options)
        self._transport = _Straight(app)


class _Straight(httpx2.BaseTransport):
    def __init__(self, app: ASGIApp) -> None:
        self._app = httpx2.ASGITransport(app, raise_app_exceptions=False, client=("testclient", 50000))

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return asyncio.run(self._answer(request))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._app.handle_async_request(request)
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=httpx2.ByteStream(await answer.aread())
        )
