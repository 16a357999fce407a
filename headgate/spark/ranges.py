"""Large backlogs as DataFrames, read by the executors through Spark's Kafka source, for sinks that write from there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headgate.model import Config, TaskId, TopicPartition
from headgate.pipeline.sink_chain import Output, SinkChain
from headgate.spark.engine import SparkEngine
from headgate.spark.range_job import RangeJobs, Ranges
from headgate.spark.session import label

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
_TYPES: Final = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "bigint",
    "key": "string",
    "value": "string",
    "original_topic": "string",
    "original_partition": "int",
    "original_offset": "bigint",
}


@dataclass(frozen=True, slots=True)
class RangeFrames:
    """Ranges for one task. Rows come in the order of their offsets within each partition."""

    consumer: Config
    chain: bytes
    output: Output
    sink: SinkChain

    def frame(self, session: SparkSession, ranges: Ranges) -> DataFrame:
        """The ranges after the pipeline, with the columns of the output."""
        sink = self.sink
        raw = self._raw(session, ranges, "headers" in sink.needed)
        if sink.passthrough:
            # Nothing here needs Python: the columns go as Spark has them.
            shown = [_TEXT.format(name) if name in ("key", "value") else _COLUMNS[name] for name in self.output.columns]
            return raw.selectExpr(*shown)
        from headgate.pipeline.blob import Job, map_batches

        needed = [expression for name, expression in _COLUMNS.items() if name in sink.needed]
        types = ", ".join(f"{name} {_TYPES[name]}" for name in self.output.columns)
        return raw.selectExpr(*needed).mapInArrow(map_batches(Job(self.chain, self.output)), types)

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
        return (
            reader.option(
                "assign", json.dumps({topic: [int(each) for each in parts] for topic, parts in starts.items()})
            )
            .option("startingOffsets", json.dumps(starts))
            .option("endingOffsets", json.dumps(ends))
            # One Kafka partition may be read by several cores, each a part of the range.
            .option("minPartitions", max(session.sparkContext.defaultParallelism, 1))
            .option("includeHeaders", str(headers).lower())
            # Compaction and aborted transactions leave holes in a range; what retention took is checked by the caller.
            .option("failOnDataLoss", "false")
            .load()
        )


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads ranges for one task; on its lane, whose jobs can be cancelled."""

    task: TaskId
    engine: SparkEngine
    jobs: RangeJobs
    frames: RangeFrames | None
    """Where the task takes the frame itself."""

    def read(self, ranges: Ranges, shelf: Shelf | None) -> DataFrame | list[bytes]:
        """A frame, or packed results. Raises what explains Spark's error."""
        try:
            session = self.engine.session()
            label(session.sparkContext, str(self.task), self.task.connector)
            if self.frames is not None:
                return self.frames.frame(session, ranges)
            return self.jobs.read(session.sparkContext, ranges, shelf)
        except Exception as error:
            raise self.engine.explain(error) from error


def chunks(ranges: Ranges, most: int) -> list[dict[TopicPartition, tuple[int, int]]]:
    """Cut so that each has at most about `most` records, every partition going forward in each."""
    left = {where: bounds for where, bounds in ranges.items() if bounds[0] < bounds[1]}
    cut = []
    while left:
        share = max(1, most // len(left))
        chunk = {where: (start, min(start + share, end)) for where, (start, end) in left.items()}
        cut.append(chunk)
        left = {where: (chunk[where][1], end) for where, (_, end) in left.items() if chunk[where][1] < end}
    return cut
