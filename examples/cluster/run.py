"""A cluster to try: a broker, three workers, two connectors. One worker is killed, its tasks come up elsewhere.

Run it with `make cluster`; `make cluster ARGS=--stay` leaves everything running until Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headgate.dev import ports
from headgate.dev.broker import Broker, BrokerFailed
from headgate.jars.find import JavaMissing
from headgate.jars.jars import FetchFailed

HERE = Path(__file__).parent
DATA = Path("cluster-data")
PORTS = (8083, 8084, 8085)
SOURCE, SINK = "cluster-source", "cluster-sink"
ALL_TASKS = 4


class Failed(Exception):
    """Something did not come up; the message is for whoever tries this."""


def say(text: str) -> None:
    print(f"\n\033[1m==> {text}\033[0m" if sys.stdout.isatty() else f"\n==> {text}", flush=True)


class Worker:
    """One worker process; its output goes to a file, for three of them would talk at once."""

    def __init__(self, number: int, port: int, bootstrap: str) -> None:
        self.name = f"worker{number}"
        self.id = f"127.0.0.1:{port}"
        self.url = f"http://{self.id}"
        self.log = DATA / f"{self.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._file = DATA / f"{self.name}.properties"
        self._file.write_text(settings({"bootstrap.servers": bootstrap, "listeners": self.url}))

    def start(self) -> None:
        command = [str(Path(sys.executable).parent / "headgate"), "distributed", str(self._file)]
        print(f"    {' '.join(command)} > {self.log} &", flush=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def kill(self) -> None:
        assert self.process is not None
        print(f"    kill -9 {self.process.pid}", flush=True)
        self.process.kill()
        self.process.wait()
        self.process = None

    def require_alive(self) -> None:
        if self.process is not None and self.process.poll() is not None:
            last = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
            raise Failed(f"{self.name} ended with exit code {self.process.returncode}; its log ends with:\n{last}")

    def healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=15) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def settings(values: dict[str, str]) -> str:
    """The sample file, with these values in place of its own."""
    text = (HERE / "worker.properties").read_text()
    for key, value in values.items():
        text, count = re.subn(rf"(?m)^{re.escape(key)}=.*$", f"{key}={value}", text)
        if count != 1:
            raise Failed(f"{HERE / 'worker.properties'} should have one line {key}=..., it has {count}")
    return text


def rest(method: str, url: str, body: Any = None, *, shown: bool = True, patience: float = 60) -> Any:
    """One call, shown as the curl command that does the same. 409 means that a rebalance is under way, 404 that this
    worker has not yet read of what another one made: ask again."""
    data = None if body is None else json.dumps(body).encode()
    if shown:
        sent = f" -H 'Content-Type: application/json' -d '{json.dumps(body)}'" if body is not None else ""
        print(f"    curl -X {method} '{url}'{sent}", flush=True)
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    deadline = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                text = answer.read().decode()
            break
        except urllib.error.HTTPError as error:
            if error.code not in (404, 409) or time.monotonic() > deadline:
                raise Failed(f"{method} {url} was answered {error.code}: {error.read().decode()}") from None
            time.sleep(0.2)
        except OSError as error:
            raise Failed(f"{method} {url} was not answered: {error}") from None
    if text and shown:
        print(f"    {text}", flush=True)
    return json.loads(text) if text else None


class Cluster:
    def __init__(self, bootstrap: str, wanted: Sequence[int]) -> None:
        self.workers = [Worker(number, port, bootstrap) for number, port in enumerate(wanted, 1)]

    def until(self, what: str, condition: Callable[[], Any], seconds: float = 240) -> None:
        """Waits, with a dot each second, until `condition` is true and all workers live."""
        began, dots = time.monotonic(), 0
        while not condition():
            for worker in self.workers:
                worker.require_alive()
            if time.monotonic() > began + seconds:
                raise Failed(f"{what} did not happen within {seconds:.0f} s: the logs in {DATA} may say why")
            if time.monotonic() > began + dots + 1:
                print(".", end="", flush=True)
                dots += 1
            time.sleep(0.1)
        if dots:
            print(flush=True)

    def places(self, asked: Worker, *, shown: bool = False) -> dict[str, tuple[str, str]]:
        """State and worker id of each connector and task that has a status."""
        found = rest("GET", f"{asked.url}/connectors?expand=status", shown=False)
        if shown:
            print(f"    curl '{asked.url}/connectors?expand=status'", flush=True)
        places: dict[str, tuple[str, str]] = {}
        for name, each in found.items():
            status = each["status"]
            for what, one in [(name, status["connector"]), *((f"{name}-{t['id']}", t) for t in status["tasks"])]:
                if one["state"] == "FAILED":
                    raise Failed(f"{what} has failed:\n{one.get('trace', '')}")
                places[what] = (one["state"], one["worker_id"])
        return places

    def show_places(self, asked: Worker) -> None:
        names = {worker.id: worker.name for worker in self.workers}
        for what, (state, where) in sorted(self.places(asked, shown=True).items()):
            print(f"    {what:<18}{state:<12}{names.get(where, '')} ({where})", flush=True)

    def all_running(self, asked: Worker) -> bool:
        places = self.places(asked)
        return len(places) == 2 + ALL_TASKS and all(state == "RUNNING" for state, _ in places.values())

    def busy(self, asked: Worker, worker: Worker) -> bool:
        return any(where == worker.id for _, where in self.places(asked).values())

    def stop(self) -> None:
        """All at once, as an operator does; by force who takes too long."""
        alive = [worker.process for worker in self.workers if worker.process is not None]
        for process in alive:
            process.send_signal(signal.SIGTERM)
        for process in alive:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def tour(cluster: Cluster) -> None:
    one, two, three = cluster.workers
    say("A source, created through worker1; its offset, asked of worker3")
    rest("POST", f"{one.url}/connectors", json.loads((HERE / "file-source.json").read_text()))
    offsets = f"{three.url}/connectors/{SOURCE}/offsets"
    cluster.until("The first line", lambda: rest("GET", offsets, shown=False)["offsets"])
    rest("GET", offsets)
    say("A sink with three tasks, created through worker2")
    rest("POST", f"{two.url}/connectors", json.loads((HERE / "file-sink.json").read_text()))
    cluster.until("Everything running", lambda: cluster.all_running(three))
    say("What runs where, asked of worker3: any worker knows")
    cluster.show_places(three)
    arrive(cluster, 1)

    owner = cluster.places(three)[f"{SOURCE}-0"][1]
    victim = next(worker for worker in cluster.workers if worker.id == owner)
    asked = next(worker for worker in cluster.workers if worker is not victim)
    say(f"Killing {victim.name}, which runs the source's task, as a power cut would")
    victim.kill()
    began = time.monotonic()
    cluster.until("The others taking over", lambda: cluster.all_running(asked) and not cluster.busy(asked, victim), 120)
    say(f"Its work came up elsewhere after {time.monotonic() - began:.0f} s; up to 6 s of them until Kafka missed it")
    cluster.show_places(asked)
    arrive(cluster, 4)

    say(f"Starting {victim.name} again: it gets its fair part of the work")
    victim.start()
    cluster.until(f"{victim.name} answering", victim.healthy)
    cluster.until("A fair part for it", lambda: cluster.all_running(asked) and cluster.busy(asked, victim))
    cluster.show_places(victim)


def arrive(cluster: Cluster, first: int) -> None:
    """At least once: what a killed worker had written and not yet committed comes twice."""
    say("Appending lines to in.txt and waiting for them in out.txt")
    source, sink = DATA / "in.txt", DATA / "out.txt"
    with source.open("a") as file:
        file.writelines(f"Line {number}\n" for number in range(first, first + 3))
    wanted = set(source.read_text().splitlines())
    cluster.until("The lines arriving", lambda: sink.exists() and wanted <= set(sink.read_text().splitlines()))
    print("".join(f"    out.txt: {line}\n" for line in sink.read_text().splitlines()), end="")


def stay(cluster: Cluster) -> None:
    one, two, three = cluster.workers
    say(f"Staying up: append to {DATA / 'in.txt'}, watch {DATA / 'out.txt'}; Ctrl-C ends it. To play with:")
    print(f"    curl '{one.url}/connectors?expand=status'")
    print(f"    curl -X PUT {two.url}/connectors/{SINK}/pause")
    print(f"    curl -X PUT {three.url}/connectors/{SINK}/resume")
    print(f"    curl -X POST '{two.url}/connectors/{SOURCE}/restart?includeTasks=true'")
    print(f"    curl -X PUT {three.url}/connectors/{SOURCE}/stop")
    print(f"    curl -X DELETE {one.url}/connectors/{SOURCE}/offsets    # 409 during a rebalance: ask again")
    print(f"    curl -X PUT {two.url}/connectors/{SOURCE}/resume")
    print(f"    curl {one.url}/health")
    for worker in cluster.workers:
        assert worker.process is not None
        print(f"    kill {worker.process.pid}    # {worker.name} says goodbye; with -9 it does not")
    sys.stdout.flush()
    while any(worker.process is not None and worker.process.poll() is None for worker in cluster.workers):
        time.sleep(0.5)
    raise Failed("No worker is left")


def choose_ports(wanted: Sequence[int] | None) -> list[int]:
    if wanted is None:
        taken = [port for port in PORTS if not ports.is_free(port)]
        others = iter(ports.pick_free(len(taken)))
        return [next(others) if port in taken else port for port in PORTS]
    for port in wanted:
        try:
            usable = wanted.count(port) == 1 and 0 < port <= 65535 and ports.is_free(port)
        except OSError:
            usable = False
        if not usable:
            raise Failed(f"Port {port} cannot be used: give three that are free")
    return list(wanted)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A broker and three workers; one is killed and comes back.")
    parser.add_argument("--stay", action="store_true", help="leave it running until Ctrl-C")
    parser.add_argument(
        "--ports", type=int, nargs=3, metavar="PORT", help="REST ports of the workers (8083 to 8085, or free ones)"
    )
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> None:
    began = time.monotonic()
    chosen = choose_ports(arguments.ports)
    shutil.rmtree(DATA, ignore_errors=True)
    DATA.mkdir()
    (DATA / "in.txt").write_text("Hello from a file\n")
    say("Starting a Kafka broker (the first time, jars are downloaded)")
    with Broker(DATA / "broker") as broker:
        print(f"    Kafka serves at {broker.bootstrap}", flush=True)
        cluster = Cluster(broker.bootstrap, chosen)
        try:
            say("Starting three workers, each with a Spark of its own")
            for worker in cluster.workers:
                worker.start()
            for worker in cluster.workers:
                cluster.until(f"{worker.name} answering", worker.healthy)
            tour(cluster)
            say(f"Done in {time.monotonic() - began:.0f} s")
            if arguments.stay:
                stay(cluster)
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # stopping is under way already
            say("Stopping")
            cluster.stop()


def main() -> None:
    arguments = options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run(arguments)
    except (Failed, BrokerFailed, FetchFailed, JavaMissing) as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit(0 if arguments.stay else 130)


if __name__ == "__main__":
    main()
