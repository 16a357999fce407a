"""Masks: who may read secrets, and what everybody else sees of configurations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from starlette.requests import Request

from headgate.model import Config, ConnectorInfo
from headgate.runtime.config import masking
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class Masks:
    herder: Herder
    on: bool
    """The worker file wants them."""

    def may_read_secrets(self, request: Request) -> bool:
        """Whether this caller may. All that is known of callers yet is what the worker file says of everybody."""
        return not self.on

    def info(self, request: Request, info: ConnectorInfo) -> ConnectorInfo:
        if self.may_read_secrets(request):
            return info
        return replace(info, config=masking.masked(info.config, self.herder.plugins))

    def task(self, request: Request, name: str, config: Config) -> Config:
        if self.may_read_secrets(request):
            return config
        return masking.masked_task(config, self.herder.connector_info(name).config, self.herder.plugins)

    def hidden(self, request: Request, config: Mapping[str, str | None]) -> Collection[str]:
        """Keys of a configuration that was sent, whose values do not come back."""
        return () if self.may_read_secrets(request) else masking.literals(config, self.herder.plugins)
