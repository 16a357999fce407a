"""Sinks that keep their offsets themselves: they win over the group's, and every record comes to them once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Native
from own_offsets_support import KeepingTask, SinkBench

from headgate.api import RetriableError, SinkRecord
from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker
from headgate.model import PluginRef, PluginSpec, StepSpec, TopicPartition
from headgate.spark.ranges import ResidentRanges
from headgate.tasks.sink import catch_up

pytestmark = pytest.mark.spark

Make = Callable[..., SinkBench]


@pytest.fixture
def make(worker: StandaloneWorker, broker: Broker, name: str) -> Iterator[Make]:
    made: list[SinkBench] = []

    def make(partitions: int = 1) -> SinkBench:
        made.append(SinkBench(worker, broker.bootstrap, name, partitions))
        return made[0]

    yield make
    for each in made:
        each.end()


# --- where reading begins ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", [None, 2, 9], ids=["no offset of the group", "the group behind", "the group ahead"])
def test_reading_begins_where_the_task_says(make: Make, group: int | None) -> None:
    bench = make()
    bench.send(10)
    if group is not None:
        bench.commit(group)
    bench.store.next[bench.wheres[0]] = 5
    bench.start()
    bench.check(first=5)


def test_the_group_hears_of_it_without_any_record(make: Make) -> None:
    bench = make()
    bench.send(10)
    bench.store.next[bench.wheres[0]] = 10
    bench.start()
    bench.await_(lambda: bench.committed() == {bench.wheres[0]: 10}, "the group's offset")


def test_an_offset_behind_the_end_of_the_topic_is_not_taken_for_another(make: Make) -> None:
    """Read from the beginning, records would look like old ones and be dropped."""
    bench = make()
    bench.send(10)
    (where,) = bench.store.next = dict.fromkeys(bench.wheres, 11)
    trace = bench.start().await_failure()
    assert f"wants to go on at offset 11 of {where}, but the topic ends at 10" in trace
    assert (bench.store.kept, bench.store.next) == ({}, {where: 11})


def test_an_offset_that_the_topic_no_longer_has_begins_at_what_it_has(make: Make) -> None:
    bench = make()
    bench.send(10)
    (where,) = bench.store.next = dict.fromkeys(bench.wheres, 2)
    for each in bench.admin.delete_records([Native(where.topic, where.partition, 4)]).values():
        each.result(20)
    bench.start(consumer={"auto.offset.reset": "latest"})
    bench.check(first=4)


# --- going back -------------------------------------------------------------------------------------------------------


def sometimes() -> Callable[[KeepingTask, Mapping[TopicPartition, int]], None]:
    """Refuses every other commit of a task that has something in it."""
    refused: set[KeepingTask] = set()

    def refuse(task: KeepingTask, _: Mapping[TopicPartition, int]) -> None:
        if not any(task.waiting.values()):
            return
        if task not in refused:
            refused.add(task)
            raise OSError("the warehouse is closed")
        refused.remove(task)

    return refuse


def test_a_task_that_refuses_to_commit_gets_all_again_and_nothing_twice(make: Make) -> None:
    bench = make(2)
    bench.store.on_commit = sometimes()
    bench.start(consumer={"max.poll.records": "20"})
    for _ in range(4):
        bench.send(25)
        bench.await_(bench.store.all_kept, "some records")
    bench.check()


def going_back(every: int) -> Callable[[KeepingTask, Sequence[SinkRecord]], None]:
    """Throws away what waits and asks for it again, at every so manyth put."""
    numbers = itertools.count(1)

    def back(task: KeepingTask, records: Sequence[SinkRecord]) -> None:
        if next(numbers) % every == 0:
            for where in task.waiting:
                task.begin(where)
                task.context.offset(where, task.store.next.get(where, 0))
            records[:] = []  # type: ignore[index]

    return back


def test_what_was_fetched_ahead_is_dropped_when_the_task_goes_elsewhere(make: Make) -> None:
    bench = make(2)
    bench.send(100)
    bench.store.on_put = going_back(4)
    bench.start(consumer={"max.poll.records": "7"})
    bench.check()


@pytest.mark.parametrize("how", ["refuses", "goes elsewhere"])
def test_the_same_holds_far_behind(make: Make, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "FAR_BEHIND", 1000)
    monkeypatch.setattr(ResidentRanges, "most", 1000)
    bench = make(2)
    bench.send(2500)
    if how == "refuses":
        bench.store.on_commit = sometimes()
    else:
        bench.store.on_put = going_back(4)
    bench.start(flush_ms=20, consumer={"max.poll.records": "1000"})
    bench.check()


# --- rebalances -------------------------------------------------------------------------------------------------------

EAGER, COOPERATIVE = "range", "cooperative-sticky"
both = pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE])


@both
def test_partitions_that_move_go_on_where_the_sink_is(make: Make, strategy: str) -> None:
    bench = make(4)
    settings = {"partition.assignment.strategy": strategy, "max.poll.records": "50"}
    bench.store.on_commit = sometimes()
    first = bench.start(consumer=settings)
    bench.send(100)
    second = bench.start(1, consumer=settings)
    for _ in range(3):
        bench.send(100)
        bench.await_(lambda: len(bench.store.opened) >= 2, "both have partitions")
    bench.check()
    first.stop()
    bench.send(100)
    second.await_event("running")
    bench.check()


def held_up(bench: SinkBench, gate: Path, how: str) -> list[StepSpec]:
    """A batch does not get to its end while the gate is there."""
    if how == "a transform":
        plugin = PluginSpec(PluginRef("faulty", "PatientTransform"), {"while": str(gate)})
        return [StepSpec("patient", plugin)]

    def wait(_: KeepingTask, records: Sequence[SinkRecord]) -> None:
        if gate.exists() and any(record.value == "later" for record in records):
            raise RetriableError("not now")

    bench.store.on_put = wait
    return []


@both
@pytest.mark.parametrize("how", ["a transform", "the task"])
def test_a_batch_that_is_held_up_when_partitions_go(make: Make, strategy: str, how: str, tmp_path: Path) -> None:
    bench = make(2)
    gate = tmp_path / "gate"
    gate.touch()
    steps = held_up(bench, gate, how)
    producer = bench._producer
    for where in bench.wheres:
        for value in ("0", "1", "later", "3"):
            producer.produce(bench.topic, value.encode(), partition=where.partition)
    assert producer.flush(30) == 0
    settings = {"partition.assignment.strategy": strategy}
    bench.start(0, steps, consumer=settings)
    bench.await_(lambda: bench.store.opened, "the first has partitions")
    bench.start(1, steps, consumer=settings)
    bench.await_(lambda: len(bench.store.opened) >= 2 + (strategy == EAGER), "the second has one of them")
    gate.unlink()
    expected = {where: ["0", "1", "later", "3"] for where in bench.wheres}
    bench.await_(lambda: bench.store.all_kept() >= 8, "all records")
    bench.await_(lambda: bench.committed() == dict.fromkeys(bench.wheres, 4), "the group's offsets")
    assert bench.store.kept == expected


# --- pausing and giving up --------------------------------------------------------------------------------------------


def test_a_pause_changes_nothing(make: Make) -> None:
    bench = make(2)
    bench.store.on_commit = sometimes()
    running = bench.start(consumer={"max.poll.records": "7"})
    for number in range(1, 4):
        bench.send(20)
        running.thread.pause()
        running.await_event("paused", number)
        bench.send(20)
        running.thread.resume()
        running.await_event("running", number + 1)
    bench.check()


def test_a_task_that_was_given_up_on_writes_nothing_any_more(make: Make) -> None:
    bench = make()
    bench.send(5)
    busy, go_on = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        busy.set()
        assert go_on.wait(30)

    bench.store.on_put = hang
    impatient = {"session.timeout.ms": "6000", "max.poll.interval.ms": "6000"}
    running = bench.start(flush_ms=1, consumer=impatient)
    assert busy.wait(60)
    before = bench.store.commits
    running.thread.cancel()
    ended = threading.Event()
    running.thread.when_ended(ended.set)
    go_on.set()
    assert ended.wait(30)
    assert bench.store.commits == before
    bench.store.on_put = lambda *_: None
    bench.start(1)
    bench.check()
