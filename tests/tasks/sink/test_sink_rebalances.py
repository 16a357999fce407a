"""Partitions that come and go while a sink task does something else: in every step of a batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes import errors_config
from sink_bench import P0, P1, SinkBench, values

from headgate.api import RetriableError
from headgate.model import PluginRef, PluginSpec, StepSpec
from headgate.tasks.sink.state import SinkStep

BUSY = RetriableError("busy")


def gone(bench: SinkBench) -> None:
    """Nothing of P0 was done after it went."""
    after = bench.journal[bench.journal.index(("close", [P0])) + 1 :]
    assert not [value for entry in after if entry[0] == "put" for value in entry[1] if value.startswith("0:")]
    assert not [entry for entry in after if entry[0] == "commit" and P0 in entry[1]]


# --- partitions come --------------------------------------------------------------------------------------------------


def test_partitions_that_come_later_are_opened_then() -> None:
    bench = SinkBench({P0: 5, P1: 5})
    bench.consumer.within_fetch = [lambda: bench.consumer.assign(P0), lambda: bench.consumer.assign(P1)]
    bench.run()
    assert bench.of("open", "put", "close") == [
        ("open", [P0]),
        ("open", [P1]),
        ("put", values(P0, 0, 5)),
        ("put", values(P1, 0, 5)),
        ("close", [P0, P1]),
    ]


def test_what_the_group_has_committed_does_not_come_again() -> None:
    bench = SinkBench({P0: 5})
    bench.consumer.committed = {P0: 3}
    bench.run()
    assert bench.put == values(P0, 3, 5)


def test_the_task_knows_what_it_has_when_it_opens() -> None:
    bench = SinkBench({P0: 5, P1: 5})
    seen: list[frozenset[Any]] = []
    bench.on_open = [lambda _: seen.append(bench.context.assignment)]
    bench.on_close = [lambda _: seen.append(bench.context.assignment)]
    bench.run()
    assert seen == [{P0, P1}, {P0, P1}]


def test_a_failed_open_fails_the_task_which_is_not_asked_about_it_again() -> None:
    bench = SinkBench({P0: 5, P1: 5})
    bench.consumer.within_fetch = [lambda: bench.consumer.assign(P0), lambda: bench.consumer.assign(P1)]
    bench.on_open = [None, ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.journal[2:] == [
        ("open", [P1]),
        ("pre_commit", {P0: 0}),
        ("close", [P0]),
        ("stop",),
        ("leave group",),
    ]


# --- partitions go ----------------------------------------------------------------------------------------------------


def test_nothing_under_way() -> None:
    bench = SinkBench({P0: 5, P1: 5})
    bench.then(lambda: None, lambda: bench.consumer.revoke(P0))
    bench.run()
    assert bench.journal[2:] == [
        ("put", values(P0, 0, 5) + values(P1, 0, 5)),
        ("pre_commit", {P0: 5, P1: 5}),
        ("commit", {P0: 5, P1: 5}),
        ("close", [P0]),
        ("pre_commit", {P1: 5}),
        ("close", [P1]),
        ("stop",),
        ("leave group",),
    ]
    gone(bench)


@pytest.mark.parametrize("busy", [False, True], ids=["the engine is done", "the engine works"])
def test_what_the_engine_has_is_put_before_partitions_go(busy: bool) -> None:
    bench = SinkBench({P0: 20, P1: 30}, most=10)
    bench.engine.busy = busy

    def revoke() -> None:
        assert bench.loop.state.step is SinkStep.WORKING
        bench.engine.run_all()
        bench.engine.busy = False
        bench.consumer.revoke(P0)

    bench.then(revoke)
    bench.run()
    assert bench.of("open", "put", "commit", "close")[:4] == [
        ("open", [P0, P1]),
        ("put", values(P0, 0, 10)),
        ("commit", {P0: 10}),
        ("close", [P0]),
    ]
    assert bench.put == values(P0, 0, 10) + values(P1, 0, 30)
    assert bench.of("open") == [("open", [P0, P1])]  # what was put was put wholly
    gone(bench)


def test_what_is_fetched_in_the_call_in_which_partitions_go_is_not_put_twice() -> None:
    bench = SinkBench({P0: 5, P1: 30}, most=10)
    bench.then(lambda: None, lambda: bench.consumer.revoke(P0))
    bench.run()
    assert bench.put == values(P0, 0, 5) + values(P1, 0, 30)
    assert bench.consumer.committed == {P0: 5, P1: 30}


def test_partitions_that_go_and_come_back_begin_where_the_group_is() -> None:
    bench = SinkBench({P0: 25}, most=10)
    bench.on_pre_commit = [lambda _: {P0: 4}]
    bench.then(lambda: bench.consumer.revoke(P0), lambda: bench.consumer.assign(P0))
    bench.run()
    assert bench.put == values(P0, 0, 10) + values(P0, 4, 25)
    assert bench.of("open", "close") == [("open", [P0]), ("close", [P0])] * 2


def test_a_task_that_fails_while_partitions_go_still_gives_them_up_in_order() -> None:
    bench = SinkBench({P0: 20, P1: 5}, most=10)
    bench.on_put = [ZeroDivisionError()]
    bench.then(lambda: bench.consumer.revoke(P0))
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.journal[2:] == [
        ("put in vain", values(P0, 0, 10)),
        ("pre_commit", {P0: 0, P1: 0}),
        ("close", [P0]),
        ("pre_commit", {P1: 0}),
        ("close", [P1]),
        ("stop",),
        ("leave group",),
    ]


def test_a_close_that_fails_fails_the_task_and_the_partition_is_gone_all_the_same() -> None:
    bench = SinkBench({P0: 5, P1: 5})
    bench.on_close = [ZeroDivisionError()]
    bench.then(lambda: bench.consumer.revoke(P0))
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.of("close") == [("close", [P0]), ("close", [P1])]


# --- partitions go while a put is tried again -------------------------------------------------------------------------


def retried(own: Callable[[SinkBench], None] = lambda _: None) -> SinkBench:
    """P0 goes while a put is to be tried again that had records of both partitions."""
    bench = SinkBench({P0: 4, P1: 14}, most=6)
    bench.on_put = [BUSY]
    bench.on_open = [None, lambda _: own(bench)]
    bench.consumer.within_keep_alive = [lambda: bench.consumer.revoke(P0)]
    bench.run()
    return bench


def test_during_a_retry_whoever_has_the_partition_next_shall_try() -> None:
    bench = retried()
    assert bench.of("open", "put in vain", "put", "pre_commit", "close") == [
        ("open", [P0, P1]),
        ("put in vain", values(P0, 0, 4) + values(P1, 0, 2)),
        ("pre_commit", {P0: 0, P1: 0}),
        ("close", [P0]),
        # The task may have taken half of it. It learns by close and open that it comes again.
        ("close", [P1]),
        ("open", [P1]),
        ("put", values(P1, 0, 6)),
        ("put", values(P1, 6, 12)),
        ("put", values(P1, 12, 14)),
        ("pre_commit", {P1: 14}),
        ("close", [P1]),
    ]
    assert bench.metrics.active == 0
    gone(bench)


def test_half_put_records_come_again_from_where_the_task_says() -> None:
    bench = retried(lambda bench: bench.context.offset(P1, 1))
    assert bench.put == values(P1, 1, 14)


def test_half_put_records_come_again_from_what_the_task_let_pass_last() -> None:
    """Though more was put since, and Kafka knows less."""
    bench = SinkBench({P0: 3, P1: 20}, most=4)
    bench.on_put = [lambda _: bench.context.request_commit(), None, None, BUSY]
    bench.consumer.commit_errors = [OSError("no broker")]
    bench.consumer.within_keep_alive = [lambda: bench.consumer.lose(P0)]
    bench.run()
    # two batches were put and let pass, a third only put, the fourth was tried
    assert bench.puts[:3] == [values(P0, 0, 3) + values(P1, 0, 1), values(P1, 1, 5), values(P1, 5, 9)]
    assert bench.puts[3:] == [values(P1, 5, 9), values(P1, 9, 13), values(P1, 13, 17), values(P1, 17, 20)]


def test_a_task_that_cannot_open_again_fails() -> None:
    bench = SinkBench({P0: 4, P1: 14}, most=6)
    bench.on_put = [BUSY]
    bench.on_open = [None, ZeroDivisionError()]
    bench.consumer.within_keep_alive = [lambda: bench.consumer.revoke(P0)]
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.journal[-3:] == [("close", [P1]), ("stop",), ("leave group",)]


def test_all_partitions_go_during_a_retry() -> None:
    bench = SinkBench({P0: 5})
    bench.on_put = [BUSY]
    bench.consumer.within_keep_alive = [lambda: bench.consumer.revoke(P0)]
    bench.then(lambda: None, lambda: None, lambda: bench.consumer.assign(P0))
    bench.run()
    assert bench.of("open", "put in vain", "put", "close") == [
        ("open", [P0]),
        ("put in vain", values(P0, 0, 5)),
        ("close", [P0]),
        ("open", [P0]),
        ("put", values(P0, 0, 5)),
        ("close", [P0]),
    ]


def test_partitions_that_only_come_during_a_retry_disturb_nobody() -> None:
    bench = SinkBench({P0: 5, P1: 5})
    bench.consumer.within_fetch = [lambda: bench.consumer.assign(P0)]
    bench.on_put = [BUSY]
    bench.consumer.within_keep_alive = [lambda: bench.consumer.assign(P1)]
    bench.run()
    assert bench.put == values(P0, 0, 5) + values(P1, 0, 5)
    assert bench.of("open", "close") == [("open", [P0]), ("open", [P1]), ("close", [P0, P1])]


def test_a_put_of_partitions_that_are_going_is_not_tried_again() -> None:
    """The group waits for them."""
    bench = SinkBench({P0: 10, P1: 10}, most=10)
    bench.on_put = [BUSY]
    bench.then(lambda: bench.consumer.revoke(P0))
    bench.run()
    assert bench.control.waits == []
    assert bench.put == values(P1, 0, 10)
    assert bench.of("commit") == [("commit", {P1: 10})]
    gone(bench)


def test_during_the_retry_of_a_record() -> None:
    """The chain, not the task, has asked for the pause."""
    from pipeline_plugins import FailTimes

    FailTimes.seen.clear()
    step = StepSpec("f", PluginSpec(PluginRef("pipeline_plugins", "FailTimes"), {"value": "0:2", "times": "1"}))
    bench = SinkBench({P0: 4, P1: 14}, most=6, steps=[step], errors=errors_config(retry_timeout="60000"))
    bench.consumer.within_keep_alive = [lambda: bench.consumer.revoke(P0)]
    bench.run()
    # What stood before the record was put already: so the task begins anew.
    assert bench.of("open", "put", "close")[:5] == [
        ("open", [P0, P1]),
        ("put", values(P0, 0, 2)),
        ("close", [P0]),
        ("close", [P1]),
        ("open", [P1]),
    ]
    assert bench.put == values(P0, 0, 2) + values(P1, 0, 14)
    gone(bench)
    FailTimes.seen.clear()


# --- partitions go while offsets are committed ------------------------------------------------------------------------


def test_a_task_that_refuses_while_partitions_go_is_not_taken_back_in_those() -> None:
    bench = SinkBench({P0: 3, P1: 20}, most=10)
    bench.on_pre_commit = [OSError("the warehouse is closed")]
    bench.then(lambda: bench.consumer.revoke(P0))
    bench.run()
    assert bench.put == values(P0, 0, 3) + values(P1, 0, 7) + values(P1, 0, 20)
    assert bench.of("commit") == [("commit", {P1: 20})]
    assert not [offsets for offsets in bench.consumer.sought if P0 in offsets]


def test_kafka_does_not_take_the_offsets_of_partitions_that_go() -> None:
    """Their new owner gets the records again. What is left is committed the next time."""
    bench = SinkBench({P0: 3, P1: 20}, most=10)
    bench.consumer.commit_errors = [OSError("rebalance in progress")]
    bench.then(lambda: bench.consumer.revoke(P0))
    bench.run()
    assert bench.put == values(P0, 0, 3) + values(P1, 0, 20)
    assert bench.of("commit") == [("commit", {P1: 20})]


def test_who_is_given_up_on_commits_nothing_when_partitions_go() -> None:
    bench = SinkBench({P0: 5})

    def revoke() -> None:
        bench.control.cancel()
        bench.consumer.revoke(P0)

    bench.then(revoke)
    bench.run()
    assert bench.of("put", "pre_commit", "commit", "close") == [("put", values(P0, 0, 5)), ("close", [P0])]


# --- partitions are lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("under_way", [False, True])
def test_lost_partitions_are_closed_without_a_commit(under_way: bool) -> None:
    bench = SinkBench({P0: 5, P1: 15}, most=10)
    bench.engine.busy = under_way

    def lose() -> None:
        bench.engine.busy = False
        bench.consumer.lose(P0)

    bench.then(*[] if under_way else [lambda: None, lambda: None], lose)
    bench.run()
    before = values(P0, 0, 5) + values(P1, 0, 5) if not under_way else []
    assert bench.put[: len(before)] == before
    assert sorted(bench.put[len(before) :]) == sorted(values(P1, 0 if under_way else 5, 15))
    lost = bench.journal.index(("close", [P0]))
    assert not [entry for entry in bench.journal[:lost] if entry[0] in ("pre_commit", "commit")]
    assert bench.of("open") == [("open", [P0, P1])]
    gone(bench)


def test_lost_during_a_retry() -> None:
    bench = SinkBench({P0: 4, P1: 14}, most=6)
    bench.on_put = [BUSY]
    bench.consumer.within_keep_alive = [lambda: bench.consumer.lose(P0)]
    bench.run()
    assert bench.of("open", "close", "commit") == [
        ("open", [P0, P1]),
        ("close", [P0]),
        ("close", [P1]),
        ("open", [P1]),
        ("commit", {P1: 14}),
        ("close", [P1]),
    ]
    assert bench.put == values(P1, 0, 14)


def test_a_close_that_fails_when_partitions_are_lost_fails_the_task() -> None:
    bench = SinkBench({P0: 5, P1: 5})
    bench.on_close = [ZeroDivisionError()]
    bench.then(lambda: bench.consumer.lose(P0))
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.of("close") == [("close", [P0]), ("close", [P1])]


# --- what else goes with them -----------------------------------------------------------------------------------------


def test_what_lay_on_the_shelf_is_taken_off_when_partitions_go(tmp_path: Path) -> None:
    bench = SinkBench({P0: 4500, P1: 100}, most=4500)
    bench.engine.shelf_folder = str(tmp_path)
    bench.engine.busy = True
    seen: list[int] = []

    def lose() -> None:
        seen.append(len(list(Path(bench.engine.shelves[0].folder).iterdir())))
        bench.consumer.lose(P0)

    def look() -> None:
        seen.append(len(list(Path(bench.engine.shelves[0].folder).iterdir())))
        bench.engine.busy = False

    bench.then(lose, look)
    bench.run()
    assert seen == [1, 0]
    assert bench.put == values(P1, 0, 100)


def test_wishes_for_partitions_that_went_are_forgotten() -> None:
    bench = SinkBench({P0: 5, P1: 15}, most=10)
    bench.on_put = [lambda _: bench.context.offset(P0, 1)]
    bench.then(lambda: bench.consumer.revoke(P0), lambda: bench.consumer.assign(P0))
    bench.run()
    # Not done, says the task: so the group goes back to 1, and that is where its next owner begins.
    assert bench.of("commit")[0] == ("commit", {P0: 1, P1: 5})
    assert bench.put == values(P0, 0, 5) + values(P1, 0, 5) + values(P0, 1, 5) + values(P1, 5, 15)
