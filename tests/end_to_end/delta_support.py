"""Delta for the worker of the tests."""

from __future__ import annotations

from headgate.jars.jars import DELTA, fetch


def delta_settings() -> dict[str, str]:
    """For the worker file, as docs/spark-sink.md has them."""
    return {
        "spark.jars": ",".join(map(str, fetch(DELTA))),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
    }
