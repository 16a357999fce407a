"""What a measurement needs of the broker: topics made, filled, looked at, and gone afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

FILL_BLOCK: Final = 1000
"""So many records a partition gets before the next one gets some."""


class Topics:
    """The first group of a new broker waits seconds for the topic of the groups: here, so that it is not the first
    worker that waits."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._settings: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 0}
        self._admin = AdminClient(self._settings)
        self._looker = self.consumer("bench-look")
        self.fill("bench-warm-up", [b"x"])
        first = Consumer({**self._settings, "group.id": "bench-warm-up", "auto.offset.reset": "earliest"})
        first.subscribe(["bench-warm-up"])
        while first.poll(0.5) is None:
            pass
        first.close()

    def make(self, names: Sequence[str], partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        wanted = [NewTopic(name, partitions, 1, config=dict(config or {})) for name in names]
        for made in self._admin.create_topics(wanted).values():
            made.result()
        while not self._answer(names, partitions):
            time.sleep(0.02)

    def delete(self, prefix: str) -> None:
        """All whose names begin so."""
        names = [name for name in self._admin.list_topics(timeout=30).topics if name.startswith(prefix)]
        for deleted in self._admin.delete_topics(names).values() if names else ():
            deleted.result()

    def end(self, name: str, partitions: int = 1) -> int:
        """How many records it got."""
        where = [TopicPartition(name, number) for number in range(partitions)]
        return sum(int(self._looker.get_watermark_offsets(each, timeout=30)[1]) for each in where)

    def _answer(self, names: Sequence[str], partitions: int) -> bool:
        """A broker that knows a topic may not lead its partitions yet. A client that was told so keeps it in mind until
        it gets the list of topics."""
        known = self._looker.list_topics(timeout=30).topics
        try:
            return all(name in known and self.end(name, partitions) == 0 for name in names)
        except KafkaException:
            return False

    def producer(self) -> Producer:
        """Sends each record at once."""
        return Producer({**self._settings, "linger.ms": 0})

    def consumer(self, group: str, topic: str | None = None) -> Consumer:
        """Reads what comes after the end of the topic."""
        made = Consumer({**self._settings, "group.id": group})
        if topic is not None:
            made.assign([TopicPartition(topic, 0, self.end(topic))])
        return made

    def fill(self, name: str, values: Iterable[bytes], partitions: int = 1, largest: int = 1_000_000) -> None:
        """In batches as Apache's producer makes them by default, 16 kB: whoever reads finds what it is used to. The
        partitions get a block of records each, by turns."""
        settings = {"batch.size": 16384, "linger.ms": 5, "enable.idempotence": True, "message.max.bytes": largest}
        producer = Producer({**self._settings, **settings})
        for number, value in enumerate(values):
            while True:
                try:
                    producer.produce(name, value, partition=number // FILL_BLOCK % partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
        if producer.flush(60):
            raise TimeoutError(f"Not all records reached {name}")

    def close(self) -> None:
        self._looker.close()
