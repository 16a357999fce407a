"""Creates a source's topics before its first record gets there, as its `topic.creation.*` keys say (KIP-158)."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Final

from headgate.api.errors import ConnectError
from headgate.kafka.settings import QUIET, ClientKind, translate
from headgate.model import TaskSpec, TopicGroup
from headgate.tasks.control import Control, Stopped

log = logging.getLogger(__name__)

_ANSWER_S: Final = 30.0
_LOOK_S: Final = 0.5
_AGAIN_S: Final = 1.0


def group_of(topic: str, groups: tuple[TopicGroup, ...]) -> TopicGroup:
    """The first whose pattern matches the whole name; the last one takes what is left."""
    for group in groups[:-1]:
        if re.fullmatch(group.include, topic) and not re.fullmatch(group.exclude, topic):
            return group
    return groups[-1]


def described(topic: str, group: TopicGroup) -> str:
    """As Apache's messages show a topic that is to be."""

    def count(number: int) -> str:
        return "default" if number == -1 else str(number)

    configs = ", ".join(f"{key}={value}" for key, value in group.configs.items())
    return (
        f"(name={topic}, numPartitions={count(group.partitions)}, replicationFactor={count(group.replication_factor)},"
        f" replicasAssignments=null, configs={{{configs}}})"
    )


class Topics:
    """Used by one thread. Does nothing, and makes no client, for a task without topic creation."""

    def __init__(self, spec: TaskSpec, control: Control, make_client: Callable[[dict[str, Any]], Any] | None = None):
        self._spec = spec
        self._control = control
        self._make_client = make_client or _admin_client
        self._client: Any = None

    def ensure(self, topic: str) -> None:
        """The topic exists when this returns. Waits for a broker that is away; raises ConnectError when it says no,
        Stopped when the task is given up on."""
        groups = self._spec.topic_groups
        if not groups or self._exists(topic):
            return
        group = group_of(topic, groups)
        if self._create(topic, group):
            log.info("Created topic %s by creation group %s", described(topic, group), group.name)

    def _exists(self, topic: str) -> bool:
        from confluent_kafka import KafkaError, TopicCollection

        error = self._ask(lambda client: client.describe_topics(TopicCollection([topic]), request_timeout=_ANSWER_S))
        if error is not None and error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise self._failure(topic, error)
        return error is None

    def _create(self, topic: str, group: TopicGroup) -> bool:
        """Whether it was made just now; somebody else may have been quicker."""
        from confluent_kafka import KafkaError
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        new = NewTopic(
            topic,
            num_partitions=group.partitions,
            replication_factor=group.replication_factor,
            config=dict(group.configs),
        )
        error = self._ask(lambda client: client.create_topics([new], request_timeout=_ANSWER_S))
        if error is not None and error.code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise self._failure(topic, error)
        return error is None

    def _ask(self, question: Callable[[Any], Any]) -> Any:
        """What the broker had against it; None: nothing. Asked again for as long as it cannot be reached."""
        if self._client is None:
            settings = translate(ClientKind.ADMIN, self._spec.admin).config
            self._client = self._make_client({**QUIET, **settings})
        while True:
            (answer,) = question(self._client).values()
            error = self._wait(answer)
            if error is None or error.name() not in _PASSING:
                return error
            log.warning("The broker was asked about a topic and is asked again: %s", error.str())
            time.sleep(_AGAIN_S)

    def _wait(self, answer: Future[Any]) -> Any:
        from confluent_kafka import KafkaException

        while True:
            self._client.poll(0)
            self._control.check()
            if self._control.cancelled:
                raise Stopped("given up on while the broker was asked about a topic")
            try:
                answer.result(_LOOK_S)
                return None
            except FutureTimeout:
                continue
            except KafkaException as refused:
                return refused.args[0]

    def _failure(self, topic: str, error: Any) -> ConnectError:
        from confluent_kafka import KafkaException

        failure = ConnectError(
            f"Task failed to create new topic {described(topic, group_of(topic, self._spec.topic_groups))}. Ensure that"
            " the task is authorized to create topics or that the topic exists and restart the task"
        )
        failure.__cause__ = KafkaException(error)  # what the broker said
        return failure


_PASSING: Final = frozenset(
    {
        "_TIMED_OUT",
        "_TRANSPORT",
        "_RESOLVE",
        "_ALL_BROKERS_DOWN",
        "LEADER_NOT_AVAILABLE",
        "NOT_CONTROLLER",
        "REQUEST_TIMED_OUT",
        "THROTTLING_QUOTA_EXCEEDED",
    }
)
"""Errors that go away by themselves, by librdkafka's names."""


def _admin_client(settings: dict[str, Any]) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient(settings, logger=log)
