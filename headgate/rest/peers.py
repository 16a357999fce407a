"""HttpPeers: the requests that a worker makes of its own accord to other workers of its group."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import httpx2

from headgate.model import Config
from headgate.rest.body import JSON, dumps
from headgate.rest.client import BlockingClients, ErrorBody, PeerTls, patience, reason
from headgate.rest.routing import encoded
from headgate.runtime.ports import PeerError, PeerRequest, Signer

log = logging.getLogger(__name__)

_LEAVE_S: Final = 3.0
"""Whoever leaves is in a hurry, and goes with or without an answer."""


class HttpPeers:
    """Fits `runtime.ports.Peers`. May be used from any thread; every call blocks until there is an answer."""

    def __init__(self, tls: PeerTls | None = None) -> None:
        """Raises ConfigError, when the PEM files cannot be used."""
        self._clients = BlockingClients(tls or PeerTls())

    def put_task_configs(self, url: str, connector: str, configs: Sequence[Config], sign: Signer | None) -> None:
        body = dumps([dict(config) for config in configs])
        self._send("POST", url, f"connectors/{encoded(connector)}/tasks", sign, body)

    def fence(self, url: str, connector: str, sign: Signer | None) -> None:
        self._send("PUT", url, f"connectors/{encoded(connector)}/fence", sign)

    def take_leave(self, url: str, member: str, sign: Signer | None) -> None:
        try:
            self._send("DELETE", url, f"internal/members/{encoded(member)}", sign, timeout=httpx2.Timeout(_LEAVE_S))
        except PeerError as error:
            if error.status != 404:
                raise
            log.debug("The leader at %s cannot be told that a member leaves; it is not one of Headgate's", url)

    def close(self) -> None:
        self._clients.close()

    def _send(
        self,
        method: str,
        url: str,
        path: str,
        sign: Signer | None,
        body: bytes = b"",
        timeout: httpx2.Timeout | None = None,
    ) -> None:
        whole = f"{url.rstrip('/')}/{path}"
        headers = {"Content-Type": JSON} if body else {}
        # Who is not the leader shall say so: passed on, the request would arrive without its signature.
        params = {"forward": "false"}
        try:
            with self._clients.lent() as client:
                request = client.build_request(
                    method, whole, params=params, headers=headers, content=body or None, timeout=timeout or patience()
                )
                if sign is not None:
                    request.headers.update(sign(PeerRequest(method, request.url.raw_path.decode(), body)))
                answer = client.send(request)
        except (httpx2.RequestError, httpx2.InvalidURL, RuntimeError) as error:  # the last one after `close`
            raise PeerError(f"{method} {whole} got no answer: {reason(error)}") from error
        if not answer.is_success:
            raise PeerError(
                f"{method} {whole} was answered {answer.status_code}: {_message(answer)}", answer.status_code
            )


def _message(answer: httpx2.Response) -> str:
    try:
        return ErrorBody.parse(answer.content).message or "no reason given"
    except ValueError:
        return "no reason that could be read"
