"""Lines per second from a file to Kafka, exactly once: Headgate beside Apache Kafka Connect, both in distributed mode.

`make bench-exactly-once` runs it. Each worker has `exactly.once.source.support=enabled` and a broker of its own; the
clock runs from the request that creates the connector until its last offset is committed. Rounds alternate; what counts
is the ratio of the medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from clusters import KINDS, SOURCE, call, cluster, insist, until, warm_up

from headgate.dev.broker import Broker

WIDTH: Final = 107
MORE: Final = {"exactly.once.source.support": "enabled", "offset.flush.interval.ms": "1000"}


def write(path: Path, lines: int) -> None:
    """Lines of WIDTH bytes."""
    block = 10_000
    with path.open("w") as out:
        for first in range(0, lines, block):
            numbers = range(first, min(first + block, lines))
            out.write("".join(f"{number:010d} ".ljust(WIDTH - 1, "x") + "\n" for number in numbers))


def rate(url: str, name: str, file: Path, lines: int, boundary: str) -> float:
    size = file.stat().st_size
    config = {"connector.class": SOURCE, "file": str(file), "topic": name, "transaction.boundary": boundary}

    def done() -> bool:
        _, found = call(url, "GET", f"/connectors/{name}/offsets")
        offsets = (found or {}).get("offsets", [])
        return bool(offsets) and offsets[0]["offset"]["position"] >= size

    began = time.monotonic()
    insist(url, "POST", "/connectors", 201, body={"name": name, "config": config})
    until(done, "all lines are committed", 0.05)
    took = time.monotonic() - began
    insist(url, "DELETE", f"/connectors/{name}", 204)
    return lines / took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=KINDS)
    arguments = parser.parse_args()
    boundaries = ("poll", "interval")
    rates: dict[tuple[str, str], list[float]] = {}
    for number in range(arguments.rounds):
        kinds = [arguments.only] if arguments.only else KINDS if number % 2 == 0 else KINDS[::-1]
        for kind in kinds:
            with tempfile.TemporaryDirectory(prefix="headgate-bench-") as name, Broker() as broker:
                folder = Path(name)
                write(folder / "in.txt", arguments.lines)
                with cluster(kind, broker.bootstrap, folder, 1, MORE) as (url,):
                    warm_up([url], folder)
                    for boundary in boundaries:
                        found = rate(url, f"once-{boundary}", folder / "in.txt", arguments.lines, boundary)
                        rates.setdefault((kind, boundary), []).append(found)
                        print(f"{kind}, boundary {boundary}: {found:,.0f} lines/s", flush=True)
    print(f"\n{arguments.lines:,} lines of {WIDTH} bytes, {arguments.rounds} rounds, {os.cpu_count()} cores\n")
    print("| Exactly-once source | Headgate | Apache Kafka Connect 4.3.1 | ratio |\n|---|---|---|---|")
    for boundary in boundaries:
        ours, theirs = (statistics.median(rates.get((kind, boundary), [float("nan")])) for kind in KINDS)
        print(f"| boundary {boundary} | {ours:,.0f}/s | {theirs:,.0f}/s | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
