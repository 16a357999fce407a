"""Clusters of worker processes, Headgate's and Apache Kafka Connect's, with the same settings, and how to ask them."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from peer import CONNECT

from headgate.dev.ports import pick_free
from headgate.jars.find import find_java
from headgate.jars.jars import fetch

KINDS: Final = ("Headgate", "Apache")
SOURCE: Final = "org.apache.kafka.connect.file.FileStreamSourceConnector"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
LONGEST_S: Final = 600.0


def settings(bootstrap: str, url: str, more: Mapping[str, str]) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "key.converter": STRING,
        "value.converter": STRING,
        **{f"{kind}.storage.topic": f"bench-{kind}" for kind in ("config", "offset", "status")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "scheduled.rebalance.max.delay.ms": "0",
        "listeners": url,
        **more,
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
def cluster(
    kind: str, bootstrap: str, folder: Path, workers: int, more: Mapping[str, str] | None = None
) -> Iterator[list[str]]:
    """The URLs of its workers, which all answer."""
    command = headgate_command if kind == "Headgate" else apache_command
    with ExitStack() as ending:
        urls = []
        for number, port in enumerate(pick_free(workers)):
            url = f"http://127.0.0.1:{port}"
            file = folder / f"{kind}-{number}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in settings(bootstrap, url, more or {}).items()))
            with (folder / f"{kind}-{number}.log").open("wb") as output:
                process = subprocess.Popen(command(file, folder), stdout=output, stderr=subprocess.STDOUT)
            ending.callback(process.wait)
            ending.callback(process.terminate)
            urls.append(url)
        for url in urls:
            insist(url, "GET", "/connectors", 200)
        yield urls


def until(condition: Callable[[], bool], what: str, pause: float = 0.1) -> None:
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
