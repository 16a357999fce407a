"""TopicWatch: whether the internal topics are still those that were read, which their ids tell."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from headgate.kafka.admin_clients import wait

_log: Final = logging.getLogger(__name__)

EVERY_S: Final = 3.0
_ASK_S: Final = 5.0


class TopicWatch:
    """From `start` to `close` a thread looks every few seconds. A topic is missing when it was not found twice: a
    broker that was just started may not know of it yet."""

    def __init__(self, admin: AdminClient, anew: Mapping[str, Callable[[int], None]]) -> None:
        """`anew`, by topic, is told from that thread when there is another one of its name, with so many partitions."""
        self._admin = admin
        self._anew = anew
        self._ids: dict[str, list[str]] = {}
        """All that a topic has had, the newest last."""
        self._unseen: frozenset[str] = frozenset()
        self.missing: frozenset[str] = frozenset()
        self._looking = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="topic-watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()

    def look(self) -> None:
        """From any thread. Of topics that Kafka says nothing of, nothing new is known."""
        with self._looking:
            self._look()

    def _look(self) -> None:
        unseen = set()
        asked = self._admin.describe_topics(TopicCollection(list(self._anew)), request_timeout=_ASK_S)
        for topic, answer in asked.items():
            try:
                found = wait(self._admin, answer, _ASK_S + 1)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART or topic in self._unseen:
                    unseen.add(topic)
            else:
                self._found(topic, str(found.topic_id), len(found.partitions))
        missing, self._unseen = frozenset(unseen & self._unseen), frozenset(unseen)
        for topic in sorted(missing - self.missing):
            _log.error("Topic %s is not there any more", topic)
        self.missing = missing

    def _found(self, topic: str, id_: str, partitions: int) -> None:
        known = self._ids.setdefault(topic, [id_])
        if id_ not in known:  # a broker that is behind may still tell of the one before
            known.append(id_)
            _log.error("Topic %s is another one than before: it was deleted and made anew", topic)
            self._anew[topic](partitions)

    def _run(self) -> None:
        while not self._ended.wait(EVERY_S):
            try:
                self.look()
            except Exception:
                _log.exception("The internal topics could not be looked at")
