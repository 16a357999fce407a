"""`${provider:path:key}` in configurations: looked up where it is needed, never stored, and hidden from then on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.api.config_provider import ConfigProvider
from headgate.api.errors import ConfigError
from headgate.log import hide, is_secret, is_secret_key
from headgate.model import Config
from headgate.runtime.config import connector_config
from headgate.runtime.config.connector_config import with_prefix
from headgate.runtime.connector import in_thread
from headgate.runtime.errors import PluginNotFound, ProviderFailed
from headgate.runtime.plugins import PluginKind, Plugins

log = logging.getLogger(__name__)

_PATIENCE_S: Final = 30.0
"""How long a connector's commands wait for a provider that does not answer."""
_LONG_ENOUGH: Final = 8
"""A secret inside a longer text is recognised from this length on; shorter ones would be found by accident."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A configuration with its values looked up."""

    config: Config
    secrets: Mapping[str, str] = field(default_factory=dict)
    """The value of each variable that is not for everybody's eyes, by the variable's text."""
    ttl_ms: int | None = None
    """How long all of it is good for."""


@dataclass(frozen=True, slots=True)
class Variable:
    provider: str
    path: str
    key: str
    text: str = field(compare=False)


def parse(text: str) -> list[str | Variable]:
    """A value cut into plain text and variables. It takes what Apache's pattern takes,
    `\\$\\{([^}]*?):(([^}]*?):)?([^}]*?)\\}`, but in one pass, however long the text."""
    parts: list[str | Variable] = []
    done = position = 0
    while (start := text.find("${", position)) >= 0 and (end := text.find("}", start) + 1) > 0:
        provider, colon, rest = text[start + 2 : end - 1].partition(":")
        if colon:
            path, _, key = rest.partition(":") if ":" in rest else ("", "", rest)
            parts += [text[done:start], Variable(provider, path, key, text[start:end])]
            done = end
        position = end
    return [part for part in (*parts, text[done:]) if part]


def has_variables(text: str) -> bool:
    return any(isinstance(part, Variable) for part in parse(text))


class Secrets:
    """The worker's config providers, by their aliases."""

    def __init__(self, providers: Mapping[str, ConfigProvider] | None = None) -> None:
        self._providers = dict(providers or {})

    @classmethod
    def of(cls, worker: Mapping[str, str], plugins: Plugins) -> Secrets:
        """The providers that a worker file names under `config.providers`. Raises ConfigError."""
        aliases = connector_config.aliases(worker, "config.providers")
        return cls({alias: _provider(alias, worker, plugins) for alias in aliases})

    def resolve(self, config: Config, public: Collection[str] = connector_config.NAMES) -> Resolved:
        """Blocks. Variables of unknown providers, and keys that a provider does not have, stay as they are. What is
        under a `public` key is no secret: topics and class names may be seen. Raises ProviderFailed."""
        parsed = {key: parts for key, value in config.items() if _variables(parts := parse(value))}
        if not parsed or not self._providers:
            return Resolved(config)
        values, ttl = self._look_up([variable for parts in parsed.values() for variable in _variables(parts)])
        secrets: dict[str, str] = {}
        made = {}
        for key, parts in parsed.items():
            made[key] = "".join(part if isinstance(part, str) else values.get(part, part.text) for part in parts)
            if key not in public:
                used = [variable for variable in _variables(parts) if variable in values]
                secrets |= {each.text: values[each] for each in used if is_secret(values[each])}
        hide(secrets.values())
        return Resolved({**config, **made}, secrets, ttl)

    def _look_up(self, variables: Collection[Variable]) -> tuple[dict[Variable, str], int | None]:
        """Each provider is asked once for each path."""
        wanted: dict[tuple[str, str], set[str]] = {}
        for variable in variables:
            if variable.provider in self._providers:
                wanted.setdefault((variable.provider, variable.path), set()).add(variable.key)
        values: dict[Variable, str] = {}
        ttls = []
        for (alias, path), keys in wanted.items():
            try:
                data = self._providers[alias].get(path, frozenset(keys))
            except Exception as error:
                raise ProviderFailed(str(error) or type(error).__name__) from error
            values |= {Variable(alias, path, key, ""): str(value) for key, value in data.values.items()}
            if data.ttl_ms is not None and data.ttl_ms > 0:
                ttls.append(data.ttl_ms)
        return values, min(ttls, default=None)

    async def look_up(self, config: Config) -> Resolved:
        """The same without blocking, and not for ever."""
        if not self._providers or not any(map(has_variables, config.values())):
            return Resolved(config)
        try:
            return await asyncio.wait_for(in_thread(lambda: self.resolve(config), "config-providers"), _PATIENCE_S)
        except TimeoutError:
            raise ProviderFailed(f"The config providers did not answer within {_PATIENCE_S:.0f} s") from None

    def close(self) -> None:
        for alias, provider in self._providers.items():
            try:
                provider.close()
            except Exception:
                log.exception("Config provider %s failed while it was closed", alias)


def resolve_worker(raw: Config, plugins: Plugins, public: Collection[str]) -> tuple[Config, Secrets]:
    """The worker file with its own providers applied to it, and the providers; its secrets are hidden from now on.
    Raises ConfigError."""
    hide(value for key, value in raw.items() if key not in public and is_secret_key(key) and not has_variables(value))
    secrets = Secrets.of(raw, plugins)
    try:
        return secrets.resolve(raw, public).config, secrets
    except ProviderFailed as error:
        raise ConfigError(str(error)) from error


def put_back(task: Config, connector: Config, secrets: Mapping[str, str]) -> Config:
    """A task config as it may be stored: with the variables of the connector config, not what they stand for. They
    are looked up again when the task is started."""

    def stored(key: str, value: str) -> str:
        if key in connector and has_variables(connector[key]):
            return connector[key]
        for variable, secret in secrets.items():
            if value == secret:
                return variable
            if len(secret) >= _LONG_ENOUGH:
                value = value.replace(secret, variable)
        return value

    return {key: stored(key, value) for key, value in task.items()}


def _variables(parts: Collection[str | Variable]) -> list[Variable]:
    return [part for part in parts if isinstance(part, Variable)]


def _provider(alias: str, worker: Mapping[str, str], plugins: Plugins) -> ConfigProvider:
    key = f"config.providers.{alias}.class"
    name = worker.get(key, "").strip()
    if not name:
        raise ConfigError.missing(key)
    try:
        found = plugins.find(name, PluginKind.CONFIG_PROVIDER)
    except PluginNotFound as error:
        raise ConfigError.invalid(key, name, f"Class {name} could not be found. {error}") from None
    provider = found.cls()
    assert isinstance(provider, ConfigProvider)
    try:
        provider.configure(with_prefix(worker, f"config.providers.{alias}.param."))
    except ConfigError:
        raise
    except Exception as error:
        raise ConfigError(f"Config provider {alias} ({name}) cannot be configured: {error}") from error
    return provider
