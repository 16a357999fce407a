"""Guard: in front of every endpoint stands what its caller needs for it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from headgate.access.principal import ANYBODY, Principal
from headgate.access.rights import Rights, Role
from headgate.rest.callers import PRINCIPAL, Callers
from headgate.rest.routing import Endpoint
from headgate.runtime.errors import ConnectorNotFound
from headgate.runtime.herder import Herder
from headgate.runtime.plugins import CONNECTORS

_CLASS: Final = "connector.class"


@dataclass(frozen=True, slots=True)
class Needs:
    """What a call asks of its caller. For calls about a connector, the role is the one for that connector."""

    role: Role | None = None
    """None: nothing."""
    everywhere: bool = False
    """Whether it must be a role for all connectors."""
    signed: bool = False
    """Whether the caller must be a worker of the group, which the endpoint finds out itself."""


NOTHING: Final = Needs()
SIGNED: Final = Needs(signed=True)
VIEW, OPERATE, EDIT = (Needs(role) for role in (Role.VIEWER, Role.OPERATOR, Role.EDITOR))
VIEW_ALL, ADMINISTER = (Needs(role, everywhere=True) for role in (Role.VIEWER, Role.ADMIN))


@dataclass(frozen=True, slots=True)
class Guard:
    herder: Herder
    callers: Callers
    rights: Callable[[], Rights] | None = None
    """As they are now; None: nobody has said who may do what, and everybody may do everything."""

    def __call__(self, needs: Needs, endpoint: Endpoint) -> Guarded:
        """The endpoint, for those who have what it needs."""
        return Guarded(needs, endpoint, self)

    async def check(self, request: Request, needs: Needs) -> None:
        """Raises HTTPException for those who have not."""
        if needs.role is None:
            return
        principal = await self.callers.find(request)
        if self.rights is None:
            return
        connector = request.path_params.get("connector")
        if needs.everywhere:
            self._require(principal, needs.role, self.rights().role_everywhere(principal), "all connectors")
        else:
            classes = None if connector is None else self._classes(connector)
            what = "some connector" if connector is None else f"connector {connector!r}"
            self._require(principal, needs.role, self.rights().role(principal, connector, classes), what)

    def require(self, request: Request, role: Role, connector: str | None, class_name: str | None) -> None:
        """Of what only the body of a request tells. Raises HTTPException."""
        if self.rights is None:
            return
        principal = _principal(request)
        classes = None if class_name is None else self._names(class_name)
        what = f"{'a connector' if connector is None else f'connector {connector!r}'} of class {class_name}"
        self._require(principal, role, self.rights().role(principal, connector, classes), what)

    def has(self, request: Request, role: Role, connector: str | None) -> bool:
        """For this connector; None: for all."""
        if self.rights is None:
            return True
        principal = _principal(request)
        if connector is None:
            found = self.rights().role_everywhere(principal)
        else:
            found = self.rights().role(principal, connector, self._classes(connector))
        return found is not None and found >= role

    def _require(self, principal: Principal, role: Role, held: Role | None, what: str) -> None:
        if held is None or held < role:
            has = "has none" if held is None else f"is {held.word}"
            raise HTTPException(
                403, f"HTTP 403 Forbidden: this needs the role {role.word} for {what}; {principal.name!r} {has}"
            )

    def _classes(self, connector: str) -> Collection[str] | None:
        """All names of its class; None where there is no such connector, of which nothing is told that way."""
        try:
            return self._names(self.herder.connector_info(connector).config.get(_CLASS) or "")
        except ConnectorNotFound:
            return None

    def _names(self, class_name: str) -> Collection[str]:
        found = self.herder.plugins.get(class_name, *CONNECTORS)
        return {class_name, *(found.names if found else ())}


@dataclass(frozen=True, slots=True)
class Guarded:
    """An endpoint with its guard."""

    needs: Needs
    endpoint: Endpoint
    guard: Guard

    async def __call__(self, request: Request) -> Response:
        await self.guard.check(request, self.needs)
        return await self.endpoint(request)


def _principal(request: Request) -> Principal:
    found: Principal = request.scope.get(PRINCIPAL, ANYBODY)
    return found
