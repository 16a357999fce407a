"""Large backlogs as DataFrames, read by the executors through Spark's Kafka source, for sinks that write from there."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from headgate.model import Config, TaskId
from headgate.pipeline.sink_chain import SinkChain
from headgate.spark.range_job import RangeJobs, Ranges
from headgate.spark.session import Session, label

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.pipeline.shelf import Shelf

# Spark's source sets these itself and refuses them from outside.
_OWNED: Final = frozenset(
    {
        "group.id", "client.id", "group.instance.id", "auto.offset.reset", "enable.auto.commit", "interceptor.classes",
        "key.deserializer", "value.deserializer", "bootstrap.servers", "partition.assignment.strategy",
        "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "group.protocol",
    }
)  # fmt: skip
_FASTER: Final = {"max.poll.records": "5000", "max.partition.fetch.bytes": str(16 * 1024 * 1024)}

_COLUMNS: Final = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp": "unix_millis(timestamp) AS timestamp",
    "timestamp_type": "CASE timestampType WHEN 0 THEN 'CreateTime' WHEN 1 THEN 'LogAppendTime' END AS timestamp_type",
    "key": "key",
    "value": "value",
    "headers": "headers",
    "original_topic": "topic AS original_topic",
    "original_partition": "partition AS original_partition",
    "original_offset": "offset AS original_offset",
}
_TEXT: Final = "make_valid_utf8(CAST({0} AS STRING)) AS {0}"
_PLACE: Final = {"topic": "string", "partition": "int", "offset": "bigint"}
_ORIGINAL: Final = {f"original_{name}": kind for name, kind in _PLACE.items()}
_TYPES: Final = {**_PLACE, "timestamp": "bigint", "key": "string", "value": "string", **_ORIGINAL}


@dataclass(frozen=True, slots=True)
class RangeFrames:
    """Ranges for one task. Rows come in the order of their offsets within each partition."""

    consumer: Config
    chain: bytes
    sink: SinkChain

    def frame(self, session: SparkSession, ranges: Ranges) -> DataFrame:
        """The ranges after the pipeline, with the columns of the output."""
        sink, output = self.sink, self.sink.output
        raw = self._raw(session, ranges, "headers" in sink.needed)
        if sink.passthrough:
            # Nothing here needs Python: the columns go as Spark has them.
            shown = [_TEXT.format(name) if name in ("key", "value") else _COLUMNS[name] for name in output.columns]
            return raw.selectExpr(*shown)
        from headgate.pipeline.blob import Job, map_batches

        needed = [expression for name, expression in _COLUMNS.items() if name in sink.needed]
        types = ", ".join(f"{name} {_TYPES[name]}" for name in output.columns)
        return raw.selectExpr(*needed).mapInArrow(map_batches(Job(self.chain, output)), types)

    def _raw(self, session: SparkSession, ranges: Ranges, headers: bool) -> DataFrame:
        starts: dict[str, dict[str, int]] = {}
        ends: dict[str, dict[str, int]] = {}
        for where, (start, end) in ranges.items():
            starts.setdefault(where.topic, {})[str(where.partition)] = start
            ends.setdefault(where.topic, {})[str(where.partition)] = end
        settings = {key: value for key, value in self.consumer.items() if key not in _OWNED}
        reader = session.read.format("kafka").option("kafka.bootstrap.servers", self.consumer["bootstrap.servers"])
        for key, value in {**_FASTER, **settings}.items():
            reader = reader.option(f"kafka.{key}", value)
        assigned = {topic: [int(each) for each in parts] for topic, parts in starts.items()}
        return (
            reader.option("assign", json.dumps(assigned))
            .option("startingOffsets", json.dumps(starts))
            .option("endingOffsets", json.dumps(ends))
            # One Kafka partition may be read by several cores, each a part of the range.
            .option("minPartitions", max(session.sparkContext.defaultParallelism, 1))
            .option("includeHeaders", str(headers).lower())
            # Compaction and aborted transactions leave holes in a range; what retention took is checked by the caller.
            .option("failOnDataLoss", "false")
            .load()
        )


class SparkRanges:
    """Fits `tasks.ports.RangeReader`: of one task, on a lane as its statements are, whose jobs can be cancelled."""

    def __init__(self, task: TaskId, session: Session, jobs: RangeJobs, frames: RangeFrames | None) -> None:
        """`frames`: where the task takes the frame itself."""
        self._task = task
        self._session = session
        self._jobs = jobs
        self._frames = frames
        self._lane = ThreadPoolExecutor(1, f"spark-{task}")

    def read(self, ranges: Ranges, shelf: Shelf | None) -> Future[Any]:
        """A frame, or packed results. Fails with what explains Spark's error."""
        return self._lane.submit(partial(self._read, ranges, shelf))

    def _read(self, ranges: Ranges, shelf: Shelf | None) -> DataFrame | list[bytes]:
        try:
            context = self._session.context()
            label(context, str(self._task), self._task.connector)
            if self._frames is not None:
                return self._frames.frame(self._session.session(), ranges)
            return self._jobs.read(context, ranges, shelf)
        except Exception as error:
            raise self._session.explain(error) from error

    def cancel(self) -> None:
        self._session.cancel(str(self._task))

    def close(self) -> None:
        self._lane.shutdown(wait=False)
