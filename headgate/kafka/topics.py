"""TopicAdmin: whether a topic exists, and what it is like; makes the missing ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from functools import cache, partial
from typing import Any, Final

import confluent_kafka.cimpl as native
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from headgate.kafka.admin_clients import wait
from headgate.kafka.asking import NOT_YET, Asker, passes
from headgate.model import DEV_CLUSTER, NewTopic

__all__ = ["NewTopic", "TopicAdmin", "TopicError", "TopicRefused", "TopicUnanswered"]

_ANSWER_S: Final = 10.0
_USUAL_REPLICAS: Final = 3


class TopicError(Exception):
    """Kafka has not done it; the message has its own words, and the name of its error."""

    def __init__(self, topic: str, error: KafkaError) -> None:
        super().__init__(f"{error.str()} [{error.name()}]")
        self.topic = topic
        self.code = error.code()


class TopicRefused(TopicError):
    """It says no, and will the next time."""


class TopicUnanswered(TopicError):
    """It could not answer, for as long as it was asked. It may later."""


class TopicAdmin:
    """One thread uses it. Its calls block: what passes by itself is asked again, see `Asker`. They raise TopicRefused
    and TopicUnanswered, and what the client raises that is made for the first of them."""

    def __init__(self, client: Callable[[], AdminClient], asker: Asker) -> None:
        self._client = cache(client)
        self._asker = asker

    def exists(self, topic: str) -> bool:
        return self.partitions(topic) > 0

    def partitions(self, topic: str) -> int:
        """How many it has; 0: there is no such topic."""
        asked = TopicCollection([topic])
        try:
            found = self._ask(topic, lambda: self._client().describe_topics(asked, request_timeout=_ANSWER_S)[topic])
        except TopicRefused as refused:
            if refused.code != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return 0
        return len(found.partitions)

    def config(self, topic: str, key: str) -> str | None:
        """What is set for a topic that exists."""
        asked = ConfigResource(ResourceType.TOPIC, topic)
        found = self._ask(
            topic, lambda: self._client().describe_configs([asked], request_timeout=_ANSWER_S)[asked], NOT_YET
        )
        return str(found[key].value) if key in found else None

    def create(self, *topics: NewTopic) -> list[str]:
        """The names of those that were missing and have been made: somebody else may be quicker."""
        wanted = {
            each.name: native.NewTopic(each.name, each.partitions, self._replicas(each), config=dict(each.configs))
            for each in topics
        }
        return self._made(wanted, "create_topics", KafkaError.TOPIC_ALREADY_EXISTS)

    def grow(self, topics: Mapping[str, int]) -> list[str]:
        """So that each has so many partitions. The names of those that had fewer."""
        wanted = {name: native.NewPartitions(name, count) for name, count in topics.items()}
        return self._made(wanted, "create_partitions", KafkaError.INVALID_PARTITIONS)

    def _replicas(self, topic: NewTopic) -> int:
        if topic.replication is not None:
            return topic.replication
        found = self._ask(topic.name, lambda: self._client().describe_cluster(request_timeout=_ANSWER_S))
        return -1 if (found.cluster_id or "").startswith(DEV_CLUSTER) else _USUAL_REPLICAS

    def _made(self, wanted: Mapping[str, Any], call: str, fine: int) -> list[str]:
        """All in one request; what passes is asked for again, each by itself. `fine`: it was there before."""

        def request(*each: Any) -> dict[str, Future[Any]]:
            return dict(getattr(self._client(), call)(list(each), request_timeout=_ANSWER_S))

        def answer(name: str) -> Future[Any]:
            return answers.pop(name, None) or request(wanted[name])[name]

        answers = request(*wanted.values()) if wanted else {}
        made = []
        for name in wanted:
            try:
                self._ask(name, partial(answer, name))
                made.append(name)
            except TopicRefused as refused:
                if refused.code != fine:
                    raise
        return made

    def _ask(self, topic: str, question: Callable[[], Future[Any]], also: Collection[int] = ()) -> Any:
        asker = self._asker
        try:
            return asker.ask(lambda: wait(self._client(), question(), _ANSWER_S + 1, asker.may_go_on), also)
        except KafkaException as error:
            kind = TopicUnanswered if passes(error.args[0], also) else TopicRefused
            raise kind(topic, error.args[0]) from error
