"""ConfigProvider: values that are kept elsewhere and stand in configurations as `${provider:path:key}`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass

from headgate.api.plugin import Plugin


@dataclass(frozen=True, slots=True)
class ConfigData:
    """What a provider found."""

    values: Mapping[str, str]
    """Keys that were not found are left out."""
    ttl_ms: int | None = None
    """How long the values are good for; then connectors with `config.action.reload=restart` are restarted."""


class ConfigProvider(Plugin, ABC):
    """Looks values up. The worker builds one for each alias in `config.providers`.

    What it gives is taken for a secret: it is used to start connectors and tasks, and hidden wherever it would be
    shown."""

    def configure(self, params: Mapping[str, str]) -> None:
        """Called once, before anything else, with what the worker file has under `config.providers.<alias>.param.`"""

    @abstractmethod
    def get(self, path: str, keys: Set[str]) -> ConfigData:
        """The values of these keys at `path`, which is empty where the variable has none. What it raises fails the
        request, the connector or the task that needs the value.

        May block for seconds, and may be called from several threads at once."""

    def close(self) -> None:
        """The worker ends."""
