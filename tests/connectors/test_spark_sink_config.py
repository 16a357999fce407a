from __future__ import annotations

import pytest

from headgate.api import ConfigError, Reach, ReachKind, SinkConnector
from headgate.connectors import SparkSink
from headgate.connectors.spark.location import Location
from headgate.connectors.spark.sink.config import CONFIG, SparkSinkConfig
from headgate.runtime.plugins import Plugins

PATH = {"path": "/data/orders"}
DELTA = {**PATH, "format": "delta"}
ICEBERG = {"table": "shop.orders", "format": "iceberg"}


def errors(config: dict[str, str]) -> dict[str, list[str]]:
    return {value.name: value.errors for value in SparkSink().validate(config) if value.errors}


@pytest.mark.parametrize(
    "config",
    [
        PATH,
        {"table": "lake.orders"},
        {**PATH, "exactly.once": "true", "format": "csv", "options.header": "true", "options.compression": "gzip"},
        {"path": "file:///data/orders", "exactly.once": "true"},
        {**DELTA, "mode": "upsert", "key.columns": "id", "exactly.once": "true"},
        {"format": "delta", "path": "s3a://lake/orders", "exactly.once": "true", "schema.evolution": "add"},
        {
            **ICEBERG,
            "catalog": "lake",
            "exactly.once": "true",
            "schema.evolution": "add",
            "options.compression": "zstd",
        },
        {**ICEBERG, "format": "Iceberg", "mode": "upsert", "key.columns": "id", "partition.by": "day"},
        {"format": "jdbc", "options.url": "jdbc:postgresql://db/x", "options.dbtable": "orders"},
        {**PATH, "schema": "id BIGINT, day DATE", "partition.by": "day,_topic", "metadata.columns": "_topic,_offset"},
    ],
)
def test_what_makes_sense_is_accepted(config: dict[str, str]) -> None:
    assert errors(config) == {}
    assert SparkSinkConfig.of(config)


@pytest.mark.parametrize(
    ("config", "key", "problem"),
    [
        ({}, "path", "Set one of path and table"),
        ({**PATH, "table": "orders"}, "path", "Set one of path and table"),
        ({"path": "/data/*"}, "path", "It names one folder"),
        ({"path": ""}, "path", "String must be non-empty"),
        ({"table": "orders; DROP TABLE x"}, "table", "It must be a table's name"),
        ({"table": "delta.`/etc`"}, "table", "It must be a table's name"),
        ({**PATH, "format": "parquet`"}, "format", "It must be the name of a format of Spark"),
        ({**PATH, "mode": "overwrite"}, "mode", "String must be one of: append, upsert"),
        (
            {**PATH, "mode": "upsert", "key.columns": "id"},
            "mode",
            "Only format=delta and format=iceberg can change rows",
        ),
        ({**DELTA, "mode": "upsert"}, "key.columns", "which needs them"),
        ({**DELTA, "key.columns": "id"}, "key.columns", "They are for mode=upsert"),
        ({"format": "avro", **PATH, "exactly.once": "true"}, "exactly.once", "avro cannot keep offsets"),
        ({"table": "orders", "exactly.once": "true"}, "exactly.once", "to a path of this machine or of hdfs:// only"),
        ({"path": "s3a://a/b", "exactly.once": "true"}, "exactly.once", "to a path of this machine or of hdfs:// only"),
        ({**PATH, "schema": "id NUMBER"}, "schema", "It is not Spark's DDL: 'NUMBER' is no type"),
        ({**PATH, "schema": "id INT", "partition.by": "day"}, "partition.by", "schema has no such column"),
        ({**PATH, "schema.evolution": "guess"}, "schema.evolution", "String must be one of: fail, add, ignore"),
        ({**PATH, "format": "csv", "schema.evolution": "add"}, "schema.evolution", "Columns cannot be added"),
        ({**PATH, "metadata.columns": "_size"}, "metadata.columns", "There are _topic, "),
        ({**PATH, "rotate.records": "0"}, "rotate.records", "Value must be at least 1"),
        ({**PATH, "options.fs.file.impl": "evil.Files"}, "options.fs.file.impl", "for the worker file"),
        (
            {**PATH, "options.parquet.crypto.factory.class": "x"},
            "options.parquet.crypto.factory.class",
            "For parquet there are",
        ),
        ({**PATH, "format": "csv", "options.compression": "evil.Codec"}, "options.compression", "There are none, "),
        ({**DELTA, "options.txnVersion": "1"}, "options.txnVersion", "For delta there are"),
        ({**DELTA, "options.path": "/elsewhere"}, "options.path", "For delta there are"),
        ({**ICEBERG, "table": "orders"}, "table", "It must name a table and its namespace"),
        ({"format": "iceberg"}, "table", "It must name a table and its namespace"),
        ({**ICEBERG, **PATH}, "path", "Set table instead: its catalog says where it is"),
        ({**ICEBERG, "catalog": "lake.type"}, "catalog", "It must be the name of a catalog of the worker file"),
        ({**DELTA, "catalog": "lake"}, "catalog", "It is for format=iceberg only"),
    ],
)
def test_what_does_not_is_told_at_its_key(config: dict[str, str], key: str, problem: str) -> None:
    found = errors(config)
    assert list(found) == [key]
    assert problem in found[key][0]
    with pytest.raises(ConfigError):
        SparkSinkConfig.of(config)


def test_what_is_not_installed_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.connectors.spark.sink.config.find_spec", lambda name: None)
    (problem,) = errors(ICEBERG)["format"]
    assert problem.endswith('It needs pyiceberg, which is not installed: pip install "headgate[iceberg]"')


def test_a_path_is_of_this_machine_unless_it_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    assert Location.of("/a/../b c") == Location("file:/b c", "/b c")
    assert Location.of("orders") == Location("file:/tmp/orders", "/tmp/orders")
    assert (
        Location.of("file:///a/b") == Location.of("FILE:/a/b") == Location.of("file://host/a/b") == Location.of("/a/b")
    )
    assert Location.of("HDFS://namenode:9000/x/") == Location("hdfs://namenode:9000/x", None)


@pytest.mark.parametrize(
    ("config", "reached"),
    [
        (PATH, [Reach(ReachKind.WRITE, "/data/orders", "path")]),
        ({"path": "File:/etc"}, [Reach(ReachKind.WRITE, "/etc", "path")]),
        ({"path": "s3a://lake/orders"}, [Reach(ReachKind.HOST, "s3a://lake/orders", "path")]),
        ({"table": "orders", "format": "DELTA"}, [Reach(ReachKind.TABLE, "orders", "table")]),
        ({**ICEBERG, "format": "ICEBERG"}, [Reach(ReachKind.TABLE, "default.shop.orders", "table")]),
        ({**ICEBERG, "catalog": "lake"}, [Reach(ReachKind.TABLE, "lake.shop.orders", "table")]),
        ({"format": "org.evil.Source"}, [Reach(ReachKind.TABLE, "org.evil.Source", "format")]),
        (
            {"format": "jdbc", **PATH},
            [Reach(ReachKind.WRITE, "/data/orders", "path"), Reach(ReachKind.TABLE, "jdbc", "format")],
        ),
        ({}, []),
    ],
)
def test_it_says_what_it_reaches(config: dict[str, str], reached: list[Reach]) -> None:
    assert list(SparkSink.reaches(config)) == reached


@pytest.mark.parametrize("name", ["headgate.connectors.SparkSink", "headgate.SparkSink", "SparkSink"])
def test_it_is_found_by_its_names(name: str) -> None:
    found = Plugins.discover().find_connector(name)
    assert issubclass(found.connector, SinkConnector)
    assert found.connector.__name__ == "SparkSink"


def test_every_key_is_documented() -> None:
    assert all(key.doc for key in CONFIG)
