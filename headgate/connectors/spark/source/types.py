"""Types of Spark's columns as Connect's schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import types as spark

from headgate.api import ConnectError, Schema, schema

PLAIN: Final[Mapping[type[spark.DataType], Schema]] = {
    spark.BooleanType: schema.BOOLEAN,
    spark.ByteType: schema.INT8,
    spark.ShortType: schema.INT16,
    spark.IntegerType: schema.INT32,
    spark.LongType: schema.INT64,
    spark.FloatType: schema.FLOAT32,
    spark.DoubleType: schema.FLOAT64,
    spark.StringType: schema.STRING,
    spark.CharType: schema.STRING,
    spark.VarcharType: schema.STRING,
    spark.BinaryType: schema.BYTES,
    spark.DateType: schema.DATE,
    spark.TimeType: schema.TIME,
    spark.TimestampType: schema.TIMESTAMP,
    spark.TimestampNTZType: schema.TIMESTAMP,
}


def schema_of(kind: spark.DataType, name: str, nullable: bool = False) -> Schema:
    """`name`: of the column, for those who are told. Raises ConnectError for types that Connect has nothing for."""
    made = _required(kind, name)
    return made.as_optional() if nullable else made


def _required(kind: spark.DataType, name: str) -> Schema:
    if isinstance(kind, spark.StructType):
        return struct_of(kind, f"{name}.")
    if isinstance(kind, spark.ArrayType):
        return schema.array(schema_of(kind.elementType, f"{name}[]", kind.containsNull))
    if isinstance(kind, spark.MapType):
        values = schema_of(kind.valueType, f"{name}[]", kind.valueContainsNull)
        return schema.mapping(schema_of(kind.keyType, f"the keys of {name}"), values)
    if isinstance(kind, spark.DecimalType):
        return schema.decimal(kind.scale)
    found = PLAIN.get(type(kind))
    if found is None:
        raise ConnectError(
            f"Column {name} is of Spark's type {kind.simpleString()}, which Kafka Connect has no schema for: cast it"
        )
    return found


def struct_of(columns: spark.StructType, within: str = "") -> Schema:
    """Of all columns, as one STRUCT. Raises ConnectError."""
    names = columns.fieldNames()
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ConnectError(f"There are two columns {within}{twice[0]}: a STRUCT needs a different name for each")
    return schema.struct(
        {each.name: schema_of(each.dataType, f"{within}{each.name}", each.nullable) for each in columns}
    )
