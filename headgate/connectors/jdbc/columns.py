"""ResultColumns: from what a driver says of a result to Connect's schema, Spark's types and Arrow's columns.

The types are those of Confluent's connector, so that what reads its topics reads ours.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Schema, schema
from headgate.api.frame import arrow_type
from headgate.connectors.jdbc.database import ColumnFact
from headgate.connectors.jdbc.dialect import Family

NONE: Final = "none"
PRECISION_ONLY: Final = "precision_only"
BEST_FIT: Final = "best_fit"
EAGER_DOUBLE: Final = "best_fit_eager_double"
MAPPINGS: Final = (NONE, PRECISION_ONLY, BEST_FIT, EAGER_DOUBLE)

_DIGITS: Final = 38
_FREE_SCALE: Final = 18
"""Of PostgreSQL's numbers that are declared without precision and scale."""
_INTEGER_PRECISION: Final = 18
"""From there on, numbers do not fit into an INT64, by Confluent's count."""

BIT, TINYINT, SMALLINT, INTEGER, BIGINT, REAL, FLOAT, DOUBLE = -7, -6, 5, 4, -5, 7, 6, 8
NUMERIC, DECIMAL, BOOLEAN, DATE, TIME, TIMESTAMP, TIMESTAMP_ZONED, OTHER = 2, 3, 16, 91, 92, 93, 2014, 1111
_TEXTS: Final = {1, 12, -1, -15, -9, -16, 2005, 2011, 2009, 70}
_BYTES: Final = {-2, -3, -4, 2004}

_SPARK: Final = {
    schema.INT8: "TINYINT",
    schema.INT16: "SMALLINT",
    schema.INT32: "INT",
    schema.INT64: "BIGINT",
    schema.FLOAT32: "FLOAT",
    schema.FLOAT64: "DOUBLE",
    schema.BOOLEAN: "BOOLEAN",
    schema.STRING: "STRING",
    schema.BYTES: "BINARY",
    schema.DATE: "DATE",
    schema.TIME: "STRING",
}
_SIGNED: Final = {TINYINT: schema.INT8, SMALLINT: schema.INT16, INTEGER: schema.INT32, BIGINT: schema.INT64}
_UNSIGNED: Final = {TINYINT: schema.INT16, SMALLINT: schema.INT32, INTEGER: schema.INT64, BIGINT: schema.INT64}
_PLAIN: Final = {
    REAL: schema.FLOAT32,
    FLOAT: schema.FLOAT64,
    DOUBLE: schema.FLOAT64,
    BOOLEAN: schema.BOOLEAN,
    DATE: schema.DATE,
    TIME: schema.TIME,
    TIMESTAMP: schema.TIMESTAMP,
    TIMESTAMP_ZONED: schema.TIMESTAMP,
}
_TEXT_OF_OTHERS: Final = {"json", "jsonb", "uuid"}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    schema: Schema | None
    """None: of a type that is left out."""
    spark: str
    """The type that Spark reads it as."""

    @classmethod
    def of(cls, fact: ColumnFact, family: Family, mapping: str = NONE) -> Column:
        found = _schema(fact, family, mapping)
        if found is None:
            return cls(fact.name, None, "STRING")
        if found.name == schema.TIMESTAMP_NAME:
            # SQLite has instants in numbers; elsewhere a timestamp without a zone is read as it stands there.
            zoned = fact.jdbc_type == TIMESTAMP_ZONED or fact.type_name == "timestamptz" or family is Family.SQLITE
            spark = "TIMESTAMP" if zoned else "TIMESTAMP_NTZ"
        elif found.name == schema.DECIMAL_NAME:
            spark = f"DECIMAL({_DIGITS},{found.parameters['scale']})"
        else:
            spark = _SPARK[found]
        return cls(fact.name, found.as_optional() if fact.nullable else found, spark)

    def finished(self, read: pa.Array, time_zone: str) -> pa.Array:
        """What Spark read, as `headgate.api.frame` has it."""
        assert self.schema is not None
        wanted = arrow_type(self.schema)
        if pa.types.is_timestamp(wanted):
            return pc.floor_temporal(instants(read, time_zone), unit="millisecond").cast(wanted)
        if pa.types.is_time(wanted):
            return _times(read)
        return read if read.type == wanted else read.cast(wanted)


def instants(read: pa.Array, time_zone: str) -> pa.Array:
    """Microseconds in UTC, of timestamps with or without a zone."""
    if read.type.tz is None:
        read = pc.assume_timezone(read, time_zone, ambiguous="earliest", nonexistent="latest")
    return read.cast(pa.timestamp("us", "UTC"))


def _times(read: pa.Array) -> pa.Array:
    """Of text, in whole milliseconds; with a zone, the time that it is in UTC."""
    millis = [None if each is None else _micros(each) // 1000 for each in read.to_pylist()]
    return pa.array(millis, pa.int32()).cast(pa.time32("ms"))


def _micros(text: str) -> int:
    if text.startswith("24:"):  # PostgreSQL has a last instant of the day, Connect has not
        return 86_399_999_999
    time = dt.time.fromisoformat(text)
    offset = time.utcoffset() or dt.timedelta()
    past = dt.timedelta(hours=time.hour, minutes=time.minute, seconds=time.second, microseconds=time.microsecond)
    return ((past - offset) % dt.timedelta(days=1)) // dt.timedelta(microseconds=1)


def _schema(fact: ColumnFact, family: Family, mapping: str) -> Schema | None:
    kind = fact.jdbc_type
    if family is Family.SQLITE and kind == INTEGER:
        return schema.INT64  # any of its whole numbers may be that large
    if kind in _SIGNED:
        return (_SIGNED if fact.signed else _UNSIGNED)[kind]
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _TEXTS or (kind == OTHER and fact.type_name.lower() in _TEXT_OF_OTHERS):
        return schema.STRING
    if kind in _BYTES:
        return schema.BYTES
    if kind == BIT:
        if family is Family.POSTGRESQL and fact.precision <= 1:
            return schema.BOOLEAN
        return schema.INT8 if family is not Family.POSTGRESQL or fact.precision <= 8 else schema.BYTES
    if kind in (NUMERIC, DECIMAL):
        return _number(fact, family, mapping)
    return None


def _number(fact: ColumnFact, family: Family, mapping: str) -> Schema:
    precision, scale = fact.precision, fact.scale
    free = family is Family.POSTGRESQL and precision == 0
    if fact.jdbc_type == NUMERIC and not free:
        small = precision < _INTEGER_PRECISION
        if small and (
            (mapping == PRECISION_ONLY and scale == 0) or (mapping in (BEST_FIT, EAGER_DOUBLE) and scale < 1)
        ):
            return next(each for most, each in _BY_PRECISION if precision <= most)
        if scale > 0 and (mapping == EAGER_DOUBLE or (mapping == BEST_FIT and small)):
            return schema.FLOAT64
    return schema.decimal(_FREE_SCALE if free else min(max(scale, 0), _DIGITS))


_BY_PRECISION: Final = ((2, schema.INT8), (4, schema.INT16), (9, schema.INT32), (_INTEGER_PRECISION, schema.INT64))


@dataclass(frozen=True, slots=True)
class ResultColumns:
    """All of a result, in its order."""

    all: tuple[Column, ...]
    schema: Schema

    @classmethod
    def of(cls, facts: Sequence[ColumnFact], family: Family, mapping: str, name: str | None) -> ResultColumns:
        """Raises DataError when two have one name."""
        made = tuple(Column.of(fact, family, mapping) for fact in facts)
        fields = [(each.name, each.schema) for each in made if each.schema is not None]
        members = tuple(schema.Field(field, index, kind) for index, (field, kind) in enumerate(fields))
        return cls(made, Schema(schema.SchemaType.STRUCT, name=name, fields=members))

    @property
    def left_out(self) -> list[str]:
        return [each.name for each in self.all if each.schema is None]

    @property
    def spark(self) -> str:
        """As DDL."""
        return ", ".join(f"`{each.name.replace('`', '``')}` {each.spark}" for each in self.all)

    def structs(self, read: pa.Table, time_zone: str) -> pa.Array:
        """Rows as structs of the schema."""
        kept = [(each, read.column(index)) for index, each in enumerate(self.all) if each.schema is not None]
        arrays: list[Any] = [each.finished(column.combine_chunks(), time_zone) for each, column in kept]
        fields = [pa.field(each.name, array.type) for (each, _), array in zip(kept, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields)
