"""Masks: who may read secrets, and what everybody else sees of configurations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from starlette.requests import Request

from headgate.access.rights import Role
from headgate.model import Config, ConnectorInfo
from headgate.rest.guard import Guard
from headgate.runtime.config import masking
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class Masks:
    herder: Herder
    guard: Guard
    on: bool
    """The worker file wants them, whatever somebody's role; but where rights are given, admins are known by them."""

    def may_read_secrets(self, request: Request, connector: str | None) -> bool:
        """Whether this caller may, of this connector; None: of one that need not exist."""
        if self.on and self.guard.rights is None:
            return False
        return self.guard.has(request, Role.ADMIN, connector)

    def info(self, request: Request, info: ConnectorInfo) -> ConnectorInfo:
        if self.may_read_secrets(request, info.name):
            return info
        return replace(info, config=masking.masked(info.config, self.herder.plugins))

    def task(self, request: Request, name: str, config: Config) -> Config:
        if self.may_read_secrets(request, name):
            return config
        return masking.masked_task(config, self.herder.connector_info(name).config, self.herder.plugins)

    def hidden(self, request: Request, config: Mapping[str, str | None]) -> Collection[str]:
        """Keys of a configuration that was sent, whose values do not come back."""
        return (
            () if self.may_read_secrets(request, config.get("name")) else masking.literals(config, self.herder.plugins)
        )
