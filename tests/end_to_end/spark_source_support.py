"""Tasks of SparkSource on the worker's Spark, without Kafka."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from harness import await_
from pyspark.sql import SparkSession

from headgate.api import SourceTable
from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext
from headgate.connectors import SparkSource
from headgate.connectors.spark.source.polling import SparkPolling

CLASS = {"connector.class": "headgate.connectors.SparkSource"}


@contextmanager
def running(
    session: SparkSession, config: Mapping[str, str], offsets: MemoryOffsets | None = None
) -> Iterator[SparkPolling]:
    task = SparkSource.task_class_for(config)()
    assert isinstance(task, SparkPolling)
    task.context = MemorySourceTaskContext(config, offsets, session=session)
    task.start(config)
    try:
        yield task
    finally:
        task.stop_requested()
        task.stop()


def polled(task: SparkPolling, rows: int, offsets: MemoryOffsets | None = None) -> list[SourceTable]:
    """Until there are so many, stored as the runtime does it."""
    found: list[SourceTable] = []

    def enough() -> bool:
        given = task.poll()
        if given is not None:
            assert isinstance(given, SourceTable)
            found.append(given)
            if offsets is not None:
                assert given.source_partition is not None
                offsets.commit(given.source_partition, given.source_offset)
                task.commit()
        return bool(sum(each.table.num_rows for each in found) >= rows)

    await_(enough, f"{rows} rows", 60)
    return found


def values(tables: list[SourceTable]) -> list[Any]:
    return [value for each in tables for value in each.table.column("value").to_pylist()]
