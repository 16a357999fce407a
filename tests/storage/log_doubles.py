"""A topic in memory: what stores on Kafka read and write, without Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from confluent_kafka import KafkaError

from headgate.storage.topic_log import LogRecord, OnRecord, ReadTimeout, TopicGone
from headgate.storage.topic_writer import Entry, Told, WriteFailed


class Topic:
    """One partition; every writer appends to it, every log follows it."""

    def __init__(self, name: str = "topic") -> None:
        self.name = name
        self.records: list[LogRecord] = []
        self.logs: list[MemoryLog] = []
        self.refusals: list[int] = []
        """Error codes for the next writes."""
        self.delivering = True
        """Whether logs get records as they are written; else when they read to the end."""
        self.held: list[tuple[Entry, Told]] | None = None
        """Sends that nobody answers yet, if they are held."""

    def append(self, key: bytes | None, value: bytes | None) -> int:
        offset = len(self.records)
        self.records.append(LogRecord(key, value, 0, offset, 1000 + offset))
        if self.delivering:
            self.deliver()
        return offset

    def deliver(self) -> None:
        for log in self.logs:
            log.deliver()

    @property
    def entries(self) -> list[Entry]:
        return [(record.key or b"", record.value) for record in self.records]

    @property
    def text(self) -> list[tuple[str, str | None]]:
        return [(key.decode(), None if value is None else value.decode()) for key, value in self.entries]


class MemoryLog:
    def __init__(self, topic: Topic) -> None:
        self.topic = topic.name
        self._source = topic
        self._on_record: OnRecord | None = None
        self._position = 0
        self.reads = 0
        self.broken = False
        self.gone = False

    def start(self, on_record: OnRecord, timeout: float) -> None:
        self._on_record = on_record
        self.deliver()
        self._source.logs.append(self)

    def deliver(self) -> None:
        assert self._on_record is not None
        while self._position < len(self._source.records):
            self._position += 1
            self._on_record(self._source.records[self._position - 1])

    def read_to_end(self, timeout: float, *, at_once: bool = False) -> None:
        self.reads += 1
        if self.broken:
            raise ReadTimeout("Kafka is away")
        if self.gone:
            raise (TopicGone if at_once else ReadTimeout)("The topic is not there")
        self.deliver()

    def begin_again(self, partitions: int) -> None:
        self._position = 0
        self.deliver()

    def close(self) -> None:
        if self in self._source.logs:
            self._source.logs.remove(self)


class MemoryWriter:
    def __init__(self, topic: Topic, before: Callable[[Sequence[Entry]], None] = lambda entries: None) -> None:
        self._topic = topic
        self._before = before
        self.writes: list[list[Entry]] = []
        self.timeouts: list[float] = []
        self.closed = False

    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        self._before(entries)
        self.timeouts.append(timeout)
        if self._topic.refusals:
            raise WriteFailed(KafkaError(self._topic.refusals.pop(0)).str())
        self.writes.append(list(entries))
        for key, value in entries:
            self._topic.append(key, value)

    def send(self, key: bytes, value: bytes | None, told: Told) -> None:
        if self._topic.held is not None:
            self._topic.held.append(((key, value), told))
        else:
            self.answer((key, value), told)

    def answer(self, entry: Entry, told: Told) -> None:
        self.writes.append([entry])
        if self._topic.refusals:
            told(KafkaError(self._topic.refusals.pop(0)), -1)
        else:
            told(None, self._topic.append(*entry))

    def close(self) -> None:
        self.closed = True
