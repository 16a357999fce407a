"""TopicAdmin: on paper, and on a broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.dev.broker import Broker
from headgate.kafka.admin_clients import admin_client, wait
from headgate.kafka.asking import Asker
from headgate.kafka.topics import TopicAdmin, TopicRefused, TopicUnanswered
from headgate.model import NewTopic

MISSING, EXISTS, AWAY = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_ALREADY_EXISTS, KafkaError._TRANSPORT
FORBIDDEN, ENOUGH = KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.INVALID_PARTITIONS


class Client:
    """An admin client that answers as it was told, question by question: a code for a topic, or 0."""

    def __init__(self, *answers: dict[str, int], cluster: str | None = None) -> None:
        self.answers = list(answers)
        self.cluster = cluster
        self.replicas: list[int] = []
        self.asked: list[tuple[str, ...]] = []

    def poll(self, _: float) -> None: ...

    def create_topics(self, topics: list[Any], request_timeout: float) -> dict[str, Future[None]]:
        self.asked.append(tuple(each.topic for each in topics))
        self.replicas += [getattr(each, "replication_factor", 0) for each in topics]
        return {name: _answer(code) for name, code in self.answers.pop(0).items()}

    create_partitions = create_topics

    def describe_cluster(self, request_timeout: float) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(cluster_id=self.cluster))
        return future


def _answer(code: int) -> Future[None]:
    future: Future[None] = Future()
    if code:
        future.set_exception(KafkaException(KafkaError(code)))
    else:
        future.set_result(None)
    return future


def admin(client: Any, **asking: Any) -> TopicAdmin:
    return TopicAdmin(lambda: client, Asker(pause=lambda _: None, **asking))


class TestOnPaper:
    def test_one_request_makes_all_and_tells_what_was_missing(self) -> None:
        client = Client({"a": 0, "b": EXISTS, "c": 0})
        assert admin(client).create(NewTopic("a"), NewTopic("b"), NewTopic("c")) == ["a", "c"]
        assert client.asked == [("a", "b", "c")]

    def test_only_what_could_not_be_answered_is_asked_again(self) -> None:
        client = Client({"a": 0, "b": AWAY, "c": AWAY}, {"b": AWAY}, {"b": 0}, {"c": EXISTS})
        assert admin(client).create(NewTopic("a"), NewTopic("b"), NewTopic("c")) == ["a", "b"]
        assert client.asked == [("a", "b", "c"), ("b",), ("b",), ("c",)]

    def test_a_refusal_says_which_topic_and_why(self) -> None:
        with pytest.raises(TopicRefused, match=r"^Broker: Topic authorization failed \[TOPIC_AUTHO") as raised:
            admin(Client({"a": 0, "b": FORBIDDEN})).create(NewTopic("a"), NewTopic("b"))
        assert (raised.value.topic, raised.value.code) == ("b", FORBIDDEN)

    @pytest.mark.parametrize("asking", [{"tries": 1}, {"may_go_on": lambda: False}])
    def test_a_broker_that_cannot_answer_is_no_refusal(self, asking: dict[str, Any]) -> None:
        with pytest.raises(TopicUnanswered, match=r"transport failure \[_TRANSPORT\]$"):
            admin(Client({"a": AWAY}), **asking).create(NewTopic("a"))

    def test_a_topic_that_has_grown_is_fine(self) -> None:
        client = Client({"a": 0, "b": ENOUGH})
        assert admin(client).grow({"a": 4, "b": 4}) == ["a"]

    @pytest.mark.parametrize(
        ("cluster", "replication", "asked_for"),
        [("headgateTMjK", None, -1), ("headgateTMjK", 3, 3), ("4L6g3nShT-eMCtK--X86sw", None, 3), (None, None, 3)],
    )
    def test_three_replicas_unless_it_is_set_or_a_cluster_of_headgate(
        self, cluster: str | None, replication: int | None, asked_for: int
    ) -> None:
        client = Client({"a": 0}, cluster=cluster)
        admin(client).create(NewTopic("a", 1, replication))
        assert client.replicas == [asked_for]

    def test_nobody_is_asked_for_nothing(self) -> None:
        assert admin(None).create() == admin(None).grow({}) == []

    def test_the_client_is_made_when_it_is_needed_and_once(self) -> None:
        made: list[Client] = []

        def make() -> Any:
            made.append(Client({"a": AWAY}, {"a": 0}, {"b": 0}))
            return made[-1]

        topics = TopicAdmin(make, Asker(pause=lambda _: None))
        assert made == []
        topics.create(NewTopic("a"))
        topics.create(NewTopic("b"))
        assert len(made) == 1


class TestWaiting:
    def test_it_is_given_up_when_it_takes_too_long(self) -> None:
        with pytest.raises(KafkaException, match="_TIMED_OUT"):
            wait(Client(), Future(), 0.0)  # type: ignore[arg-type]

    def test_it_is_given_up_when_it_may_not_go_on(self) -> None:
        with pytest.raises(KafkaException, match="_TIMED_OUT"):
            wait(Client(), Future(), 100.0, lambda: False)  # type: ignore[arg-type]


@pytest.mark.broker
class TestOnABroker:
    @pytest.fixture
    def topics(self, broker: Broker) -> TopicAdmin:
        return TopicAdmin(partial(admin_client, {"bootstrap.servers": broker.bootstrap}), Asker())

    def test_a_topic_from_nothing_to_more_partitions(
        self, topics: TopicAdmin, unique: Callable[[str], str], eventually: Callable[..., None]
    ) -> None:
        name = unique("grown")
        assert not topics.exists(name)
        assert topics.create(NewTopic(name, 2, 1, {"retention.ms": "7654321"})) == [name]
        assert topics.create(NewTopic(name)) == []
        assert topics.config(name, "retention.ms") == "7654321"
        assert topics.config(name, "no.such.setting") is None
        assert topics.grow({name: 3}) == [name]
        assert topics.grow({name: 3}) == []
        eventually(lambda: topics.partitions(name) == 3)  # what the controller did, each broker learns in a moment
        assert topics.exists(name)

    def test_asking_does_not_make_it(self, topics: TopicAdmin, unique: Callable[[str], str]) -> None:
        name = unique("only-asked")
        assert [topics.partitions(name) for _ in range(3)] == [0, 0, 0]

    def test_what_the_broker_cannot_do_is_told_in_its_words(
        self, topics: TopicAdmin, unique: Callable[[str], str]
    ) -> None:
        with pytest.raises(TopicRefused, match="INVALID_REPLICATION_FACTOR"):
            topics.create(NewTopic(unique("lonely"), 1, 7))
        with pytest.raises(TopicRefused, match="INVALID_CONFIG"):
            topics.create(NewTopic(unique("odd"), 1, 1, {"no.such.setting": "1"}))
        with pytest.raises(TopicRefused, match="Invalid topic"):
            topics.exists("no topic / of Kafka")


@pytest.mark.process
def test_without_a_broker_it_is_unanswered() -> None:
    began = time.monotonic()
    asker = Asker(lambda: time.monotonic() < began + 0.5)
    topics = TopicAdmin(partial(admin_client, {"bootstrap.servers": "127.0.0.1:1"}), asker)
    with pytest.raises(TopicUnanswered, match="_TIMED_OUT"):
        topics.exists("t")
    assert time.monotonic() - began < 3
