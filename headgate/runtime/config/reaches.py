"""What a configuration reaches, by all of its plugins and clients, and what of that the worker does not allow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from headgate.api.errors import ConfigError
from headgate.api.reach import client_reaches
from headgate.model import Config
from headgate.runtime.config.connector_config import CONNECTOR_CLASS, CONVERTERS, aliases, steps, with_prefix
from headgate.runtime.config.overrides import Client
from headgate.runtime.plugins import CONNECTORS, PluginKind, Plugins
from headgate.sandbox import Sandbox


def refused(config: Config, plugins: Plugins, sandbox: Sandbox) -> dict[str, str]:
    """Of a connector's configuration, without variables: by key, why the worker does not allow it."""
    found: dict[str, str] = {}
    for key, problem in _problems(config, plugins, sandbox):
        found.setdefault(key, str(ConfigError.invalid(key, config.get(key), problem)))
    return found


def require(config: Config, plugins: Plugins, sandbox: Sandbox) -> None:
    """Raises ConfigError. Validation has seen it before, but on another worker perhaps, and links change."""
    problems = refused(config, plugins, sandbox)
    if problems:
        raise ConfigError("\n".join(problems.values()))


def _problems(config: Config, plugins: Plugins, sandbox: Sandbox) -> Iterator[tuple[str, str]]:
    named: dict[str, tuple[str, tuple[PluginKind, ...]]] = {
        CONNECTOR_CLASS: ("", CONNECTORS),
        **{key: (f"{key}.", (kind,)) for key, kind in CONVERTERS.items()},
        **{f"{prefix}type": (prefix, (kind,)) for prefix, kind in steps(config).items()},
    }
    reaches = [reach for client in Client for reach in client_reaches(config, client.prefix)]
    for key, (prefix, kinds) in named.items():
        found = plugins.get(config.get(key, ""), *kinds)
        if found is not None:
            if problem := sandbox.class_problem(found.cls):
                yield key, problem
            own = found.cls.reaches(with_prefix(config, prefix))
            reaches += [replace(reach, key=prefix + reach.key) for reach in own]
    for reach in reaches:
        if problem := sandbox.problem(reach):
            yield reach.key, problem


def sandbox_of(
    worker: Config, plugins: Plugins, own: Iterable[str | Path] = (), logins: Iterable[str | Path] = ()
) -> Sandbox:
    """Of a worker file, without variables. Raises ConfigError, also for config providers that reach beyond it."""
    made = Sandbox.of(worker, plugins.folders, own, logins)
    for alias in aliases(worker, "config.providers"):
        found = plugins.get(worker.get(f"config.providers.{alias}.class", ""), PluginKind.CONFIG_PROVIDER)
        prefix = f"config.providers.{alias}.param."
        for reach in found.cls.reaches(with_prefix(worker, prefix)) if found else ():
            made.require(replace(reach, key=prefix + reach.key))
    return made
