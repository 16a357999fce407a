from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headgate.api import ConnectError
from headgate.model import ChainSpec, ConnectorType, PluginRef, PluginSpec, TargetState, TaskId, TaskSpec, TopicGroup
from headgate.tasks.control import Control, Stopped
from headgate.tasks.source import topics as module
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
    """Answers as it was told; None is success."""

    def __init__(self, describe: list[int | None], create: list[int | None]) -> None:
        self.answers = {"describe": describe, "create": create}
        self.asked: list[str] = []
        self.made: list[Any] = []

    def poll(self, _: float) -> None: ...

    def _answer(self, what: str, topic: str) -> dict[str, Future[None]]:
        self.asked.append(what)
        future: Future[None] = Future()
        code = self.answers[what].pop(0)
        if code is None:
            future.set_result(None)
        else:
            future.set_exception(KafkaException(KafkaError(code)))
        return {topic: future}

    def describe_topics(self, topics: Any, request_timeout: float) -> dict[str, Future[None]]:
        return self._answer("describe", "t")

    def create_topics(self, topics: list[Any], request_timeout: float) -> dict[str, Future[None]]:
        self.made += topics
        return self._answer("create", "t")


MISSING, EXISTS, AWAY = KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_ALREADY_EXISTS, KafkaError._TRANSPORT
FORBIDDEN, UNFIT = KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.INVALID_REPLICATION_FACTOR


def spec(*groups: TopicGroup) -> TaskSpec:
    converter = PluginSpec(PluginRef("a", "B"))
    task = TaskId("orders", 0)
    chain = ChainSpec(task, ConnectorType.SOURCE, converter, converter, converter)
    return TaskSpec(
        task, object, ConnectorType.SOURCE, "1", {}, {}, chain, TargetState.STARTED,
        admin={"bootstrap.servers": "nowhere:1", "request.timeout.ms": "1000"}, topic_groups=groups,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AGAIN_S", 0.0)


def ensure(describe: list[int | None], create: list[int | None]) -> Admin:
    admin = Admin(describe, create)
    Topics(spec(DEFAULT), Control(paused=False), lambda settings: admin).ensure("t")
    return admin


@pytest.mark.parametrize(
    ("describe", "create", "asked"),
    [
        ([None], [], ["describe"]),
        ([MISSING], [None], ["describe", "create"]),
        ([MISSING], [EXISTS], ["describe", "create"]),
        ([AWAY, AWAY, None], [], ["describe"] * 3),
        ([MISSING], [AWAY, None], ["describe", "create", "create"]),
    ],
)
def test_a_topic_is_created_if_it_is_missing(
    describe: list[int | None], create: list[int | None], asked: list[str]
) -> None:
    assert ensure(describe, create).asked == asked


def test_it_is_created_as_its_group_says() -> None:
    (made,) = ensure([MISSING], [None]).made
    assert (made.topic, made.num_partitions, made.replication_factor, made.config) == ("t", 3, 1, {"retention.ms": "7"})


@pytest.mark.parametrize(("describe", "create"), [([FORBIDDEN], []), ([MISSING], [FORBIDDEN]), ([MISSING], [UNFIT])])
def test_what_the_broker_refuses_fails_the_task(describe: list[int | None], create: list[int | None]) -> None:
    with pytest.raises(ConnectError) as caught:
        ensure(describe, create)
    assert str(caught.value) == (
        f"Task failed to create new topic {described('t', DEFAULT)}. Ensure that the task is authorized to create"
        " topics or that the topic exists and restart the task"
    )
    assert isinstance(caught.value.__cause__, KafkaException)


def test_without_topic_creation_nobody_is_asked() -> None:
    def refuse(_: object) -> None:
        raise AssertionError("no client is needed")

    Topics(spec(), Control(paused=False), refuse).ensure("t")


def _cancelled(control: Control) -> type[Exception]:
    control.cancel()
    return Stopped


def _failed(control: Control) -> type[Exception]:
    control.fail(ZeroDivisionError())
    return ZeroDivisionError


@pytest.mark.parametrize("end", [_cancelled, _failed])
def test_a_task_that_is_given_up_on_does_not_wait_for_the_broker(end: Callable[[Control], type[Exception]]) -> None:
    control = Control(paused=False)
    expected = end(control)
    with pytest.raises(expected):
        Topics(spec(DEFAULT), control, lambda settings: Admin([AWAY] * 9, [])).ensure("t")
