"""AppendTarget: rows at the end of whatever Spark can write, at least once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.connectors.spark.sink.columns import Evolution
from headgate.connectors.spark.sink.config import DELTA, SparkSinkConfig
from headgate.connectors.spark.sink.target import Opened, RowBatch, frame_of, schema_of, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession


class AppendTarget:
    """Fits `target.Target`. What was written when a task dies is written again by the next one."""

    def __init__(self, config: SparkSinkConfig) -> None:
        self._config = config

    def open(self, session: SparkSession) -> Opened:
        with told(shown(self._config)):
            return Opened(schema_of(session, self._config))

    def write(self, session: SparkSession, batch: RowBatch) -> None:
        if batch.rows.num_rows:
            with told(shown(self._config)):
                save(writer_of(frame_of(session, batch.rows), self._config), self._config)


def shown(config: SparkSinkConfig) -> str:
    """The target, as errors name it."""
    return config.table or (config.location.uri if config.location is not None else config.format)


def writer_of(frame: DataFrame, config: SparkSinkConfig) -> DataFrameWriter:
    writer = frame.write.format(config.format).mode("append").options(**config.options)
    if config.format == DELTA and config.evolution is Evolution.ADD:
        writer = writer.option("mergeSchema", True)
    return writer.partitionBy(*config.partition_by) if config.partition_by else writer


def save(writer: DataFrameWriter, config: SparkSinkConfig) -> None:
    if config.table is not None:
        writer.saveAsTable(config.table)
    else:
        writer.save(config.location.uri if config.location is not None else None)
