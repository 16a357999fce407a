from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from headgate.tasks.patience import sit_out

from headgate.api import ConnectError
from headgate.kafka.asking import Asker
from headgate.kafka.topics import TopicAdmin, TopicRefused
from headgate.model import (
    ChainSpec,
    ConnectorType,
    NewTopic,
    PluginRef,
    PluginSpec,
    TargetState,
    TaskId,
    TaskSpec,
    TopicGroup,
)
from headgate.tasks.control import Control, Stopped
from headgate.tasks.source.topics import Topics, described, group_of

DEFAULT = TopicGroup("default", ".*", "", 1, 3, {"retention.ms": "7"})


def group(name: str, include: str, exclude: str = "") -> TopicGroup:
    return TopicGroup(name, include, exclude, 1, 1)


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("orders", "a"),
        ("orders-1", "b"),
        ("orders-no", "default"),
        ("my-orders", "default"),
        ("other", "b"),
    ],
)
def test_the_first_group_that_matches_the_whole_name(topic: str, expected: str) -> None:
    groups = (group("empty", ""), group("a", "orders"), group("b", "orders.*|other", "orders-no|x"), DEFAULT)
    assert group_of(topic, groups).name == expected


@pytest.mark.parametrize(
    ("topic_group", "shown"),
    [
        (
            DEFAULT,
            "(name=t, numPartitions=3, replicationFactor=1, replicasAssignments=null, configs={retention.ms=7})",
        ),
        (
            TopicGroup("g", "", "", -1, -1),
            "(name=t, numPartitions=default, replicationFactor=default, replicasAssignments=null, configs={})",
        ),
    ],
)
def test_a_topic_as_messages_show_it(topic_group: TopicGroup, shown: str) -> None:
    assert described("t", topic_group) == shown


class Admin:
    """Stands in for TopicAdmin."""

    def __init__(self, exists: bool, missing: bool = True, error: Exception | None = None) -> None:
        self._exists, self._missing, self._error = exists, missing, error
        self.made: list[NewTopic] = []

    def exists(self, topic: str) -> bool:
        return self._exists

    def create(self, *topics: NewTopic) -> list[str]:
        self.made += topics
        if self._error is not None:
            raise self._error
        return [each.name for each in topics if self._missing]


def spec(*groups: TopicGroup) -> TaskSpec:
    converter = PluginSpec(PluginRef("a", "B"))
    task = TaskId("orders", 0)
    chain = ChainSpec(task, ConnectorType.SOURCE, converter, converter, converter)
    return TaskSpec(
        task, object, ConnectorType.SOURCE, "1", {}, {}, chain, TargetState.STARTED, topic_groups=groups
    )  # fmt: skip


def ensure(admin: Any, *groups: TopicGroup) -> None:
    Topics(spec(*groups), admin).ensure("t")


@pytest.mark.parametrize(
    ("admin", "made", "told"),
    [(Admin(True), 0, 0), (Admin(False), 1, 1), (Admin(False, missing=False), 1, 0)],
    ids=["there", "missing", "somebody was quicker"],
)
def test_a_topic_is_created_if_it_is_missing(
    admin: Admin, made: int, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="headgate"):
        ensure(admin, DEFAULT)
    assert admin.made == [NewTopic("t", 3, 1, {"retention.ms": "7"})] * made
    assert caplog.messages == [f"Created topic {described('t', DEFAULT)} by creation group default"] * told


def test_what_the_broker_refuses_fails_the_task() -> None:
    refusal = TopicRefused("t", KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(ConnectError) as caught:
        ensure(Admin(False, error=refusal), DEFAULT)
    assert str(caught.value) == (
        f"Task failed to create new topic {described('t', DEFAULT)}. Ensure that the task is authorized to create"
        " topics or that the topic exists and restart the task"
    )
    assert caught.value.__cause__ is refusal


def test_without_topic_creation_nobody_is_asked() -> None:
    ensure(None)


# --- a broker that is away, and a task that does not want to wait for it ----------------------------------------------


class Away:
    """An admin client without a broker."""

    def poll(self, _: float) -> None: ...

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[None]]:
        future: Future[None] = Future()
        future.set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))
        return {"t": future}


def _cancelled(control: Control) -> type[Exception]:
    control.cancel()
    return Stopped


def _stopped(control: Control) -> type[Exception]:
    control.stop()
    return Stopped


def _failed(control: Control) -> type[Exception]:
    control.fail(ZeroDivisionError())
    return ZeroDivisionError


@pytest.mark.parametrize("end", [_cancelled, _stopped, _failed])
def test_a_task_that_is_given_up_on_does_not_wait_for_the_broker(end: Callable[[Control], type[Exception]]) -> None:
    control = Control(paused=False)
    expected = end(control)
    client: Any = Away()
    asker = Asker(lambda: not control.cancelled, partial(sit_out, control=control))
    with pytest.raises(expected):
        ensure(TopicAdmin(lambda: client, asker), DEFAULT)
