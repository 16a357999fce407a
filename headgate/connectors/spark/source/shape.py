"""SourceShape: what becomes of the columns that Spark has read: keys, values, timestamps, with their schemas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import types as spark

from headgate.api import ConfigError, ConnectError, Schema, schema
from headgate.api.frame import arrow_type
from headgate.connectors.spark.source.config import KEY_COLUMNS, SCHEMA, TIMESTAMP_COLUMN, SparkSourceConfig
from headgate.connectors.spark.source.types import struct_of

_TIMES: Final = (spark.TimestampType, spark.TimestampNTZType, spark.LongType)


@dataclass(frozen=True, slots=True)
class SourceShape:
    value_schema: Schema
    key_schema: Schema | None
    _columns: Schema
    _key: tuple[str, ...]
    _timestamp: str | None
    _bare: bool
    """The value is the only column itself."""

    @classmethod
    def of(cls, columns: spark.StructType, config: SparkSourceConfig, bare: bool = False) -> SourceShape:
        """Raises ConfigError, or ConnectError for columns that cannot be."""
        if not columns.fields:
            raise ConnectError("There are no columns: no record can be made of that")
        whole = struct_of(columns)
        kinds = {each.name: each.dataType for each in columns}
        for key, names in ((KEY_COLUMNS, config.key_columns), (TIMESTAMP_COLUMN, (config.timestamp_column,))):
            for name in names:
                if name is not None and name not in kinds:
                    raise ConfigError.invalid(key, name, f"There is no such column, only {', '.join(kinds)}")
        stamp = config.timestamp_column
        if stamp is not None and not isinstance(kinds[stamp], _TIMES):
            needed = "a timestamp, or milliseconds since 1970 as bigint"
            raise ConfigError.invalid(
                TIMESTAMP_COLUMN, stamp, f"It is {kinds[stamp].simpleString()}, and must be {needed}"
            )
        keyed = [whole.field(name) for name in config.key_columns]
        parts = {member.name: member.schema for member in keyed if member is not None}
        keys = next(iter(parts.values())) if len(parts) == 1 else schema.struct(parts)
        value = whole.fields[0].schema if bare else whole
        return cls(value, keys if parts else None, whole, config.key_columns, stamp, bare)

    def records(self, read: pa.Table) -> pa.Table:
        """As a SourceTable has them. Spark counts microseconds, Connect milliseconds: what is finer is cut off."""
        columns = {
            member.name: _cast(read.column(member.name), arrow_type(member.schema)) for member in self._columns.fields
        }
        made = {"value": next(iter(columns.values())) if self._bare else _struct(columns)}
        if self._key:
            made["key"] = columns[self._key[0]] if len(self._key) == 1 else _struct({n: columns[n] for n in self._key})
        if self._timestamp is not None:
            made["timestamp"] = _cast(columns[self._timestamp], pa.int64())
        return pa.table(made)

    def tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        """For a SourceFrame."""
        return (self.records(pa.Table.from_batches([batch])) for batch in batches)


def columns_of(told: str) -> spark.StructType:
    """Of a list of columns as SQL has it; asks the JVM. Raises ConfigError."""
    form = "It must be a list of columns such as id INT, name STRING"
    try:
        columns = spark.StructType.fromDDL(told)
    except PySparkException as error:
        raise ConfigError.invalid(SCHEMA, told, f"{form}: {str(error).splitlines()[0]}") from error
    if not isinstance(columns, spark.StructType):
        raise ConfigError.invalid(SCHEMA, told, form)
    return columns


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array if array.type == kind else array.cast(kind, safe=False)


def _struct(columns: dict[str, pa.Array]) -> pa.Array:
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))
