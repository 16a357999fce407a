from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from headgate.dev.broker import Broker
from headgate.storage.internal_topics import InternalTopic, InternalTopicError, InternalTopics, ensure

FILE = {"config.storage.topic": "c", "offset.storage.topic": "o", "status.storage.topic": "s"}


class TestKeys:
    def test_the_defaults_are_apaches(self) -> None:
        """But for replicas: see `test_topic_admin.py`."""
        topics = InternalTopics.of(FILE)
        assert [(each.name, each.partitions, each.replication) for each in topics.all()] == [
            ("c", 1, None),
            ("o", 25, None),
            ("s", 5, None),
        ]
        assert [each.single for each in topics.all()] == [True, False, False]

    def test_the_brokers_defaults_and_further_settings(self) -> None:
        more = {
            "offset.storage.partitions": "-1",
            "offset.storage.replication.factor": "-1",
            "config.storage.min.insync.replicas": "2",
            "config.storage.replication.factor": "1",
            "status.storage.partitions": "7",
            "status.storage.segment.bytes": "1048576",
            "offset.storage.file.filename": "left over",
        }
        topics = InternalTopics.of({**FILE, **more})
        assert (topics.offsets.partitions, topics.offsets.replication, topics.offsets.configs) == (-1, -1, {})
        assert (topics.config.replication, topics.config.configs) == (1, {"min.insync.replicas": "2"})
        assert (topics.status.partitions, topics.status.configs) == (7, {"segment.bytes": "1048576"})

    def test_what_cannot_be_chosen_is_ignored_with_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, logger="headgate"):
            topics = InternalTopics.of(
                {**FILE, "config.storage.partitions": "3", "status.storage.cleanup.policy": "delete"}
            )
        assert (topics.config.partitions, topics.status.configs) == (1, {})
        assert "config.storage.partitions=3 is ignored" in caplog.text
        assert "status.storage.cleanup.policy=delete is ignored" in caplog.text

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("config.storage.topic", " "),
            ("offset.storage.partitions", "many"),
            ("offset.storage.partitions", "0"),
            ("status.storage.replication.factor", "-2"),
        ],
    )
    def test_mistakes_name_their_key(self, key: str, value: str) -> None:
        with pytest.raises(InternalTopicError, match=key):
            InternalTopics.of({**FILE, key: value})


def internal(name: str, **changes: Any) -> InternalTopic:
    fields: dict[str, Any] = {"partitions": 2, "replication": 1, **changes}
    return InternalTopic(name, "status.storage.topic", "connector and task statuses", **fields)


@pytest.mark.broker
class TestOnABroker:
    @pytest.fixture
    def admin(self, broker: Broker) -> AdminClient:
        return AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    @staticmethod
    def describe(admin: AdminClient, name: str) -> dict[str, str]:
        resource = ConfigResource(ResourceType.TOPIC, name)
        found = admin.describe_configs([resource])[resource].result(10)
        return {key: entry.value for key, entry in found.items()}

    def test_a_missing_topic_is_made_as_the_worker_says(self, admin: AdminClient, unique: Callable[[str], str]) -> None:
        name = unique("made")
        ensure(admin, [internal(name, configs={"segment.bytes": "1048576"})], 30)
        found = self.describe(admin, name)
        assert (found["cleanup.policy"], found["segment.bytes"]) == ("compact", "1048576")
        assert len(admin.list_topics(timeout=10).topics[name].partitions) == 2
        ensure(admin, [internal(name)], 30)  # it is there, and right

    def test_the_brokers_defaults_are_taken_where_it_is_asked_for_them(
        self, admin: AdminClient, unique: Callable[[str], str], eventually: Callable[..., None]
    ) -> None:
        name = unique("defaults")
        ensure(admin, [internal(name, partitions=-1, replication=-1)], 30)
        # The controller has made it; the broker that is asked may hear of it a moment later.
        eventually(lambda: name in admin.list_topics(timeout=10).topics)
        assert len(admin.list_topics(timeout=10).topics[name].partitions) >= 1

    @pytest.mark.parametrize("policy", ["delete", "compact,delete"])
    def test_another_cleanup_policy_is_refused(
        self, admin: AdminClient, unique: Callable[[str], str], policy: str
    ) -> None:
        name = unique("wrong")
        admin.create_topics([NewTopic(name, 1, 1, config={"cleanup.policy": policy})])[name].result(30)
        with pytest.raises(InternalTopicError) as raised:
            ensure(admin, [internal(name)], 30)
        assert str(raised.value) == (
            f"Topic '{name}' supplied via the 'status.storage.topic' property is required to have"
            " 'cleanup.policy=compact' to guarantee consistency and durability of connector and task statuses,"
            f" but found the topic currently has 'cleanup.policy={policy}'."
        )

    def test_a_config_topic_of_several_partitions_is_refused(
        self, admin: AdminClient, unique: Callable[[str], str]
    ) -> None:
        name = unique("several")
        config = InternalTopics.of({**FILE, "config.storage.topic": name}).config
        admin.create_topics([NewTopic(name, 3, 1, config={"cleanup.policy": "compact"})])[name].result(30)
        with pytest.raises(InternalTopicError) as raised:
            ensure(admin, [config], 30)
        assert str(raised.value) == (
            f"Topic '{name}' supplied via the 'config.storage.topic' property is required to have a single partition in"
            " order to guarantee consistency of connector configurations, but found 3 partitions."
        )

    def test_one_node_of_headgate_need_not_be_told_how_many_replicas_it_has(
        self, admin: AdminClient, unique: Callable[[str], str], eventually: Callable[..., None]
    ) -> None:
        name = unique("unsaid")
        ensure(admin, [internal(name, replication=None)], 30)
        eventually(lambda: name in admin.list_topics(timeout=10).topics)
        assert len(admin.list_topics(timeout=10).topics[name].partitions[0].replicas) == 1

    def test_what_the_broker_cannot_do_is_told_in_its_words(
        self, admin: AdminClient, unique: Callable[[str], str]
    ) -> None:
        few = r"create topic 'lonely-\d+'.*INVALID_REPLICATION_FACTOR.*Set status\.storage\.replication\.factor to"
        with pytest.raises(InternalTopicError, match=few):
            ensure(admin, [internal(unique("lonely"), replication=3)], 30)
        with pytest.raises(InternalTopicError, match=r"did not create topic.*INVALID_CONFIG"):
            ensure(admin, [internal(unique("odd"), configs={"no.such.setting": "1"})], 30)


class Admin:
    """Answers as it is told."""

    def __init__(self, **errors: int) -> None:
        self.errors = errors
        self.asked: list[str] = []

    def poll(self, timeout: float) -> None:
        pass

    def _answer(self, what: str, value: Any) -> Future[Any]:
        self.asked.append(what)
        future: Future[Any] = Future()
        if what in self.errors:
            future.set_exception(KafkaException(KafkaError(self.errors[what])))
        else:
            future.set_result(value)
        return future

    def create_topics(self, topics: list[Any], request_timeout: float) -> dict[str, Future[Any]]:
        return {topics[0].topic: self._answer("create", None)}

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        return {resources[0]: self._answer("describe", {})}


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED])
def test_a_worker_that_may_neither_create_nor_describe_takes_the_topic_as_it_is(code: int) -> None:
    admin = Admin(create=code, describe=code)
    ensure(admin, [internal("t")], 5)  # type: ignore[arg-type]
    assert admin.asked == ["create", "describe"]


def test_a_topic_that_was_just_made_is_not_checked() -> None:
    admin = Admin()
    ensure(admin, [internal("t")], 5)  # type: ignore[arg-type]
    assert admin.asked == ["create"]


def test_while_no_broker_answers_it_is_tried_again_until_the_time_is_over() -> None:
    admin = Admin(create=KafkaError._TRANSPORT)
    began = time.monotonic()
    with pytest.raises(InternalTopicError, match=r"Kafka did not create topic 't'.*_TRANSPORT"):
        ensure(admin, [internal("t")], 0.2)  # type: ignore[arg-type]
    assert (len(admin.asked), time.monotonic() - began < 3) == (2, True)
