"""The internal topics of a cluster of workers: made where they are missing, checked where they exist."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from headgate.kafka.admin_clients import wait
from headgate.model import Config

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

_POLICY: Final = "cleanup.policy"
_ASK_S: Final = 10.0
_PAUSE_S: Final = 0.5

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
_PASSING: Final = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.NOT_CONTROLLER,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
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
    replication: int
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
    """Makes the topics that are missing and checks those that exist. Raises InternalTopicError."""
    deadline = time.monotonic() + timeout
    for topic in topics:
        if not _create(admin, topic, deadline):
            _check(admin, topic, deadline)


def check(admin: AdminClient, topic: InternalTopic, timeout: float) -> None:
    """Whether a topic that exists can be used; nothing is changed. Raises InternalTopicError."""
    _check(admin, topic, time.monotonic() + timeout)


def _check(admin: AdminClient, topic: InternalTopic, deadline: float) -> None:
    _check_policy(admin, topic, deadline)
    _check_partitions(admin, topic, deadline)


def _topic(worker: Config, prefix: str, holds: str, partitions: int) -> InternalTopic:
    begin = f"{prefix}.storage."
    given = {key[len(begin) :]: value for key, value in worker.items() if key.startswith(begin)}
    name = given.pop("topic", "").strip()
    if not name:
        raise InternalTopicError(f"{begin}topic must name the topic of the {holds}.")
    replication = _number(f"{begin}replication.factor", given.pop("replication.factor", "3"))
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


def _create(admin: AdminClient, topic: InternalTopic, deadline: float) -> bool:
    """Whether it was missing and was made."""
    wanted = NewTopic(topic.name, topic.partitions, topic.replication, config={**topic.configs, _POLICY: "compact"})

    def attempt(left: float) -> bool:
        try:
            wait(admin, admin.create_topics([wanted], request_timeout=left)[topic.name], left + 1)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            if code in _NOT_ALLOWED:
                _log.info("Topic %s was not created (%s): it is taken to exist", topic.name, error.args[0].str())
                return False
            raise
        _log.info("Created topic %s for the %s", topic.name, topic.holds)
        return True

    return _asked(attempt, deadline, f"create topic '{topic.name}', named by '{topic.property}'")


def _check_policy(admin: AdminClient, topic: InternalTopic, deadline: float) -> None:
    def attempt(left: float) -> str | None:
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        try:
            found = wait(admin, admin.describe_configs([resource], request_timeout=left)[resource], left + 1)
        except KafkaException as error:
            if error.args[0].code() not in _NOT_ALLOWED:
                raise
            _log.info("The %s of topic %s is not checked: %s", _POLICY, topic.name, error.args[0].str())
            return None
        return str(found[_POLICY].value) if _POLICY in found else None

    policy = _asked(attempt, deadline, f"describe topic '{topic.name}', named by '{topic.property}'")
    if policy is not None and {part.strip() for part in policy.split(",")} != {"compact"}:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.property}' property is required to have '{_POLICY}=compact'"
            f" to guarantee consistency and durability of {topic.holds}, but found the topic currently has"
            f" '{_POLICY}={policy}'."
        )


def _check_partitions(admin: AdminClient, topic: InternalTopic, deadline: float) -> None:
    if not topic.single:
        return

    def attempt(left: float) -> int | None:
        # All topics: asking for this one by name might let the broker create it.
        found = admin.list_topics(timeout=left).topics.get(topic.name)
        return None if found is None or found.error is not None else len(found.partitions)

    count = _asked(attempt, deadline, f"describe topic '{topic.name}', named by '{topic.property}'")
    if count is not None and count > 1:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.property}' property is required to have a single partition"
            f" in order to guarantee consistency of connector configurations, but found {count} partitions."
        )


def _asked(attempt: Callable[[float], T], deadline: float, what: str) -> T:
    """Until Kafka answers: workers and brokers may be started together."""
    while True:
        left = deadline - time.monotonic()
        try:
            return attempt(min(max(left, 0.1), _ASK_S))
        except KafkaException as error:
            why = f"{error.args[0].str()} [{error.args[0].name()}]"
            passing = error.args[0].code() in _PASSING
        except TimeoutError:
            why, passing = "no answer in time", True
        if not passing or time.monotonic() + _PAUSE_S > deadline:
            raise InternalTopicError(f"Kafka did not {what}: {why}.")
        time.sleep(_PAUSE_S)
