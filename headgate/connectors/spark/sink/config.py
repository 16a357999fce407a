"""The keys of SparkSink, and what they mean together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import pyarrow as pa

from headgate.api import (
    BOOLEAN,
    HIGH,
    INT,
    LIST,
    LONG,
    LOW,
    STRING,
    ConfigDef,
    ConfigError,
    ConfigValue,
    Key,
    Reach,
    ReachKind,
    at_least,
    no_duplicates,
    non_empty,
    one_of,
)  # fmt: skip
from headgate.connectors.spark.location import Location
from headgate.connectors.spark.sink.columns import Columns, Evolution
from headgate.connectors.spark.sink.ddl import NoDdl, parse

FORMAT: Final = "format"
PATH: Final = "path"
TABLE: Final = "table"
CATALOG: Final = "catalog"
OPTIONS: Final = "options."
SCHEMA: Final = "schema"
EVOLUTION: Final = "schema.evolution"
METADATA_COLUMNS: Final = "metadata.columns"
PARTITION_BY: Final = "partition.by"
MODE: Final = "mode"
KEY_COLUMNS: Final = "key.columns"
EXACTLY_ONCE: Final = "exactly.once"
ROTATE_RECORDS: Final = "rotate.records"
ROTATE_BYTES: Final = "rotate.bytes"
ROTATE_MS: Final = "rotate.ms"

APPEND: Final = "append"
UPSERT: Final = "upsert"
PARQUET: Final = "parquet"
DELTA: Final = "delta"
ICEBERG: Final = "iceberg"
TABLES: Final = (DELTA, ICEBERG)
"""Formats whose rows can be changed, and which can keep offsets."""
FILES: Final = (PARQUET, "orc", "json", "csv")
HEADERS: Final = "_headers"
METADATA: Final = ("_topic", "_partition", "_offset", "_timestamp", "_key", HEADERS)

_TEXT: Final = ("dateFormat", "encoding", "lineSep", "timestampFormat", "timestampNTZFormat")
_WRITER: Final = ("compression", "maxRecordsPerFile")
_PARQUET: Final = (*_WRITER, "parquet.block.size", "parquet.enable.dictionary", "parquet.page.size")
KNOWN_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    PARQUET: _PARQUET,
    "orc": (*_WRITER, "orc.bloom.filter.columns", "orc.bloom.filter.fpp", "orc.stripe.size"),
    "json": (*_WRITER, *_TEXT, "ignoreNullFields"),
    "csv": (
        *_WRITER, *_TEXT, "charToEscapeQuoteEscaping", "emptyValue", "escape", "escapeQuotes", "header",
        "ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace", "nullValue", "quote", "quoteAll", "sep",
    ),
    DELTA: _WRITER,
    ICEBERG: _PARQUET,
}  # fmt: skip
"""Of a writer. Spark hands what else it is given to Hadoop, which loads classes by such names."""
_COMPRESSIONS: Final = (
    "none", "uncompressed", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "lzo", "zlib", "bzip2", "deflate", "brotli",
)  # fmt: skip
_GLOB: Final = re.compile(r"[*?\[\]{}\\\x00]")
_NAME: Final = r"[A-Za-z_]\w*"
INSTALL: Final = 'pip install "headgate[iceberg]"'


def _format(name: str, value: Any) -> None:
    if not re.fullmatch(rf"{_NAME}(\.{_NAME})*", value or "", re.ASCII):
        raise ConfigError.invalid(name, value, "It must be the name of a format of Spark, such as parquet")


def _path(name: str, value: Any) -> None:
    non_empty(name, value)
    if value is not None and _GLOB.search(value):
        raise ConfigError.invalid(name, value, "It names one folder: * ? [ ] { } and \\ have no place in it")


def _table(name: str, value: Any) -> None:
    if value is not None and not re.fullmatch(rf"{_NAME}(\.{_NAME}){{0,2}}", value, re.ASCII):
        raise ConfigError.invalid(name, value, "It must be a table's name, with its database and catalog if needed")


def _catalog(name: str, value: Any) -> None:
    if not re.fullmatch(_NAME, value or "", re.ASCII):
        raise ConfigError.invalid(name, value, "It must be the name of a catalog of the worker file")


def _schema(name: str, value: Any) -> None:
    if value is not None:
        try:
            parse(value)
        except NoDdl as problem:
            raise ConfigError.invalid(name, value, f"It is not Spark's DDL: {problem}") from None


def _metadata(name: str, value: Any) -> None:
    no_duplicates(name, value)
    for each in value or ():
        if each not in METADATA:
            raise ConfigError.invalid(name, each, f"There are {', '.join(METADATA)}")


CONFIG: Final = ConfigDef(
    Key(FORMAT, STRING, PARQUET, _format, HIGH,
        "What is written: parquet, orc, json, csv, delta, iceberg; or another format of Spark, if the worker file"
        " allows it."),
    Key(PATH, STRING, None, _path, HIGH, "Folder to write to."),
    Key(TABLE, STRING, None, _table, HIGH, "Instead of path: table to write to, of Spark's catalog or of Iceberg's."),
    Key(CATALOG, STRING, "default", _catalog, doc="With format=iceberg: the catalog of the worker file to look in."),
    Key(PARTITION_BY, LIST, [], no_duplicates, doc="Columns by whose values files are put into folders."),
    Key(MODE, STRING, APPEND, one_of(APPEND, UPSERT), HIGH,
        "append: each record is a row. upsert: it takes the place of the row with the same key.columns."),
    Key(KEY_COLUMNS, LIST, [], no_duplicates, doc="With mode=upsert: the columns that tell one row from another."),
    Key(EXACTLY_ONCE, BOOLEAN, False, None, HIGH,
        "Whether each record is written once, whatever happens: the target keeps the offsets."),
    Key(SCHEMA, STRING, None, _schema, HIGH, "The columns, as DDL of Spark: id BIGINT NOT NULL, name STRING."),
    Key(EVOLUTION, STRING, "fail", one_of(*(each.value for each in Evolution)), doc="What is done about a field that"
        " there is no column for. fail: the record does not fit. add: a column is added. ignore: it is left out."),
    Key(METADATA_COLUMNS, LIST, [], _metadata, LOW,
        f"Columns to be added that tell what else Kafka says of a record: {', '.join(METADATA)}."),
    Key(ROTATE_RECORDS, INT, 500_000, at_least(1), doc="So many rows are gathered, then they are written."),
    Key(ROTATE_BYTES, LONG, 128 * 1024 * 1024, at_least(1), doc="So much memory rows take, then they are written."),
    Key(ROTATE_MS, LONG, 60_000, at_least(1), doc="So long rows wait, then they are written."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rotation:
    """When what was gathered is written: whichever comes first."""

    records: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SparkSinkConfig:
    name: str
    """Of the connector: the target's offsets are under it."""
    format: str
    location: Location | None
    table: str | None
    catalog: str
    """Of an Iceberg table."""
    options: Mapping[str, str]
    partition_by: tuple[str, ...]
    upsert: bool
    key_columns: tuple[str, ...]
    exactly_once: bool
    schema: pa.Schema | None
    evolution: Evolution
    metadata: tuple[str, ...]
    rotation: Rotation

    @classmethod
    def of(cls, config: Mapping[str, str]) -> SparkSinkConfig:
        """Raises ConfigError."""
        parsed = CONFIG.parse(config)
        for _, problem in _problems(parsed, config):
            raise problem
        return cls(
            name=config.get("name", ""),
            format=_known(parsed[FORMAT]),
            location=None if parsed[PATH] is None else Location.of(parsed[PATH]),
            table=parsed[TABLE],
            catalog=parsed[CATALOG],
            options=_options(config),
            partition_by=tuple(parsed[PARTITION_BY]),
            upsert=parsed[MODE] == UPSERT,
            key_columns=tuple(parsed[KEY_COLUMNS]),
            exactly_once=parsed[EXACTLY_ONCE],
            schema=None if parsed[SCHEMA] is None else parse(parsed[SCHEMA]),
            evolution=Evolution(parsed[EVOLUTION]),
            metadata=tuple(parsed[METADATA_COLUMNS]),
            rotation=Rotation(parsed[ROTATE_RECORDS], parsed[ROTATE_BYTES], parsed[ROTATE_MS] / 1000),
        )

    def columns(self, existing: pa.Schema | None) -> Columns:
        """Those of the configuration, else those of the target, else what comes."""
        schema = self.schema or existing or pa.schema([])
        names = schema.names
        return Columns(
            schema,
            self.evolution,
            forming=not names,
            # Of a folder's name only a guess tells the type; and what describes the record is no part of its schema.
            unknown=frozenset(each for each in (*self.partition_by, *self.metadata) if each not in names),
            required=self.key_columns,
        )


def validated(config: Mapping[str, str]) -> list[ConfigValue]:
    """What is wrong with each key, and with all of them together."""
    values = {value.name: value for value in CONFIG.validate(config)}
    values |= {key: ConfigValue(key, config[key]) for key in config if key.startswith(OPTIONS)}
    if not any(value.errors for value in values.values()):
        parsed = {name: value.value for name, value in values.items()}
        for key, problem in _problems(parsed, config):
            values[key].errors.append(str(problem))
    return list(values.values())


def reaches(config: Mapping[str, str]) -> Iterator[Reach]:
    path, table, kind = (config.get(key, "").strip() for key in (PATH, TABLE, FORMAT))
    if path:
        yield Location.of(path).reach(ReachKind.WRITE, PATH)
    if table:
        catalog = config.get(CATALOG, CONFIG[CATALOG].default).strip()
        yield Reach(ReachKind.TABLE, f"{catalog}.{table}" if _known(kind) == ICEBERG else table, TABLE)
    if kind and _known(kind) not in KNOWN_OPTIONS:  # whose code, and whose options, nobody here knows
        yield Reach(ReachKind.TABLE, kind, FORMAT)


def _known(kind: str) -> str:
    return kind.lower() if kind.lower() in KNOWN_OPTIONS else kind


def _options(config: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(OPTIONS): value for key, value in config.items() if key.startswith(OPTIONS)}


def _problems(parsed: Mapping[str, Any], config: Mapping[str, str]) -> Iterator[tuple[str, ConfigError]]:
    """What keys say against each other, with the one to blame."""

    def problem(key: str, reason: str, value: Any = None) -> tuple[str, ConfigError]:
        return key, ConfigError.invalid(key, parsed.get(key) if value is None else value, reason)

    kind, path, table = _known(parsed[FORMAT]), parsed[PATH], parsed[TABLE]
    files = kind in FILES
    if kind == ICEBERG:
        yield from _iceberg_problems(parsed)
    elif kind in KNOWN_OPTIONS and (path is None) == (table is None):
        yield problem(PATH, f"Set one of {PATH} and {TABLE}")
    if kind != ICEBERG and CATALOG in config:
        yield problem(CATALOG, f"It is for {FORMAT}={ICEBERG} only")
    if parsed[MODE] == UPSERT and kind not in TABLES:
        yield problem(MODE, f"Only {FORMAT}={DELTA} and {FORMAT}={ICEBERG} can change rows")
    if (parsed[MODE] == UPSERT) != bool(parsed[KEY_COLUMNS]):
        yield problem(KEY_COLUMNS, f"They are for {MODE}={UPSERT}, which needs them")
    if parsed[EXACTLY_ONCE]:
        if not files and kind not in TABLES:
            yield problem(EXACTLY_ONCE, f"{kind} cannot keep offsets; {', '.join((*FILES, *TABLES))} can")
        elif files and (path is None or not Location.of(path).atomic):
            yield problem(
                EXACTLY_ONCE,
                f"Files are written exactly once to a {PATH} of this machine or of hdfs:// only: other stores do not"
                f" promise that of two writers one is refused. Use {FORMAT}={DELTA} or {FORMAT}={ICEBERG} there",
            )
    if parsed[EVOLUTION] == Evolution.ADD.value and (kind == "csv" or (table is not None and kind not in TABLES)):
        yield problem(EVOLUTION, "Columns cannot be added to CSV, nor to tables of this format")
    if parsed[SCHEMA] is not None:
        names = (*parse(parsed[SCHEMA]).names, *parsed[METADATA_COLUMNS])
        for key in (PARTITION_BY, KEY_COLUMNS):
            for each in (each for each in parsed[key] if each not in names):
                yield problem(key, f"{SCHEMA} has no such column", each)
    for name, value in _options(config).items():
        known = {each.lower(): each for each in KNOWN_OPTIONS.get(kind, (name,))}
        if name.lower() not in known:
            yield problem(
                OPTIONS + name, f"For {kind} there are {', '.join(known.values())}. Others are for the worker file"
                " to set, as spark.hadoop.*", value,
            )  # fmt: skip
        elif name.lower() == "compression" and kind in KNOWN_OPTIONS and value.strip().lower() not in _COMPRESSIONS:
            yield problem(OPTIONS + name, f"There are {', '.join(_COMPRESSIONS)}", value)


def _iceberg_problems(parsed: Mapping[str, Any]) -> Iterator[tuple[str, ConfigError]]:
    if find_spec("pyiceberg") is None:
        yield FORMAT, ConfigError.invalid(FORMAT, ICEBERG, f"It needs pyiceberg, which is not installed: {INSTALL}")
    if parsed[PATH] is not None:
        yield PATH, ConfigError.invalid(PATH, parsed[PATH], f"Set {TABLE} instead: its catalog says where it is")
    if "." not in (parsed[TABLE] or ""):
        yield TABLE, ConfigError.invalid(TABLE, parsed[TABLE], "It must name a table and its namespace: shop.orders")
