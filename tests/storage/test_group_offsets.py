from __future__ import annotations

import gc
import logging
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headgate.kafka import groups as kafka_groups
from headgate.kafka.admin_clients import AdminClients
from headgate.kafka.settings import ClientConfigError
from headgate.model import TopicPartition
from headgate.runtime.ports import GroupNotEmpty, GroupOffsets, KafkaAway
from headgate.storage import group_offsets
from headgate.storage.cluster_id import cluster_id
from headgate.storage.group_offsets import GroupOffsetsError, KafkaGroupOffsets

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}  # nothing listens there


@pytest.fixture(params=["protocol", "librdkafka"])
def groups(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaGroupOffsets]:
    """With Kafka's own protocol where that is of use, and as for logins that only librdkafka can do."""

    def refuse(_: object) -> None:
        raise ClientConfigError("not possible here")

    if request.param == "librdkafka":
        monkeypatch.setattr(kafka_groups, "for_kafka_python", refuse)
    groups = KafkaGroupOffsets()
    yield groups
    groups.close()


@pytest.fixture
def admin(broker: Any) -> dict[str, str]:
    # A worker's keys come along, as they do in a real worker: they must not matter.
    return {"bootstrap.servers": broker.bootstrap, "group.id": "connect", "key.converter": "x", "client.id": "admin"}


@pytest.fixture
def topic(broker: Any) -> str:
    name = f"topic-{uuid.uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": broker.bootstrap})
    client.create_topics([NewTopic(name, 3, 1)])[name].result(30)
    return name


@pytest.fixture
def group() -> str:
    return f"connect-{uuid.uuid4().hex[:8]}"


@contextmanager
def member(bootstrap: str, group: str, topic: str, protocol: str) -> Iterator[None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "log_level": 0})
    try:
        consumer.subscribe([topic])
        deadline = time.monotonic() + 30
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        yield
    finally:
        consumer.close()


@pytest.mark.broker
class TestGroup:
    def test_the_class_fits_the_port(self, groups: KafkaGroupOffsets, admin: dict[str, str]) -> None:
        port: GroupOffsets = groups
        assert port.read(admin, "connect-nobody") == {}

    @pytest.mark.kip(875, "sink connector offsets are those of its consumer group")
    def test_offsets_that_were_altered_are_read(
        self, groups: KafkaGroupOffsets, admin: dict[str, str], group: str, topic: str
    ) -> None:
        groups.alter(admin, group, {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 0})
        assert groups.read(admin, group) == {TopicPartition(topic, 0): 5, TopicPartition(topic, 1): 0}

    @pytest.mark.kip(875, "a null offset resets the partition and leaves the others")
    def test_none_deletes_one_offset_and_leaves_the_others(
        self, groups: KafkaGroupOffsets, admin: dict[str, str], group: str, topic: str
    ) -> None:
        zero, one, two = (TopicPartition(topic, number) for number in range(3))
        groups.alter(admin, group, {zero: 5, one: 6})
        groups.alter(admin, group, {zero: None, two: 7})
        assert groups.read(admin, group) == {one: 6, two: 7}
        groups.alter(admin, group, {zero: None})  # has none: nothing to do
        assert groups.read(admin, group) == {one: 6, two: 7}

    @pytest.mark.kip(875, "the offset field may be null, which will reset the offset for that specific partition")
    def test_a_group_that_does_not_exist_has_no_offset_to_delete(
        self, groups: KafkaGroupOffsets, admin: dict[str, str], group: str, topic: str
    ) -> None:
        groups.alter(admin, group, {TopicPartition(topic, 0): None})
        assert groups.read(admin, group) == {}

    @pytest.mark.parametrize("offset", [5, None])
    def test_an_unknown_topic_or_partition_is_an_error_that_names_it(
        self, groups: KafkaGroupOffsets, admin: dict[str, str], group: str, topic: str, offset: int | None
    ) -> None:
        groups.alter(admin, group, {TopicPartition(topic, 0): 5})
        for unknown in (TopicPartition("no-such-topic", 0), TopicPartition(topic, 99)):
            with pytest.raises(GroupOffsetsError, match=rf"Unknown topic or partition \({unknown}\)"):
                groups.alter(admin, group, {unknown: offset})

    def test_a_negative_offset_is_an_error(
        self, groups: KafkaGroupOffsets, admin: dict[str, str], group: str, topic: str
    ) -> None:
        with pytest.raises(GroupOffsetsError, match="negative"):
            groups.alter(admin, group, {TopicPartition(topic, 0): -1})

    @pytest.mark.kip(875, "sink connector offsets are reset by deleting its consumer group")
    def test_a_deleted_group_has_no_offsets_and_can_be_deleted_again(
        self, groups: KafkaGroupOffsets, admin: dict[str, str], group: str, topic: str
    ) -> None:
        groups.alter(admin, group, {TopicPartition(topic, 0): 5})
        groups.delete(admin, group)
        assert groups.read(admin, group) == {}
        groups.delete(admin, group)

    @pytest.mark.kip(875, "offsets cannot be modified while the consumer group is active")
    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_a_group_with_members_is_not_touched(
        self, groups: KafkaGroupOffsets, admin: dict[str, str], group: str, topic: str, protocol: str
    ) -> None:
        zero = TopicPartition(topic, 0)
        groups.alter(admin, group, {zero: 0})
        with member(admin["bootstrap.servers"], group, topic, protocol):
            attempts: list[Callable[[], None]] = [
                lambda: groups.alter(admin, group, {zero: 6}),
                lambda: groups.alter(admin, group, {zero: None}),
                lambda: groups.alter(admin, group, {zero: 6, TopicPartition("no-such-topic", 0): 1}),
                lambda: groups.delete(admin, group),
            ]
            for attempt in attempts:
                with pytest.raises(GroupNotEmpty, match=r"^Kafka did not .* Broker: "):
                    attempt()
            assert groups.read(admin, group) == {zero: 0}
        groups.delete(admin, group)

    def test_the_cluster_id_is_found(self, admin: dict[str, str]) -> None:
        assert cluster_id(admin)


@pytest.mark.process
# kafka-python leaves it to Python to close the socket of a connection that is not made yet.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
class TestWithoutBroker:
    @pytest.mark.parametrize(
        "attempt",
        [
            lambda groups, admin: groups.alter(admin, "g", {TopicPartition("t", 0): 1, TopicPartition("t", 1): None}),
            lambda groups, admin: groups.alter(admin, "g", {TopicPartition("t", 0): None}),
            lambda groups, admin: groups.delete(admin, "g"),
        ],
        ids=["alter", "delete one", "delete"],
    )
    def test_every_call_ends_in_time_with_kafkas_words(
        self, attempt: Callable[[KafkaGroupOffsets, dict[str, str]], object], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.CRITICAL + 1)
        groups, began = KafkaGroupOffsets(timeout=0.5), time.monotonic()
        with pytest.raises(GroupOffsetsError, match=r"^Kafka did not .*Timed out \[_TIMED_OUT\]$"):
            attempt(groups, NOWHERE)
        assert time.monotonic() - began < 3
        groups.close()
        gc.collect()

    def test_a_read_does_not_wait_for_a_kafka_that_is_away(
        self, groups: KafkaGroupOffsets, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.CRITICAL + 1)
        began = time.monotonic()
        with pytest.raises(KafkaAway, match=r"^Kafka does not answer at 127\.0\.0\.1:1 \(.+\): see that it runs there"):
            groups.read(NOWHERE, "g")
        assert time.monotonic() - began < 6
        gc.collect()

    def test_no_cluster_no_id_and_its_address_is_said_at_once(self) -> None:
        said: list[str] = []
        began = time.monotonic()
        assert cluster_id(NOWHERE, said.append) is None
        assert time.monotonic() - began < 3  # it refuses: nobody waits for its answer
        assert said[0].startswith(
            "127.0.0.1:1 (127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed: Connection ref"
        )

    def test_an_address_that_takes_no_notice_is_said_too(self) -> None:
        said: list[str] = []
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            assert cluster_id({"bootstrap.servers": address}, said.append, timeout=0.5) is None
        # librdkafka may have got as far as to look for the controller.
        assert said in (
            [f"{address} ({words}Local: Timed out)"] for words in ("", "Failed while waiting for controller: ")
        )

    def test_a_configuration_that_cannot_be_done_says_what_to_use_instead(
        self, groups: KafkaGroupOffsets, tmp_path: Path
    ) -> None:
        store = tmp_path / "trust.jks"
        store.write_bytes(b"\xfe\xed\xfe\xed")
        settings = {**NOWHERE, "security.protocol": "SSL", "ssl.truststore.location": str(store)}
        with pytest.raises(GroupOffsetsError, match="convert it with `keytool"):
            groups.read(settings, "g")
        certificate = "-----BEGIN CERTIFICATE----- nonsense -----END CERTIFICATE-----"
        settings = {**NOWHERE, "security.protocol": "SSL", "ssl.truststore.certificates": certificate}
        for attempt in (
            lambda: groups.read(settings, "g"),
            lambda: groups.alter(settings, "g", {TopicPartition("t", 0): None}),
        ):
            with pytest.raises(GroupOffsetsError, match="not in PEM format"):
                attempt()

    @pytest.mark.parametrize("code", [KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR])
    def test_errors_that_pass_by_themselves_are_waited_for(
        self, groups: KafkaGroupOffsets, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        answers = [KafkaException(KafkaError(code)), KafkaException(KafkaError(code)), None]

        def wait(*_: object) -> None:
            answer = answers.pop(0)
            if answer is not None:
                raise answer

        monkeypatch.setattr(group_offsets, "wait", wait)
        groups.delete(NOWHERE, "g")
        assert answers == []


class TestClients:
    def test_one_configuration_has_one_client(self) -> None:
        clients = AdminClients()
        first = clients.get(NOWHERE)
        assert clients.get({**NOWHERE, "key.converter": "does not matter to Kafka"}) is first
        assert clients.get({**NOWHERE, "client.id": "other"}) is not first
        assert len(clients) == 2
        clients.close()
        assert len(clients) == 0

    def test_a_client_that_nobody_asks_for_is_dropped_and_made_again_when_needed(self) -> None:
        clients = AdminClients(idle=0.1)
        clients.get(NOWHERE)
        deadline = time.monotonic() + 5
        while len(clients):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        clients.get(NOWHERE)
        assert len(clients) == 1
        clients.close()
