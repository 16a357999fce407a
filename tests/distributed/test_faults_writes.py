"""Many workers write to the config topic at once: in the end all say the same, and that is what runs."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest
from cluster_harness import Worker, await_
from lab import Lab
from sightings import Sightings, witness_config

pytestmark = pytest.mark.spark

ROUNDS: Final = 6
_STATES: Final = {"STARTED": ("RUNNING", 2), "PAUSED": ("PAUSED", 2), "STOPPED": ("STOPPED", 0)}


def test_all_workers_at_once(lab: Lab, seen: Sightings, name: str, topic: str) -> None:
    lab.workers[0].create(name, witness_config(topic, 2))
    lab.await_whole({name: 2})
    with ThreadPoolExecutor(len(lab.workers)) as writing:
        answers = sum(writing.map(lambda worker: _write(worker, name, topic), lab.workers), Counter[int]())
    print(f"\nAnswers: {dict(answers)}")
    assert answers.keys() <= {200, 202, 204, 409}

    config = lab.stored(f"connector-{name}")[-1]["properties"]
    state, tasks = _STATES[lab.stored(f"target-state-{name}")[-1]["state.v2"]]
    for worker in lab.workers:
        await_(
            lambda at=worker: at.call("GET", f"/connectors/{name}/config", 200) == config,  # type: ignore[misc]
            f"{worker.name} has the last config",
        )
        worker.await_states(name, state, *[state] * tasks)
    lab.workers[1].put(name, "resume")
    lab.await_whole({name: 2})
    await_(
        lambda: [each.label for each in seen.all()[-6:]] == [config["label"]] * 6,
        "its tasks run by the last config",
    )
    assert seen.unbroken(2)


def _write(worker: Worker, name: str, topic: str) -> Counter[int]:
    answers: Counter[int] = Counter()
    for number in range(ROUNDS):
        config = witness_config(topic, 2, label=f"{worker.name}-{number}")
        calls = [(f"{verb}", None) for verb in ("pause", "resume", "stop" if number % 3 == 2 else "pause", "resume")]
        for verb, body in [*calls, ("config", config)]:
            answers[worker.http.put(f"/connectors/{name}/{verb}", json=body).status_code] += 1
    return answers


def test_the_last_command_counts_whoever_is_asked(lab: Lab, name: str, topic: str) -> None:
    """A worker that has not read the last command yet must not think that there is nothing to do."""
    lab.workers[0].create(name, witness_config(topic, 1))
    lab.await_whole({name: 1})
    quick, late = lab.workers[0], lab.behind_the_line
    lab.line.slow(0.3)
    for first, then, state in (("pause", "resume", "STARTED"), ("resume", "pause", "PAUSED")):
        late.put(name, then)
        late.await_states(name, _STATES[state][0], _STATES[state][0])
        quick.call("PUT", f"/connectors/{name}/{first}", 202)
        late.call("PUT", f"/connectors/{name}/{then}", 202)
        assert lab.stored(f"target-state-{name}")[-1]["state.v2"] == state
    quick.settle("PUT", f"/connectors/{name}/stop", 204)
    late.call("PUT", f"/connectors/{name}/resume", 202)
    lab.line.mend()
    lab.await_whole({name: 1})


def test_resumed_while_it_still_stops(lab: Lab, seen: Sightings, name: str, topic: str) -> None:
    """Its tasks are gone from the config topic when it is resumed: it has to make new ones, though it never stopped."""
    lab.workers[0].create(name, witness_config(topic, 3, stop_ms="1000"))
    known: set[str] = set()

    def await_new_tasks() -> None:
        await_(
            lambda: {each.task for each in seen.all() if each.instance not in known} == {0, 1, 2},
            "new tasks are at work",
        )
        lab.await_whole({name: 3})
        known.update(seen.instances())

    for worker in lab.workers[:2]:
        await_new_tasks()
        lab.cluster.leader().settle("PUT", f"/connectors/{name}/stop", 204)
        worker.put(name, "resume")
    await_new_tasks()
    assert seen.unbroken(3)
