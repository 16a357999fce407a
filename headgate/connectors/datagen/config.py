"""The keys of Datagen, ours and Confluent's, and what they mean together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, Recommender, at_least, non_empty
from headgate.api.config import BOOLEAN, DOUBLE, HIGH, INT, LONG, LOW, STRING, or_null
from headgate.connectors.datagen.quickstarts import QUICKSTARTS

if TYPE_CHECKING:
    from headgate.connectors.datagen.nested import Structs

TOPIC: Final = "topic"
SCHEMA: Final = "schema"
QUICKSTART: Final = "quickstart"
RATE: Final = "rate"
RECORDS: Final = "records"
SEED: Final = "seed"
KEY_FIELD: Final = "key.field"
SCHEMALESS: Final = "schemaless"
TIMESTAMP_START: Final = "timestamp.start"
TIMESTAMP_STEP: Final = "timestamp.step.ms"
KAFKA_TOPIC: Final = "kafka.topic"
SCHEMA_STRING: Final = "schema.string"
SCHEMA_FILENAME: Final = "schema.filename"
MAX_INTERVAL: Final = "max.interval"
ITERATIONS: Final = "iterations"
RANDOM_SEED: Final = "random.seed"
SCHEMA_KEYFIELD: Final = "schema.keyfield"
GENERATE_TIMEOUT: Final = "generate.timeout"

DEFAULT_RATE: Final = 4.0
"""What Confluent's gives with its default of 500 ms."""
_TWINS: Final = (
    (TOPIC, KAFKA_TOPIC),
    (RATE, MAX_INTERVAL),
    (RECORDS, ITERATIONS),
    (SEED, RANDOM_SEED),
    (KEY_FIELD, SCHEMA_KEYFIELD),
)
"""Ours, and Confluent's for the same."""
_LATEST_MS: Final = 253_402_300_799_999
_DAY_MS: Final = 86_400_000


class _Quickstarts(Recommender):
    def valid_values(self, name: str, parsed: Mapping[str, Any]) -> Sequence[Any]:
        return list(QUICKSTARTS)


def _known_quickstart(name: str, value: Any) -> None:
    if value and value.lower() not in QUICKSTARTS:
        raise ConfigError.invalid(name, value, f"There are {', '.join(QUICKSTARTS)}")


def _usable_rate(name: str, value: Any) -> None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise ConfigError.invalid(name, value, "It is a number of records per second, 0 or more")


def _no_file(name: str, value: Any) -> None:
    if value:
        reason = (
            f"Schemas are not read from files here: put the text into {SCHEMA_STRING}, by a config provider if need be"
        )
        raise ConfigError.invalid(name, value, reason)


def _instant(name: str, value: Any) -> None:
    if value is not None:
        _milliseconds(name, value)


def _a_day_at_most(name: str, value: Any) -> None:
    if value is None or not 0 <= value <= _DAY_MS:
        raise ConfigError.invalid(name, value, f"It is a number of milliseconds, from 0 to {_DAY_MS}")


CONFIG: Final = ConfigDef(
    Key(TOPIC, STRING, default=None, validator=non_empty, importance=HIGH, doc="Topic to write to."),
    Key(
        SCHEMA,
        STRING,
        default=None,
        importance=HIGH,
        doc="What records are like: fields and their generators, or a schema of Avro in JSON.",
    ),
    Key(
        QUICKSTART,
        STRING,
        default=None,
        validator=_known_quickstart,
        importance=HIGH,
        recommender=_Quickstarts(),
        doc="Instead of schema: the name of one that is there already.",
    ),
    Key(
        RATE,
        DOUBLE,
        default=None,
        validator=_usable_rate,
        importance=HIGH,
        doc=f"Records per second, of all tasks together; 0: as fast as possible. By default {DEFAULT_RATE:g}.",
    ),
    Key(
        RECORDS,
        LONG,
        default=None,
        validator=or_null(at_least(0)),
        doc="How many records there are, of all tasks together: then they idle. Without it there is no end.",
    ),
    Key(SEED, LONG, default=None, doc="Another seed gives other records. By default 0."),
    Key(
        KEY_FIELD,
        STRING,
        default=None,
        doc="Field of the value that is the key of records, too. By default that of the quickstart, else none.",
    ),
    Key(
        SCHEMALESS,
        BOOLEAN,
        default=False,
        doc="Whether values are maps without a schema: dates and timestamps are numbers then, as in JSON.",
    ),
    Key(
        TIMESTAMP_START,
        STRING,
        default=None,
        validator=_instant,
        doc="Timestamp of the first record: milliseconds, or an instant such as 2030-01-31T12:00:00Z. Without it,"
        " records have the time at which they are sent.",
    ),
    Key(
        TIMESTAMP_STEP,
        LONG,
        default=1,
        validator=_a_day_at_most,
        doc=f"With {TIMESTAMP_START}: how much later each record is than the one before.",
    ),
    Key(KAFKA_TOPIC, STRING, default=None, validator=non_empty, doc=f"Confluent's {TOPIC}."),
    Key(SCHEMA_STRING, STRING, default="", doc=f"Confluent's {SCHEMA}: a schema of Avro in JSON."),
    Key(
        SCHEMA_FILENAME,
        STRING,
        default="",
        validator=_no_file,
        importance=LOW,
        doc=f"Confluent's file with a schema. It is refused: use {SCHEMA_STRING}.",
    ),
    Key(
        MAX_INTERVAL,
        LONG,
        default=None,
        validator=or_null(at_least(0)),
        doc=f"Confluent's {RATE}: the longest pause between two records of a task, in milliseconds. Half of it is the"
        " pause here; 0: as fast as possible.",
    ),
    Key(ITERATIONS, INT, default=None, doc=f"Confluent's {RECORDS}, of each task; below 1 there is no end."),
    Key(RANDOM_SEED, LONG, default=None, doc=f"Confluent's {SEED}."),
    Key(SCHEMA_KEYFIELD, STRING, default="", doc=f"Confluent's {KEY_FIELD}."),
    Key(GENERATE_TIMEOUT, LONG, default=None, importance=LOW, doc="Confluent's time-out. It has no effect."),
)


@dataclass(frozen=True)
class DatagenConfig:
    topic: str
    values: Structs
    """What makes them."""
    key_field: str | None
    schemaless: bool
    seed: int
    timestamp_start: int | None
    timestamp_step: int
    rate: float
    """Of each task."""
    records: int | None
    """Of all tasks. None: no end."""

    @classmethod
    def of(cls, config: Mapping[str, str], tasks: int = 1) -> DatagenConfig:
        """For so many tasks. Raises ConfigError."""
        parsed = CONFIG.parse(config)
        problem = _problem(parsed)
        if problem is not None:
            raise problem
        seeds = [parsed[key] for key in (SEED, RANDOM_SEED) if parsed[key] is not None]
        return cls(
            topic=parsed[TOPIC] or parsed[KAFKA_TOPIC],
            values=_values(parsed),
            key_field=_key_field(parsed),
            schemaless=parsed[SCHEMALESS],
            seed=seeds[0] if seeds else 0,
            timestamp_start=_start(parsed),
            timestamp_step=parsed[TIMESTAMP_STEP],
            rate=_rate(parsed, tasks),
            records=_records(parsed, tasks),
        )


def _rate(parsed: Mapping[str, Any], tasks: int) -> float:
    """Ours is of all tasks together, Confluent's of each."""
    interval: int | None = parsed[MAX_INTERVAL]
    if interval is None:
        return float(DEFAULT_RATE if parsed[RATE] is None else parsed[RATE]) / tasks
    return 2000 / interval if interval else 0.0


def _records(parsed: Mapping[str, Any], tasks: int) -> int | None:
    """The same."""
    iterations: int | None = parsed[ITERATIONS]
    found: int | None = parsed[RECORDS]
    return found if iterations is None or iterations < 1 else iterations * tasks


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    """All that is wrong, key by key."""
    values = CONFIG.validate(config)
    if not any(value.errors for value in values):
        problem = _problem({value.name: value.value for value in values})
        if problem is not None:
            next(value for value in values if value.name == problem.key).errors.append(str(problem))
    return values


class _Refusal(ConfigError):
    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(str(ConfigError.invalid(key, value, reason)))
        self.key = key


def _problem(parsed: Mapping[str, Any]) -> _Refusal | None:
    """What keys say against each other, and schemas that are none."""
    for ours, theirs in _TWINS:
        if parsed[ours] not in (None, "") and parsed[theirs] not in (None, ""):
            return _Refusal(theirs, parsed[theirs], f"{ours} is set already: they mean the same")
    if not (parsed[TOPIC] or parsed[KAFKA_TOPIC]):
        return _Refusal(TOPIC, parsed[TOPIC], "Set the topic to write to")
    named = [key for key in (SCHEMA, QUICKSTART, SCHEMA_STRING) if parsed[key]]
    if len(named) != 1:
        return _Refusal(SCHEMA, parsed[SCHEMA], f"Set one of {SCHEMA}, {QUICKSTART} and {SCHEMA_STRING}")
    # Only now, and nowhere else: numpy and pyarrow are not loaded for those who do without.
    from headgate.connectors.datagen.generator import BadSchema

    try:
        values = _values(parsed)
    except BadSchema as error:
        return _Refusal(named[0], _shortened(parsed[named[0]]), str(error))
    key = _key_field(parsed)
    if key is not None and values.schema.field(key) is None:
        blamed = KEY_FIELD if parsed[KEY_FIELD] else SCHEMA_KEYFIELD
        return _Refusal(blamed, key, f"The fields are {', '.join(each.name for each in values.schema.fields)}")
    return None


def _values(parsed: Mapping[str, Any]) -> Structs:
    """Raises BadSchema."""
    return _read(parsed[QUICKSTART], parsed[SCHEMA_STRING], parsed[SCHEMA])


@lru_cache(32)
def _read(quickstart: str | None, avro: str | None, text: str | None) -> Structs:
    """Of which one is there. Kept: all tasks of a connector have the same."""
    from headgate.connectors.datagen.avro import read_avro
    from headgate.connectors.datagen.compact import read_compact

    if quickstart:
        name = quickstart.lower()
        return read_compact(QUICKSTARTS[name].schema, name)
    schema = avro or text or ""
    return read_avro(schema) if avro or schema.startswith(("{", "[", '"')) else read_compact(schema)


def _key_field(parsed: Mapping[str, Any]) -> str | None:
    given = parsed[KEY_FIELD] or parsed[SCHEMA_KEYFIELD]
    if given or not parsed[QUICKSTART]:
        return given or None
    return QUICKSTARTS[parsed[QUICKSTART].lower()].key


def _start(parsed: Mapping[str, Any]) -> int | None:
    return None if parsed[TIMESTAMP_START] is None else _milliseconds(TIMESTAMP_START, parsed[TIMESTAMP_START])


def _milliseconds(name: str, text: str) -> int:
    """Raises ConfigError."""
    try:
        found = int(text) if text.isascii() and text.isdigit() else _of_instant(text)
    except (ValueError, OverflowError):
        found = 0
    # The first millisecond is no timestamp for librdkafka.
    if not 0 < found <= _LATEST_MS:
        reason = "It is a number of milliseconds, or an instant with its zone such as 2030-01-31T12:00:00Z"
        raise ConfigError.invalid(name, text, reason)
    return found


def _of_instant(text: str) -> int:
    instant = datetime.fromisoformat(text)
    return 0 if instant.tzinfo is None else round(instant.timestamp() * 1000)


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."
