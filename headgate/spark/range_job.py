"""A range of offsets read by an executor: fetches of its own, the pipeline, and packed results for the worker.

Record batches are read by columns (`wire`), which needs no warm-up and a fraction of the time that any client's message
objects take (decisions 0010 and 0012). What cannot be read so is left to librdkafka.
"""

from __future__ import annotations

import logging
import pickle
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Final

from headgate.kafka.settings import USUAL, ClientKind, translate
from headgate.model import Config, TopicPartition
from headgate.pipeline.shelf import Shelf
from headgate.pipeline.sink_chain import Output
from headgate.spark.resident import uncollected

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext

log = logging.getLogger(__name__)

Ranges = Mapping[TopicPartition, tuple[int, int]]
"""From the first offset to the one after the last."""

_ROWS: Final = 20_000
"""Most rows that go through the pipeline at once."""
_SILENCE_S: Final = 60.0
"""A range that gives nothing for so long is given up on."""
_FAST: Final = {
    "fetch.message.max.bytes": 4 * 1024 * 1024,
    "queued.min.messages": 1_000_000,
    # What is fetched beyond the end of a range is thrown away: little of it may wait.
    "queued.max.messages.kbytes": 16 * 1024,
    "fetch.queue.backoff.ms": 1,
}


_ERROR: Final = methodcaller("error")


class RangeStalled(Exception):
    """The broker gave nothing of a range for a minute; the Spark task is repeated."""


@dataclass(frozen=True, slots=True)
class RangePart:
    """What one executor reads: plain values, it travels."""

    where: TopicPartition
    start: int
    end: int
    settings: Mapping[str, Any]
    chain: bytes
    output: Output
    needed: frozenset[str]
    shelf: Shelf | None = None

    def run(self) -> Iterator[bytes]:
        """Packed results, in the order of the offsets."""
        from headgate.pipeline.blob import Job, run_sink

        template = Job(self.chain, self.output, shelf=self.shelf)
        for batch in self._batches():
            for start in range(0, batch.num_rows, _ROWS):
                yield run_sink(template, batch.slice(start, _ROWS))

    def _batches(self) -> Iterator[pa.Table]:
        from headgate.kafka.fetch.batches import Unreadable
        from headgate.kafka.fetch.fetcher import Fetcher, Silent
        from headgate.kafka.messages import Messages
        from headgate.kafka.settings import ClientConfigError

        at = self.start
        try:
            if str(self.settings.get("check.crcs", "false")).lower() == "true":
                raise Unreadable("checksums are to be checked, which librdkafka does")
            with Fetcher(self.where, self.settings, _SILENCE_S) as fetcher:
                for batch, at in fetcher.read(self.start, self.end, self.needed):  # noqa: B007
                    yield batch
            return
        except Silent as error:
            raise RangeStalled(str(error)) from error
        except (Unreadable, ClientConfigError) as reason:
            log.info("%s is read by librdkafka from offset %d on: %s", self.where, at, reason)
        for messages in replace(self, start=at)._messages():
            yield Messages(messages).table(self.needed)

    def _messages(self) -> Iterator[list[Any]]:
        from confluent_kafka import Consumer
        from confluent_kafka import TopicPartition as Native

        consumer = Consumer({**self.settings, "enable.partition.eof": True})
        try:
            consumer.assign([Native(self.where.topic, self.where.partition, self.start)])
            waiting: list[Any] = []
            at, heard = self.start, time.monotonic()
            while at < self.end:
                got = consumer.consume(_ROWS - len(waiting), 0.2)
                if got:
                    heard = time.monotonic()
                elif time.monotonic() - heard > _SILENCE_S:
                    raise RangeStalled(f"{self.where} gave nothing after offset {at} for {_SILENCE_S:.0f} s")
                at = self._take(got, waiting, at)
                if len(waiting) >= _ROWS:
                    yield waiting
                    waiting = []
            if waiting:
                yield waiting
        finally:
            consumer.close()

    def _take(self, got: list[Any], waiting: list[Any], at: int) -> int:
        """Keeps what belongs to the range; where reading has got to. The end of the partition counts: the last offsets
        of a range may be holes that compaction or transactions left."""
        from confluent_kafka import KafkaError, KafkaException

        # Nearly always all of it belongs, and is taken as a whole.
        if got and got[-1].error() is None and got[-1].offset() < self.end and not any(map(_ERROR, got)):
            waiting.extend(got)
            return int(got[-1].offset()) + 1
        for message in got:
            error = message.error()
            if error is None:
                at = message.offset() + 1
                if at <= self.end:
                    waiting.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                at = max(at, message.offset())
            elif error.fatal() or not error.retriable():
                raise KafkaException(error)
        return at


@dataclass(frozen=True, slots=True)
class RangeJobs:
    """Makes the jobs of one task."""

    consumer: Config
    chain: bytes
    output: Output
    needed: frozenset[str]

    def read(self, context: SparkContext, ranges: Ranges, shelf: Shelf | None = None) -> list[bytes]:
        """Packed results: partition by partition, in the order of the offsets."""
        parts = [pickle.dumps(part) for part in self._parts(ranges, max(context.defaultParallelism, 1), shelf)]
        return context.parallelize(parts, len(parts)).mapPartitions(run_parts).collect()

    def _parts(self, ranges: Ranges, cores: int, shelf: Shelf | None) -> list[RangePart]:
        """One Kafka partition may be read by several cores, each a piece of the range."""
        settings = {**_FAST, **translate(ClientKind.CONSUMER, self.consumer).config, **USUAL}
        settings |= {"enable.auto.commit": False, "enable.auto.offset.store": False}
        pieces = max(1, cores // max(len(ranges), 1))
        parts = []
        for where, (start, end) in ranges.items():
            step = max(1, -(-(end - start) // pieces))
            for first in range(start, end, step):
                last = min(first + step, end)
                parts.append(RangePart(where, first, last, settings, self.chain, self.output, self.needed, shelf))
        return parts


def run_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """On an executor."""
    with uncollected():
        for packed in parts:
            part: RangePart = pickle.loads(packed)  # noqa: S301 - the data of our own Spark job
            yield from part.run()
