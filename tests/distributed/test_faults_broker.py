"""Kafka goes away, for all workers, and comes back."""

from __future__ import annotations

import time

import pytest
from cluster_harness import await_
from lab import Flow, Lab
from sightings import Sightings, witness_config

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_the_cluster_comes_back_by_itself(
    lab: Lab, flow: Flow, seen: Sightings, name: str, topic: str, how: str
) -> None:
    lab.workers[0].create(name, witness_config(topic, 3))
    expected = {**flow.expected, name: 3}
    lab.await_whole(expected)
    with flow.flowing():
        await_(lambda: flow.arrived(10), "the first lines")
        if how == "killed":
            lab.broker.kill()
        began = time.monotonic()
        lab.broker.restart()
        there, last = time.monotonic(), flow.written
        await_(lambda: flow.arrived(last), f"line {last}", 90)
        lab.await_whole(expected)
        back = time.monotonic()
    print(f"\nKafka was away for {there - began:.1f} s; all ran again {back - there:.1f} s after it came back")
    doubled = flow.await_all()
    print(f"{doubled} of {flow.written} lines came more than once")
    await_(lambda: seen.tasks_since(back) == {0, 1, 2}, "all witnesses go on")
    assert seen.side_by_side(back) == {}
    assert seen.unbroken(3)
    lab.workers[1].settle("PUT", f"/connectors/{name}/config", 200, json=witness_config(topic, 3, label="after"))
    await_(lambda: seen.all()[-1].label == "after", "what is written now counts")
