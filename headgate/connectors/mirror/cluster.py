"""Cluster: which topics a cluster of Kafka has; makes the missing ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headgate.api import ConnectError
from headgate.kafka.admin_clients import admin_client
from headgate.kafka.asking import Asker
from headgate.kafka.topics import NewTopic, TopicAdmin, TopicRefused, TopicUnanswered

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

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
        self._name = settings.get("bootstrap.servers", "")
        self._refusal: str | None = None
        self._client = admin_client(settings, error_cb=self._hear)
        self._topics = TopicAdmin(lambda: self._client, Asker(tries=1))  # whoever looks out asks again

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

    def _hear(self, error: KafkaError) -> None:
        if error.name() in _REFUSED:
            self._refusal = error.str()

    def create(self, topics: Mapping[str, int]) -> None:
        """Makes these, each with so many partitions. Raises Unreachable, and ConnectError when the cluster says no."""
        with self._told("cannot be created"):
            # As many replicas as the broker has as its default: it knows best.
            self._topics.create(*(NewTopic(name, count) for name, count in topics.items()))

    def grow(self, topics: Mapping[str, int]) -> None:
        """So that each has so many partitions. Raises as `create` does."""
        with self._told("cannot be given more partitions"):
            self._topics.grow(topics)

    @contextmanager
    def _told(self, problem: str) -> Iterator[None]:
        try:
            yield
        except TopicUnanswered as error:
            raise Unreachable(f"{self} does not answer: {error}") from None
        except TopicRefused as error:
            raise ConnectError(
                f"Topic {error.topic} {problem} on {self}: {error}. Allow it, do it yourself, or set create.topics to"
                " false"
            ) from error
