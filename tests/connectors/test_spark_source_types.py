"""Spark's types as Connect's schemas, and what Spark reads as records of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types as spark
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.api import ConnectError, Schema, schema
from headgate.api.frame import arrow_type
from headgate.connectors.spark.source.config import SparkSourceConfig
from headgate.connectors.spark.source.shape import SourceShape
from headgate.connectors.spark.source.types import PLAIN, schema_of, struct_of

UTC = dt.UTC
AT = dt.datetime(2030, 1, 31, 12, 0, 0, 123456)

TABLE: list[tuple[spark.DataType, Schema, Any, Any]] = [
    (spark.BooleanType(), schema.BOOLEAN, True, True),
    (spark.ByteType(), schema.INT8, -128, -128),
    (spark.ShortType(), schema.INT16, 300, 300),
    (spark.IntegerType(), schema.INT32, 1 << 30, 1 << 30),
    (spark.LongType(), schema.INT64, 1 << 60, 1 << 60),
    (spark.FloatType(), schema.FLOAT32, 0.5, 0.5),
    (spark.DoubleType(), schema.FLOAT64, 0.1, 0.1),
    (spark.StringType(), schema.STRING, "ä", "ä"),
    (spark.BinaryType(), schema.BYTES, b"\xff", b"\xff"),
    (spark.DateType(), schema.DATE, AT.date(), AT.date()),
    (spark.TimeType(), schema.TIME, AT.time(), AT.time().replace(microsecond=123000)),
    (spark.TimestampType(), schema.TIMESTAMP, AT.replace(tzinfo=UTC), AT.replace(tzinfo=UTC, microsecond=123000)),
    (spark.TimestampNTZType(), schema.TIMESTAMP, AT, AT.replace(tzinfo=UTC, microsecond=123000)),
    (spark.DecimalType(9, 2), schema.decimal(2), Decimal("1.25"), Decimal("1.25")),
    (spark.ArrayType(spark.LongType(), False), schema.array(schema.INT64), [1, 2], [1, 2]),
    (spark.ArrayType(spark.TimestampType()), schema.array(schema.TIMESTAMP.as_optional()), [None], [None]),
    (
        spark.MapType(spark.StringType(), spark.TimestampNTZType(), False),
        schema.mapping(schema.STRING, schema.TIMESTAMP),
        [("a", AT)],
        [("a", AT.replace(tzinfo=UTC, microsecond=123000))],
    ),
    (
        spark.StructType().add("a", spark.IntegerType(), False).add("b", spark.StringType()),
        schema.struct({"a": schema.INT32, "b": schema.OPTIONAL_STRING}),
        {"a": 1, "b": None},
        {"a": 1, "b": None},
    ),
]


@pytest.mark.parametrize(("kind", "made", "value", "seen"), TABLE, ids=[row[0].simpleString() for row in TABLE])
def test_each_type_has_a_schema_and_its_values_fit(kind: spark.DataType, made: Schema, value: Any, seen: Any) -> None:
    assert schema_of(kind, "c") == made
    assert schema_of(kind, "c", nullable=True) == made.as_optional()
    columns = spark.StructType().add("c", kind)
    config = SparkSourceConfig.of({"path": "/data", "topic": "t", "format": "parquet"})
    read = pa.table({"c": pa.array([value, None], to_arrow_schema(columns, timezone="Europe/Berlin").field("c").type)})
    shape = SourceShape.of(columns, config)
    records = shape.records(read)
    assert records.column("value").type == arrow_type(shape.value_schema)
    assert records.column("value").to_pylist() == [{"c": seen}, {"c": None}]


def test_the_table_above_is_whole() -> None:
    assert {type(row[0]) for row in TABLE} >= PLAIN.keys() - {spark.CharType, spark.VarcharType}


@pytest.mark.parametrize(
    "kind", [spark.NullType(), spark.CalendarIntervalType(), spark.DayTimeIntervalType(), spark.VariantType()]
)
def test_what_connect_has_nothing_for_is_refused_by_its_name(kind: spark.DataType) -> None:
    columns = spark.StructType().add("a", spark.ArrayType(spark.StructType().add("b", kind)))
    with pytest.raises(ConnectError, match=r"Column a\[\]\.b is of Spark's type"):
        struct_of(columns)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ConnectError, match="two columns a"):
        struct_of(spark.StructType().add("a", spark.IntegerType()).add("a", spark.LongType()))
