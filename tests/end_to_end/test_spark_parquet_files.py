from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.cli.assembly import StandaloneWorker
from headgate.connectors.spark.sink.ddl import parse
from headgate.connectors.spark.sink.parquet_files import ParquetFiles
from headgate.connectors.spark.sink.target import frame_of

pytestmark = pytest.mark.spark

ALL = parse(
    "tiny TINYINT, small SMALLINT, whole INT, long BIGINT, half FLOAT, real DOUBLE, yes BOOLEAN, text STRING,"
    " bytes BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, price DECIMAL(12,2), big DECIMAL(38,3),"
    " many ARRAY<STRING>, named MAP<STRING, INT>, nested STRUCT<a: INT, b: ARRAY<STRUCT<c: STRING>>>"
)
NOON = dt.datetime(2030, 1, 31, 12, 0, 0, 123456, dt.UTC)
FULL = {
    "tiny": -128, "small": 32767, "whole": -1, "long": 2**62, "half": 0.5, "real": -1.25, "yes": True, "text": "ä\n€",
    "bytes": b"\x00\xff", "day": dt.date(2030, 1, 31), "at": NOON, "local": NOON.replace(tzinfo=None),
    "price": Decimal("1234567890.12"), "big": Decimal("-12345678901234567890123456789012345.678"), "many": ["a", None],
    "named": [("x", 1), ("y", None)], "nested": {"a": 1, "b": [{"c": "d"}, None]},
}  # fmt: skip


@pytest.fixture
def session(worker: StandaloneWorker) -> SparkSession:
    return worker.engine.session().newSession()


def by_arrow(
    session: SparkSession, folder: Path, rows: pa.Table, by: tuple[str, ...] = (), files: int = 1
) -> DataFrame:
    made = ParquetFiles.of(session, str(folder), rows.schema, by, {})
    assert made is not None
    made.write(session, rows, files)
    return session.read.parquet(str(folder))


def test_spark_finds_what_it_would_have_written(session: SparkSession, tmp_path: Path) -> None:
    rows = pa.Table.from_pylist([FULL, dict.fromkeys(FULL)], ALL)
    frame_of(session, rows).write.parquet(str(tmp_path / "spark"))
    theirs, ours = session.read.parquet(str(tmp_path / "spark")), by_arrow(session, tmp_path / "arrow", rows)
    assert ours.schema == theirs.schema
    assert ours.collect() == theirs.collect()
    assert session.read.parquet(str(tmp_path / "spark"), str(tmp_path / "arrow")).count() == 4


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string(), ["a", "a b", "ä/€", "x=1", "50%", "", None, "a:b", "..", "t'q\"", "#?*", "{[^]}\\", "\x01"]),
        (pa.int32(), [1, -5, None]),
        (pa.date32(), [dt.date(1999, 12, 31), dt.date(2030, 1, 1), None]),
    ],
    ids=str,
)
def test_folders_mean_the_same_to_spark(
    session: SparkSession, tmp_path: Path, kind: pa.DataType, values: list[Any]
) -> None:
    rows = pa.table({"id": pa.array(range(len(values)), pa.int64()), "part": pa.array(values, kind)})
    frame_of(session, rows).write.partitionBy("part").parquet(str(tmp_path / "spark"))
    theirs, ours = session.read.parquet(str(tmp_path / "spark")), by_arrow(session, tmp_path / "arrow", rows, ("part",))
    assert ours.schema == theirs.schema
    assert ours.orderBy("id").collect() == theirs.orderBy("id").collect()


def test_rows_keep_their_order_and_are_in_so_many_files(session: SparkSession, tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array(range(100_001), pa.int64())})
    found = by_arrow(session, tmp_path / "f", rows, files=3)
    files = sorted((tmp_path / "f").iterdir())
    assert len(files) == 3, "and nothing else is left there"
    parts = sorted([row.id for row in session.read.parquet(str(file)).collect()] for file in files)
    assert [number for part in parts for number in part] == list(range(100_001))
    assert found.count() == 100_001


@pytest.mark.parametrize(
    ("options", "by", "codec"),
    [
        ({}, (), "snappy"),
        ({"Compression": "ZSTD"}, (), "zstd"),
        ({"compression": "uncompressed"}, (), "none"),
        ({"compression": "lz4"}, (), None),
        ({"maxRecordsPerFile": "5"}, (), None),
        ({}, ("at",), None),
        ({}, ("day", "text"), "snappy"),
    ],
)
def test_what_only_spark_knows_is_left_to_it(
    session: SparkSession, tmp_path: Path, options: dict[str, str], by: tuple[str, ...], codec: str | None
) -> None:
    made = ParquetFiles.of(session, str(tmp_path), ALL, by, options)
    assert (made.codec if made else None) == codec


def test_settings_of_the_worker_file_count(session: SparkSession, tmp_path: Path) -> None:
    codec, other = "spark.sql.parquet.compression.codec", "spark.sql.parquet.outputTimestampType"
    session.conf.set(codec, "gzip")
    made = ParquetFiles.of(session, str(tmp_path), ALL, (), {})
    assert made is not None
    assert made.codec == "gzip"
    session.conf.set(other, "TIMESTAMP_MILLIS")
    assert ParquetFiles.of(session, str(tmp_path), ALL, (), {}) is None
