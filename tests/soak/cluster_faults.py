"""The faults of a cluster: processes, network, broker, open files; and what operators do to connectors."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2
from cluster_harness import Worker, await_
from cut_line import Line
from faults import Torturer, descendants
from lab import metrics
from processes import Process, Tree

from tests.soak.attacks import EVIL
from tests.soak.failure_table import Fault
from tests.soak.fleet import Fleet, Member

_JVM: Final = "org.apache.spark.deploy.SparkSubmit"
_GONE: Final = "a worker of a cluster dies, leaves, or loses its way"
_SHORTAGE_S: Final = 8.0
_WHOLE_S: Final = 300.0
_PATIENCE_S: Final = 200.0


@dataclass(kw_only=True)
class Breaker(Torturer):
    """Breaks, and mends. Only the last worker is behind the line."""

    fleet: Fleet
    line: Line
    session_s: float
    spared: Worker
    """It is held and cut off, but never ended: what it does not give back adds up."""
    ended: set[Process] = field(default_factory=set)
    """What belonged to workers that were killed."""
    failed: list[str] = field(default_factory=list)
    """What had to be restarted by hand, and why."""
    surprises: list[str] = field(default_factory=list)
    """What nobody had broken."""

    def faults(self) -> list[Fault]:
        return [
            Fault(self.kill_worker, (_GONE,), breaks=True, restarts=True),
            Fault(self.leave_and_return, (_GONE,), breaks=True, restarts=True),
            Fault(self.leave_while_plugins_hang, ("a thread of a plugin never ends",), breaks=True, restarts=True),
            Fault(self.hold_worker, ("a transaction of a source", "a sink loses partitions"), breaks=True),
            Fault(self.hold_leader, ("another worker that has to carry out",), breaks=True),
            Fault(self.cut_network, (_GONE,), breaks=True),
            Fault(self.drop_connections, (_GONE, "a transaction of a source"), breaks=True),
            Fault(self.slow_network, ("Kafka is slow to acknowledge",), breaks=True),
            Fault(self.restart_broker, ("the broker is away", "a status cannot be written"), breaks=True),
            Fault(self.broker_away, ("the broker is away", "the leader cannot write"), breaks=True),
            Fault(self.kill_jvm, ("the driver JVM dies",), breaks=True),
            Fault(self.kill_starting_jvm, ("Spark cannot be started",), breaks=True),
            Fault(self.kill_python_worker, ("a Spark executor or Python worker",)),
            Fault(self.kill_residents, ("a resident",)),
            Fault(self.shortage_of_files, ("no more files can be opened",), breaks=True),
            Fault(self.pause_and_resume),
            Fault(self.stop_and_resume),
            Fault(self.refused_offsets),
            Fault(self.send_back),
            Fault(self.restart_all),
            Fault(self.restart_task),
            Fault(self.reconfigure),
            Fault(self.recreate),
        ]

    # --- processes ----------------------------------------------------------------------------------------------------

    def _victim(self) -> Worker:
        return self.random.choice([worker for worker in self.cluster.alive if worker is not self.spared])

    def kill_worker(self) -> None:
        worker = self._victim()
        self.ended |= set(Tree.of(worker.pid).members)
        worker.kill()
        time.sleep(self.random.uniform(0, self.session_s))
        worker.start()

    def leave_and_return(self) -> None:
        worker = self._victim()
        self.ended |= set(Tree.of(worker.pid).members)
        assert worker.stop(120) == 0, f"{worker.name} ended with a complaint: {worker.tail()}"
        worker.start()

    def leave_while_plugins_hang(self) -> None:
        """A task on each worker, in a call that does not come back."""
        name, flag = "trial-hanging-polls", self.fleet.folder / "hanging-polls"
        flag.touch()
        config = {
            "connector.class": "FaultySource",
            "topic": name,
            "fail.in": "hang:task.poll",
            "fail.while": str(flag),
            "tasks": "3",
            "tasks.max": "3",
        }
        try:
            self.call("PUT", f"/connectors/{name}/config", 200, 201, json=config)
            await_(lambda: self.states(name) == ("RUNNING", ["RUNNING"] * 3), f"{name} runs", 120, 0.5)
            self.leave_and_return()
        finally:
            flag.unlink()
            self.call("DELETE", f"/connectors/{name}", 204, 404)

    def kill_starting_jvm(self) -> None:
        """The one that runs, and the next two as soon as they are there."""
        worker = self._worker()
        killed: set[int] = set()

        def new() -> list[int]:
            return [pid for pid, command in descendants(worker.pid) if _JVM in command and pid not in killed]

        for _ in range(3):
            for pid in await_(new, f"a JVM of {worker.name}", 60):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)

    def kill_residents(self) -> None:
        """All Python workers of Spark at once."""
        found = [pid for pid, command in descendants(self._worker().pid) if "pyspark" in command]
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def hold_leader(self) -> None:
        """Meanwhile others are asked for what only it may do."""
        leader, member = self.cluster.leader(), self.random.choice(self.fleet.running)
        others = [worker for worker in self.cluster.alive if worker is not leader]
        leader.signal(signal.SIGSTOP)
        try:
            asked, path = self.random.choice(others), f"/connectors/{member.name}/config"
            with suppress(httpx2.TimeoutException):
                answer = asked.http.patch(path, json={"errors.log.enable": "true"}, timeout=self.pause_s)
                assert answer.status_code in (200, 409, 500), f"{answer.status_code} {answer.text}"
            time.sleep(self.session_s)
        finally:
            leader.signal(signal.SIGCONT)

    def shortage_of_files(self) -> None:
        """The worker may open nothing, whatever it has to begin meanwhile."""
        worker = self._worker()
        files, most = resource.prlimit(worker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (3, most))
        try:
            time.sleep(_SHORTAGE_S)
        finally:
            resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (files, most))

    # --- network and broker -------------------------------------------------------------------------------------------

    def cut_network(self) -> None:
        """For longer than the session."""
        self.line.cut()
        time.sleep(self.session_s + 8)
        self.line.mend()

    def drop_connections(self) -> None:
        self.line.drop()
        time.sleep(self.session_s / 3)
        self.line.mend()

    def slow_network(self) -> None:
        self.line.slow(0.3)
        time.sleep(15)
        self.line.mend()

    def restart_broker(self) -> None:
        """Not killed: a node that is alone, and is back before its controller knows that it was away, skips the ends of
        transactions, too; see `stop_broker`."""
        self.stop_broker()
        self.broker.start()

    def broker_away(self) -> None:
        """Until the leader has given up on a write."""
        self.stop_broker()
        try:
            worker, source = self._worker(), self.random.choice(self.sources)
            time.sleep(1)
            worker.call("GET", "/connectors", 200)
            began = time.monotonic()
            worker.call("GET", f"/connectors/{source.name}/offsets", 500)
            took = time.monotonic() - began
            assert took < 10, f"offsets were refused after {took:.0f} s"
            worker.call("PATCH", f"/connectors/{source.name}/config", 409, 500, json={"batch.size": "1000"})
        finally:
            self.broker.start()

    # --- operators ----------------------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *expected: int, **options: Any) -> Any:
        """More patient than where four connectors run: a command may take 90 s."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                answer = self._worker().http.request(method, path, **options)
                if answer.status_code in expected:
                    return answer.json() if answer.content else None
                problem = f"{answer.status_code} {answer.text[:300]}"
            except httpx2.TransportError as error:
                problem = f"{type(error).__name__} {error}"
            assert time.monotonic() < deadline, f"{method} {path}: {problem}"
            time.sleep(0.3)

    def _member(self) -> Member:
        return self.random.choice(self.fleet.running)

    def pause_and_resume(self) -> None:
        self._hold_back("pause", 202)

    def stop_and_resume(self) -> None:
        self._hold_back("stop", 204)

    def _hold_back(self, verb: str, expected: int) -> None:
        path = f"/connectors/{self._member().name}"
        self.call("PUT", f"{path}/{verb}", expected)
        time.sleep(self.random.uniform(0, 3))
        self.call("PUT", f"{path}/resume", 202)

    def refused_offsets(self) -> None:
        """Of a connector that runs, and with something that is no offset."""
        source = self.random.choice(self.sources)
        path = f"/connectors/{source.name}"
        good = {"partition": {"filename": str(source.file)}, "offset": {"position": 0}}
        self.call("PATCH", f"{path}/offsets", 400, json={"offsets": [good]})
        self.call("PUT", f"{path}/stop", 204)
        # What has the wrong shape is the caller's mistake; what the connector does not want is its own answer.
        nonsense: list[tuple[Any, int]] = [([], 400), (1, 400), ([{**good, "offset": {"position": "x"}}], 500)]
        for bad, expected in nonsense:
            self.call("PATCH", f"{path}/offsets", expected, json={"offsets": bad})
        self.call("PUT", f"{path}/resume", 202)

    def restart_all(self) -> None:
        path = f"/connectors/{self._member().name}/restart"
        more = self.random.choice(["", "?includeTasks=true", "?includeTasks=true&onlyFailed=true"])
        self.call("POST", path + more, 202, 204, 409)

    def restart_task(self) -> None:
        self.call("POST", f"/connectors/{self._member().name}/tasks/0/restart", 204, 409)

    def reconfigure(self) -> None:
        member = self._member()
        change = {"errors.retry.timeout": str(self.random.choice([0, 1000, 5000]))}
        self.call("PATCH", f"/connectors/{member.name}/config", 200, json=change)

    def recreate(self) -> None:
        """It goes on where it was: its offsets stay."""
        member = self._member()
        self.call("DELETE", f"/connectors/{member.name}", 204, 404)
        time.sleep(self.random.uniform(0, 2))
        self.create(member)

    def create(self, member: Member) -> None:
        """May be repeated."""
        body = {"name": member.name, "config": dict(member.config), "initial_state": member.initial}
        created = self.call("POST", "/connectors", 201, 409, json={k: v for k, v in body.items() if v is not None})
        if "error_code" in created and "already exists" not in created["message"]:
            time.sleep(0.3)
            self.create(member)

    # --- whole again --------------------------------------------------------------------------------------------------

    def mend(self) -> None:
        """Whatever was done: all of it runs."""
        self.line.mend()
        if not self.broker.running():
            self.broker.restart()
        for worker in self.cluster.workers:
            if worker.running:
                worker.signal(signal.SIGCONT)
            else:
                self.surprises.append(f"{worker.name} has ended by itself: {worker.tail(10)}")
                worker.start()
        for worker in self.cluster.workers:
            worker.await_ready(300)
        self.await_whole()

    def await_whole(self, seconds: float = _WHOLE_S) -> None:
        """Until all connectors are as they should be, each task once; what has failed is restarted, as an operator
        would."""
        deadline = time.monotonic() + seconds
        wrong = ["nobody answers"]
        while wrong:
            with suppress(httpx2.TransportError):
                wrong = self.wrong()
            assert not wrong or time.monotonic() < deadline, f"after {seconds:.0f} s: {wrong[:10]}"
            time.sleep(1 if wrong else 0)

    def wrong(self) -> list[str]:
        told = self.call("GET", "/connectors?expand=status", 200)
        held = Counter(task for worker in self.cluster.alive for task in metrics(worker)[0])
        found: list[str] = []
        for name in (name for name in told if name.startswith(EVIL)):
            self.call("DELETE", f"/connectors/{name}", 204, 404)
        for member in self.fleet.members:
            status = told.get(member.name, {}).get("status")
            if status is None:
                found.append(f"{member.name} is not known")
                self.create(member)
                continue
            states = [status["connector"]["state"], *(each["state"] for each in status["tasks"])]
            if states != [member.state] * (1 + member.tasks):
                found.append(f"{member.name} is {states}")
                self._put_right(member, status)
            elif any(held[task] != 1 for task in member.task_names):
                found.append(f"tasks of {member.name} are where nobody says")
        return found

    def _put_right(self, member: Member, status: Any) -> None:
        reasons = [each["trace"] for each in (status["connector"], *status["tasks"]) if each["state"] == "FAILED"]
        if reasons:
            self.failed.append(f"{member.name}: {reasons[0].partition(chr(10))[0]}")
            self.log(f"  restarted by hand: {self.failed[-1][:300]}")
            path = f"/connectors/{member.name}/restart?includeTasks=true&onlyFailed=true"
            self.call("POST", path, 202, 404, 409)
        elif member.state == "RUNNING" and status["connector"]["state"] in ("PAUSED", "STOPPED"):
            self.call("PUT", f"/connectors/{member.name}/resume", 202, 404)

    def states(self, name: str) -> tuple[str, list[str]] | None:
        """As any worker tells them, while it knows the connector."""
        status = self.call("GET", f"/connectors/{name}/status", 200, 404)
        return None if "error_code" in status else (status["connector"]["state"], [t["state"] for t in status["tasks"]])

    def restart_failed(self) -> None:
        """`mend` does."""
