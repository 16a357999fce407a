"""Partitions: what needs no broker. The rest of it is in end_to_end/test_own_offsets.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.api import ConnectError
from headgate.kafka import consumer as partitions
from headgate.kafka.consumer import Partitions, _Start
from headgate.model import TopicPartition

WHERE = TopicPartition("t", 0)


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Partitions]:
    """With a broker that is never asked."""
    monkeypatch.setattr(partitions, "_ASK_AGAIN_S", 0)
    config = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}
    made = Partitions(config, lambda _: {}, lambda _: None, lambda _: None)
    yield made
    made.close()


@pytest.mark.parametrize(
    "code",
    [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART],
)
def test_a_broker_that_is_not_yet_the_leader_is_asked_again(nobody: Partitions, code: int) -> None:
    """As for a topic that was made a moment ago."""
    left = [3]

    def ask() -> str:
        left[0] -= 1
        if left[0]:
            raise KafkaException(KafkaError(code))
        return "answer"

    assert nobody._patiently(ask) == "answer"


@pytest.mark.parametrize(
    ("code", "tries"), [(KafkaError.TOPIC_AUTHORIZATION_FAILED, 1), (KafkaError.NOT_LEADER_FOR_PARTITION, 6)]
)
def test_what_does_not_pass_is_raised(nobody: Partitions, code: int, tries: int) -> None:
    asked: list[None] = []

    def ask() -> None:
        asked.append(None)
        raise KafkaException(KafkaError(code))

    with pytest.raises(KafkaException):
        nobody._patiently(ask)
    assert len(asked) == tries


@pytest.mark.parametrize(("wanted", "begins"), [(0, 3), (3, 3), (7, 7), (9, 9)])
def test_an_offset_of_the_task_is_taken_as_far_as_the_topic_has_it(wanted: int, begins: int) -> None:
    assert _Start(5, True, 3, 9).checked(WHERE, wanted) == begins


def test_an_offset_behind_the_end_is_an_error() -> None:
    with pytest.raises(ConnectError, match=r"offset 10 of t-0, but the topic ends at 9: .* alter or reset its offsets"):
        _Start(5, True, 3, 9).checked(WHERE, 10)
