"""Under which names a listener answers, and which web pages may change something through it.

A browser sends what any page wants to any address that it can reach, and a page may have its own name lead to ours. So
a listener for this machine alone answers to its own names only, and nothing is changed for a page that is not ours.
Clients that are no browsers send no `Origin`, and notice nothing of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.access.audit import Audit
from headgate.rest.commands import Commands
from headgate.rest.errors import error_response
from headgate.rest.routing import BASE
from headgate.rest.settings import RestSettings

_HARMLESS: Final = ("GET", "HEAD", "OPTIONS")
_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]@/]+))(?::([0-9]{1,5}))?", re.IGNORECASE)
_PORTS: Final = {"http": 80, "https": 443}
_MISDIRECTED: Final = (
    "HTTP 421 Misdirected Request: this worker is not known as '{}'; if that is a name of it, add it to"
    " headgate.allowed.hosts"
)
_FORBIDDEN: Final = (
    "HTTP 403 Forbidden: a page of {} may not change anything here; pages may under the worker's own name"
    " (rest.advertised.host.name, headgate.allowed.hosts), and those that access.control.allow.origin and"
    " access.control.allow.methods let in"
)


@dataclass(frozen=True, slots=True)
class SameOrigin:
    """ASGI middleware of one listener."""

    app: ASGIApp
    advertised: str
    """The worker's own URL."""
    names: frozenset[str]
    """Under which it is known, besides its addresses."""
    strict: bool
    """Whether it answers to no others."""
    allowed: Callable[[str, str], bool]
    """Whether pages of this origin may use this method."""
    audit: Audit | None = None

    @classmethod
    def of(
        cls, app: ASGIApp, address: str, settings: RestSettings, advertised: str, audit: Audit | None = None
    ) -> SameOrigin:
        """`address`: where the listener is bound."""
        hosts = [each.lower().strip("[]") for each in settings.allowed_hosts]
        scheme, _, own = advertised.rstrip("/").partition("://")
        known = _place(own, scheme)
        names = frozenset([*hosts, *(known[:1] if known else ())])
        return cls(app, advertised.rstrip("/"), names, bool(hosts) or _is_loopback(address), settings.allows, audit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        # Only HTTP/1.0 is without: checks of load balancers, and no browser.
        host = headers.get("host")
        checked = host if host is not None and self._is_known(host, scope) else None
        refusal: tuple[int, str] | None = None
        if self.strict and host is not None and checked is None:
            # The request is a good one, 400 would blame it: it is for somebody else (RFC 9110, 15.5.20).
            refusal = 421, _MISDIRECTED.format(host)
        elif scope["method"] not in _HARMLESS and self._is_foreign(scope["method"], headers, checked):
            refusal = 403, _FORBIDDEN.format(headers.get("origin", "another site"))
        if refusal is not None:
            await Commands(error_response(*refusal), self.audit)(scope, receive, send)
            return
        scope[BASE] = self.advertised if checked is None else f"{scope['scheme']}://{checked}"
        await self.app(scope, receive, send)

    def _is_known(self, host: str, scope: Scope) -> bool:
        place = _place(host)
        if place is None:
            return False
        # At its own address no page but ours can be, whatever the port that led here.
        address = (scope.get("server") or ("",))[0].removeprefix("::ffff:")
        return place[0] in (*self.names, address) or (_is_loopback(address) and _is_loopback(place[0]))

    def _is_foreign(self, method: str, headers: Headers, checked: str | None) -> bool:
        origin = headers.get("origin")
        if origin is not None and self.allowed(origin, method):
            return False
        if headers.get("sec-fetch-site", "").lower() == "cross-site":
            return True
        return origin is not None and not self._is_ours(origin, checked)

    def _is_ours(self, origin: str, checked: str | None) -> bool:
        scheme, _, authority = origin.lower().partition("://")
        place = _place(authority, scheme)
        own_scheme, _, own = self.advertised.partition("://")
        # A proxy may have taken TLS off: what the browser's scheme is, only the Origin says.
        ours = [_place(own, own_scheme), None if checked is None else _place(checked, scheme)]
        return place is not None and place in ours


def _place(authority: str, scheme: str = "http") -> tuple[str, int] | None:
    """Host and port."""
    found = _AUTHORITY.fullmatch(authority.lower())
    return None if found is None else (found[1] or found[2], int(found[3] or _PORTS.get(scheme, 0)))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.removeprefix("::ffff:")).is_loopback
    except ValueError:
        return host == "localhost"
