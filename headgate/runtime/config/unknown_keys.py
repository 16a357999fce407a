"""Keys of a connector's configuration that nobody declared: mostly slips of the pen."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable
from typing import Final

from headgate.api.config import ConfigDef
from headgate.model import Config, ConnectorType
from headgate.runtime.config.connector_config import GROUPS, TASK_CLASS, TOPIC_CREATION, aliases
from headgate.runtime.config.overrides import Client
from headgate.runtime.config.validation import UnknownKey

_CLOSE: Final = 0.8


def find(
    config: Config, kind: ConnectorType, declared: Collection[str], open_prefixes: Iterable[str], own: ConfigDef
) -> list[UnknownKey]:
    """`declared`: by the framework, the connector, its transforms, predicates and converters. Below `open_prefixes`
    are plugins that declare nothing, so that anything may have a meaning. The same holds for a connector that declares
    nothing, but where a key is almost one of the framework's."""
    prefixes = (*open_prefixes, *(client.prefix for client in Client), *_topic_groups(kind, config))
    candidates = [*declared]
    found = []
    for key in config:
        if key in declared or key == TASK_CLASS or key.startswith(prefixes):
            continue
        guess = _guess(key, candidates)
        if guess is not None or list(own):
            found.append(UnknownKey(key, guess))
    return found


def _topic_groups(kind: ConnectorType, config: Config) -> list[str]:
    if kind is not ConnectorType.SOURCE:
        return []
    return [f"{TOPIC_CREATION}{group}." for group in ("default", *aliases(config, GROUPS))]


def _guess(key: str, candidates: list[str]) -> str | None:
    # A slip in `producer.override.` is found by what comes after it: the client's keys are not listed anywhere.
    rest = key.split(".", 2)[2:]
    overrides = [client.prefix + rest[0] for client in Client] if rest else []
    return closest(key, [*candidates, *overrides], _CLOSE)


def closest(key: str, candidates: Collection[str], cutoff: float) -> str | None:
    """What was probably meant. Letters that changed places are the same letters, however few they are."""
    swapped = (each for each in candidates if sorted(each) == sorted(key))
    return next(swapped, None) or next(iter(difflib.get_close_matches(key, candidates, n=1, cutoff=cutoff)), None)


def told(unknown: Iterable[UnknownKey]) -> str:
    """For the log."""
    return ", ".join(
        f"{each.name} (did you mean {each.did_you_mean}?)" if each.did_you_mean else each.name for each in unknown
    )
