"""Three workers to break, on a broker to break, and what must be true again after every fault."""

from __future__ import annotations

import itertools
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

import httpx2
from cluster_harness import Cluster, Worker, await_, lines, sink_config, source_config
from cut_line import Line
from topic_reader import read_topic

from headgate.dev.broker import Broker
from headgate.dev.server_config import TO_BE_KILLED, BrokerListener

SESSION_S: Final = 6.0
GRACE_S: Final = 2.0
"""Tasks that take longer to stop are given up on."""

_SETTINGS: Final = {
    # Three workers share this machine, and what is tested here is not how fast they are.
    "spark.master": "local[1,4]",
    "session.timeout.ms": str(round(SESSION_S * 1000)),
    "consumer.metadata.max.age.ms": "1000",
    "task.shutdown.graceful.timeout.ms": str(round(GRACE_S * 1000)),
}

Expected = Mapping[str, int]
"""By connector: how many tasks it has."""


class Lab:
    """From `with` to its end. The last worker is behind `line`."""

    def __init__(self, folder: Path) -> None:
        self.line = Line()
        self.folder = folder
        self.broker: Broker
        self.cluster: Cluster
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as ending:
            ending.enter_context(self.line)
            self.broker = ending.enter_context(
                Broker(listeners=[BrokerListener("CUT", advertised=self.line.address)], properties=TO_BE_KILLED)
            )
            self.line.upstream = self.broker.address("CUT")
            self.cluster = Cluster(self.folder, self.broker.bootstrap, "lab", _SETTINGS)
            ending.callback(self.cluster.close)
            for more in ({}, {}, {"bootstrap_servers": self.line.address}):
                self.cluster.add(**more)
            self.await_ready()
            self._ending = ending.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.close()

    @property
    def workers(self) -> list[Worker]:
        return self.cluster.alive

    @property
    def behind_the_line(self) -> Worker:
        return self.cluster.workers[-1]

    def mend(self) -> None:
        """Whatever a test did: all three run and have nothing to do."""
        self.line.mend()
        if not self.broker.running():
            self.broker.restart()
        for worker in self.cluster.workers:
            if worker.running:
                worker.signal(signal.SIGCONT)
            else:
                worker.start()
        self.await_ready()
        self.cluster.delete_all()
        await_(lambda: not self.wrong({}), "nothing is left")

    def await_ready(self) -> None:
        """However long it takes Spark to start."""
        for worker in self.workers:
            worker.await_ready(200)

    # --- what must be true --------------------------------------------------------------------------------------------

    def await_whole(self, expected: Expected, seconds: float = 90.0, without: Worker | None = None) -> None:
        """All that is configured runs on living workers, each task exactly once, and all workers say so. `without`:
        one that is not asked, because it cannot answer, and has nothing to do."""
        deadline = time.monotonic() + seconds
        wrong = [""]
        while wrong:
            with suppress(httpx2.TransportError):
                wrong = self.wrong(expected, without)
            assert not wrong or time.monotonic() < deadline, f"after {seconds} s: {wrong}"
            time.sleep(0.1)

    def wrong(self, expected: Expected, without: Worker | None = None) -> list[str]:
        """What is not as it should be."""
        found: list[str] = []
        workers = [worker for worker in self.workers if worker is not without]
        living = {worker.id for worker in workers}
        runs = {worker.id: metrics(worker) for worker in workers}
        for worker in workers:
            known = worker.call("GET", "/connectors?expand=status", 200)
            if known.keys() != expected.keys():
                found.append(f"{worker.name} knows {sorted(known)}")
            for name in known.keys() & expected.keys():
                found += _untrue(worker, known[name].get("status"), expected[name], living, runs)
        instances = sum(count for _, count in runs.values())
        if instances != len(expected):
            found.append(f"{instances} connectors run instead of {len(expected)}")
        held = Counter(task for tasks, _ in runs.values() for task in tasks)
        if held != Counter((name, number) for name, count in expected.items() for number in range(count)):
            found.append(f"what runs is {held}")
        return found

    def await_quiet(self, seconds: float = 2.0) -> None:
        """No rebalance is under way, nor about to come."""
        told, since = "", time.monotonic()
        deadline = since + 60
        while time.monotonic() < since + seconds:
            assert time.monotonic() < deadline, "one rebalance follows the other"
            now = "".join(last_joined(worker) for worker in self.workers)
            if now != told:
                told, since = now, time.monotonic()
            time.sleep(0.1)

    def stored(self, key: str) -> list[Any]:
        """All values of a key in the config topic."""
        found = read_topic(self.broker.bootstrap, f"{self.cluster.group}-configs")
        return [record.value for record in found if record.key == key]

    def a_follower_with(self, name: str) -> Worker:
        """One that runs a task of this connector."""
        leader, status = self.cluster.leader(), self.workers[0].status(name)
        owners = {each["worker_id"] for each in status["tasks"]}
        return next(worker for worker in self.workers if worker.id in owners and worker is not leader)


def metrics(worker: Worker) -> tuple[set[tuple[str, int]], int]:
    """What really runs there, whether it was given up on or not: the tasks with their numbers; and how many connectors
    it has."""
    text = worker.http.get("/metrics").text
    tasks = re.findall(r'^kafka_connect_connector_task_running_ratio\{connector="(.*)",task="(\d+)"\}', text, re.M)
    return {(name, int(number)) for name, number in tasks}, _count(text, "connector")


def has_nothing(worker: Worker) -> bool:
    """Whether it has given up all connectors and tasks."""
    text = worker.http.get("/metrics").text
    return _count(text, "connector") == _count(text, "task") == 0


def _count(text: str, kind: str) -> int:
    found = re.findall(rf"^kafka_connect_worker_{kind}_count (\S+)", text, re.M)
    return int(float(found[0])) if found else -1


def _untrue(
    worker: Worker, status: Any, tasks: int, living: set[str], runs: Mapping[str, tuple[set[tuple[str, int]], int]]
) -> list[str]:
    if status is None:
        return [f"{worker.name} knows no status"]
    name = status["name"]
    told = {name: status["connector"], **{f"{name}-{each['id']}": each for each in status["tasks"]}}
    found = [
        f"{worker.name} says that {what} is {each['state']} on {each['worker_id']}"
        for what, each in told.items()
        if each["state"] != "RUNNING" or each["worker_id"] not in living
    ]
    if [each["id"] for each in status["tasks"]] != list(range(tasks)):
        found.append(f"{worker.name} knows the tasks {status['tasks']} of {name}")
    return found + [
        f"{worker.name} says that {name}-{each['id']} is on {each['worker_id']}, where it is not"
        for each in status["tasks"]
        if each["worker_id"] in runs and (name, each["id"]) not in runs[each["worker_id"]][0]
    ]


def last_joined(worker: Worker) -> str:
    """What its log says of the last rebalance that it has seen."""
    told = [line for line in worker.log.read_text(errors="replace").splitlines() if " led by " in line]
    return told[-1] if told else ""


def named_leader(worker: Worker) -> str:
    """The URL of the leader of that rebalance."""
    return last_joined(worker).rpartition(" led by ")[2].partition(" ")[0].rstrip("/")


class Flow:
    """Numbered lines from a file, through Kafka, to another file."""

    def __init__(self, folder: Path, name: str) -> None:
        self.source, self.sink, self.topic = f"{name}-in", f"{name}-out", f"{name}-lines"
        self._in, self._out = folder / "flow-in.txt", folder / "flow-out.txt"
        self._numbers = itertools.count()
        self.written = 0
        self._in.touch()

    @property
    def expected(self) -> Expected:
        return {self.source: 1, self.sink: 1}

    def create(self, worker: Worker) -> None:
        worker.create(self.source, source_config(self._in, self.topic))
        worker.create(self.sink, sink_config(self._out, self.topic))

    def write(self, count: int = 1) -> None:
        with self._in.open("a") as file:
            file.writelines(f"line {next(self._numbers)}\n" for _ in range(count))
        self.written += count

    @contextmanager
    def flowing(self, every_s: float = 0.05) -> Iterator[None]:
        """Ever more lines meanwhile."""
        ending = threading.Event()

        def write() -> None:
            while not ending.wait(every_s):
                self.write()

        thread = threading.Thread(target=write, name="flow")
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()

    def missing(self) -> set[str]:
        return {f"line {number}" for number in range(self.written)} - set(lines(self._out))

    def arrived(self, number: int) -> bool:
        return f"line {number}" in lines(self._out)[-2000:]

    def await_all(self, seconds: float = 60.0) -> int:
        """Until every line has come out. How many came more than once."""
        await_(lambda: not self.missing(), f"all of {self.written} lines", seconds, 0.1)
        out = lines(self._out)
        assert set(out) == {f"line {number}" for number in range(self.written)}
        return len(out) - len(set(out))
