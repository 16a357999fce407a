"""Commits: what is committed, and where a sink task goes back to when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from headgate.api import SinkRecord, SinkTask
from headgate.metrics import SinkMetrics
from headgate.model import (
    ChainSpec,
    ConnectorType,
    PluginRef,
    PluginSpec,
    TargetState,
    TaskId,
    TaskSpec,
    TopicPartition,
)
from headgate.tasks.sink.commits import Commits
from headgate.tasks.sink.context import RuntimeSinkContext

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Positions:
    """The offsets of a Partitions, without a consumer."""

    def __init__(self, positions: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, int]) -> None:
        self.positions = dict(positions)
        self.safe = dict(committed)
        self.committed = dict(committed)
        self.commits: list[dict[TopicPartition, int]] = []
        self.refusing = False

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        return frozenset(self.positions)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        if self.refusing:
            raise OSError("no broker")
        self.commits.append(dict(offsets))
        self.committed |= offsets

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.positions |= offsets
        self.safe |= offsets


class Task(SinkTask):
    answer: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]] = staticmethod(lambda given: given)
    asked = 0

    def put(self, records: Sequence[SinkRecord]) -> None: ...

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self.asked += 1
        return self.answer(offsets)


class Reporter:
    """Says how often the dead letters have not arrived yet."""

    late = 0

    def flush(self, _: float) -> bool:
        self.late -= 1
        return self.late < 0


class Bench:
    def __init__(
        self, positions: Mapping[TopicPartition, int], committed: Mapping[TopicPartition, int] | None = None
    ) -> None:
        partitions: Any = Positions(positions, committed or dict.fromkeys(positions, 0))
        self.partitions = partitions
        self.task, self.reporter, self.metrics = Task(), Reporter(), SinkMetrics()
        self.context = RuntimeSinkContext({}, self.partitions)
        self.task.context = self.context
        reporter: Any = self.reporter
        self.commits = Commits(_spec(), self.task, self.context, self.partitions, reporter, self.metrics)

    def refuse(self, _: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        raise OSError("the warehouse is closed")


def _spec() -> TaskSpec:
    name, plugin = TaskId("sink", 0), PluginSpec(PluginRef("nobody", "asks"))
    return TaskSpec(
        id=name,
        task_class=Task,
        type=ConnectorType.SINK,
        version=None,
        config={},
        connector_config={},
        chain=ChainSpec(name, ConnectorType.SINK, plugin, plugin, plugin, (), {}),
        target_state=TargetState.STARTED,
    )


def test_what_was_put_is_committed_once() -> None:
    bench = Bench({P0: 5, P1: 0})
    assert bench.commits.commit()
    assert bench.commits.commit()
    assert bench.partitions.commits == [{P0: 5}]
    assert bench.metrics.commit_skips == 1


@pytest.mark.parametrize(
    ("answer", "expected", "complaint"),
    [
        ({}, [], False),
        ({P0: 3}, [{P0: 3}], False),
        ({P0: 6}, [], True),
        ({TopicPartition("t", 9): 1, P0: 5}, [{P0: 5}], True),
    ],
)
def test_the_task_decides_but_only_about_what_it_was_given(
    answer: dict[TopicPartition, int],
    expected: list[dict[TopicPartition, int]],
    complaint: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench({P0: 5})
    bench.task.answer = lambda _: answer
    assert bench.commits.commit()
    assert bench.partitions.commits == expected
    assert ("which are ignored" in caplog.text) is complaint


def test_a_task_that_refuses_gets_all_again_since_it_let_offsets_pass() -> None:
    bench = Bench({P0: 5, P1: 7}, {P0: 2, P1: 7})
    bench.task.answer = bench.refuse
    assert not bench.commits.commit()
    assert bench.partitions.positions == {P0: 2, P1: 7}
    assert bench.partitions.commits == []


def test_what_it_let_pass_counts_also_when_kafka_did_not_take_it() -> None:
    """The sink has it: going back behind that would double it there."""
    bench = Bench({P0: 5})
    bench.partitions.refusing = True
    assert bench.commits.commit()
    bench.partitions.positions[P0] = 9
    bench.task.answer = bench.refuse
    assert not bench.commits.commit()
    assert bench.partitions.positions == {P0: 5}
    bench.partitions.refusing = False
    bench.task.answer = lambda given: given
    assert bench.commits.commit()
    assert bench.partitions.commits == [{P0: 5}]


def test_where_the_task_says_that_it_is_wins_when_it_refuses() -> None:
    bench = Bench({P0: 5, P1: 7}, {P0: 2, P1: 3})

    def refuse(given: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        bench.context.offset(P0, 4)
        return bench.refuse(given)

    bench.task.answer = refuse
    assert not bench.commits.commit()
    assert bench.partitions.positions == bench.partitions.safe == {P0: 4, P1: 3}
    assert bench.context.wished == {}


def test_partitions_that_go_are_not_gone_back_to() -> None:
    bench = Bench({P0: 5, P1: 7}, {P0: 2, P1: 3})
    bench.task.answer = bench.refuse
    assert not bench.commits.commit(closing=[P0])
    assert bench.partitions.positions == {P0: 5, P1: 3}


def test_what_the_task_wants_to_get_again_is_not_committed() -> None:
    bench = Bench({P0: 5, P1: 7})
    bench.context.offset(P0, 3)
    assert bench.commits.commit()
    assert bench.partitions.commits == [{P0: 3, P1: 7}]


def test_the_group_hears_of_an_offset_that_the_task_had_already() -> None:
    """So that users see it, and a reset concerns this partition too."""
    bench = Bench({P0: 5}, {P0: 0})
    bench.partitions.safe[P0] = 5
    assert bench.commits.commit()
    assert bench.partitions.commits == [{P0: 5}]


def test_a_task_is_not_asked_before_its_dead_letters_have_arrived() -> None:
    """What it writes to its own system may be final, and the letter would be missing."""
    bench = Bench({P0: 5})
    bench.reporter.late = 1
    assert bench.commits.commit()
    assert (bench.task.asked, bench.partitions.commits) == (0, [])
    assert bench.commits.commit()
    assert (bench.task.asked, bench.partitions.commits) == (1, [{P0: 5}])


def test_letters_that_the_task_sends_when_it_is_asked_are_waited_for_too() -> None:
    bench = Bench({P0: 5})

    def report(given: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        bench.reporter.late = 1
        return given

    bench.task.answer = report
    assert bench.commits.commit()
    assert bench.partitions.commits == []
    bench.task.answer = lambda given: given
    assert bench.commits.commit()
    assert bench.partitions.commits == [{P0: 5}]


def test_nothing_is_asked_of_a_task_without_partitions() -> None:
    bench = Bench({})
    assert bench.commits.commit()
    assert bench.task.asked == 0


# --- the context ------------------------------------------------------------------------------------------------------


def test_wishes_for_partitions_that_the_task_does_not_have_are_forgotten() -> None:
    bench = Bench({P0: 5})
    bench.context.offset(P1, 3)
    assert bench.context.wished == {}
    bench.context.take_seeks()
    bench.partitions.positions[P1] = 0
    assert bench.context.wished == {}


def test_wishes_of_open_are_for_the_partitions_that_were_opened() -> None:
    """Another partition is sought later, when the consumer can be told."""
    bench = Bench({P0: 5, P1: 7})
    bench.context.offset(P0, 1)
    bench.context.offset(P1, 2)
    assert bench.context.take_seeks([P1]) == {P1: 2}
    assert bench.context.wished == {P0: 1}


def test_a_wish_that_is_granted_leaves_no_way_back_behind_it() -> None:
    bench = Bench({P0: 9}, {P0: 8})
    bench.context.offset(P0, 4)
    bench.context.apply()
    assert bench.partitions.positions == bench.partitions.safe == {P0: 4}
