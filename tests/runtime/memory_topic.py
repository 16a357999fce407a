"""A config topic in memory, with what reads and writes it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from headgate.storage.topic_log import LogRecord, OnRecord, ReadTimeout
from headgate.storage.topic_writer import Entry, WriteFailed


class ConfigTopic:
    """What is written is there at once, for all that follow it."""

    def __init__(self) -> None:
        self.records: list[LogRecord] = []
        self.followers: list[TopicFollower] = []
        self.lock = threading.RLock()

    def append(self, entries: Sequence[Entry]) -> None:
        with self.lock:
            for key, value in entries:
                self.records.append(LogRecord(key, value, 0, len(self.records)))
            for follower in self.followers:
                if not follower.held:
                    follower.deliver()

    @property
    def keys(self) -> list[str]:
        return [(record.key or b"").decode() for record in self.records]

    def values(self, key: str) -> list[Any]:
        return [
            None if record.value is None else json.loads(record.value)
            for record in self.records
            if record.key == key.encode()
        ]


class TopicFollower:
    """Fits `storage.topic_log.Log`. Reads as records come, or, if `held`, only when asked to read to the end."""

    def __init__(self, topic: ConfigTopic) -> None:
        self.topic = "configs"
        self.held = False
        self.broken = False
        self._source = topic
        self._at = 0
        self._on_record: OnRecord = lambda record: None

    def start(self, on_record: OnRecord, timeout: float) -> None:
        self._on_record = on_record
        with self._source.lock:
            self.deliver()
            self._source.followers.append(self)

    def deliver(self) -> None:
        with self._source.lock:
            while self._at < len(self._source.records):
                self._at += 1
                self._on_record(self._source.records[self._at - 1])

    def read_to_end(self, timeout: float, *, at_once: bool = False) -> None:
        if self.broken:
            raise ReadTimeout("Kafka is away")
        self.deliver()

    def begin_again(self, partitions: int) -> None:
        self._at = 0

    def close(self) -> None:
        with self._source.lock:
            if self in self._source.followers:
                self._source.followers.remove(self)


class TopicAppender:
    """Fits `storage.topic_writer.Writer`."""

    def __init__(self, topic: ConfigTopic) -> None:
        self._topic = topic
        self.broken = False

    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        if self.broken:
            raise WriteFailed("Kafka is away")
        self._topic.append(entries)

    def close(self) -> None:
        pass
