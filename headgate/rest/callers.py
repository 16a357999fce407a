"""Callers: who asks. A login shows it, or the worker that was asked first, which signs what it says.

A request that is passed on has the caller's own credentials with it, for Apache's workers. A client's certificate
cannot be passed on, and nobody need be asked twice: so workers of Headgate tell each other who it was.
"""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

from headgate.access.logins import Logins, NotLoggedIn, TooManyFailures
from headgate.access.principal import ANYBODY, Principal
from headgate.rest.body import read_bytes
from headgate.rest.routing import CERTIFICATE
from headgate.runtime.herder import Herder
from headgate.runtime.ports import PeerRequest

PRINCIPAL: Final = "headgate.principal"
PASSED_ON: Final = "headgate.passed_on"
"""Of a scope: another worker has proved that it asks, for somebody or for itself."""
_REQUEST_ID: Final = "headgate.request_id"
ID_HEADER: Final = "X-Request-Id"
_CALLER_HEADER: Final = "X-Headgate-Caller"
_FIT: Final = re.compile(r"[A-Za-z0-9._:+/=-]{1,100}")


@dataclass(frozen=True, slots=True)
class Callers:
    herder: Herder
    logins: Logins | None
    """None: nobody is asked."""

    async def find(self, request: Request) -> Principal:
        """Raises HTTPException for whoever is nobody."""
        found = await self._told(request)
        if found is None:
            found = await self._logged_in(request)
        request.scope[PRINCIPAL] = found
        return found

    async def _logged_in(self, request: Request) -> Principal:
        if self.logins is None:
            return ANYBODY
        certificate = request.scope.get(CERTIFICATE)
        try:
            return await self.logins.who(request.headers.get("authorization"), certificate, address_of(request))
        except NotLoggedIn as error:
            challenges = {"WWW-Authenticate": ", ".join(error.challenges)} if error.challenges else None
            raise HTTPException(401, str(error), challenges) from None
        except TooManyFailures as error:
            raise HTTPException(429, str(error), {"Retry-After": str(error.retry_after_s)}) from None

    async def _told(self, request: Request) -> Principal | None:
        """By another worker."""
        caller = request.headers.get(_CALLER_HEADER)
        if caller is None:
            return None
        sent = await read_bytes(request)
        asked = _signed(request.method, target_of(request), caller, request_id(request), sent)
        if not self.herder.proofs.vouches(asked, dict(request.headers)):
            return None
        request.scope[PASSED_ON] = True
        name, login, groups = json.loads(caller)
        if login == ANYBODY.login and self.logins is not None:
            return None  # that worker asks nobody, this one does
        return Principal(name, login, frozenset(groups))

    def headers(self, request: Request, method: str, target: str, body: bytes = b"") -> list[tuple[bytes, bytes]]:
        """What goes with a request that is made for this one's caller."""
        who: Principal = request.scope.get(PRINCIPAL, ANYBODY)
        caller = json.dumps([who.name, who.login, sorted(who.groups)])  # headers are ASCII, and so is this
        asked = _signed(method, target, caller, request_id(request), body)
        proof = self.herder.proofs.sign(asked)
        made = {ID_HEADER: request_id(request), **({_CALLER_HEADER: caller, **proof} if proof else {})}
        return [
            *((name, value) for name, value in request.headers.raw if name == b"authorization"),
            *((name.encode(), value.encode()) for name, value in made.items()),
        ]


def _signed(method: str, target: str, caller: str, request_id: str, body: bytes) -> PeerRequest:
    return PeerRequest(method, target, f"{caller}\n{request_id}\n".encode() + body)


def request_id(request: Request) -> str:
    """By which a request is known in logs and audit records of all workers that it came to: the client's own, if it
    sent one that is fit for a log."""
    if _REQUEST_ID not in request.scope:
        sent = request.headers.get(ID_HEADER, "")
        request.scope[_REQUEST_ID] = sent if _FIT.fullmatch(sent) else secrets.token_hex(8)
    found: str = request.scope[_REQUEST_ID]
    return found


def target_of(request: Request) -> str:
    """Path and query, as they were sent."""
    path, query = request.scope["raw_path"], request.scope["query_string"]
    return str((path + b"?" + query if query else path).decode("latin-1"))


def address_of(request: Request) -> str:
    return request.client.host if request.client is not None else "somebody"
