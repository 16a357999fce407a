"""Cluster: which topics a cluster of Kafka has; makes the missing ones."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConnectError
from headgate.kafka.settings import QUIET, ClientKind, translate

_ANSWER_S: Final = 10.0
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
        "REASSIGNMENT_IN_PROGRESS",
    }
)
"""Errors that go away by themselves, by librdkafka's names."""
_REFUSED: Final = ("_AUTHENTICATION", "_SSL")


class Unreachable(Exception):
    """The cluster gave no answer; it may later."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a cluster says of itself."""

    id: str
    topics: Mapping[str, int]
    """How many partitions each has."""


class Cluster:
    """`settings` are by Apache's names. Raises ClientConfigError. Its calls block for seconds; one thread uses it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        from confluent_kafka.admin import AdminClient

        self._name = settings.get("bootstrap.servers", "")
        self._refusal: str | None = None
        translated = translate(ClientKind.ADMIN, settings).config
        config: dict[str, Any] = {**QUIET, **translated, "error_cb": self._hear}
        self._client = AdminClient(config)

    def __str__(self) -> str:
        return f"Cluster {self._name}"

    def look(self, seconds: float) -> Known:
        """Raises Unreachable, and ConnectError when the cluster does not let us in."""
        from confluent_kafka import KafkaException

        self._refusal = None
        try:
            found = self._client.list_topics(timeout=seconds)
        except KafkaException as error:
            self._client.poll(0)  # why it failed is told to `_hear` only
            if self._refusal is not None:
                raise ConnectError(
                    f"{self} does not let us in: {self._refusal}. Check the settings of its clients:"
                    " security.protocol, sasl.* and ssl.*"
                ) from None
            raise Unreachable(f"{self} does not answer: {error.args[0].str()}") from None
        topics = {name: len(each.partitions) for name, each in found.topics.items() if each.error is None}
        return Known(found.cluster_id or "", topics)

    def _hear(self, error: Any) -> None:
        if error.name() in _REFUSED:
            self._refusal = error.str()

    def create(self, topics: Mapping[str, int]) -> None:
        """Makes these, each with so many partitions. Raises Unreachable, and ConnectError when the cluster says no."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        # What the broker has as its default: of replicas it knows best.
        new = [NewTopic(name, num_partitions=count, replication_factor=-1) for name, count in topics.items()]
        for name, answer in self._client.create_topics(new, request_timeout=_ANSWER_S).items():
            self._wait(answer, f"Topic {name} cannot be created", fine="TOPIC_ALREADY_EXISTS")

    def grow(self, topics: Mapping[str, int]) -> None:
        """So that each has so many partitions. Raises as `create` does."""
        from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

        new = [NewPartitions(name, count) for name, count in topics.items()]
        for name, answer in self._client.create_partitions(new, request_timeout=_ANSWER_S).items():
            self._wait(answer, f"Topic {name} cannot be given more partitions", fine="INVALID_PARTITIONS")

    def _wait(self, answer: Future[Any], problem: str, fine: str) -> None:
        """`fine`: somebody else was quicker."""
        from confluent_kafka import KafkaException

        try:
            answer.result(2 * _ANSWER_S)
        except TimeoutError:
            raise Unreachable(f"{self} does not answer") from None
        except KafkaException as error:
            name, text = error.args[0].name(), error.args[0].str()
            if name in _PASSING:
                raise Unreachable(f"{self} does not answer: {text}") from None
            if name != fine:
                raise ConnectError(
                    f"{problem} on {self}: {text}. Allow it, do it yourself, or set create.topics to false"
                ) from error
