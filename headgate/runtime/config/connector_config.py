"""The keys that every connector has, whatever its class: names, converters, transforms, error handling, topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api.config import (
    BOOLEAN,
    CLASS,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    MEDIUM,
    SHORT,
    STRING,
    ConfigDef,
    Key,
    Width,
    at_least,
    java_regex,
    no_duplicates,
    non_empty,
    one_of,
)
from headgate.api.errors import ConfigError
from headgate.model import Config, ConnectorType
from headgate.runtime.plugins import PluginKind

NAME: Final = "name"
CONNECTOR_CLASS: Final = "connector.class"
VERSION: Final = ".plugin.version"
"""Of the plugin whose key, or alias, stands before it."""
CONNECTOR_VERSION: Final = f"connector{VERSION}"
TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
TASK_CLASS: Final = "task.class"
DLQ_TOPIC: Final = "errors.deadletterqueue.topic.name"
TOPIC_CREATION: Final = "topic.creation."
GROUPS: Final = "topic.creation.groups"
EXACTLY_ONCE: Final = "exactly.once.support"
BOUNDARY: Final = "transaction.boundary"
BOUNDARY_INTERVAL: Final = "transaction.boundary.interval.ms"
OFFSETS_TOPIC: Final = "offsets.storage.topic"
GROUP_OVERRIDE: Final = "consumer.override.group.id"
RELOAD: Final = "config.action.reload"
CONVERTERS: Final = {
    "key.converter": PluginKind.CONVERTER,
    "value.converter": PluginKind.CONVERTER,
    "header.converter": PluginKind.HEADER_CONVERTER,
}


def _name(key: str, value: Any) -> None:
    if value is None:
        return  # reported as missing already
    if not value:
        raise ConfigError.invalid(key, value, "String may not be empty")
    codes = [str(ord(char)) for char in value if ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0]
    if codes:
        reason = f"String may not contain control sequences but had the following ASCII chars: {', '.join(codes)}"
        raise ConfigError.invalid(key, value, reason)


def _at_least_or_absent(minimum: int) -> Any:
    check = at_least(minimum)
    return lambda name, value: None if value is None else check(name, value)


def regexes(name: str, value: Any) -> None:
    """Of a LIST: each a regular expression."""
    for item in value or ():
        java_regex(name, item)


def _converter(kind: str, order: int) -> tuple[Key, Key]:
    title = f"{kind.capitalize()} converter"
    return (
        Key(f"{kind}.converter", CLASS, None, None, LOW,
            f"Class that turns record {kind}s into bytes and back; the worker's when absent.",
            "Common", order, Width.SHORT, f"{title} class"),
        Key(f"{kind}.converter.plugin.version", STRING, None, None, LOW,
            f"Version, or range of versions, of the {kind} converter.",
            "Common", order + 1, Width.SHORT, f"{title} version"),
    )  # fmt: skip


_COMMON: Final = ConfigDef(
    Key(NAME, STRING, validator=_name, importance=HIGH, doc="Unique name of this connector.",
        group="Common", order=1, width=Width.MEDIUM, display_name="Connector name"),
    Key(CONNECTOR_CLASS, STRING, importance=HIGH, doc="Class of the connector: full name, or its last part.",
        group="Common", order=2, width=Width.LONG, display_name="Connector class"),
    Key(CONNECTOR_VERSION, STRING, None, None, MEDIUM, "Version, or range of versions, of the connector.",
        "Common", 3, Width.MEDIUM, "Connector version"),
    Key("tasks.max", INT, 1, at_least(1), HIGH, "Most tasks that this connector may run.",
        "Common", 4, Width.SHORT, "Tasks max"),
    Key("tasks.max.enforce", BOOLEAN, True, None, LOW, "Whether a connector that makes more tasks fails.",
        "Common", 5, Width.SHORT, "Enforce tasks max"),
    *_converter("key", 6),
    *_converter("value", 8),
    *_converter("header", 10),
    Key("transforms", LIST, [], no_duplicates, LOW, "Aliases of the transforms, in the order they are applied.",
        "Transforms", 12, Width.LONG, "Transforms"),
    Key("predicates", LIST, [], no_duplicates, LOW, "Aliases of the predicates that transforms may name.",
        "Predicates", 13, Width.LONG, "Predicates"),
    Key(RELOAD, STRING, "restart", one_of("none", "restart"), LOW,
        "What to do when a value from a config provider expires.", "Common", 14, Width.MEDIUM, "Reload Action"),
    Key("errors.retry.timeout", LONG, 0, None, MEDIUM, "How long a failed operation is retried, in ms; -1: for ever.",
        "Error Handling", 1, Width.MEDIUM, "Retry Timeout for Errors"),
    Key("errors.retry.delay.max.ms", LONG, 60000, None, MEDIUM, "Longest pause between two tries, in ms.",
        "Error Handling", 2, Width.MEDIUM, "Maximum Delay Between Retries for Errors"),
    Key("errors.tolerance", STRING, "none", one_of("none", "all"), MEDIUM,
        "none: an error fails the task; all: the record is skipped.", "Error Handling", 3, Width.SHORT,
        "Error Tolerance"),
    Key("errors.log.enable", BOOLEAN, False, None, MEDIUM, "Whether each error is written to the log.",
        "Error Handling", 4, Width.SHORT, "Log Errors"),
    Key("errors.log.include.messages", BOOLEAN, False, None, MEDIUM, "Whether the log shows the failed record too.",
        "Error Handling", 5, Width.SHORT, "Log Error Details"),
)  # fmt: skip

# Apache has these for sinks only.
_DEAD_LETTERS: Final = (
    Key(DLQ_TOPIC, STRING, "", None, MEDIUM, "Topic for records that failed; empty: none.",
        "Error Handling", 6, Width.MEDIUM, "Dead Letter Queue Topic Name"),
    Key("errors.deadletterqueue.topic.replication.factor", SHORT, 3, None, MEDIUM,
        "Replication factor of that topic, if it has to be created.", "Error Handling", 7, Width.MEDIUM,
        "Dead Letter Queue Topic Replication Factor"),
    Key("errors.deadletterqueue.context.headers.enable", BOOLEAN, False, None, MEDIUM,
        "Whether headers tell what went wrong.", "Error Handling", 8, Width.MEDIUM, "Enable Error Context Headers"),
)  # fmt: skip

_SOURCE: Final = ConfigDef(
    *_DEAD_LETTERS,
    Key(GROUPS, LIST, [], no_duplicates, LOW, "Names of the topic creation groups.",
        "Topic Creation", 1, Width.LONG, "Topic Creation Groups"),
    Key(EXACTLY_ONCE, STRING, "requested", one_of("requested", "required"), MEDIUM,
        "required: refuse to run without exactly-once support.", "Exactly Once Support", 2, Width.SHORT,
        "Exactly once support"),
    Key(BOUNDARY, STRING, "poll", one_of("poll", "interval", "connector"), MEDIUM,
        "Where the transactions of an exactly-once source end.", "Exactly Once Support", 3, Width.SHORT,
        "Transaction Boundary"),
    Key(BOUNDARY_INTERVAL, LONG, None, _at_least_or_absent(0), LOW,
        "Length of a transaction with the boundary 'interval'; the worker's flush interval when absent.",
        "Exactly Once Support", 4, Width.SHORT, "Transaction boundary interval"),
    Key(OFFSETS_TOPIC, STRING, None, non_empty, LOW, "A topic of its own for this connector's offsets.",
        "offsets.topic", 1, Width.LONG, "Offsets topic"),
)  # fmt: skip

_SINK: Final = ConfigDef(
    Key(TOPICS, LIST, [], None, HIGH, "Topics to read, separated by commas.", "Common", 4, Width.LONG, "Topics"),
    Key(TOPICS_REGEX, STRING, "", java_regex, HIGH, "Regular expression of the topics to read.",
        "Common", 4, Width.LONG, "Topics regex"),
    *_DEAD_LETTERS,
)  # fmt: skip


NAMES: Final = frozenset((_COMMON + _SOURCE + _SINK).names)
"""The framework's keys, which hold nothing that must be hidden."""


def definition(kind: ConnectorType) -> ConfigDef:
    return _COMMON + (_SOURCE if kind is ConnectorType.SOURCE else _SINK)


def transform_keys(alias: str) -> ConfigDef:
    """The keys of one transform that belong to the framework."""
    prefix, group = f"transforms.{alias}.", f"Transforms: {alias}"
    return ConfigDef(
        Key(f"{prefix}type", CLASS, importance=HIGH, doc=f"Class of the transform '{alias}'.",
            group=group, order=0, width=Width.LONG, display_name=f"Transformation type for {alias}"),
        Key(f"{prefix}plugin.version", STRING, None, None, MEDIUM, "Version, or range of versions.",
            group, 1, Width.SHORT, f"Transformation version for {alias}"),
        Key(f"{prefix}predicate", STRING, None, None, MEDIUM, "Alias of the predicate that guards it.",
            group, 2, Width.MEDIUM, "Predicate"),
        Key(f"{prefix}negate", BOOLEAN, False, None, MEDIUM, "Apply it where the predicate is false.",
            group, 3, Width.SHORT, "Negate"),
    )  # fmt: skip


def predicate_keys(alias: str) -> ConfigDef:
    group = f"Predicates: {alias}"
    return ConfigDef(
        Key(f"predicates.{alias}.type", CLASS, importance=HIGH, doc=f"Class of the predicate '{alias}'.",
            group=group, order=0, width=Width.LONG, display_name=f"Predicate type for {alias}"),
        Key(f"predicates.{alias}.plugin.version", STRING, None, None, MEDIUM, "Version, or range of versions.",
            group, 1, Width.SHORT, f"Predicate version for {alias}"),
    )  # fmt: skip


def aliases(config: Mapping[str, str | None], key: str) -> list[str]:
    """The aliases listed under `transforms` or `predicates`, each once."""
    listed = (alias.strip() for alias in (config.get(key) or "").split(","))
    return list(dict.fromkeys(alias for alias in listed if alias))


def steps(config: Mapping[str, str | None]) -> dict[str, PluginKind]:
    """What the keys of every transform and predicate that is listed begin with."""
    return {
        **{f"transforms.{alias}.": PluginKind.TRANSFORMATION for alias in aliases(config, "transforms")},
        **{f"predicates.{alias}.": PluginKind.PREDICATE for alias in aliases(config, "predicates")},
    }


def classes(config: Mapping[str, str | None]) -> dict[str, PluginKind]:
    """The keys that name a class: converters, transforms and predicates."""
    return {**CONVERTERS, **{f"{prefix}type": kind for prefix, kind in steps(config).items()}}


def version_of(key: str) -> str:
    """The key of the version of a class that this one names."""
    return key.removesuffix(".type") + VERSION


def with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The keys that begin with `prefix`, without it."""
    return {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix) and value is not None}


@dataclass(frozen=True, slots=True)
class ConnectorConfig:
    """What the runtime itself reads of a connector's configuration."""

    connector_class: str
    tasks_max: int
    tasks_max_enforce: bool

    @classmethod
    def parse(cls, config: Config) -> ConnectorConfig:
        keys = ConfigDef(*(_COMMON[key] for key in (NAME, CONNECTOR_CLASS, "tasks.max", "tasks.max.enforce")))
        parsed = keys.parse(config)
        return cls(parsed[CONNECTOR_CLASS], parsed["tasks.max"], parsed["tasks.max.enforce"])

    @property
    def task_limit(self) -> int:
        """Most tasks allowed; -1: any number."""
        return self.tasks_max if self.tasks_max_enforce else -1
