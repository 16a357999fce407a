"""The keys of JdbcSink, and what they mean together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, at_least, non_empty, one_of_any_case
from headgate.api.config import BOOLEAN, HIGH, INT, LIST, LOW, MEDIUM, STRING
from headgate.connectors.jdbc.connection import CONNECTION_KEYS, ConnectionConfig
from headgate.connectors.jdbc.merge import INSERT, UPDATE, UPSERT
from headgate.connectors.jdbc.offset_ledger import NAME

INSERT_MODE: Final = "insert.mode"
PK_MODE: Final = "pk.mode"
PK_FIELDS: Final = "pk.fields"
DELETES: Final = "delete.enabled"
CREATE: Final = "auto.create"
EVOLVE: Final = "auto.evolve"
TABLE_FORMAT: Final = "table.name.format"
FIELDS: Final = "fields.whitelist"
BATCH: Final = "batch.size"
RETRIES: Final = "max.retries"
BACKOFF: Final = "retry.backoff.ms"
TYPES: Final = "table.types"
QUOTING: Final = "quote.sql.identifiers"
EXACTLY_ONCE: Final = "exactly.once"
LEDGER: Final = "exactly.once.table"

NO_KEY, KAFKA, RECORD_KEY, RECORD_VALUE = "none", "kafka", "record_key", "record_value"
TOPIC: Final = "${topic}"
KAFKA_FIELDS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")

CONFIG: Final = CONNECTION_KEYS + ConfigDef(
    Key(
        INSERT_MODE,
        STRING,
        default=INSERT,
        validator=one_of_any_case(INSERT, UPSERT, UPDATE),
        importance=HIGH,
        doc="insert: a row for each record; upsert: one for each key; update: only rows that are there.",
    ),
    Key(
        PK_MODE,
        STRING,
        default=NO_KEY,
        validator=one_of_any_case(NO_KEY, KAFKA, RECORD_KEY, RECORD_VALUE),
        importance=HIGH,
        doc="Where the primary key comes from: none, kafka (topic, partition, offset), record_key or record_value.",
    ),
    Key(
        PK_FIELDS,
        LIST,
        default="",
        importance=MEDIUM,
        doc="Columns of the primary key: fields of the key or value, all of them by default; the name for a key that is"
        " no struct; the three names for kafka.",
    ),
    Key(
        DELETES,
        BOOLEAN,
        default=False,
        importance=MEDIUM,
        doc="Whether a record without value deletes the row of its key; with pk.mode=record_key.",
    ),
    Key(CREATE, BOOLEAN, default=False, importance=MEDIUM, doc="Whether missing tables are created."),
    Key(EVOLVE, BOOLEAN, default=False, importance=MEDIUM, doc="Whether missing columns are added."),
    Key(
        TABLE_FORMAT,
        STRING,
        default=TOPIC,
        validator=non_empty,
        importance=MEDIUM,
        doc="Name of the table, qualified or not; ${topic} is the topic.",
    ),
    Key(FIELDS, LIST, default="", importance=MEDIUM, doc="Fields of the value that are written; all by default."),
    Key(BATCH, INT, default=3000, validator=at_least(1), importance=MEDIUM, doc="Most rows in one statement."),
    Key(
        RETRIES,
        INT,
        default=10,
        validator=at_least(0),
        importance=MEDIUM,
        doc="How often a write is tried again when the database cannot be reached, before the task fails.",
    ),
    Key(BACKOFF, INT, default=3000, validator=at_least(0), importance=MEDIUM, doc="Milliseconds between two tries."),
    Key(TYPES, LIST, default="TABLE", importance=LOW, doc="Accepted; whatever has the table's name is written to."),
    Key(
        QUOTING,
        STRING,
        default="always",
        validator=one_of_any_case("always"),
        importance=LOW,
        doc="Whether names of tables and columns are quoted: always, the only one here.",
    ),
    Key(
        EXACTLY_ONCE,
        BOOLEAN,
        default=False,
        importance=MEDIUM,
        doc="Whether each record is written once, whatever happens: offsets are kept in a table of the database, and"
        " change in the transaction that writes the records.",
    ),
    Key(LEDGER, STRING, default=NAME, validator=non_empty, importance=LOW, doc="That table, qualified or not."),
)


@dataclass(frozen=True, slots=True)
class JdbcSinkConfig:
    connection: ConnectionConfig
    insert_mode: str
    pk_mode: str
    pk_fields: tuple[str, ...]
    deletes: bool
    create: bool
    evolve: bool
    table_format: str
    fields: frozenset[str]
    batch_rows: int
    retries: int
    backoff_ms: int
    exactly_once: bool
    ledger: str

    @classmethod
    def of(cls, config: Mapping[str, str]) -> JdbcSinkConfig:
        """Raises ConfigError."""
        parsed = CONFIG.parse(config)
        for key, problem in problems(parsed):
            raise ConfigError.invalid(key, parsed[key], problem)
        return cls(
            connection=ConnectionConfig.of(parsed, config),
            insert_mode=parsed[INSERT_MODE].lower(),
            pk_mode=parsed[PK_MODE].lower(),
            pk_fields=tuple(filter(None, parsed[PK_FIELDS])),
            deletes=parsed[DELETES],
            create=parsed[CREATE],
            evolve=parsed[EVOLVE],
            table_format=parsed[TABLE_FORMAT],
            fields=frozenset(filter(None, parsed[FIELDS])),
            batch_rows=parsed[BATCH],
            retries=parsed[RETRIES],
            backoff_ms=parsed[BACKOFF],
            exactly_once=parsed[EXACTLY_ONCE],
            ledger=parsed[LEDGER],
        )

    def table(self, topic: str) -> str:
        return self.table_format.replace(TOPIC, topic)


def problems(parsed: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What keys say against each other, on the key that is blamed for it."""
    found = []
    how, keys = str(parsed.get(INSERT_MODE)).lower(), str(parsed.get(PK_MODE)).lower()
    if how in (UPSERT, UPDATE) and keys == NO_KEY:
        found.append((PK_MODE, f"{INSERT_MODE}={how} needs to know the key: set record_key, record_value or kafka"))
    if parsed.get(DELETES) and keys != RECORD_KEY:
        found.append((DELETES, f"It needs {PK_MODE}={RECORD_KEY}: a record without value has nothing but its key"))
    if keys == KAFKA and len([*filter(None, parsed.get(PK_FIELDS) or ())]) not in (0, 3):
        found.append((PK_FIELDS, f"{PK_MODE}={KAFKA} needs three names, or none: for topic, partition and offset"))
    return found


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    """All that is wrong, key by key."""
    values = CONFIG.validate(config)
    if not any(value.errors for value in values):
        found = {value.name: value for value in values}
        for key, problem in problems({name: value.value for name, value in found.items()}):
            found[key].errors.append(str(ConfigError.invalid(key, found[key].value, problem)))
    return values
