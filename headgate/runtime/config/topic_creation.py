"""How a source's topics are created, from its `topic.creation.*` keys (KIP-158)."""

from __future__ import annotations

import logging
from typing import Any, Final

from headgate.api.config import INT, LIST, REQUIRED, SHORT, ConfigDef, Key
from headgate.api.errors import ConfigError
from headgate.model import Config, TopicGroup
from headgate.runtime.config.connector_config import GROUPS, TOPIC_CREATION, aliases, regexes, with_prefix

log = logging.getLogger(__name__)

DEFAULT: Final = "default"
_OWN: Final = ("include", "exclude", "replication.factor", "partitions")


def topic_groups(config: Config) -> tuple[TopicGroup, ...]:
    """In the order they are tried, the default group last; none when the connector says nothing about it.
    Raises ConfigError."""
    if not any(key.startswith(TOPIC_CREATION) for key in config):
        return ()
    prefix = f"{TOPIC_CREATION}{DEFAULT}."
    parsed = ConfigDef(_replicas(prefix), _partitions(prefix)).parse(config)
    default = TopicGroup(
        name=DEFAULT,
        include=".*",
        exclude="",
        replication_factor=parsed[f"{prefix}replication.factor"],
        partitions=parsed[f"{prefix}partitions"],
        configs=_others(config, prefix),
    )
    names = aliases(config, GROUPS)
    if DEFAULT in names:
        log.warning("%s names the group '%s', which is always there: left out", GROUPS, DEFAULT)
    return (*(_group(config, name, default) for name in names if name != DEFAULT), default)


def _group(config: Config, name: str, default: TopicGroup) -> TopicGroup:
    prefix = f"{TOPIC_CREATION}{name}."
    parsed = ConfigDef(
        Key(f"{prefix}include", LIST, [], regexes),
        Key(f"{prefix}exclude", LIST, [], regexes),
        _replicas(prefix, default.replication_factor),
        _partitions(prefix, default.partitions),
    ).parse(config)
    return TopicGroup(
        name=name,
        include="|".join(parsed[f"{prefix}include"]),
        exclude="|".join(parsed[f"{prefix}exclude"]),
        replication_factor=parsed[f"{prefix}replication.factor"],
        partitions=parsed[f"{prefix}partitions"],
        configs=_others(config, prefix),
    )


def _replicas(prefix: str, default: Any = REQUIRED) -> Key:
    return Key(f"{prefix}replication.factor", SHORT, default, _factor)


def _partitions(prefix: str, default: Any = REQUIRED) -> Key:
    return Key(f"{prefix}partitions", INT, default, _count)


def _factor(key: str, value: Any) -> None:
    if value != -1 and value < 1:
        reason = (
            "Replication factor must be positive and not larger than the number of brokers in the Kafka cluster, or -1"
            " to use the broker's default"
        )
        raise ConfigError.invalid(key, value, reason)


def _count(key: str, value: Any) -> None:
    if value != -1 and value < 1:
        reason = "Number of partitions must be positive, or -1 to use the broker's default"
        raise ConfigError.invalid(key, value, reason)


def _others(config: Config, prefix: str) -> dict[str, str]:
    """Whatever else is said of a group is a setting of its topics."""
    return {key: value for key, value in with_prefix(config, prefix).items() if key not in _OWN}
