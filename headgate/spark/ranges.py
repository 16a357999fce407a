"""Large backlogs, read by the executors: by residents, or, for sinks that write from there, by Spark's Kafka source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from headgate.kafka.settings import USUAL, ClientConfigError, ClientKind, translate
from headgate.kafka.settings.kafka_python import for_kafka_python
from headgate.model import Config, TaskId, TaskSpec, TopicPartition
from headgate.pipeline.blob import Packed
from headgate.pipeline.sink_chain import SinkChain
from headgate.spark.range_part import RangePart, results
from headgate.spark.residents import Residents
from headgate.spark.session import Session, label

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.pipeline.shelf import Shelf

Ranges: TypeAlias = Mapping[TopicPartition, tuple[int, int]]
"""From the first offset to the one after the last."""

# Spark's source sets these itself and refuses them from outside.
_OWNED: Final = frozenset(
    {
        "group.id", "client.id", "group.instance.id", "auto.offset.reset", "enable.auto.commit", "interceptor.classes",
        "key.deserializer", "value.deserializer", "bootstrap.servers", "partition.assignment.strategy",
        "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "group.protocol",
    }
)  # fmt: skip
_FASTER: Final = {"max.poll.records": "5000", "max.partition.fetch.bytes": str(16 * 1024 * 1024)}

_BY_RECORDS: Final = 5_000
"""Most of a part whose records go one by one: more would take so long that the pool took the chain for one that waits,
and had more residents come than there are cores."""

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


class FramedRanges:
    """Fits `tasks.ports.RangeReader`: frames for one task, on a lane as its statements are, whose jobs can be
    cancelled."""

    most: Final = 1_000_000
    ahead: Final = 1

    def __init__(self, task: TaskId, session: Session, frames: RangeFrames) -> None:
        self._task = task
        self._session = session
        self._frames = frames
        self._lane = ThreadPoolExecutor(1, f"spark-{task}")

    def read(self, ranges: Ranges, shelf: Shelf | None) -> Future[DataFrame]:
        """Fails with what explains Spark's error."""
        return self._lane.submit(self._read, ranges)

    def _read(self, ranges: Ranges) -> DataFrame:
        try:
            label(self._session.context(), str(self._task), self._task.connector)
            return self._frames.frame(self._session.session(), ranges)
        except Exception as error:
            raise self._session.explain(error) from error

    def cancel(self) -> None:
        self._session.cancel(str(self._task))

    def close(self) -> None:
        self._lane.shutdown(wait=False)


class ResidentRanges:
    """Fits `tasks.ports.RangeReader`: packed results for one task."""

    most: int = 20_000

    def __init__(self, spec: TaskSpec, chain: bytes, sink: SinkChain, residents: Residents) -> None:
        """Raises ClientConfigError when only librdkafka can read what the task reads."""
        settings = {**translate(ClientKind.CONSUMER, spec.consumer).config, **USUAL}
        if str(settings.get("check.crcs", "false")).lower() == "true":
            raise ClientConfigError("check.crcs is for librdkafka")
        for_kafka_python(settings)
        self._task = spec.id
        self._residents = residents
        if sink.by_records:
            self.most = _BY_RECORDS
        self._part = RangePart(TopicPartition("", 0), 0, 0, settings, chain, sink.output, sink.needed)

    @property
    def ahead(self) -> int:
        """So many that each resident has one to work on and one that waits for it."""
        return 2 * self._residents.wide

    def read(self, ranges: Ranges, shelf: Shelf | None) -> Future[list[bytes]]:
        """Partition by partition, in the order of the offsets. Several residents may read one partition."""
        parts = [
            replace(self._part, where=where, start=at, end=min(at + self.most, end), shelf=shelf)
            for where, (start, end) in ranges.items()
            for at in range(start, end, self.most)
        ]
        read: Future[list[bytes]] = Future()
        submitted = self._residents.submit(self._task, [part.blob() for part in parts])
        submitted.add_done_callback(partial(_pass_on, read))
        return read

    def cancel(self) -> None:
        self._residents.drop(self._task)

    def close(self) -> None:
        """There is nothing of its own."""


def _pass_on(read: Future[list[bytes]], submitted: Future[list[Packed]]) -> None:
    try:
        read.set_result(results(submitted.result()))
    except Exception as error:
        read.set_exception(error)
