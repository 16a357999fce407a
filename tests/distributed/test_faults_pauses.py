"""A worker that stands still, as when its machine is suspended: for less than its session, and for longer."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final

import pytest
from cluster_harness import await_
from lab import SESSION_S, Flow, Lab, named_leader
from sightings import Sightings, witness_config

pytestmark = pytest.mark.spark

SOON_S: Final = 5.0
"""A worker that wakes up learns that its place is gone from its next heartbeat, and stops when it has joined again."""


def test_a_short_pause_moves_nothing(lab: Lab, flow: Flow, seen: Sightings, name: str, topic: str) -> None:
    lab.workers[0].create(name, witness_config(topic, 3))
    expected = {**flow.expected, name: 3}
    lab.await_whole(expected)
    sleeper = lab.a_follower_with(name)
    with flow.flowing():
        await_(lambda: seen.tasks_since(0) == {0, 1, 2}, "all witnesses")
        before = seen.instances()
        sleeper.signal(signal.SIGSTOP)
        time.sleep(SESSION_S / 2)
        sleeper.signal(signal.SIGCONT)
        woken = time.monotonic()
        await_(lambda: seen.of(sleeper.pid, woken), "it goes on")
        lab.await_whole(expected)
    flow.await_all()
    assert seen.instances() == before
    assert seen.unbroken(3)


def test_what_it_held_is_done_elsewhere_and_soon_only_there(
    lab: Lab, flow: Flow, seen: Sightings, name: str, topic: str
) -> None:
    lab.workers[0].create(name, witness_config(topic, 3))
    expected = {**flow.expected, name: 3}
    lab.await_whole(expected)
    sleeper = lab.a_follower_with(name)
    with flow.flowing():
        await_(lambda: seen.of(sleeper.pid), "its witness")
        sleeper.signal(signal.SIGSTOP)
        lab.await_whole(expected, without=sleeper)
        old = {each.instance for each in seen.all() if each.pid == sleeper.pid}
        sleeper.signal(signal.SIGCONT)
        woken = time.monotonic()
        await_(lambda: lab.wrong(expected), "it is noticed that it is back", 30)
        lab.await_whole(expected)
        settled = time.monotonic()
    doubled = flow.await_all()
    last = max(each.at for each in seen.all() if each.instance in old)
    print(
        f"\nAwake, it went on with what it held for {max(last - woken, 0):.1f} s; settled after {settled - woken:.1f} s"
    )
    print(f"{doubled} of {flow.written} lines came more than once")
    assert last - woken < SOON_S
    assert seen.side_by_side(woken + SOON_S) == {}
    assert seen.unbroken(3)


def test_a_leader_that_wakes_up_when_another_leads(
    lab: Lab, flow: Flow, seen: Sightings, name: str, topic: str
) -> None:
    """It may still write, for a moment, what only the leader may: as any other write, that counts once and for all."""
    lab.workers[0].create(name, witness_config(topic, 3, label="first"))
    expected = {**flow.expected, name: 3}
    lab.await_whole(expected)
    old = lab.cluster.leader()
    others = [worker for worker in lab.workers if worker is not old]
    old.signal(signal.SIGSTOP)
    await_(lambda: all(named_leader(worker) != old.url for worker in others), "another leader")
    lab.await_whole(expected, without=old)
    late = {"name": f"{name}-late", "config": witness_config(f"{topic}-late", 1, label="late")}
    with ThreadPoolExecutor(4) as asking, flow.flowing():
        # What is sent now waits in its socket, and is what it finds first.
        path = f"/connectors/{name}/config"
        configured = asking.submit(old.http.put, path, json=witness_config(topic, 3, label="late"))
        created = asking.submit(old.http.post, "/connectors", json=late)
        paused = asking.submit(old.http.put, f"/connectors/{flow.source}/pause")
        assert not wait([configured, created, paused], 0.5).done
        old.signal(signal.SIGCONT)
        others[0].settle("PUT", path, 200, json=witness_config(topic, 3, label="second"))
        codes = [each.result().status_code for each in (configured, created, paused)]
        others[1].settle("PUT", f"/connectors/{flow.source}/resume", 202)
        print(f"\nThe old leader answered {codes}")
        assert codes[0] in (200, 409)
        assert codes[1] in (201, 409)
        assert codes[2] in (202, 409)
        if codes[1] == 201:
            expected[f"{name}-late"] = 1
        lab.await_whole(expected)
    flow.await_all()

    written = lab.stored(f"connector-{name}")
    labels = [value["properties"]["label"] for value in written]
    assert labels.count("late") == (codes[0] == 200)
    assert labels.count("second") == 1
    assert len(lab.stored(f"connector-{name}-late")) == (codes[1] == 201)
    for worker in lab.workers:
        assert worker.call("GET", path, 200) == written[-1]["properties"]
    await_(lambda: {each.label for each in seen.all()[-10:]} == {labels[-1]}, "all tasks run what is stored")
    assert seen.unbroken(3)
