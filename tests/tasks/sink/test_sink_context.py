"""What a sink task wishes: noted when it says so, and given to the loop once."""

from __future__ import annotations

import pytest
from fakes import TASK, Clock, Engine, QuickControl
from sink_bench import P0, P1, P2

from headgate.model import TopicPartition
from headgate.tasks.borrowed_session import BorrowedSession
from headgate.tasks.sink.context import RuntimeSinkContext


class Held:
    def __init__(self, *partitions: TopicPartition) -> None:
        self.partitions = set(partitions)
        session = BorrowedSession(Engine(), TASK, QuickControl(Clock()))
        self.context = RuntimeSinkContext({"file": "x"}, lambda: frozenset(self.partitions), session)


@pytest.fixture
def held() -> Held:
    return Held(P0, P1)


def test_a_task_sees_its_configuration_and_what_it_has(held: Held) -> None:
    assert held.context.config == {"file": "x"}
    assert held.context.reporter is None
    assert held.context.assignment == {P0, P1}
    held.partitions = {P2}
    assert held.context.assignment == {P2}


def test_wishes_are_given_once(held: Held) -> None:
    held.context.offset(P0, 3)
    held.context.offset(P0, 4)
    assert held.context.wished == {P0: 4}
    assert held.context.take_seeks() == {P0: 4}
    assert (held.context.wished, held.context.take_seeks()) == ({}, {})


def test_wishes_for_partitions_that_the_task_does_not_have_are_forgotten(held: Held) -> None:
    held.context.offset(P2, 3)
    assert held.context.wished == {}
    held.context.take_seeks()
    held.partitions.add(P2)
    assert held.context.wished == {}


def test_wishes_of_open_are_for_the_partitions_that_were_opened(held: Held) -> None:
    """Another partition is sought later, when the consumer can be told."""
    held.context.offset(P0, 1)
    held.context.offset(P1, 2)
    assert held.context.take_seeks([P1]) == {P1: 2}
    assert held.context.wished == {P0: 1}


@pytest.mark.parametrize(("given", "seconds"), [(None, 7.0), (250, 0.25), (0, 0.0)])
def test_a_timeout_is_for_the_next_pause_only(held: Held, given: int | None, seconds: float) -> None:
    if given is not None:
        held.context.timeout(given)
    assert held.context.take_timeout(7.0) == seconds
    assert held.context.take_timeout(7.0) == 7.0


def test_a_commit_is_asked_for_once(held: Held) -> None:
    assert not held.context.take_commit_request()
    held.context.request_commit()
    assert held.context.take_commit_request()
    assert not held.context.take_commit_request()


def test_partitions_are_paused_until_they_are_resumed(held: Held) -> None:
    held.context.pause(P0, P1)
    held.context.pause(P1)
    assert held.context.paused == {P0, P1}
    assert not held.context.take_resumed()
    held.context.resume(P1, P2)
    assert held.context.paused == {P0}
    assert held.context.take_resumed()
    assert not held.context.take_resumed()
