"""Two hundred connectors created in a burst on a cluster of three workers: Headgate's, then Apache Kafka Connect's.

`make bench-burst` runs it. Measured is the time from the first request to the last 201, and to the moment when every
connector and every task is RUNNING. Both clusters have the same settings, and a broker of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from peer import CONNECT

from headgate.dev.broker import Broker
from headgate.dev.ports import pick_free
from headgate.java.find import find_java
from headgate.java.jars import fetch

WORKERS: Final = 3
CALLERS: Final = 8
SOURCE: Final = "org.apache.kafka.connect.file.FileStreamSourceConnector"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
LONGEST_S: Final = 600.0


def settings(bootstrap: str, url: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "burst",
        "key.converter": STRING,
        "value.converter": STRING,
        **{f"{kind}.storage.topic": f"burst-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "scheduled.rebalance.max.delay.ms": "0",
        "listeners": url,
    }


def headgate_command(file: Path, folder: Path) -> list[str]:
    return [sys.executable, "-m", "headgate.cli.distributed", str(file), "--log-level", "WARNING"]


def apache_command(file: Path, folder: Path) -> list[str]:
    logging = folder / "log4j2.properties"
    logging.write_text("status = error\nrootLogger.level = error\n")
    jars = fetch(CONNECT)
    return [
        *(str(find_java()), "-Xms256M", "-Xmx2G", "-XX:+UseG1GC", f"-Dlog4j2.configurationFile={logging}"),
        *("-cp", f"{jars[0].parent}/*", "org.apache.kafka.connect.cli.ConnectDistributed", str(file)),
    ]


@contextmanager
def cluster(kind: str, bootstrap: str, folder: Path) -> Iterator[list[str]]:
    """The URLs of its workers, which all answer."""
    command = headgate_command if kind == "Headgate" else apache_command
    with ExitStack() as ending:
        urls = []
        for number, port in enumerate(pick_free(WORKERS)):
            url = f"http://127.0.0.1:{port}"
            file = folder / f"{kind}-{number}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in settings(bootstrap, url).items()))
            with (folder / f"{kind}-{number}.log").open("wb") as output:
                process = subprocess.Popen(command(file, folder), stdout=output, stderr=subprocess.STDOUT)
            ending.callback(process.wait)
            ending.callback(process.terminate)
            urls.append(url)
        for url in urls:
            insist(url, "GET", "/connectors", 200)
        yield urls


def until(condition: Any, what: str, pause: float = 0.1) -> None:
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"Not within {LONGEST_S:.0f} s: {what}")
        time.sleep(pause)


def call(url: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            content = answer.read()
            return answer.status, json.loads(content) if content else None
    except urllib.error.HTTPError as error:
        return error.code, None
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return 0, None


def insist(url: str, method: str, path: str, *statuses: int, body: Mapping[str, Any] | None = None) -> None:
    """Asks again until it is answered so."""
    until(lambda: call(url, method, path, body)[0] in statuses, f"{method} {url}{path}")


@dataclass
class Took:
    created: float
    running: float
    asked_again: int


def burst(urls: list[str], count: int, folder: Path) -> Took:
    names = [f"burst-{number}" for number in range(count)]
    again = 0

    def create(number: int) -> None:
        nonlocal again
        file = folder / f"{number}.txt"
        file.write_text("one line\n")
        config = {"connector.class": SOURCE, "file": str(file), "topic": "burst", "tasks.max": "1"}
        body = {"name": names[number], "config": config}
        while (status := call(urls[number % len(urls)], "POST", "/connectors", body)[0]) != 201:
            if status == 409 and call(urls[0], "GET", f"/connectors/{names[number]}")[0] == 200:
                return
            again += 1
            time.sleep(0.1)

    began = time.monotonic()
    with ThreadPoolExecutor(CALLERS) as callers:
        list(callers.map(create, range(count)))
    created = time.monotonic() - began

    def all_run() -> bool:
        _, found = call(urls[0], "GET", "/connectors?expand=status")
        states = [each["status"] for each in (found or {}).values() if "status" in each]
        return len(states) == count and all(
            each["connector"]["state"] == "RUNNING" and [task["state"] for task in each["tasks"]] == ["RUNNING"]
            for each in states
        )

    until(all_run, "every connector and task is RUNNING", 0.25)
    return Took(created, time.monotonic() - began, again)


def warm_up(urls: list[str], folder: Path) -> None:
    """One connector runs before the clock does: what is measured is a cluster, not the start of its engines."""
    for number, url in enumerate(urls):
        file = folder / f"warm-{number}.txt"
        file.write_text("one line\n")
        config = {"connector.class": SOURCE, "file": str(file), "topic": "warm"}
        insist(url, "POST", "/connectors", 201, body={"name": f"warm-{number}", "config": config})

    def run() -> bool:
        _, found = call(urls[0], "GET", "/connectors?expand=status")
        tasks = [task["state"] for each in (found or {}).values() for task in each.get("status", {}).get("tasks", [])]
        return tasks == ["RUNNING"] * len(urls)

    until(run, "the first tasks run")
    for number in range(len(urls)):
        insist(urls[0], "DELETE", f"/connectors/warm-{number}", 204, 404)
    until(lambda: call(urls[0], "GET", "/connectors")[1] == [], "all are deleted")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=200)
    parser.add_argument("--only", choices=("Headgate", "Apache"))
    arguments = parser.parse_args()
    for kind in [arguments.only] if arguments.only else ["Headgate", "Apache"]:
        with tempfile.TemporaryDirectory(prefix="headgate-burst-") as name, Broker() as broker:
            folder = Path(name)
            with cluster(kind, broker.bootstrap, folder) as urls:
                warm_up(urls, folder)
                took = burst(urls, arguments.connectors, folder)
        print(
            f"{kind}: {arguments.connectors} connectors on {WORKERS} workers, {os.cpu_count()} cores:"
            f" created in {took.created:.1f} s, all RUNNING after {took.running:.1f} s,"
            f" asked again {took.asked_again} times",
            flush=True,
        )


if __name__ == "__main__":
    main()
