"""The internal topics of a cluster of workers: made where they are missing, checked where they exist."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from headgate.backoff import Backoff
from headgate.kafka.asking import Asker
from headgate.kafka.topics import TopicAdmin, TopicError
from headgate.model import Config, NewTopic

_log: Final = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"

# The worker may not create topics, or not look: then they must be there and right, as somebody has seen to.
_NOT_ALLOWED: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNSUPPORTED_VERSION,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError.SECURITY_DISABLED,
    }
)


class InternalTopicError(Exception):
    """A topic that this cluster of workers cannot be run on; the message says which, why, and what to change."""


@dataclass(frozen=True, slots=True)
class InternalTopic:
    name: str
    property: str
    """The worker's key that names it."""
    holds: str
    partitions: int
    """-1: as many as the broker gives."""
    replication: int | None
    """None: see NewTopic."""
    configs: Config = field(default_factory=dict)
    single: bool = False
    """Whether it must have exactly one partition."""


@dataclass(frozen=True, slots=True)
class InternalTopics:
    config: InternalTopic
    offsets: InternalTopic
    status: InternalTopic

    @classmethod
    def of(cls, worker: Config) -> InternalTopics:
        """From the keys of a worker file, which has been checked. Raises InternalTopicError."""
        return cls(
            _topic(worker, "config", "connector configurations", partitions=1),
            _topic(worker, "offset", "source connector offsets", partitions=25),
            _topic(worker, "status", "connector and task statuses", partitions=5),
        )

    def all(self) -> tuple[InternalTopic, ...]:
        return (self.config, self.offsets, self.status)


def ensure(admin: AdminClient, topics: Sequence[InternalTopic], timeout: float) -> None:
    """Makes the topics that are missing and checks those that exist. Waits for Kafka: workers and brokers may be
    started together. Raises InternalTopicError."""
    asked = _asked(admin, timeout)
    for topic in topics:
        if not _create(asked, topic):
            _check(asked, topic)


def check(admin: AdminClient, topic: InternalTopic, timeout: float) -> None:
    """Whether a topic that exists can be used; nothing is changed. Raises InternalTopicError."""
    _check(_asked(admin, timeout), topic)


def _asked(admin: AdminClient, timeout: float) -> TopicAdmin:
    deadline = time.monotonic() + timeout
    return TopicAdmin(lambda: admin, Asker(lambda: time.monotonic() < deadline, backoff=Backoff(0.5)))


def _topic(worker: Config, prefix: str, holds: str, partitions: int) -> InternalTopic:
    begin = f"{prefix}.storage."
    given = {key[len(begin) :]: value for key, value in worker.items() if key.startswith(begin)}
    name = given.pop("topic", "").strip()
    if not name:
        raise InternalTopicError(f"{begin}topic must name the topic of the {holds}.")
    factor = given.pop("replication.factor", None)
    replication = None if factor is None else _number(f"{begin}replication.factor", factor)
    asked = given.pop("partitions", None)
    single = partitions == 1
    if single and asked is not None:
        _log.warning("%spartitions=%s is ignored: this topic always has one partition", begin, asked)
    elif asked is not None:
        partitions = _number(f"{begin}partitions", asked)
    policy = given.pop(_POLICY, None)
    if policy is not None:
        _log.warning("%s%s=%s is ignored: this topic is always compacted", begin, _POLICY, policy)
    given.pop("file.filename", None)  # standalone mode's
    return InternalTopic(name, f"{begin}topic", holds, partitions, replication, given, single)


def _number(key: str, value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        raise InternalTopicError(f"{key} must be a whole number, not {value!r}.") from None
    if number != -1 and number < 1:
        raise InternalTopicError(f"{key} must be positive, or -1 for the broker's default, not {value}.")
    return number


def _create(admin: TopicAdmin, topic: InternalTopic) -> bool:
    """Whether it was missing and was made."""
    configs = {**topic.configs, _POLICY: "compact"}
    made: list[str] = []
    with _told(topic, "create", "was not created: it is taken to exist"):
        made = admin.create(NewTopic(topic.name, topic.partitions, topic.replication, configs))
    if made:
        _log.info("Created topic %s for the %s", topic.name, topic.holds)
    return bool(made)


def _check(admin: TopicAdmin, topic: InternalTopic) -> None:
    policy, count = None, 1
    with _told(topic, "describe", f"is not asked for its {_POLICY}"):
        policy = admin.config(topic.name, _POLICY)
    with _told(topic, "describe", "is not asked for its partitions"):
        count = admin.partitions(topic.name) if topic.single else 1
    if policy is not None and {part.strip() for part in policy.split(",")} != {"compact"}:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.property}' property is required to have '{_POLICY}=compact'"
            f" to guarantee consistency and durability of {topic.holds}, but found the topic currently has"
            f" '{_POLICY}={policy}'."
        )
    if count > 1:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.property}' property is required to have a single partition"
            f" in order to guarantee consistency of connector configurations, but found {count} partitions."
        )


@contextmanager
def _told(topic: InternalTopic, what: str, otherwise: str) -> Iterator[None]:
    """What the worker may not do is not done."""
    try:
        yield
    except TopicError as error:
        if error.code not in _NOT_ALLOWED:
            named = f"topic '{topic.name}', named by '{topic.property}'"
            # A connector's own topic of offsets has as many replicas as the worker's.
            key = f"{topic.property.removesuffix('topic').replace('offsets', 'offset')}replication.factor"
            few = error.code == KafkaError.INVALID_REPLICATION_FACTOR
            hint = f" Set {key} to no more than there are brokers, or to -1 for their default." if few else ""
            raise InternalTopicError(f"Kafka did not {what} {named}: {error}.{hint}") from error
        _log.info("Topic %s %s: %s", topic.name, otherwise, error)
