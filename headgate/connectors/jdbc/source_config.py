"""The keys of JdbcSource, and what they mean together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, at_least, java_regex, non_empty, one_of
from headgate.api.config import BOOLEAN, HIGH, INT, LIST, LONG, LOW, MEDIUM, STRING, or_null
from headgate.connectors.jdbc.columns import MAPPINGS, NONE, PRECISION_ONLY
from headgate.connectors.jdbc.connection import CONNECTION_KEYS, ConnectionConfig
from headgate.connectors.jdbc.query import BOTH, BULK, INCREMENTING, MODES, TIMESTAMP
from headgate.java.regex import compiled

MODE: Final = "mode"
INCREMENTING_COLUMN: Final = "incrementing.column.name"
TIMESTAMP_COLUMN: Final = "timestamp.column.name"
WHITELIST: Final = "table.whitelist"
BLACKLIST: Final = "table.blacklist"
PATTERN: Final = "table.name.pattern"
TYPES: Final = "table.types"
CATALOG: Final = "catalog.pattern"
SCHEMA: Final = "schema.pattern"
QUERY: Final = "query"
SUFFIX: Final = "query.suffix"
PREFIX: Final = "topic.prefix"
POLL: Final = "poll.interval.ms"
TABLE_POLL: Final = "table.poll.interval.ms"
BATCH: Final = "batch.max.rows"
MAPPING: Final = "numeric.mapping"
OLD_MAPPING: Final = "numeric.precision.mapping"
DELAY: Final = "timestamp.delay.interval.ms"
INITIAL: Final = "timestamp.initial"
GRANULARITY: Final = "timestamp.granularity"
NON_NULL: Final = "validate.non.null"
QUOTING: Final = "quote.sql.identifiers"
LOAD_ROWS: Final = "load.max.rows"
LOAD_PARTITIONS: Final = "load.partitions"

_SELECT: Final = re.compile(r"\s*(SELECT|WITH)\b.*", re.IGNORECASE | re.DOTALL)


def _reads(name: str, value: Any) -> None:
    if value and not _SELECT.fullmatch(value):
        raise ConfigError.invalid(name, value, "It must begin with SELECT or WITH")


CONFIG: Final = CONNECTION_KEYS + ConfigDef(
    Key(MODE, STRING, validator=one_of(*MODES), importance=HIGH, doc="How new and changed rows are found."),
    Key(
        INCREMENTING_COLUMN,
        STRING,
        default="",
        importance=MEDIUM,
        doc="Column whose numbers only grow; by default the one that the database counts up.",
    ),
    Key(
        TIMESTAMP_COLUMN,
        LIST,
        default="",
        importance=MEDIUM,
        doc="Columns with the time of a row's last change; of several, the first that is not null counts.",
    ),
    Key(WHITELIST, LIST, default="", importance=MEDIUM, doc="Tables to read, by their names, qualified or not."),
    Key(BLACKLIST, LIST, default="", importance=MEDIUM, doc="Tables not to read."),
    Key(
        PATTERN,
        STRING,
        default=None,
        validator=java_regex,
        importance=MEDIUM,
        doc="Tables to read, by a regular expression that matches their whole names.",
    ),
    Key(TYPES, LIST, default="TABLE", importance=LOW, doc="Kinds of tables to read: TABLE, VIEW, ..."),
    Key(CATALOG, STRING, default=None, importance=MEDIUM, doc="Catalog of the tables to read; any by default."),
    Key(
        SCHEMA,
        STRING,
        default=None,
        importance=HIGH,
        doc="Pattern of JDBC, with % and _, for the schema of the tables to read; any by default.",
    ),
    Key(QUERY, STRING, default="", validator=_reads, doc="A query to read instead of tables."),
    Key(SUFFIX, STRING, default="", importance=LOW, doc="What every statement ends with, such as a hint."),
    Key(
        PREFIX,
        STRING,
        validator=non_empty,
        importance=HIGH,
        doc="What stands before a table's name in that of its topic; of a query, all of the topic's name.",
    ),
    Key(POLL, INT, default=5000, validator=at_least(1), importance=HIGH, doc="How often a table is looked at."),
    Key(
        TABLE_POLL,
        LONG,
        default=60_000,
        validator=at_least(1),
        importance=LOW,
        doc="How often new and vanished tables are looked for.",
    ),
    Key(
        BATCH,
        INT,
        default=10_000,
        validator=at_least(1),
        importance=LOW,
        doc="Most rows in one batch.",
    ),
    Key(
        MAPPING,
        STRING,
        default=None,
        validator=or_null(one_of(*MAPPINGS)),
        importance=LOW,
        doc="What becomes of NUMERIC: always Connect's Decimal (none), whole numbers where the scale is 0"
        " (precision_only), those and doubles where they fit (best_fit), or doubles for all fractions"
        " (best_fit_eager_double).",
    ),
    Key(OLD_MAPPING, BOOLEAN, default=False, importance=LOW, doc="true: numeric.mapping=precision_only."),
    Key(
        DELAY,
        LONG,
        default=0,
        validator=at_least(0),
        importance=HIGH,
        doc="How old a timestamp must be before its row is read, so that transactions under way come first.",
    ),
    Key(
        INITIAL,
        LONG,
        default=None,
        importance=LOW,
        doc="Where timestamps begin that have no offset yet: milliseconds since 1970, or -1 for now; by default with"
        " the oldest.",
    ),
    Key(
        GRANULARITY,
        STRING,
        default="connect_logical",
        validator=one_of("connect_logical"),
        importance=LOW,
        doc="What timestamps become: Connect's Timestamp, the only one here.",
    ),
    Key(
        NON_NULL,
        BOOLEAN,
        default=True,
        importance=LOW,
        doc="Whether columns that offsets are made of must be declared NOT NULL.",
    ),
    Key(
        QUOTING,
        STRING,
        default="always",
        validator=one_of("always", "never", "ALWAYS", "NEVER"),
        importance=MEDIUM,
        doc="Whether names of tables and columns are quoted: always or never.",
    ),
    Key(
        LOAD_ROWS,
        INT,
        default=200_000,
        validator=at_least(2),
        importance=LOW,
        doc="Most rows that are held at once while executors read a table that is far behind.",
    ),
    Key(
        LOAD_PARTITIONS,
        INT,
        default=1,
        validator=at_least(1),
        importance=LOW,
        doc="In how many ranges at once executors read such a table; 1: they do not, and the worker reads it.",
    ),
)


@dataclass(frozen=True, slots=True)
class JdbcSourceConfig:
    connection: ConnectionConfig
    mode: str
    incrementing: str | None
    timestamps: tuple[str, ...]
    whitelist: tuple[str, ...]
    blacklist: tuple[str, ...]
    pattern: str | None
    types: tuple[str, ...]
    catalog: str | None
    schema: str | None
    query: str | None
    suffix: str
    prefix: str
    poll_s: float
    table_poll_s: float
    batch_rows: int
    mapping: str
    delay_ms: int
    initial_ms: int | None
    non_null: bool
    quoting: bool
    load_rows: int
    load_partitions: int

    @classmethod
    def of(cls, config: Mapping[str, str]) -> JdbcSourceConfig:
        """Raises ConfigError."""
        parsed = CONFIG.parse(config)
        for key, problem in problems(parsed):
            raise ConfigError.invalid(key, parsed[key], problem)
        return cls(
            connection=ConnectionConfig.of(parsed, config),
            mode=parsed[MODE],
            incrementing=parsed[INCREMENTING_COLUMN] or None,
            timestamps=tuple(filter(None, parsed[TIMESTAMP_COLUMN])),
            whitelist=tuple(filter(None, parsed[WHITELIST])),
            blacklist=tuple(filter(None, parsed[BLACKLIST])),
            pattern=parsed[PATTERN] or None,
            types=tuple(parsed[TYPES]),
            catalog=parsed[CATALOG] or None,
            schema=parsed[SCHEMA] or None,
            query=(parsed[QUERY] or "").rstrip("; \n") or None,
            suffix=parsed[SUFFIX],
            prefix=parsed[PREFIX],
            poll_s=parsed[POLL] / 1000,
            table_poll_s=parsed[TABLE_POLL] / 1000,
            batch_rows=parsed[BATCH],
            mapping=parsed[MAPPING] or (PRECISION_ONLY if parsed[OLD_MAPPING] else NONE),
            delay_ms=parsed[DELAY],
            initial_ms=parsed[INITIAL],
            non_null=parsed[NON_NULL],
            quoting=parsed[QUOTING].lower() == "always",
            load_rows=parsed[LOAD_ROWS],
            load_partitions=parsed[LOAD_PARTITIONS],
        )

    def wants(self, full: str, qualified: str, name: str) -> bool:
        names = {full, qualified, name}
        if self.whitelist:
            return bool(names & set(self.whitelist))
        if self.pattern is not None and not compiled(self.pattern).fullmatch(name):
            return False
        return not names & set(self.blacklist)


def problems(parsed: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What keys say against each other, on the key that is blamed for it."""
    found = []
    named = [key for key in (WHITELIST, BLACKLIST, PATTERN, QUERY) if parsed.get(key)]
    if len(named) > 1 and set(named) != {BLACKLIST, PATTERN}:
        found.append((named[0], f"Set only one of {' and '.join(named)}"))
    mode = parsed.get(MODE)
    if mode in (TIMESTAMP, BOTH) and not any(parsed.get(TIMESTAMP_COLUMN) or ()):
        found.append((TIMESTAMP_COLUMN, f"{MODE}={mode} needs it"))
    if mode in (INCREMENTING, BOTH) and parsed.get(QUERY) and not parsed.get(INCREMENTING_COLUMN):
        found.append((INCREMENTING_COLUMN, f"{MODE}={mode} with {QUERY} needs it"))
    if mode in (BULK, TIMESTAMP) and parsed.get(INCREMENTING_COLUMN):
        found.append((INCREMENTING_COLUMN, f"{MODE}={mode} does not use it: leave it out, or choose another mode"))
    if mode in (BULK, INCREMENTING) and any(parsed.get(TIMESTAMP_COLUMN) or ()):
        found.append((TIMESTAMP_COLUMN, f"{MODE}={mode} does not use it: leave it out, or choose another mode"))
    return found


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    """All that is wrong, key by key."""
    values = CONFIG.validate(config)
    if not any(value.errors for value in values):
        found = {value.name: value for value in values}
        for key, problem in problems({name: value.value for name, value in found.items()}):
            found[key].errors.append(str(ConfigError.invalid(key, found[key].value, problem)))
    return values
