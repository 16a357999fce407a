"""How a source's topics are created, from its `topic.creation.*` keys (KIP-158)."""

from __future__ import annotations

import logging
from typing import Any, Final

from headgate.api.config import INT, LIST, REQUIRED, SHORT, ConfigDef, Key, Validator
from headgate.api.errors import ConfigError
from headgate.java.regex import compiled
from headgate.model import Config, TopicGroup
from headgate.runtime.config.connector_config import GROUPS, TOPIC_CREATION, aliases, regexes, with_prefix

log = logging.getLogger(__name__)

DEFAULT: Final = "default"
_FACTOR: Final = "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster"
_OWN: Final = ("include", "exclude", "replication.factor", "partitions")


def topic_groups(config: Config) -> tuple[TopicGroup, ...]:
    """In the order they are tried, the default group last; none when the connector says nothing about it.
    Raises ConfigError."""
    if not any(key.startswith(TOPIC_CREATION) for key in config):
        return ()
    default = _group(config, DEFAULT, None)
    names = aliases(config, GROUPS)
    if DEFAULT in names:
        log.warning("%s names the group '%s', which is always there: left out", GROUPS, DEFAULT)
    return (*(_group(config, name, default) for name in names if name != DEFAULT), default)


def _group(config: Config, name: str, default: TopicGroup | None) -> TopicGroup:
    """None: this is the default one, which says all and is for all."""
    prefix = f"{TOPIC_CREATION}{name}."
    replicas = REQUIRED if default is None else default.replication_factor
    partitions = REQUIRED if default is None else default.partitions
    patterns = () if default is None else ("include", "exclude")
    parsed = ConfigDef(
        *(Key(f"{prefix}{each}", LIST, [], regexes) for each in patterns),
        Key(f"{prefix}replication.factor", SHORT, replicas, _positive(_FACTOR)),
        Key(f"{prefix}partitions", INT, partitions, _positive("Number of partitions must be positive")),
    ).parse(config)
    return TopicGroup(
        name=name,
        include=".*" if default is None else _either(parsed[f"{prefix}include"]),
        exclude="" if default is None else _either(parsed[f"{prefix}exclude"]),
        replication_factor=parsed[f"{prefix}replication.factor"],
        partitions=parsed[f"{prefix}partitions"],
        configs=_others(config, prefix),
    )


def _either(patterns: list[str]) -> str:
    """As Python takes it: tasks know nothing of Java's."""
    return "|".join(compiled(each).pattern for each in patterns)


def _positive(reason: str) -> Validator:
    def check(key: str, value: Any) -> None:
        if value != -1 and value < 1:
            raise ConfigError.invalid(key, value, f"{reason}, or -1 to use the broker's default")

    return check


def _others(config: Config, prefix: str) -> dict[str, str]:
    """Whatever else is said of a group is a setting of its topics."""
    return {key: value for key, value in with_prefix(config, prefix).items() if key not in _OWN}
