"""Snapshot: what the three topics of a cluster of workers say, read once. Nothing is written, created or joined."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ClusterMetadata  # type: ignore[attr-defined]

from headgate.kafka.admin_clients import admin_client
from headgate.model import Config
from headgate.storage import config_records, status_records
from headgate.storage.config_state import ConfigFold, ConfigState
from headgate.storage.internal_topics import InternalTopic, InternalTopicError, InternalTopics, check
from headgate.storage.offset_records import decode_key, decode_offset
from headgate.storage.offset_table import identity
from headgate.storage.records import MalformedRecord
from headgate.storage.status_cache import StatusCache
from headgate.storage.topic_log import LogRecord, ReadTimeout, TopicLog

_BOOTSTRAP: Final = "bootstrap.servers"
_CLIENT: Final = "headgate-migrate"


class UnreadableTopic(Exception):
    """The topics could not be read; the message says why, and what to do."""


# --- what is kept of a topic ------------------------------------------------------------------------------------------


def take_config(fold: ConfigFold, record: LogRecord) -> None:
    fold.apply(config_records.decode(record.key, record.value), record.offset)


def take_status(cache: StatusCache, record: LogRecord) -> None:
    cache.read(*status_records.decode(record.key, record.value), record.offset, record.timestamp)


@dataclass(slots=True)
class OffsetTopic:
    """Which source partitions have an offset. Kafka's keys are bytes: several may mean the same partition."""

    _keys: dict[bytes, tuple[str, str]] = field(default_factory=dict)

    def take(self, record: LogRecord) -> None:
        connector, partition = decode_key(record.key)
        key = record.key or b""
        self._keys.pop(key, None)
        if decode_offset(record.value) is not None and partition is not None:
            self._keys[key] = connector, identity(partition)

    def partitions(self, connector: str) -> frozenset[str]:
        """With an offset, each by a text of its own."""
        return frozenset(partition for owner, partition in self._keys.values() if owner == connector)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic, and how much of it could be read."""

    name: str
    property: str
    partitions: int
    records: int
    ignored: tuple[str, ...] = ()
    """What is wrong with each record that no worker would understand."""
    refusal: str | None = None
    """Why a worker would not start with it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    cluster_id: str | None
    topics: tuple[Topic, ...]
    configs: ConfigState
    statuses: StatusCache
    offsets: OffsetTopic


# --- reading ----------------------------------------------------------------------------------------------------------


class SnapshotReader:
    """`worker` is a worker file that has been checked, with its secrets in place; `timeout` is for each topic, and for
    each other thing that is asked of Kafka. Raises ClientConfigError, InternalTopicError."""

    def __init__(self, worker: Config, timeout: float) -> None:
        self._worker = {**worker, "client.id": _CLIENT}
        self._timeout = timeout
        self._topics = InternalTopics.of(worker)
        self._committed = worker.get("exactly.once.source.support", "").strip().lower() == "enabled"

    def read(self) -> Snapshot:
        """Raises UnreadableTopic."""
        where = self._worker[_BOOTSTRAP]
        admin = Admin(self._worker, self._timeout)
        listed = admin.topics(where)
        missing = [each for each in self._topics.all() if _count(listed, each.name) == 0]
        if missing:
            named = ", ".join(f"{each.name} ({each.property})" for each in missing)
            raise UnreadableTopic(
                f"Not found at {where}: {named}. Every worker of a cluster makes these topics when it starts, so the"
                " worker file names others than the cluster has, or another Kafka, or a user who may not see them."
            )
        configs, statuses, offsets = ConfigFold(), StatusCache(), OffsetTopic()
        takes: dict[str, Callable[[LogRecord], None]] = {
            "config": partial(take_config, configs),
            "offset": offsets.take,
            "status": partial(take_status, statuses),
        }
        found = tuple(
            self._topic(admin, each, _count(listed, each.name), takes[each.property.partition(".")[0]])
            for each in self._topics.all()
        )
        return Snapshot(getattr(listed, "cluster_id", None), found, configs.state(), statuses, offsets)

    def offsets_of(self, topic: str, clients: Config) -> OffsetTopic | None:
        """Of a connector with a topic of its own, with the settings of its clients that are not the worker's; None if
        there is no such topic yet. Raises UnreadableTopic, ClientConfigError."""
        settings = {**self._worker, **clients}
        admin = Admin(settings, self._timeout)
        if _count(admin.topics(settings[_BOOTSTRAP]), topic) == 0:
            return None
        found = OffsetTopic()
        self._records(admin, topic, settings, self._committed, found.take)
        return found

    def _topic(self, admin: Admin, topic: InternalTopic, partitions: int, take: Callable[[LogRecord], None]) -> Topic:
        refusal = None
        try:
            check(admin.client, topic, self._timeout)
        except InternalTopicError as error:
            refusal = str(error)
        committed = self._committed and not topic.property.startswith("status.")
        records, ignored = self._records(admin, topic.name, self._worker, committed, take)
        return Topic(topic.name, topic.property, partitions, records, tuple(ignored), refusal)

    def _records(
        self, admin: Admin, topic: str, clients: Config, committed: bool, take: Callable[[LogRecord], None]
    ) -> tuple[int, list[str]]:
        count = 0
        ignored: list[str] = []

        def on_record(record: LogRecord) -> None:
            nonlocal count
            count += 1
            try:
                take(record)
            except MalformedRecord as error:
                ignored.append(f"record {record.offset} of partition {record.partition}: {error}")

        with closing(TopicLog(topic, clients, admin.client, read_committed=committed)) as log:
            try:
                log.start(on_record, self._timeout)
            except ReadTimeout as error:
                raise UnreadableTopic(
                    f"{error}. Try again with more time (--timeout), or as a user who may read it."
                ) from error
        return count, ignored


class Admin:
    """An admin client that only asks."""

    def __init__(self, clients: Config, timeout: float) -> None:
        """Raises ClientConfigError, UnreadableTopic."""
        self._timeout = timeout
        self._last = ""
        try:
            self.client = admin_client(clients, error_cb=self._on_error)
        except KafkaException as error:
            raise UnreadableTopic(
                f"No client of Kafka can be made of the worker file: {error.args[0].str()}"
            ) from error

    def topics(self, where: str) -> ClusterMetadata:
        """All of them: to ask for one by its name might create it. Raises UnreadableTopic."""
        began = time.monotonic()
        try:
            return self.client.list_topics(timeout=self._timeout)
        except KafkaException as error:
            self.client.poll(0)
            why = self._last or error.args[0].str()
            raise UnreadableTopic(
                f"No Kafka broker answered at {where} within {time.monotonic() - began:.0f} s ({why}). Check"
                " bootstrap.servers, and the worker file's security.protocol, sasl.* and ssl.* keys."
            ) from error

    def _on_error(self, error: KafkaError) -> None:
        # That all brokers are down is said last, and says least.
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self._last:
            self._last = error.str()


def _count(listed: ClusterMetadata, topic: str) -> int:
    """Partitions; 0 if there is no such topic."""
    found = listed.topics.get(topic)
    return 0 if found is None or found.error is not None else len(found.partitions)
