"""The network between one worker and Kafka is cut and mended. Workers still reach each other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest
from cluster_harness import await_
from lab import GRACE_S, SESSION_S, Flow, Lab, has_nothing
from sightings import Sightings, witness_config

pytestmark = pytest.mark.spark

GIVES_UP_S: Final = SESSION_S + GRACE_S + 10
"""A request without an answer is waited for as long as a session; then work is stopped, which Kafka is not told of."""


@pytest.fixture
def flow(lab: Lab, tmp_path: Path, name: str, topic: str) -> Flow:
    """Comes after three witnesses, so that each worker has one of them, also the one behind the line."""
    lab.workers[0].create(name, witness_config(topic, 3))
    lab.await_whole({name: 3})
    made = Flow(tmp_path, name)
    made.create(lab.workers[0])
    return made


@pytest.fixture
def expected(lab: Lab, flow: Flow, seen: Sightings, name: str) -> dict[str, int]:
    made = {**flow.expected, name: 3}
    lab.await_whole(made)
    await_(lambda: seen.tasks_since(0) == {0, 1, 2}, "all witnesses")
    # While it waits for others to join, a worker does not hear that Kafka is silent, not before a rebalance is overdue.
    lab.await_quiet()
    return made


def test_a_short_cut_moves_nothing(lab: Lab, flow: Flow, seen: Sightings, expected: dict[str, int]) -> None:
    before = seen.instances()
    with flow.flowing():
        lab.line.cut()
        time.sleep(SESSION_S / 2)
        lab.line.mend()
        mended = time.monotonic()
        await_(lambda: seen.of(lab.behind_the_line.pid, mended), "it goes on")
        lab.await_whole(expected)
    flow.await_all()
    assert seen.instances() == before
    assert seen.unbroken(3)


def test_connections_that_break_for_a_moment(lab: Lab, flow: Flow, seen: Sightings, expected: dict[str, int]) -> None:
    with flow.flowing():
        lab.line.drop()
        time.sleep(SESSION_S / 3)
        lab.line.mend()
        mended = time.monotonic()
        await_(lambda: seen.tasks_since(mended + SESSION_S) == {0, 1, 2}, "all go on")
        lab.await_whole(expected)
    flow.await_all()
    assert seen.side_by_side(mended + SESSION_S) == {}
    assert seen.unbroken(3)


@pytest.mark.parametrize("how", ["cut", "drop"])
def test_a_long_cut_moves_its_work(
    lab: Lab, flow: Flow, seen: Sightings, name: str, topic: str, expected: dict[str, int], how: str
) -> None:
    cut_off = lab.behind_the_line
    asked = cut_off if cut_off is not lab.cluster.leader() else lab.workers[0]
    with flow.flowing():
        (lab.line.cut if how == "cut" else lab.line.drop)()
        began, last = time.monotonic(), flow.written
        lab.await_whole(expected, without=cut_off)
        moved = time.monotonic() - began
        await_(lambda: flow.arrived(last), "lines go on without it")
        await_(lambda: has_nothing(cut_off), "it has given up its work", began + GIVES_UP_S - time.monotonic())
        gave_up = time.monotonic() - began
        # It still tells what it knows, and passes on what is for the leader.
        assert cut_off.call("GET", "/connectors", 200)
        asked.settle("PUT", f"/connectors/{name}/config", 200, json=witness_config(topic, 3, label="meanwhile"))
        lab.await_whole(expected, without=cut_off)
        lab.line.mend()
        mended = time.monotonic()
        await_(lambda: cut_off.healthy(), "it has its place again")
        lab.await_whole(expected)
        back = time.monotonic() - mended
    print(
        f"\nIts work ran elsewhere after {moved:.1f} s, it gave up after {gave_up:.1f} s, was back after {back:.1f} s"
    )
    doubled = flow.await_all()
    print(f"{doubled} of {flow.written} lines came more than once")
    assert moved < SESSION_S + 5
    assert seen.side_by_side(mended) == {}
    assert seen.unbroken(3)
