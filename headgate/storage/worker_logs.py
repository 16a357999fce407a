"""WorkerLogs: the stores of a distributed worker on its three internal topics, made from its worker file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Final

from headgate.kafka.admin_clients import admin_client
from headgate.model import Config
from headgate.storage.config_log import ConfigLog, OnChange
from headgate.storage.internal_topics import InternalTopics, ensure
from headgate.storage.merged_offsets import MergedOffsets
from headgate.storage.offset_log import OffsetLog
from headgate.storage.reach import require_kafka
from headgate.storage.status_log import GIVE_UP_AFTER_S, StatusLog
from headgate.storage.topic_log import TopicLog
from headgate.storage.topic_watch import TopicWatch
from headgate.storage.topic_writer import TopicWriter
from headgate.storage.transactional_writer import TransactionalWriter

_BOOTSTRAP: Final = "bootstrap.servers"
_SOON_S: Final = 4.0
WAIT_S: Final = 120.0
"""How long a worker that starts waits for Kafka."""


class WorkerLogs:
    """Nothing is asked of Kafka before `start`. `close` ends all of it."""

    def __init__(self, worker: Config) -> None:
        """Of a worker file that has been checked, with its secrets in place. Raises InternalTopicError,
        ClientConfigError."""
        support = worker.get("exactly.once.source.support", "disabled").strip().lower()
        self._worker = worker
        self._exactly_once = support == "enabled"
        self._leads_by_transactions = leads_by_transactions = support in ("preparing", "enabled")
        self._topics = InternalTopics.of(worker)
        self._admin = admin_client(self._clients("admin"))
        topics = self._topics

        self._watch = TopicWatch(
            self._admin,
            {
                topics.config.name: lambda _: self.configs.replaced(),
                topics.offsets.name: lambda partitions: self.offsets.begin_again(partitions),
                topics.status.name: lambda partitions: self.statuses.begin_again(partitions),
            },
        )
        configs = self._clients("configs")
        if leads_by_transactions:
            configs = {"fetch.max.wait.ms": "100", **configs}  # transactions end with control records: see TopicLog
        self.configs = ConfigLog(
            TopicLog(topics.config.name, configs, self._admin, read_committed=self._exactly_once),
            TopicWriter(topics.config.name, configs),
            transactional=leads_by_transactions,
            missing=lambda: topics.config.name in self._watch.missing,
            look=self._watch.look,
        )
        statuses = self._clients("statuses")
        self.statuses = StatusLog(
            TopicLog(topics.status.name, statuses, self._admin),
            TopicWriter(topics.status.name, statuses, give_up_after=GIVE_UP_AFTER_S, retries=False),
        )
        offsets = self._clients("offsets")
        self.offsets = OffsetLog(
            TopicLog(topics.offsets.name, offsets, self._admin, read_committed=self._exactly_once),
            TopicWriter(topics.offsets.name, offsets),
        )

    def start(self, on_change: OnChange | None = None, timeout: float = WAIT_S) -> None:
        """Makes missing topics, checks the others, and reads all three. Raises InternalTopicError, ReadTimeout, and is
        closed then."""
        deadline = time.monotonic() + timeout

        def left() -> float:
            return max(deadline - time.monotonic(), 0.1)

        try:
            ensure(self._admin, self._topics.all(), left())
            self.offsets.start(left())
            self.statuses.start(left())
            self.configs.start(on_change, left())
            self._watch.look()
            self._watch.start()
        except BaseException:
            self.close()
            raise

    def trouble(self) -> str | None:
        """Which of the topics is not what it was, in words for people; None: all are. From any thread."""
        said = [
            f"Topic {topic.name} of {topic.holds} was deleted: {then}."
            for topic, then in (
                (self._topics.offsets, "sources cannot store any until it is there again"),
                (self._topics.status, "they are told from memory, and written when it is there again"),
            )
            if topic.name in self._watch.missing
        ]
        return " ".join(filter(None, [self.configs.lost, *said])) or None

    def claim(self) -> None:
        """This worker leads: from now on no other can write what only the leader may. Without exactly-once sources
        nothing keeps two workers from writing, if both take themselves for the leader for a moment."""
        if self._leads_by_transactions:
            group = self._worker.get("group.id", "")
            clients = {**self._clients("leader"), **_prefixed(self._worker, "producer.")}
            self.configs.claim(TransactionalWriter(self._topics.config.name, clients, f"connect-cluster-{group}"))

    def resign(self) -> None:
        self.configs.claim(None)

    @contextmanager
    def open_offsets(
        self, topic: str | None, clients: Config, transactional_id: str | None = None, *, at_once: bool = False
    ) -> Iterator[OffsetLog | MergedOffsets]:
        """The offsets of a connector whose own topic this is, or of all that have none. With an id, all of a `put` is
        one transaction, and whoever used that id before is shut out. Raises what `connector_offsets` does; `at_once`:
        also KafkaAway, soon."""
        with ExitStack() as closing:
            own = None if topic is None else self._own_log(topic, clients, at_once=at_once)
            if own is not None:
                closing.callback(own.close)
            log = own or self.offsets
            if transactional_id is not None:
                writer = TransactionalWriter(log.topic, {**self._clients("offsets"), **clients}, transactional_id)
                closing.callback(writer.close)
                log = log.written_by(writer)
            yield log if own is None else MergedOffsets(log, self.offsets)

    def connector_offsets(self, topic: str, clients: Config, timeout: float = 60.0) -> MergedOffsets | None:
        """The offsets of a connector whose `offsets.storage.topic` this is, read and ready; close it when the connector
        needs it no more. `clients` are the settings of its Kafka clients. None if it is the worker's own topic. Raises
        InternalTopicError, ReadTimeout, ClientConfigError."""
        own = self._own_log(topic, clients, timeout)
        return None if own is None else MergedOffsets(own, self.offsets)

    def _own_log(self, topic: str, clients: Config, timeout: float = 60.0, at_once: bool = False) -> OffsetLog | None:
        clients = {**self._clients("offsets"), **clients}
        if (topic, clients[_BOOTSTRAP]) == (self._topics.offsets.name, self._worker[_BOOTSTRAP]):
            return None
        deadline = time.monotonic() + timeout
        admin = admin_client(clients)
        if at_once:
            require_kafka(admin, clients[_BOOTSTRAP], _SOON_S)
        ensure(admin, [replace(self._topics.offsets, name=topic, property="offsets.storage.topic")], timeout)
        own = OffsetLog(TopicLog(topic, clients, admin, read_committed=self._exactly_once), TopicWriter(topic, clients))
        try:
            own.start(max(deadline - time.monotonic(), 0.1))
        except BaseException:
            own.close()
            raise
        return own

    def close(self) -> None:
        """Statuses last: what ends here may still have something to say."""
        self._watch.close()
        self.configs.close()
        self.offsets.close()
        self.statuses.close()

    def _clients(self, purpose: str) -> Config:
        """All keys of the worker: its clients take what they know."""
        names = (self._worker.get("group.id", ""), self._worker.get("client.id", ""), purpose)
        return {**self._worker, "client.id": "-".join(name for name in names if name)}


def _prefixed(worker: Config, prefix: str) -> Config:
    return {key.removeprefix(prefix): value for key, value in worker.items() if key.startswith(prefix)}
