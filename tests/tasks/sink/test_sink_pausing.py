"""A sink task is paused, stopped, given up on: at every step of what it may be doing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sink_bench import P0, P1, SinkBench, values

from headgate.api import RetriableError
from headgate.tasks.control import Stopped
from headgate.tasks.sink import catch_up
from headgate.tasks.sink.state import SinkStep

Act = Callable[[], object]
Scene = Callable[[SinkBench, Act], None]
"""Sees to it that something happens at a certain step."""


def nothing_under_way(bench: SinkBench, act: Act) -> None:
    bench.consumer.within_fetch.insert(0, act)


def engine_works(bench: SinkBench, act: Act) -> None:
    bench.engine.busy = True

    def soon() -> None:
        assert bench.loop.state.step is SinkStep.WORKING
        act()
        bench.engine.run_all()
        bench.engine.busy = False

    bench.then(soon)


def putting(bench: SinkBench, act: Act) -> None:
    bench.on_put = [lambda _: act()]


def committing(bench: SinkBench, act: Act) -> None:
    bench.on_put = [lambda _: bench.context.request_commit()]

    def asked(_: Any) -> None:
        act()

    bench.on_pre_commit = [asked]


def waiting_to_retry(bench: SinkBench, act: Act) -> None:
    bench.on_put = [RetriableError("busy")]

    def now() -> None:
        assert bench.loop.state.step is SinkStep.WAITING
        act()

    bench.control.while_waiting = [now]


def catching_up(bench: SinkBench, act: Act) -> None:
    bench.consumer.known_lag = catch_up.FAR_BEHIND

    def now(_: Any) -> None:
        assert bench.engine.reader is not None
        bench.consumer.known_lag = None
        act()

    bench.on_put = [None, now]


SCENES = [nothing_under_way, engine_works, putting, committing, waiting_to_retry, catching_up]


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """What executors read at once."""
    monkeypatch.setattr(catch_up, "sizes", lambda *_: (4, 1))


@pytest.fixture
def bench() -> SinkBench:
    made = SinkBench({P0: 20, P1: 5}, most=10)
    made.consumer.committed = {P1: 0}
    return made


@pytest.mark.parametrize("scene", SCENES)
def test_a_task_that_is_paused_has_put_and_committed_what_it_had_and_loses_nothing(
    bench: SinkBench, scene: Scene
) -> None:
    seen: list[bool] = []

    def look() -> None:
        done = bench.loop.state
        seen.append(
            bench.consumer.all_paused
            and done.step is SinkStep.NONE
            and bench.listener.events[-1] == "paused"
            and all(bench.consumer.committed.get(where, 0) == offset for where, offset in done.positions.items())
        )

    def paused() -> None:
        """It waits, takes part in its group, and waits."""
        bench.consumer.within_keep_alive = [look, look, lambda: bench.control.pause(False)]

    bench.listener.when_paused = paused
    scene(bench, lambda: bench.control.pause(True))
    bench.run()
    assert seen == [True, True]
    assert bench.listener.events == ["running", "paused", "running"]
    assert sorted(bench.put) == sorted(values(P0, 0, 20) + values(P1, 0, 5))
    assert bench.consumer.committed == {P0: 20, P1: 5}
    assert bench.of("open", "close") == [("open", [P0, P1]), ("close", [P0, P1])]
    assert bench.metrics.pause_ratio > 0


@pytest.mark.parametrize("scene", SCENES)
def test_a_task_that_is_stopped_commits_exactly_what_it_has_put(bench: SinkBench, scene: Scene) -> None:
    scene(bench, bench.control.stop)
    if scene is waiting_to_retry:
        with pytest.raises(Stopped, match="asked to stop before something was to be tried again"):
            bench.run()
    else:
        bench.run()
    put = {where: len([each for each in bench.put if each.startswith(f"{where.partition}:")]) for where in (P0, P1)}
    assert {where: bench.consumer.committed.get(where, 0) for where in (P0, P1)} == put
    assert len(set(bench.put)) == len(bench.put)
    assert bench.journal[-2:] == [("stop",), ("leave group",)]
    if bench.of("open"):
        assert bench.journal[-3] == ("close", [P0, P1])
    assert bench.listener.events == ["running"]


@pytest.mark.parametrize("scene", SCENES)
def test_a_task_that_is_given_up_on_writes_nothing_any_more(bench: SinkBench, scene: Scene) -> None:
    written: list[int] = []

    def cancel() -> None:
        written.append(len(bench.of("commit")))
        bench.control.cancel()

    scene(bench, cancel)
    if scene is waiting_to_retry:
        with pytest.raises(Stopped):
            bench.run()
    else:
        bench.run()
    if scene is not committing:  # Kafka was about to be asked
        assert len(bench.of("commit")) == written[0]
    # Somebody waits for its partitions: it leaves first.
    assert bench.journal[-2:] == [("abandon group",), ("stop",)]
    assert bench.of("close") == []


def test_what_is_under_way_is_put_before_a_task_stops(bench: SinkBench) -> None:
    bench.then(bench.control.stop)  # and a second batch is fetched in the same call
    bench.run()
    assert bench.puts == [values(P0, 0, 10), values(P0, 10, 20)]
    assert bench.consumer.committed == {P0: 20, P1: 0}


def test_what_is_under_way_is_not_put_when_a_task_is_given_up_on(bench: SinkBench) -> None:
    """But for the batch of the turn in which it hears of that."""
    bench.then(bench.control.cancel)
    bench.run()
    assert bench.puts == [values(P0, 0, 10)]
    assert bench.of("commit") == []


def test_a_paused_task_that_is_stopped_does_not_run_again(bench: SinkBench) -> None:
    bench.on_put = [lambda _: bench.control.pause(True)]
    bench.consumer.within_keep_alive = [lambda: None, bench.control.stop]
    bench.run()
    assert bench.listener.events == ["running", "paused"]
    assert bench.put == values(P0, 0, 20)
    assert bench.consumer.committed == {P0: 20, P1: 0}


def test_a_paused_task_that_fails_says_so(bench: SinkBench) -> None:
    bench.on_put = [lambda _: bench.control.pause(True)]
    bench.consumer.within_keep_alive = [lambda: bench.control.fail(ZeroDivisionError())]
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.journal[-3:] == [("close", [P0, P1]), ("stop",), ("leave group",)]


def test_partitions_come_and_go_while_a_task_is_paused(bench: SinkBench) -> None:
    bench.consumer.within_fetch = [lambda: bench.consumer.assign(P0)]
    bench.on_put = [lambda _: bench.control.pause(True)]
    bench.consumer.within_keep_alive = [
        lambda: bench.consumer.revoke(P0),
        lambda: bench.consumer.assign(P1),
        lambda: bench.control.pause(False),
    ]
    bench.run()
    assert bench.of("open", "commit", "put", "close") == [
        ("open", [P0]),
        ("put", values(P0, 0, 10)),
        ("put", values(P0, 10, 20)),
        ("commit", {P0: 20}),
        ("close", [P0]),
        ("open", [P1]),
        ("put", values(P1, 0, 5)),
        ("commit", {P1: 5}),
        ("close", [P1]),
    ]


def test_a_pause_while_partitions_go_before_a_retry_is_kept(bench: SinkBench) -> None:
    """What is under way is dropped, the task begins anew, and then it is paused."""
    bench.on_put = [lambda _: bench.control.pause(True), RetriableError("busy")]
    bench.consumer.within_keep_alive = [lambda: bench.consumer.revoke(P0)]
    bench.listener.when_paused = lambda: bench.consumer.within_keep_alive.append(lambda: bench.control.pause(False))
    bench.run()
    assert bench.listener.events == ["running", "paused", "running"]
    assert bench.of("open", "close", "put")[:6] == [
        ("open", [P0, P1]),
        ("put", values(P0, 0, 10)),
        ("close", [P0]),
        ("close", [P1]),
        ("open", [P1]),
        ("put", values(P1, 0, 5)),
    ]
    assert bench.consumer.committed == {P0: 10, P1: 5}


def test_what_the_task_has_paused_itself_stays_so_after_a_pause(bench: SinkBench) -> None:
    def pause(_: Any) -> None:
        bench.context.pause(P1)
        bench.control.pause(True)

    bench.on_put = [pause]
    bench.consumer.within_keep_alive = [lambda: bench.control.pause(False)]
    bench.run()
    assert bench.put == values(P0, 0, 20)
