"""StatusLog: states of connectors and tasks, and the topics they use (KIP-558), in the status topic.

Writing never waits: the herder writes a state and goes on. What Kafka does not take at once is sent again from a thread
of the log's, unless it has become pointless meanwhile.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from confluent_kafka import KafkaError

from headgate.backoff import Backoff
from headgate.kafka.asking import NOT_YET, passes
from headgate.model import Status, TaskId
from headgate.storage.records import MalformedRecord
from headgate.storage.status_cache import StatusCache
from headgate.storage.status_records import StatusId, StatusValue, TopicId, TopicStatus, decode, encode
from headgate.storage.topic_log import Log, LogRecord
from headgate.storage.topic_writer import SendingWriter

_log: Final = logging.getLogger(__name__)

GIVE_UP_AFTER_S: Final = 5.0
"""For the writer: what it could not deliver comes back that soon, to be judged again."""
_COMES_BACK: Final = NOT_YET | {KafkaError._DESTROY}
"""Beside what passes everywhere: what librdkafka says of records that waited for a broker that it let go of."""
LONGEST_TRACE: Final = 100_000
"""In characters. Kafka refuses records of a megabyte, and a status without its trace is better than none."""

_PAUSE: Final = Backoff(0.25, 2.0, most=5.0)


@dataclass(frozen=True, slots=True)
class _Write:
    whose: StatusId
    value: StatusValue | None
    number: int
    generation: int
    failures: int = 0


class StatusLog:
    """May be used from any thread. A status is shown here as soon as it is put, elsewhere when it was read."""

    def __init__(self, log: Log, writer: SendingWriter) -> None:
        """The writer does not retry."""
        self._topic_log = log
        self._writer = writer
        self._cache = StatusCache()
        self._changed = threading.Condition()
        self._under_way = 0
        self._waiting: list[tuple[float, int, _Write]] = []
        self._order = itertools.count()
        self._closing = False
        self._retrying: threading.Thread | None = None

    def start(self, timeout: float = 60.0) -> None:
        """Returns when the topic has been read. Raises ReadTimeout."""
        self._topic_log.start(self._on_record, timeout)
        self._retrying = threading.Thread(target=self._retry, name="status-retries", daemon=True)
        self._retrying.start()

    def begin_again(self, partitions: int) -> None:
        """Another topic has taken its place: it is read from its beginning, and what this worker said last is said
        again. So do others."""
        self._topic_log.begin_again(partitions)
        with self._changed:
            said = self._cache.begin_again()
        for whose, value in said:
            self._put(whose, value)

    def flush(self, timeout: float) -> bool:
        """Whether all that was put has been written, or has become pointless, within that time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._under_way, timeout)

    def refresh(self, timeout: float) -> None:
        """Reads all that was in the topic when this was called. Raises ReadTimeout."""
        self._topic_log.read_to_end(timeout)

    def close(self, timeout: float = 5.0) -> None:
        """Waits that long for what was put."""
        self.flush(timeout)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._retrying is not None:
            self._retrying.join(5)
        self._writer.close()
        self._topic_log.close()

    # --- reads --------------------------------------------------------------------------------------------------------

    def get(self, whose: str | TaskId) -> Status | None:
        with self._changed:
            return self._cache.status(whose)

    def tasks(self, name: str) -> Mapping[int, Status]:
        with self._changed:
            return self._cache.tasks(name)

    def connectors(self) -> Iterable[str]:
        """Also those of which only tasks have a status: somebody has to clean them up."""
        with self._changed:
            return tuple(self._cache.connectors())

    def age(self, whose: str | TaskId) -> float:
        """Seconds since it was last put or read here; 0 for what has no status."""
        with self._changed:
            return self._cache.age(whose)

    def has_topic(self, connector: str, topic: str) -> bool:
        with self._changed:
            return self._cache.get(TopicId(connector, topic)) is not None

    def topics(self, connector: str) -> tuple[str, ...]:
        """The topics that it uses."""
        with self._changed:
            return tuple(self._cache.topics(connector))

    # --- writes -------------------------------------------------------------------------------------------------------

    def put(self, whose: str | TaskId, status: Status) -> None:
        """UNASSIGNED and FAILED are not written over what another worker said in a later generation, and what is told
        again only where the topic says the same."""
        self._put(whose, _fitting(status))

    def put_topic(self, connector: str, topic: str, task: int, now_ms: int | None = None) -> None:
        """The task uses this topic. Harmless when that is known."""
        if not self.has_topic(connector, topic):
            told = TopicStatus(task, round(time.time() * 1000) if now_ms is None else now_ms)
            self._put(TopicId(connector, topic), told)

    def remove(self, whose: str | TaskId) -> None:
        """A connector's tasks go with it."""
        if isinstance(whose, str):
            for number in self.tasks(whose):
                self._put(TaskId(whose, number), None)
        self._put(whose, None)

    def remove_topics(self, connector: str) -> None:
        for topic in self.topics(connector):
            self._put(TopicId(connector, topic), None)

    def _put(self, whose: StatusId, value: StatusValue | None) -> None:
        with self._changed:
            number = self._cache.begin(whose, value)
            if number is None:
                _log.debug("Status of %s is not written: another worker has written a newer one", whose)
                return
            self._under_way += 1
            write = _Write(whose, value, number, self._cache.generation)
        self._send(write)

    def _send(self, write: _Write) -> None:
        self._writer.send(
            *encode(write.whose, write.value), lambda error, offset: self._on_report(write, error, offset)
        )

    def _on_report(self, write: _Write, error: KafkaError | None, offset: int) -> None:
        with self._changed:
            if error is None:
                self._cache.written(write.whose, write.number, offset)
                self._done()
            elif passes(error, _COMES_BACK) and not self._closing:
                again = replace(write, failures=write.failures + 1)
                due = time.monotonic() + _PAUSE.after(again.failures)
                heapq.heappush(self._waiting, (due, next(self._order), again))
                self._changed.notify_all()
            else:
                _log.error("Status of %s was not written: %s", write.whose, error.str())
                self._give_up(write)

    def _done(self) -> None:
        self._under_way -= 1
        self._changed.notify_all()

    def _give_up(self, write: _Write) -> None:
        self._cache.failed(write.whose, write.number, write.value)
        self._done()

    def _retry(self) -> None:
        while True:
            with self._changed:
                if self._closing:
                    return
                left = self._waiting[0][0] - time.monotonic() if self._waiting else None
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                _, _, write = heapq.heappop(self._waiting)
                if not self._cache.may_repeat(write.whose, write.number, write.value, write.generation):
                    self._give_up(write)
                    continue
            self._send(write)

    # --- the log's thread ---------------------------------------------------------------------------------------------

    def _on_record(self, record: LogRecord) -> None:
        try:
            whose, value = decode(record.key, record.value)
        except MalformedRecord as error:
            _log.error("Record of %s (%r) is ignored: %s", self._topic_log.topic, record.key, error)
            return
        with self._changed:
            again = self._cache.read(whose, value, record.offset, record.timestamp)
        if again is not None:
            _log.info("Status of %s is written again: another worker's, which is older, came after it", whose)
            self._put(whose, again)


def _fitting(status: Status) -> Status:
    if status.trace is None or len(status.trace) <= LONGEST_TRACE:
        return status
    half = LONGEST_TRACE // 2
    return replace(status, trace=f"{status.trace[:half]}\n... (cut) ...\n{status.trace[-half:]}")
