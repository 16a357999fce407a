"""RowProducer: whole columns in transactions, by a TransactionalProducer over the native calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaException, TopicPartition

from headgate.kafka.native.column_producer import ColumnProducer, error_of
from headgate.kafka.native.columns import slices
from headgate.kafka.native.rows import rows_of
from headgate.kafka.settings import ClientKind, translate
from headgate.model import Config
from headgate.model import TopicPartition as Where
from headgate.producer.bulk import RowRefused
from headgate.producer.errors import ProducerError
from headgate.producer.producer import TransactionalProducer
from headgate.producer.reports import info_of

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_CLOSE_S: Final = 5.0
_TOO_LARGE: Final = 10
_LARGEST: Final = 1_000_000
"""Most bytes of a batch, unless `batch.size` says less."""


class RowProducer:
    """Fits `tasks.ports.TransactionalSender`. `config` has settings by Apache's names."""

    def __init__(self, config: Config, still_mine: Callable[[], bool]) -> None:
        """Raises ProducerError. Asks nothing of a broker yet."""
        translated = translate(ClientKind.PRODUCER, {**config, "enable.idempotence": "true"})
        if translated.ignored:
            log.info("Producer settings without meaning here are ignored: %s", ", ".join(translated.ignored))
        settings = {"linger.ms": 5, "socket.nagle.disable": True, **translated.config}
        timeout_ms = int(settings.get("transaction.timeout.ms", 60_000))
        self.timeout = timeout_ms / 1000
        """Seconds that the broker gives a transaction."""
        self._settings = {**settings, "max.block.ms": timeout_ms}
        self._still_mine = still_mine
        self._largest = min(int(settings.get("batch.size", _LARGEST)), _LARGEST)
        self._limits: dict[str, int] = {}
        """Most bytes to be under way at once, of topics that did not take larger batches."""
        self._alone: str | None = None
        """The topic of a record that is under way by itself; what is refused of it now is too large alone."""
        self._singles: set[str] = set()
        """Topics of records that were sent one by one."""
        self._producer = self._new()

    def _new(self) -> TransactionalProducer:
        return TransactionalProducer(self._settings, still_mine=self._still_mine, native=ColumnProducer)

    def renew(self) -> None:
        """Another producer of the same id, to be initialised: what the last one left is settled by that."""
        self._producer.close(_CLOSE_S)
        self._producer = self._new()

    def init(self, seconds: float) -> None:
        self._producer.init(seconds)

    def begin(self) -> None:
        self._producer.begin()

    def send_table(self, table: pa.Table, settle: Callable[[], None]) -> None:
        """All rows, in order. `settle` waits for Kafka's answer to all that was sent: it is called between the pieces
        of a topic that did not take larger ones."""
        for topic, rows, limited in slices(table, self._limits.get):
            self._push(topic, rows)
            if limited:
                self._alone = topic if rows.num_rows == 1 else None
                settle()

    def _push(self, topic: str, rows: pa.RecordBatch) -> None:
        bulk = RowBulk(topic, rows)
        self._alone = None
        try:
            self._producer.send_all(bulk)
        except ProducerError:
            self._alone = topic if bulk.refused else None
            raise

    def send(self, topic: str, value: bytes | None, key: bytes | None) -> None:
        self._singles.add(topic)
        self._producer.send(topic, value, key)

    def send_offsets(self, offsets: Mapping[Where, int], group_metadata: Any) -> None:
        native = [TopicPartition(where.topic, where.partition, offset) for where, offset in offsets.items()]
        self._producer.send_offsets(native, group_metadata)

    def flush(self, seconds: float) -> None:
        self._producer.flush(seconds)

    def commit(self, seconds: float) -> None:
        self._producer.commit(seconds)

    def abort(self, seconds: float) -> None:
        self._producer.abort(seconds)

    def close(self) -> None:
        """An open transaction is aborted, unless its commit is under way."""
        self._producer.close(_CLOSE_S)

    def shrinks(self, error: ProducerError) -> bool:
        """Whether records were refused for the size that they have together; the next time fewer will go together.

        librdkafka does not divide a batch that the broker refused, as the Java client does."""
        if error.code != _TOO_LARGE or not error.failed_records.first:
            return False
        topic = error.failed_records.first[0].topic
        if topic == self._alone or topic in self._singles:
            return False
        limit = self._limits[topic] = max(self._limits.get(topic, self._largest) // 2, 1)
        log.warning("Topic %s did not take a batch; from now on it gets at most %d bytes at once", topic, limit)
        return True


class RowBulk:
    """Fits `bulk.Bulk`: rows of one topic for a ColumnProducer."""

    def __init__(self, topic: str, rows: pa.RecordBatch) -> None:
        self._topic = topic
        self._rows = rows_of(topic, rows, 0)
        self.refused = False
        """The library itself did not take a record."""

    def push(self, producer: ColumnProducer) -> int:
        try:
            topic = producer.topic(self._topic)
        except KafkaException as error:
            self.refused = True
            raise RowRefused(info_of(error.args[0]), self._topic) from None
        refused = self._rows.push(producer.handle, topic)
        if refused:
            self.refused = True
            first = refused[0]
            raise RowRefused(info_of(error_of(first.code)), first.topic, first.partition, first.key)
        return self._rows.left
