"""Every call of the REST API while the group rebalances again and again: it is answered, soon, and by the book."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from cluster_harness import Worker, source_config
from lab import Flow, Lab, named_leader

pytestmark = pytest.mark.spark

LONGEST_S: Final = 15.0
SECONDS: Final = 20.0

Call = tuple[str, str, Any, set[int]]
"""Method, path, body, and the answers that are in the book, besides 409 while the group rebalances."""


def calls(name: str, sink: str, config: dict[str, str]) -> Iterator[Call]:
    """The source may be stopped at any time, by the same calls on another worker; the sink is not."""
    for path in ("/", "/health", "/metrics", "/connectors", "/connectors?expand=info&expand=status", "/admin/loggers"):
        yield "GET", path, None, {200}
    for each in (name, sink):
        for path in ("", "/config", "/tasks", "/status", "/topics", "/offsets", "/tasks/0/status"):
            yield "GET", f"/connectors/{each}{path}", None, {200, 404} if path.startswith("/tasks/") else {200}
        for verb in ("pause", "resume"):
            yield "PUT", f"/connectors/{each}/{verb}", None, {202}
        yield "POST", f"/connectors/{each}/restart", None, {204}
        yield "POST", f"/connectors/{each}/restart?includeTasks=true", None, {202}
        yield "POST", f"/connectors/{each}/restart?includeTasks=true&onlyFailed=true", None, {202}
        yield "POST", f"/connectors/{each}/tasks/0/restart", None, {204, 404}
        yield "PUT", f"/connectors/{each}/topics/reset", None, {202}
        yield "DELETE", f"/connectors/{each}/offsets", None, {400} if each == sink else {200, 400}
        start = {"partition": {"filename": config["file"]}, "offset": {"position": 0}}
        yield "PATCH", f"/connectors/{each}/offsets", {"offsets": [start]}, {400} if each == sink else {200, 400}
    yield "PUT", f"/connectors/{name}/config", config, {200}
    yield "PATCH", f"/connectors/{name}/config", {"batch.size": "1999"}, {200}
    yield "PUT", f"/connectors/{name}/stop", None, {204}
    yield "PUT", f"/connectors/{name}/resume", None, {202}
    yield "GET", "/connector-plugins", None, {200}
    yield "PUT", "/connector-plugins/FileStreamSource/config/validate", {**config, "name": name}, {200}
    yield "PUT", "/admin/loggers/headgate.nobody?scope=cluster", {"level": "INFO"}, {204}
    yield "GET", "/connectors/nobody/status", None, {404}
    yield "DELETE", "/connectors/nobody", None, {404}
    yield "POST", "/connectors", {"name": name, "config": config}, {409}


@contextmanager
def rebalances(lab: Lab, name: str, config: dict[str, str]) -> Iterator[Callable[[], int]]:
    """One after the other: a connector comes and goes. Gives how many there were."""
    ending = threading.Event()
    rounds = 0

    def churn() -> None:
        nonlocal rounds
        while not ending.is_set():
            worker = lab.workers[rounds % len(lab.workers)]
            worker.create(name, config)
            worker.settle("DELETE", f"/connectors/{name}", 204)
            rounds += 1

    with ThreadPoolExecutor(1) as churning:
        done = churning.submit(churn)
        try:
            yield lambda: rounds
        finally:
            ending.set()
            done.result()


def test_every_call_in_the_middle_of_rebalances(lab: Lab, flow: Flow, name: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a line\n")
    config = source_config(tmp_path / "in.txt", topic)
    lab.workers[0].create(name, config)
    expected = {**flow.expected, name: 1}
    lab.await_whole(expected)
    answers: Counter[str] = Counter()
    wrong: list[str] = []

    def ask(worker: Worker) -> None:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for method, path, body, book in calls(name, flow.sink, config):
                began = time.monotonic()
                answer = worker.http.request(method, path, json=body)
                took = time.monotonic() - began
                answers[f"{answer.status_code}"] += 1
                if answer.status_code not in {*book, 409} or took > LONGEST_S:
                    wrong.append(
                        f"{method} {path} at {worker.name}: {answer.status_code} {took:.1f} s {answer.text[:300]}"
                    )

    with flow.flowing(), rebalances(lab, f"{name}-churn", config) as rounds:
        with ThreadPoolExecutor(len(lab.workers)) as asking:
            list(asking.map(ask, lab.workers))
        print(f"\n{rounds()} times a connector came and went; answers: {dict(answers)}")
    assert not wrong, "\n".join(wrong[:20])
    assert rounds() > 3
    assert len({named_leader(worker) for worker in lab.workers}) == 1

    lab.workers[0].settle("PUT", f"/connectors/{name}/config", 200, json=config)
    for each in expected:
        lab.workers[0].put(each, "resume")
    lab.await_whole(expected)
    flow.await_all()
