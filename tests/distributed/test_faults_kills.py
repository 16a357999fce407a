"""A worker that dies without a word: within its session and a few seconds others do its work."""

from __future__ import annotations

import time
from typing import Final

import pytest
from cluster_harness import await_
from lab import SESSION_S, Flow, Lab
from sightings import Sightings, witness_config

pytestmark = pytest.mark.spark

PATIENCE_S: Final = SESSION_S + 5


@pytest.mark.parametrize("victim", ["follower", "leader"])
def test_others_do_its_work(lab: Lab, flow: Flow, seen: Sightings, name: str, topic: str, victim: str) -> None:
    lab.workers[0].create(name, witness_config(topic, 4))
    expected = {**flow.expected, name: 4}
    lab.await_whole(expected)
    dies = lab.cluster.leader() if victim == "leader" else lab.a_follower_with(name)
    with flow.flowing():
        await_(lambda: flow.arrived(10), "the first lines")
        dies.kill()
        killed, last = time.monotonic(), flow.written
        lab.await_whole(expected)
        ran = time.monotonic() - killed
        await_(lambda: flow.arrived(last), f"line {last}")
        came = time.monotonic() - killed
    doubled = flow.await_all()
    print(f"\nThe {victim} was killed; all ran elsewhere after {ran:.1f} s, lines came out after {came:.1f} s")
    print(f"{doubled} of {flow.written} lines came more than once")
    assert max(ran, came) < PATIENCE_S

    dies.start().await_ready(200)
    lab.await_whole(expected)
    flow.write(100)
    flow.await_all()
    assert seen.unbroken(4)


def test_its_sinks_go_on_as_soon_without_a_word_about_their_consumers(lab: Lab, flow: Flow) -> None:
    """The dead one's consumer is in the sink's group for as long as its worker is in theirs, and no longer."""
    lab.await_whole(flow.expected)
    owner = lab.workers[0].status(flow.sink)["tasks"][0]["worker_id"]
    dies = next(worker for worker in lab.workers if worker.id == owner)
    with flow.flowing():
        await_(lambda: flow.arrived(10), "the first lines")
        dies.kill()
        killed, last = time.monotonic(), flow.written
        await_(lambda: flow.arrived(last), f"line {last}")
        came = time.monotonic() - killed
    print(f"\nThe sink's worker was killed; lines came out after {came:.1f} s")
    assert came < PATIENCE_S
    flow.await_all()
