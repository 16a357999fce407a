"""Logins without secrets, and rights for each role: for tests of what comes after the door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.access.logins import LoginFailed, LoginRequired
from headgate.access.principal import Principal
from headgate.access.rights import Rights

RIGHTS = Rights.parse("""
    [[grant]]
    to = "viewer"
    role = "viewer"
    [[grant]]
    to = "operator"
    role = "operator"
    [[grant]]
    to = "editor"
    role = "editor"
    [[grant]]
    to = "admin"
    role = "admin"
    [[grant]]
    to = "orders"
    role = "admin"
    connectors = "orders-*"
    [[grant]]
    to = "sources"
    role = "editor"
    plugins = "acme.Source"
""")


class NamedLogins:
    """Whoever says a name in place of credentials is who he says he is."""

    ways = ("basic",)

    async def who(self, authorization: str | None, certificate: Mapping[str, Any] | None, address: str) -> Principal:
        if authorization is None:
            raise LoginRequired(("Basic",))
        if authorization == "wrong":
            raise LoginFailed(("Basic",))
        return Principal(authorization, "basic")
