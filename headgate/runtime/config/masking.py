"""Masks in place of secrets where configurations are shown, and the secrets again where masks come back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from headgate.api.config import PASSWORD, STRING, ConfigDef, Type
from headgate.log import HIDDEN, hide, is_secret, is_secret_key
from headgate.model import Config
from headgate.runtime.config import connector_config as keys
from headgate.runtime.config.secrets import has_variables
from headgate.runtime.errors import BadRequest
from headgate.runtime.plugins import CONNECTORS, PluginKind, Plugins

MASKED: Final = "${masked}"


def secret_keys(config: Mapping[str, str | None], plugins: Plugins) -> frozenset[str]:
    """Keys of a connector's configuration that it, or one of its plugins, declares as passwords; those that nobody
    declares, by their names."""
    steps = keys.steps(config)
    named: dict[str, tuple[str, Iterable[PluginKind]]] = {"": (keys.CONNECTOR_CLASS, CONNECTORS)}
    named |= {f"{key}.": (key, [kind]) for key, kind in keys.CONVERTERS.items()}
    named |= {prefix: (f"{prefix}type", [kind]) for prefix, kind in steps.items()}
    types: dict[str, Type] = dict.fromkeys(keys.NAMES, STRING)
    for prefix, (key, kinds) in named.items():
        found = plugins.get(config.get(key) or "", *kinds)
        definition = getattr(found.cls, "config", None) if found else None
        if isinstance(definition, ConfigDef):
            types |= {prefix + each.name: each.type for each in definition}

    def is_one(key: str) -> bool:
        if key in types:
            return types[key] is PASSWORD
        # Aliases, and names of groups of topics, say nothing about what is behind them.
        own = next((key.removeprefix(prefix) for prefix in steps if key.startswith(prefix)), key)
        return is_secret_key(own) and not key.startswith(keys.TOPIC_CREATION)

    return frozenset(filter(is_one, config))


def literals(config: Mapping[str, str | None], plugins: Plugins) -> dict[str, str]:
    """The secrets that stand in a connector's configuration as they are. Variables only say where one is."""
    found = {key: config[key] for key in secret_keys(config, plugins)}
    return {key: value for key, value in found.items() if value and not has_variables(value)}


def masked(config: Config, plugins: Plugins) -> Config:
    return {**config, **dict.fromkeys(literals(config, plugins), MASKED)}


def masked_task(task: Config, connector: Config, plugins: Plugins) -> Config:
    """Also where the connector has put a secret of its own under another key."""
    secrets = set(filter(is_secret, literals(connector, plugins).values()))
    shown = masked({**connector, **task}, plugins)
    return {key: MASKED if value in secrets else shown[key] for key, value in task.items()}


def changes(
    before: Mapping[str, str | None], after: Mapping[str, str | None], plugins: Plugins
) -> dict[str, dict[str, str | None]]:
    """Keys whose values differ, from what to what; a secret is seen to change, not what it is."""
    shown = [{**each, **dict.fromkeys(literals(each, plugins), MASKED)} for each in (before, after)]
    return {
        key: {"from": shown[0].get(key), "to": shown[1].get(key)}
        for key in dict.fromkeys([*before, *after])
        if before.get(key) != after.get(key) and after.get(key) != MASKED
    }


def unmasked(sent: Mapping[str, str | None], stored: Config, plugins: Plugins) -> Mapping[str, str | None]:
    """With what is stored where a mask was sent. Raises BadRequest where nothing is, or where it would be seen: under
    another class, a key may be for everybody's eyes."""
    kept = [key for key, value in sent.items() if value == MASKED]
    if not kept:
        return sent
    whole = {**sent, **{key: stored.get(key) for key in kept}}
    secret = secret_keys(whole, plugins)
    lost = [key for key in kept if whole[key] is None or key not in secret]
    if lost:
        raise BadRequest(
            f"{MASKED} stands for a secret that is stored and stays as it is, but there is none for"
            f" {', '.join(lost)}: send the value itself"
        )
    hide(value for key, value in literals(whole, plugins).items() if key in kept)
    return whole


def without(text: str, secret: str) -> str:
    """A message about the key of this secret: there, it is known again however short it is."""
    return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", HIDDEN, text)
