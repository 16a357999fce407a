"""What a measurement needs of the broker: topics made, filled, looked at, and gone afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic


class Topics:
    """Each has one partition. The first group of a new broker waits seconds for the topic of the groups: here, so that
    it is not the first worker that waits."""

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

    def make(self, names: Sequence[str]) -> None:
        for made in self._admin.create_topics([NewTopic(name, 1, 1) for name in names]).values():
            made.result()
        while not all(name in self._admin.list_topics(timeout=30).topics for name in names):
            time.sleep(0.02)

    def delete(self, prefix: str) -> None:
        """All whose names begin so."""
        names = [name for name in self._admin.list_topics(timeout=30).topics if name.startswith(prefix)]
        for deleted in self._admin.delete_topics(names).values() if names else ():
            deleted.result()

    def end(self, name: str) -> int:
        return int(self._looker.get_watermark_offsets(TopicPartition(name, 0), timeout=30)[1])

    def producer(self) -> Producer:
        """Sends each record at once."""
        return Producer({**self._settings, "linger.ms": 0})

    def consumer(self, group: str, topic: str | None = None) -> Consumer:
        """Reads what comes after the end of the topic."""
        made = Consumer({**self._settings, "group.id": group})
        if topic is not None:
            made.assign([TopicPartition(topic, 0, self.end(topic))])
        return made

    def fill(self, name: str, values: Iterable[bytes]) -> None:
        """In batches as Apache's producer makes them by default, 16 kB: whoever reads finds what it is used to."""
        producer = Producer({**self._settings, "batch.size": 16384, "linger.ms": 5, "enable.idempotence": True})
        for value in values:
            while True:
                try:
                    producer.produce(name, value)
                    break
                except BufferError:
                    producer.poll(0.1)
        if producer.flush(60):
            raise TimeoutError(f"Not all records reached {name}")

    def close(self) -> None:
        self._looker.close()
