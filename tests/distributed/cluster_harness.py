"""Clusters of real worker processes, for tests that break them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2

T = TypeVar("T")

STRING = "org.apache.kafka.connect.storage.StringConverter"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_REBALANCE = "Cannot complete request"
PLUGINS = Path(__file__).parent.parent / "plugins"


def await_(condition: Callable[[], T | None], what: str, seconds: float = 60.0, pause: float = 0.05) -> T:
    """Until `condition` gives something true; fails the test with `what` and the last value when it does not."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s; last: {value!r}"
        time.sleep(pause)
    return value


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Worker:
    """One worker process and its REST API."""

    def __init__(self, folder: Path, name: str, settings: Mapping[str, str], scheme: str = "http") -> None:
        self.name = name
        self.port = free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self.id = f"127.0.0.1:{self.port}"
        self.settings = {**settings, "listeners": self.url}
        self.log = folder / f"{name}.log"
        self._file = folder / f"{name}.properties"
        self._process: subprocess.Popen[bytes] | None = None
        self.http = httpx2.Client(base_url=self.url, timeout=100)

    def start(self) -> Worker:
        self._file.write_text("".join(f"{key}={value}\n" for key, value in self.settings.items()))
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headgate.cli.distributed", str(self._file)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def await_ready(self, seconds: float = 240.0) -> Worker:
        await_(self.healthy, f"worker {self.name} is ready (log: {self.tail()})", seconds)
        return self

    def healthy(self) -> bool:
        assert self.running, f"worker {self.name} has ended: {self.tail()}"
        try:
            return self.http.get("/health").status_code == 200
        except httpx2.TransportError:
            return False

    def answers(self) -> bool:
        """Whatever it says."""
        assert self.running, f"worker {self.name} has ended: {self.tail()}"
        try:
            return bool(self.http.get("/health").content)
        except httpx2.TransportError:
            return False

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """As a power cut does."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self, seconds: float = 60.0) -> int:
        """As an operator does."""
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float = 60.0) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def close(self) -> None:
        self.http.close()
        if self.running:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            try:
                self.wait(30)
            except subprocess.TimeoutExpired:
                self.signal(signal.SIGKILL)
                self.wait()

    def tail(self, count: int = 40) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:]) if self.log.exists() else ""

    # --- the REST API -------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *expected: int, **options: Any) -> Any:
        answer = self.http.request(method, path, **options)
        assert answer.status_code in expected, f"{method} {path} at {self.name}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def settle(self, method: str, path: str, *expected: int, seconds: float = 60.0, **options: Any) -> Any:
        """As a careful user: asks again while a rebalance is under way."""
        deadline = time.monotonic() + seconds
        while True:
            answer = self.http.request(method, path, **options)
            if answer.status_code != 409 or time.monotonic() > deadline or _REBALANCE not in answer.text:
                break
            time.sleep(0.1)
        assert answer.status_code in expected, f"{method} {path} at {self.name}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def create(self, name: str, config: Mapping[str, str], state: str | None = None) -> Any:
        body = {"name": name, "config": dict(config), **({"initial_state": state} if state else {})}
        created = self.settle("POST", "/connectors", 201, json=body)
        # The leader has it; this worker reads it from Kafka.
        path = f"/connectors/{quote(name, safe='')}"
        await_(lambda: self.http.get(path).status_code == 200, f"{self.name} knows {name}")
        return created

    def put(self, name: str, verb: str) -> Any:
        return self.settle("PUT", f"/connectors/{name}/{verb}", 202, 204)

    def status(self, name: str) -> Any:
        answer = self.http.get(f"/connectors/{name}/status")
        return answer.json() if answer.status_code == 200 else None

    def states(self, name: str) -> tuple[str, list[str]] | None:
        status = self.status(name)
        if status is None:
            return None
        return status["connector"]["state"], [task["state"] for task in status["tasks"]]

    def await_states(self, name: str, connector: str, *tasks: str, seconds: float = 90.0) -> Any:
        deadline = time.monotonic() + seconds
        while self.states(name) != (connector, list(tasks)):
            assert time.monotonic() < deadline, f"{name} is not {connector} {tasks} but {self.status(name)}"
            time.sleep(0.05)
        return self.status(name)

    def offsets(self, name: str) -> Any:
        return self.call("GET", f"/connectors/{name}/offsets", 200)["offsets"]


class Cluster:
    """Workers of one group. Whoever is in it at the end of a test is ended with it."""

    def __init__(
        self, folder: Path, bootstrap: str, group: str, settings: Mapping[str, str], scheme: str = "http"
    ) -> None:
        self.group = group
        self._scheme = scheme
        self._folder = folder
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "config.storage.topic": f"{group}-configs",
            "offset.storage.topic": f"{group}-offsets",
            "status.storage.topic": f"{group}-statuses",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.partitions": "5",
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.flush.interval.ms": "1000",
            "scheduled.rebalance.max.delay.ms": "0",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "1000",
            "rebalance.timeout.ms": "20000",
            "plugin.path": str(PLUGINS),
            # Three workers share this machine, and what is tested here is not how fast they are.
            "spark.master": "local[2,4]",
            **settings,
        }
        self.workers: list[Worker] = []

    def add(self, **settings: str) -> Worker:
        more = {key.replace("_", "."): value for key, value in settings.items()}
        worker = Worker(self._folder, f"worker{len(self.workers)}", {**self._settings, **more}, self._scheme)
        self.workers.append(worker)
        return worker.start()

    @property
    def alive(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.running]

    def await_ready(self) -> None:
        for worker in self.alive:
            worker.await_ready()

    def close(self) -> None:
        for worker in self.alive:  # all at once: that takes less time
            worker.signal(signal.SIGCONT)
            worker.signal(signal.SIGTERM)
        for worker in self.workers:
            worker.close()

    def by_id(self, worker_id: str) -> Worker:
        return next(worker for worker in self.workers if worker.id == worker_id)

    def owner(self, name: str, task: int | None = None) -> Worker:
        status = self.alive[0].status(name)
        found = status["connector"] if task is None else status["tasks"][task]
        return self.by_id(found["worker_id"])

    def delete_all(self) -> None:
        """Every connector, from the worker that need not pass it on."""
        leader = self.leader()
        for name in leader.call("GET", "/connectors", 200):
            leader.settle("DELETE", f"/connectors/{name}", 204, 404)

    def followers(self) -> list[Worker]:
        leader = self.leader()
        return [worker for worker in self.alive if worker is not leader]

    def leader(self) -> Worker:
        """Who says so in its own log, last."""

        def find() -> Worker | None:
            for worker in self.alive:
                joined = [line for line in worker.log.read_text(errors="replace").splitlines() if " led by " in line]
                if joined:
                    url = joined[-1].rsplit(" led by ", 1)[1].split()[0].rstrip("/")
                    return next((each for each in self.alive if each.url == url), None)
            return None

        return await_(find, "a leader is known")


@contextmanager
def cluster(folder: Path, bootstrap: str, group: str, size: int, **settings: str) -> Iterator[Cluster]:
    made = Cluster(folder, bootstrap, group, {key.replace("_", "."): value for key, value in settings.items()})
    try:
        for _ in range(size):
            made.add()
        made.await_ready()
        yield made
    finally:
        made.close()


def lines(path: Path) -> list[str]:
    """The whole lines of a file; none while it does not exist."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    return text.splitlines() if text.endswith("\n") or not text else text.splitlines()[:-1]


def source_config(file: Path, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": SOURCE, "file": str(file), "topic": topic, **more}


def sink_config(file: Path, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": SINK, "file": str(file), "topics": topic, **more}


class Faulty:
    """Connectors that fail as they are told, until `heal()`; they write down what is called on them."""

    def __init__(self, cluster: Cluster, folder: Path, name: str, topic: str) -> None:
        self._cluster = cluster
        self._name, self._topic = name, topic
        self._flag, self._log = folder / "fail", folder / "calls"

    def create(
        self, fail_in: str = "", *, tasks: int = 2, name: str = "", worker: Worker | None = None, **more: str
    ) -> str:
        self._flag.touch()
        config = self.config(fail_in, tasks, **more)
        (worker or self._cluster.alive[0]).create(name or self._name, config)
        return name or self._name

    def config(self, fail_in: str = "", tasks: int = 2, **more: str) -> dict[str, str]:
        return {
            "connector.class": "FaultySource",
            "topic": self._topic,
            "fail.in": fail_in,
            "fail.while": str(self._flag),
            "log": str(self._log),
            "tasks": str(tasks),
            "tasks.max": str(max(tasks, 1)),
            **{key.replace("_", "."): value for key, value in more.items()},
        }

    def named(self, more: str) -> str:
        """A name of its own, for tests with several connectors."""
        return f"{self._name}-{more}"

    def break_again(self) -> None:
        self._flag.touch()

    def heal(self) -> None:
        self._flag.unlink(missing_ok=True)

    @property
    def calls(self) -> list[str]:
        """Without polls, of which there are many."""
        return [call for call in lines(self._log) if call != "task.poll"]

    def count(self, call: str) -> int:
        return self.calls.count(call)
