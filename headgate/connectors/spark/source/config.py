"""The keys of SparkSource, and what they mean together."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, at_least, no_duplicates, non_empty, one_of
from headgate.api.config import HIGH, INT, LIST, LOW, STRING, or_null
from headgate.connectors.spark.location import Location
from headgate.connectors.spark.source.folder.formats import CSV, JSON, PARQUET, TEXT, refusal
from headgate.connectors.spark.source.provider import valid_provider

PROVIDER: Final = "provider"
PATH: Final = "path"
FORMAT: Final = "format"
ORDER: Final = "order.by"
PATTERN: Final = "file.pattern"
SETTLE: Final = "settle.ms"
TOPIC: Final = "topic"
SCHEMA: Final = "schema"
KEY_COLUMNS: Final = "key.columns"
TIMESTAMP_COLUMN: Final = "timestamp.column"
BATCH: Final = "batch.size"
INTERVAL: Final = "poll.interval.ms"
EXECUTORS: Final = "executors.produce"
OPTIONS: Final = "options."

BY_NAME: Final = "name"
BY_TIME: Final = "time"

AUTO: Final = "auto"
ALWAYS: Final = "always"
NEVER: Final = "never"

_OF_FOLDERS: Final = (FORMAT, ORDER, PATTERN, SETTLE)


def _folder(key: str, value: Any) -> None:
    found = Location.of(value)
    if found.local is not None and not os.path.isabs(re.sub("^file:", "", value, flags=re.IGNORECASE)):
        reason = "It must be the absolute path of a folder that this worker and the executors have at the same place"
        raise ConfigError.invalid(key, value, f"{reason}, or the URI of one elsewhere, such as s3a://bucket/folder")


CONFIG: Final = ConfigDef(
    Key(
        PROVIDER,
        STRING,
        default=None,
        validator=or_null(valid_provider),
        importance=HIGH,
        doc="A data source for PySpark with a stream reader, as module.Class or module:Class. One of provider, path.",
    ),
    Key(
        PATH,
        STRING,
        default=None,
        validator=or_null(_folder),
        importance=HIGH,
        doc="A folder whose new files are read: an absolute path, or a URI such as s3a://bucket/folder.",
    ),
    Key(TOPIC, STRING, validator=non_empty, importance=HIGH, doc="Topic that the rows are written to."),
    Key(
        FORMAT,
        STRING,
        default=TEXT,
        validator=one_of(TEXT, CSV, JSON, PARQUET),
        importance=HIGH,
        doc="Of the files: text, csv, json (an object on each line) or parquet.",
    ),
    Key(
        ORDER,
        STRING,
        default=BY_NAME,
        validator=one_of(BY_NAME, BY_TIME),
        importance=HIGH,
        doc="In which order files are read: name, or time of their last change.",
    ),
    Key(PATTERN, STRING, default="*", validator=non_empty, doc="Which files are read, such as *.csv."),
    Key(
        SETTLE,
        INT,
        default=5000,
        validator=at_least(0),
        doc="A file is read when it has not changed for so long: until then somebody may be writing it.",
    ),
    Key(
        SCHEMA,
        STRING,
        default=None,
        validator=or_null(non_empty),
        doc="Columns, as in id INT, name STRING. Without it, what the data source or the first file says.",
    ),
    Key(
        KEY_COLUMNS,
        LIST,
        default="",
        validator=no_duplicates,
        doc="Columns whose values are the keys of records; of several, a struct is made.",
    ),
    Key(
        TIMESTAMP_COLUMN,
        STRING,
        default=None,
        validator=or_null(non_empty),
        doc="Column with the timestamps of records: a timestamp, or milliseconds as bigint.",
    ),
    Key(BATCH, INT, default=10_000, validator=at_least(1), importance=LOW, doc="Most rows given in one poll."),
    Key(
        INTERVAL,
        INT,
        default=1000,
        validator=at_least(10),
        importance=LOW,
        doc="How long to wait before it is looked again, when there was nothing new.",
    ),
    Key(
        EXECUTORS,
        STRING,
        default=NEVER,
        validator=one_of(AUTO, ALWAYS, NEVER),
        doc="Whether executors send records to Kafka themselves: auto, if there is much to read. Quicker, but"
        " in no order, except within what one Spark task reads; not with exactly-once delivery.",
    ),
)


@dataclass(frozen=True, slots=True)
class SparkSourceConfig:
    provider: str | None
    """With dots only."""
    folder: Location | None
    topic: str
    format: str
    by_time: bool
    pattern: str
    settle_ms: int
    schema: str | None
    key_columns: tuple[str, ...]
    timestamp_column: str | None
    batch_size: int
    interval_s: float
    executors: str
    """Whether they send: AUTO, ALWAYS or NEVER."""
    options: Mapping[str, str]

    @classmethod
    def of(cls, config: Mapping[str, str]) -> SparkSourceConfig:
        """Raises ConfigError."""
        parsed = CONFIG.parse(config)
        options = _options(config)
        for problem in _problems(config, parsed, options).values():
            raise ConfigError(problem)
        return cls(
            provider=parsed[PROVIDER] and parsed[PROVIDER].replace(":", "."),
            folder=parsed[PATH] and Location.of(parsed[PATH]),
            topic=parsed[TOPIC],
            format=parsed[FORMAT],
            by_time=parsed[ORDER] == BY_TIME,
            pattern=parsed[PATTERN],
            settle_ms=parsed[SETTLE],
            schema=parsed[SCHEMA],
            key_columns=tuple(parsed[KEY_COLUMNS]),
            timestamp_column=parsed[TIMESTAMP_COLUMN],
            batch_size=parsed[BATCH],
            interval_s=parsed[INTERVAL] / 1000,
            executors=parsed[EXECUTORS],
            options=options,
        )


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    """All that is wrong, key by key; with the options, which have no definitions."""
    values = {value.name: value for value in CONFIG.validate(config)}
    options = _options(config)
    values |= {OPTIONS + name: ConfigValue(OPTIONS + name, value) for name, value in options.items()}
    if not any(value.errors for value in values.values()):
        parsed = {name: value.value for name, value in values.items()}
        for key, problem in _problems(config, parsed, options).items():
            values[key].errors.append(problem)
    return list(values.values())


def _options(config: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(OPTIONS): value for key, value in config.items() if key.startswith(OPTIONS)}


def _problems(config: Mapping[str, str], parsed: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, str]:
    """What keys say against each other, by the key to blame."""
    provider, path = parsed[PROVIDER], parsed[PATH]
    found: dict[str, str] = {}

    def blame(key: str, value: object, reason: str) -> None:
        found.setdefault(key, str(ConfigError.invalid(key, value, reason)))

    if (provider is None) == (path is None):
        blame(PROVIDER, provider, f"Set one of {PROVIDER} and {PATH}")
    elif path is None:
        for key in _OF_FOLDERS:
            if key in config:
                blame(key, config[key], f"It is for files: it has no meaning with {PROVIDER}")
    else:
        for name, value in options.items():
            reason = refusal(parsed[FORMAT], name, value)
            if reason is not None:
                blame(OPTIONS + name, value, reason)
        if parsed[FORMAT] == TEXT and parsed[SCHEMA] is not None:
            blame(SCHEMA, parsed[SCHEMA], "Lines of text have none: choose another format")
    return found
