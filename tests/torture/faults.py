"""The faults: what breaks in a cluster, and what operators do to it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from cluster_harness import Cluster, Worker
from ledger import Source

from headgate.dev.broker import Broker

_ON_ITS_WAY_S: Final = 1.0
"""What a client has sent just before it was held is done by then."""


def descendants(pid: int) -> list[tuple[int, str]]:
    """The processes below this one, with their command lines."""
    shown = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    children: dict[int, list[tuple[int, str]]] = {}
    for line in shown.splitlines():
        own, parent, command = line.split(None, 2)
        children.setdefault(int(parent), []).append((int(own), command))
    found, waiting = [], [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child[0])
    return found


@dataclass
class Torturer:
    """One thing after the other, chosen by a seeded random."""

    cluster: Cluster
    broker: Broker
    sources: list[Source]
    random: random.Random
    pause_s: float
    """How long a worker is held: longer than its session and its transactions."""
    counts: dict[str, int] = field(default_factory=dict)
    log: Callable[[str], None] = print

    def once(self) -> None:
        faults: list[tuple[int, Callable[[], None]]] = [
            (5, self.kill_worker),
            (4, self.kill_jvm),
            (5, self.kill_python_worker),
            (2, self.restart_broker),
            (2, self.hold_worker),
            (2, self.leave_and_return),
            (4, self.pause_and_resume),
            (4, self.stop_and_resume),
            (3, self.send_back),
            (4, self.restart_all),
            (3, self.reconfigure),
        ]
        fault = self.random.choices([each for _, each in faults], [weight for weight, _ in faults])[0]
        name = fault.__name__
        began = time.monotonic()
        try:
            fault()
        except (httpx2.TransportError, AssertionError) as error:
            # The worker that was asked is the one that was broken; what counts is what is in Kafka in the end.
            self.log(f"  {name}: {type(error).__name__} {str(error)[:200]}")
        self.counts[name] = self.counts.get(name, 0) + 1
        self.log(f"{sum(self.counts.values()):4d} {name} ({time.monotonic() - began:.1f} s)")

    # --- processes ----------------------------------------------------------------------------------------------------

    def _worker(self) -> Worker:
        return self.random.choice(self.cluster.alive)

    def kill_worker(self) -> None:
        worker = self._worker()
        worker.kill()
        time.sleep(self.random.uniform(0, 3))
        worker.start()

    def _kill_below(self, part: str) -> None:
        found = [pid for pid, command in descendants(self._worker().pid) if part in command]
        if found:
            os.kill(self.random.choice(found), signal.SIGKILL)

    def kill_jvm(self) -> None:
        self._kill_below("org.apache.spark.deploy.SparkSubmit")
        time.sleep(self.random.uniform(1, 4))
        self.restart_failed()

    def kill_python_worker(self) -> None:
        self._kill_below("pyspark")
        time.sleep(self.random.uniform(0, 1))

    def restart_broker(self) -> None:
        if self.random.random() < 0.5:
            self.broker.kill()
            self.broker.start()
        else:
            self.stop_broker()
            self.broker.start()

    def stop_broker(self) -> None:
        """While workers are held: as soon as it begins to stop, a broker that is alone leads nothing any more and skips
        the ends of transactions that come then; nobody ever reads beyond them (Kafka 4.3.1: "these partitions are
        likely deleted already and hence can be skipped")."""
        held = list(self.cluster.alive)
        for worker in held:
            worker.signal(signal.SIGSTOP)
        try:
            time.sleep(_ON_ITS_WAY_S)
            self.broker.stop()
        finally:
            for worker in held:
                worker.signal(signal.SIGCONT)

    def hold_worker(self) -> None:
        """Longer than its transactions may last: the broker ends them, others take its work."""
        worker = self._worker()
        worker.signal(signal.SIGSTOP)
        try:
            time.sleep(self.pause_s)
        finally:
            worker.signal(signal.SIGCONT)

    def leave_and_return(self) -> None:
        worker = self._worker()
        worker.stop()
        worker.start()

    # --- operators ----------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *expected: int, **options: Any) -> Any:
        """By any worker that answers; again while the cluster is busy with itself."""
        deadline = time.monotonic() + 60
        while True:
            try:
                answer = self._worker().http.request(method, path, timeout=30, **options)
                if answer.status_code in expected:
                    return answer.json() if answer.content else None
                problem = f"{answer.status_code} {answer.text[:200]}"
            except httpx2.TransportError as error:
                problem = str(error)
            assert time.monotonic() < deadline, f"{method} {path}: {problem}"
            time.sleep(0.3)

    def pause_and_resume(self) -> None:
        name = self.random.choice(self.sources).name
        self.call("PUT", f"/connectors/{name}/pause", 202)
        time.sleep(self.random.uniform(0, 2))
        self.call("PUT", f"/connectors/{name}/resume", 202)

    def stop_and_resume(self) -> None:
        name = self.random.choice(self.sources).name
        self.call("PUT", f"/connectors/{name}/stop", 204)
        time.sleep(self.random.uniform(0, 2))
        self.call("PUT", f"/connectors/{name}/resume", 202)

    def send_back(self) -> None:
        """Stops a connector, sets its offset to a known place, resumes it."""
        source = self.random.choice(self.sources)
        path = f"/connectors/{source.name}/offsets"
        self.call("PUT", f"/connectors/{source.name}/stop", 204)
        # A change of offsets first shuts out whatever may still run: only after one, of a file that nobody reads, it is
        # certain that what is read here stays so.
        self._insist("PATCH", path, _offsets({"filename": "nobody"}, 0))
        self._insist("PATCH", path, _offsets({"filename": "nobody"}, None))
        found = self.call("GET", path, 200)["offsets"]
        if found:
            line = source.line_at(int(found[0]["offset"]["position"]))
            to = self.random.randint(max(0, line - 500), line)
            self._insist("PATCH", path, _offsets({"filename": str(source.file)}, source.position_of(to)))
            source.sent_back(line, to)
        self.call("PUT", f"/connectors/{source.name}/resume", 202)

    def _insist(self, method: str, path: str, body: Any) -> None:
        """What must not remain uncertain."""
        for _ in range(5):
            try:
                self.call(method, path, 200, json=body)
                return
            except AssertionError as error:
                self.log(f"  again: {error}")
        raise RuntimeError(f"{method} {path} is not answered")

    def restart_all(self) -> None:
        name = self.random.choice(self.sources).name
        self.call("POST", f"/connectors/{name}/restart?includeTasks=true", 202, 404)

    def reconfigure(self) -> None:
        source = self.random.choice(self.sources)
        change = {"batch.size": str(self.random.choice([100, 500, 2000]))}
        self.call("PATCH", f"/connectors/{source.name}/config", 200, json=change)

    def restart_failed(self) -> None:
        for source in self.sources:
            self.call("POST", f"/connectors/{source.name}/restart?includeTasks=true&onlyFailed=true", 202, 404)


def _offsets(partition: dict[str, str], position: int | None) -> dict[str, Any]:
    offset = None if position is None else {"position": position}
    return {"offsets": [{"partition": partition, "offset": offset}]}
