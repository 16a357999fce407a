"""The topics of a source are there before its first record is: by which group, in which words it fails, who waits."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from fakes import TopicAdmin
from source_fakes import Source

from headgate.api import ConnectError
from headgate.model import NewTopic, TopicGroup
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


def ensure(admin: Any, *groups: TopicGroup, control: Control | None = None) -> None:
    Topics(Source().spec(topic_groups=groups), control or Control(paused=False), admin).ensure("t")


class Quicker(TopicAdmin):
    """Somebody else makes the topic in between."""

    def exists(self, topic: str) -> bool:
        found = super().exists(topic)
        self.existing.add(topic)
        return found


@pytest.mark.parametrize(
    ("admin", "made", "told"),
    [(TopicAdmin("t"), 0, 0), (TopicAdmin(), 1, 1), (Quicker(), 0, 0)],
    ids=["there", "missing", "somebody was quicker"],
)
def test_a_topic_is_created_if_it_is_missing(
    admin: TopicAdmin, made: int, told: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="headgate"):
        ensure(admin, DEFAULT)
    assert admin.made == [NewTopic("t", 3, 1, {"retention.ms": "7"})] * made
    assert caplog.messages == [f"Created topic {described('t', DEFAULT)} by creation group default"] * told


def test_what_the_broker_refuses_fails_the_task() -> None:
    refusal = RuntimeError("not authorized")
    with pytest.raises(ConnectError) as caught:
        ensure(TopicAdmin(error=refusal), DEFAULT)
    assert str(caught.value) == (
        f"Task failed to create new topic {described('t', DEFAULT)}. Ensure that the task is authorized to create"
        " topics or that the topic exists and restart the task"
    )
    assert caught.value.__cause__ is refusal


def test_without_topic_creation_nobody_is_asked() -> None:
    admin = TopicAdmin()
    ensure(admin)
    assert admin.asked == []


# --- a broker that is away, and a task that does not want to wait for it ----------------------------------------------


class Away:
    """An admin whose broker does not answer: it gives up when the task does."""

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    def exists(self, topic: str) -> bool:
        self._end()
        raise TimeoutError("no broker answers")


def test_a_task_that_is_given_up_on_does_not_fail_for_a_broker_that_is_away() -> None:
    control = Control(paused=False)
    with pytest.raises(Stopped, match="given up on while the broker was asked about topic t: no broker answers"):
        ensure(Away(control.cancel), DEFAULT, control=control)


def test_a_task_fails_with_what_it_depends_on_and_not_with_what_came_of_that() -> None:
    control = Control(paused=False)
    with pytest.raises(ZeroDivisionError):
        ensure(Away(lambda: control.fail(ZeroDivisionError())), DEFAULT, control=control)


def test_a_stop_that_ended_the_wait_for_a_broker_comes_out_as_such() -> None:
    """`sit_out`, which the admin waits with, raises Stopped. A stop without a word of it is a failure as any other."""
    control = Control(paused=False)

    def stop() -> None:
        control.stop()
        raise Stopped("asked to stop")

    with pytest.raises(Stopped, match="asked to stop"):
        ensure(Away(stop), DEFAULT, control=control)
