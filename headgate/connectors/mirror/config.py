"""The keys of Mirror, and what they mean together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, at_least, java_regex, non_empty, one_of
from headgate.api.config import BOOLEAN, HIGH, INT, LIST, LOW, STRING
from headgate.connectors.mirror.naming import SOURCE, TOPIC, Naming, valid_alias, valid_format
from headgate.connectors.mirror.offset_policy import OffsetPolicy, valid_policy
from headgate.connectors.mirror.selection import Selection, valid_regexes
from headgate.kafka.settings import ClientConfigError, ClientKind, translate

TOPICS: Final = "topics"
TOPICS_REGEX: Final = "topics.regex"
TOPICS_EXCLUDE: Final = "topics.exclude"
SOURCE_PREFIX: Final = "source."
BOOTSTRAP: Final = "source.bootstrap.servers"
ALIAS: Final = "source.alias"
TOPIC_FORMAT: Final = "topic.format"
OFFSET_POLICY: Final = "offset.policy"
PARTITION_POLICY: Final = "partition.policy"
GROUP: Final = "group"
KEY_FORMAT: Final = "key.format"
VALUE_FORMAT: Final = "value.format"
REFRESH: Final = "refresh.interval.ms"
CREATE_TOPICS: Final = "create.topics"

SAME: Final = "same"
BY_KEY: Final = "by-key"
BYTES: Final = "bytes"
TEXT: Final = "string"
JSON: Final = "json"
FROM_JSON: Final = {KEY_FORMAT: "headgate.transforms.FromJson$Key", VALUE_FORMAT: "headgate.transforms.FromJson$Value"}
"""What reads the format json."""


def _format_key(name: str, what: str) -> Key:
    doc = f"What transforms and converters see of {what}: bytes, string, or json, which is read without a schema."
    return Key(name, STRING, default=BYTES, validator=one_of(BYTES, TEXT, JSON), doc=doc)


CONFIG: Final = ConfigDef(
    Key(TOPICS, LIST, default="", importance=HIGH, doc="Topics to copy."),
    Key(
        TOPICS_REGEX,
        STRING,
        default=None,
        validator=java_regex,
        importance=HIGH,
        doc="Topics to copy, by a regular expression that matches their whole names: instead of topics.",
    ),
    Key(
        TOPICS_EXCLUDE,
        LIST,
        default="",
        validator=valid_regexes,
        doc="Topics not to copy, by regular expressions that match their whole names.",
    ),
    Key(
        BOOTSTRAP,
        STRING,
        default=None,
        validator=non_empty,
        importance=HIGH,
        doc="Brokers of the cluster to read. Without it, that is the cluster that records go to. Other settings of its"
        " clients stand below source. too.",
    ),
    Key(
        ALIAS,
        STRING,
        default="source",
        validator=valid_alias,
        doc="What the cluster that is read is called, in names of topics and in offsets.",
    ),
    Key(
        TOPIC_FORMAT,
        STRING,
        default=None,
        validator=valid_format,
        importance=HIGH,
        doc=f"What topics are called where they are copied to: {TOPIC} is the topic, {SOURCE} the source.alias. By"
        f" default {TOPIC}, or {SOURCE}.{TOPIC} within one cluster.",
    ),
    Key(
        OFFSET_POLICY,
        STRING,
        default="earliest",
        validator=valid_policy,
        importance=HIGH,
        doc="Where to begin with a partition: earliest, latest, committed (by the group; earliest where it has nothing)"
        " or timestamp:<ms, or an instant such as 2030-01-31T12:00:00Z>.",
    ),
    Key(
        PARTITION_POLICY,
        STRING,
        default=SAME,
        validator=one_of(SAME, BY_KEY),
        doc="Which partition records go to: the same number as they have, or by their keys.",
    ),
    Key(
        GROUP,
        STRING,
        default=None,
        validator=non_empty,
        doc="Consumer group whose offsets are committed with transactions, and which offset.policy=committed reads;"
        " mirror-<name> by default.",
    ),
    _format_key(KEY_FORMAT, "keys"),
    _format_key(VALUE_FORMAT, "values"),
    Key(
        REFRESH,
        INT,
        default=60_000,
        validator=at_least(100),
        importance=LOW,
        doc="How often new topics and partitions are looked for.",
    ),
    Key(
        CREATE_TOPICS,
        BOOLEAN,
        default=True,
        doc="Whether topics to copy to are created where they are missing, with as many partitions as the source has.",
    ),
)

_CHOOSE: Final = f"Set one of {TOPICS} and {TOPICS_REGEX}"
_ONTO_ITSELF: Final = "would be copied onto itself: the cluster that is read is the one that records go to"
_OURS: Final = {
    "source.group.id": f"set {GROUP}",
    "source.auto.offset.reset": f"set {OFFSET_POLICY}",
    "source.enable.auto.commit": "offsets are committed with the records",
}
_SECRET: Final = ("password", "sasl.jaas.config", "ssl.keystore.key", "client.secret")


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    selection: Selection
    naming: Naming
    offset_policy: OffsetPolicy
    same_partition: bool
    group: str
    key_format: str
    value_format: str
    refresh_s: float
    create_topics: bool
    elsewhere: bool
    """The cluster that is read is named; it may be the same all the same."""
    source: Mapping[str, str]
    """Settings of its clients, by Apache's names."""

    @classmethod
    def of(cls, config: Mapping[str, str]) -> MirrorConfig:
        """Raises ConfigError."""
        parsed = CONFIG.parse(config)
        problem = _problem(parsed)
        if problem is not None:
            raise problem
        return cls(
            selection=_selection(parsed),
            naming=_naming(parsed),
            offset_policy=OffsetPolicy.parse(parsed[OFFSET_POLICY]),
            same_partition=parsed[PARTITION_POLICY] == SAME,
            group=parsed[GROUP] or f"mirror-{config.get('name', '')}",
            key_format=parsed[KEY_FORMAT],
            value_format=parsed[VALUE_FORMAT],
            refresh_s=parsed[REFRESH] / 1000,
            create_topics=parsed[CREATE_TOPICS],
            elsewhere=parsed[BOOTSTRAP] is not None,
            source=_source(config),
        )

    def clients(self, target: Mapping[str, str]) -> dict[str, str]:
        """Settings of clients of the cluster that is read, given those of the one that records go to."""
        return {**({} if self.elsewhere else target), **self.source}


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    """All that is wrong, key by key; with the client settings below `source.`, which have no definitions."""
    values = CONFIG.validate(config)
    if not any(value.errors for value in values):
        problem = _problem({value.name: value.value for value in values})
        if problem is not None:
            blamed = next(value for value in values if value.name == problem.key)
            blamed.errors.append(str(problem))
    return [*values, *_client_values(config)]


class _Problem(ConfigError):
    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(str(ConfigError.invalid(key, value, reason)))
        self.key = key


def _problem(parsed: Mapping[str, Any]) -> _Problem | None:
    """What keys say against each other."""
    topics, pattern = parsed[TOPICS], parsed[TOPICS_REGEX]
    if bool(topics) == bool(pattern):
        return _Problem(TOPICS, topics, _CHOOSE)
    if parsed[BOOTSTRAP] is not None:
        return None  # whether it is the same cluster is found out when it is asked
    selection, naming = _selection(parsed), _naming(parsed)
    kept = [topic for topic in selection.topics if selection.wants(topic) and naming.keeps(topic)]
    if kept:
        return _Problem(TOPIC_FORMAT, naming.format, f"Topic {kept[0]} {_ONTO_ITSELF}")
    if pattern and naming.name(TOPIC) == TOPIC:
        return _Problem(TOPIC_FORMAT, naming.format, f"Every topic {_ONTO_ITSELF}")
    return None


def onto_itself(config: MirrorConfig, topic: str) -> ConfigError:
    """For what is found out at run time."""
    return _Problem(TOPIC_FORMAT, config.naming.format, f"Topic {topic} {_ONTO_ITSELF}")


def _selection(parsed: Mapping[str, Any]) -> Selection:
    return Selection(tuple(parsed[TOPICS]), parsed[TOPICS_REGEX] or None, tuple(parsed[TOPICS_EXCLUDE]))


def _naming(parsed: Mapping[str, Any]) -> Naming:
    default = TOPIC if parsed[BOOTSTRAP] is not None else f"{SOURCE}.{TOPIC}"
    return Naming(parsed[TOPIC_FORMAT] or default, parsed[ALIAS])


# --- clients of the cluster that is read ------------------------------------------------------------------------------


def _source(config: Mapping[str, str]) -> dict[str, str]:
    given = {key: value for key, value in config.items() if key.startswith(SOURCE_PREFIX) and key != ALIAS}
    return {key.removeprefix(SOURCE_PREFIX): value for key, value in given.items() if key not in _OURS}


def _client_values(config: Mapping[str, str]) -> list[ConfigValue]:
    keys = [key for key in config if key.startswith(SOURCE_PREFIX) and key not in CONFIG]
    values = {key: ConfigValue(key, "[hidden]" if key.endswith(_SECRET) else config[key]) for key in keys}
    for key in values.keys() & _OURS.keys():
        values[key].errors.append(str(ConfigError.invalid(key, config[key], f"It is not to be set: {_OURS[key]}")))
    try:
        translate(ClientKind.CONSUMER, _source(config))
    except ClientConfigError as error:
        text = str(error)
        blamed = next((key for key in keys if key.removeprefix(SOURCE_PREFIX) in text), None)
        if blamed is None:
            values[SOURCE_PREFIX] = ConfigValue(SOURCE_PREFIX, errors=[text])
        else:
            values[blamed].errors.append(text)
    return list(values.values())
