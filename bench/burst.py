"""Two hundred connectors created in a burst on a cluster of three workers: Headgate's, then Apache Kafka Connect's.

`make bench-burst` runs it. Measured is the time from the first request to the last 201, and to the moment when every
connector and every task is RUNNING. Both clusters have the same settings, and a broker of their own.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusters import KINDS, SOURCE, call, cluster, until, warm_up

from headgate.dev.broker import Broker

WORKERS: Final = 3
CALLERS: Final = 8


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=200)
    parser.add_argument("--only", choices=KINDS)
    arguments = parser.parse_args()
    for kind in [arguments.only] if arguments.only else KINDS:
        with tempfile.TemporaryDirectory(prefix="headgate-burst-") as name, Broker() as broker:
            folder = Path(name)
            with cluster(kind, broker.bootstrap, folder, WORKERS) as urls:
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
