"""Forwarding: a request that another worker must carry out, the leader or an owner, is passed on to it.

A request takes two hops at most, because any worker may be the first to be asked, the leader knows who owns what, and
whoever is asked then either has it or things have just changed. `forward` in the query counts them: absent in what a
client sends, `true` on the first hop, `false` on the second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import httpx2
import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from headgate.api.errors import ConfigError
from headgate.rest.body import JSON, JsonResponse, read_already
from headgate.rest.callers import Callers
from headgate.rest.client import AsyncClients, ErrorBody, PeerTls, patience, reason
from headgate.rest.routing import Endpoint, flag, location, path_of, query
from headgate.runtime.errors import Elsewhere, HerderError, LeaderUnknown

log = logging.getLogger(__name__)

_REPEATED: Final = ("includeTasks", "onlyFailed")
_LOOK_S: Final = 1.0
"""Who asks how tasks fare gets an answer also while a worker is away."""


class ForwardingFailed(HerderError):
    """The other worker could not be asked, or gave no answer that can be passed on."""


class _NotJson(Exception):
    pass


class Forwarding:
    """The HTTP clients for all requests of an application, made when the first one is passed on."""

    def __init__(self, callers: Callers, tls: PeerTls | None = None) -> None:
        self._callers = callers
        self._tls = tls or PeerTls()
        self._clients: AsyncClients | None = None

    def wrap(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint, or its equal on the worker that its `Elsewhere` names."""

        async def here_or_there(request: Request) -> Response:
            try:
                return await endpoint(request)
            except Elsewhere as elsewhere:
                return await self._pass_on(request, elsewhere)

        return here_or_there

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """The time in which requests come; connections to others are closed after it."""
        try:
            yield
        finally:
            clients, self._clients = self._clients, None
            if clients is not None:
                await clients.aclose()

    async def look(self, request: Request, url: str) -> object:
        """What another worker knows, for the same caller; None if it does not say so soon."""
        try:
            async with self._lent() as client:
                asked = client.build_request("GET", url, timeout=_LOOK_S)
                answer = await client.send(self._for_caller(request, asked))
            return orjson.loads(answer.content) if answer.is_success else None
        except (httpx2.RequestError, httpx2.InvalidURL, ConfigError, ValueError) as error:
            log.debug("No answer from %s: %s", url, reason(error))
            return None

    def _lent(self) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
        if self._clients is None:
            self._clients = AsyncClients(self._tls)
        return self._clients.lent()

    async def _pass_on(self, request: Request, elsewhere: Elsewhere) -> Response:
        hops = _hops_left(request)
        if hops == 0:
            log.warning("%s %s did not find the worker to do it within two hops", request.method, path_of(request))
            raise elsewhere
        if not elsewhere.url:
            raise LeaderUnknown
        try:
            async with self._lent() as client:
                asked = self._request(client, request, elsewhere.url, hops)
                log.debug("Passing on %s %s", asked.method, asked.url)
                return _passed_back(request, await self._answer(client, request, asked))
        except (ClientDisconnect, ForwardingFailed):
            raise
        except asyncio.CancelledError:
            raise ForwardingFailed(
                "Thread was interrupted trying to forward REST request: Worker is shutting down"
            ) from None
        except (httpx2.RequestError, _NotJson) as error:
            raise ForwardingFailed(_failure("IO Error", error, elsewhere.url)) from error
        except Exception as error:
            raise ForwardingFailed(_failure("Error", error, elsewhere.url)) from error

    def _request(self, client: httpx2.AsyncClient, request: Request, url: str, hops: int) -> httpx2.Request:
        """Of the headers only who is asking is told: the rest was for us."""
        params = {"forward": str(hops > 1).lower()}
        params |= {name: str(flag(request, name)).lower() for name in _REPEATED if name in request.query_params}
        body = read_already(request)
        asked = client.build_request(
            request.method,
            url.rstrip("/") + path_of(request),
            params=params,
            headers={"Content-Type": JSON} if body else None,
            content=body or None,
            timeout=patience(hops - 1),
        )
        return self._for_caller(request, asked, body)

    def _for_caller(self, request: Request, asked: httpx2.Request, body: bytes = b"") -> httpx2.Request:
        asked.headers.update(self._callers.headers(request, asked.method, asked.url.raw_path.decode(), body))
        return asked

    async def _answer(self, client: httpx2.AsyncClient, request: Request, asked: httpx2.Request) -> httpx2.Response:
        """Nobody waits for it any longer than the client does."""
        sending = asyncio.create_task(client.send(asked))
        leaving = asyncio.create_task(_left(request))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                raise ClientDisconnect
            return sending.result()
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)


def _hops_left(request: Request) -> int:
    if not query(request, "forward"):
        return 2
    return 1 if flag(request, "forward") else 0


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _passed_back(request: Request, answer: httpx2.Response) -> Response:
    status, body = answer.status_code, answer.content
    if status == 204:
        return Response(status_code=204)
    if not (200 <= status < 300 or status >= 400):
        raise ForwardingFailed(f"Unexpected status code when handling forwarded request: {status}")
    try:
        if status >= 400:
            error = ErrorBody.parse(body)
            return JsonResponse({"error_code": error.error_code, "message": error.message}, status)
        found = orjson.loads(body)
    except ValueError as problem:
        raise _NotJson(f"The answer, of status {status}, cannot be read: {problem}") from None
    # The address of what was created is one on the worker that the client knows.
    headers = {"Location": location(request, found["name"])} if status == 201 else None
    return Response(body, status, headers, JSON)


def _failure(what: str, error: Exception, url: str) -> str:
    return f"{what} trying to forward REST request: {reason(error)} ({url})"
