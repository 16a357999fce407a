"""Headgate beside Apache Kafka Connect 4.3.1: one table, one run, one broker, by turns.

`make bench` runs it all; `make bench ARGS="latency start"` chooses rows, and smaller sizes make it quicker. Each turn
has a worker process of its own, and nothing else runs. What counts is the ratio of the medians: figures of one machine
mean little. docs/performance.md says what each row means.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from burst import burst
from connectors import busy, idle
from exactly_once import exactly_once
from latency import latency
from peer import CONNECT
from rates import rates
from side import APACHE, HEADGATE, KINDS
from start import start
from topics import Topics
from turn import WIDTH, Figure, Inputs, Quantity, Row, Sizes, Turn

from headgate.dev.broker import Broker
from headgate.jars.jars import fetch

ROWS: Final[dict[str, Row]] = {
    "latency": latency,
    "busy": busy,
    "idle": idle,
    "rates": rates,
    "once": exactly_once,
    "start": start,
    "burst": burst,
}
BY_NAME_ONLY: Final = frozenset({"burst"})
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_NONE: Final = "-"
HEADING: Final = ("Work", "Headgate", "Apache Kafka Connect 4.3.1", "ratio", "single rounds")


@dataclass
class Line:
    """One line of the table, and all that was found for it."""

    quantity: Quantity
    found: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def cells(self) -> list[str]:
        ours, theirs = self.found[HEADGATE], self.found[APACHE]
        shown = [self.quantity.show(statistics.median(found)) if found else _NONE for found in (ours, theirs)]
        if not ours or not theirs or not all(theirs):
            return [*shown, _NONE, _NONE]
        ratio = statistics.median(ours) / statistics.median(theirs)
        rounds = [mine / other for mine, other in zip(ours, theirs, strict=False)]
        good = "more" if self.quantity.more_is_better else "less"
        shown.append(f"{self.quantity.word} {ratio:.2f} {_TIMES} ({good} is better)")
        shown.append(f"{min(rounds):.2f} to {max(rounds):.2f}")
        return shown


def measure(
    rows: Sequence[str], kinds: Sequence[str], rounds: int, sizes: Sizes, say: Callable[[str, Figure], None]
) -> None:
    """Row after row; in each round both sides, the first of one round being the second of the next."""
    if APACHE in kinds:
        fetch(CONNECT)  # may take a minute, once; not beside anything that is measured
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    # A deleted topic goes at once, and not a minute later during somebody's measurement.
    broker = Broker(heap="1g", properties={"log.segment.delete.delay.ms": "0"})
    try:
        with broker:
            topics = Topics(broker.bootstrap)
            inputs = Inputs(topics, folder, sizes.lines)
            for row in rows:
                for number in range(rounds):
                    for kind in kinds if number % 2 == 0 else kinds[::-1]:
                        name = f"{row}-{kind}-{number}".lower()
                        turn = Turn(kind, number, name, folder / name, topics, inputs, sizes)
                        turn.folder.mkdir()
                        for figure in list(ROWS[row](turn)):  # all or none: rounds stay pairs
                            say(kind, figure)
                        topics.delete(name)
                        shutil.rmtree(turn.folder)
            topics.close()
    finally:
        shutil.rmtree(folder)


def shown(lines: dict[str, Line], markdown: bool) -> Iterator[str]:
    table = [[*HEADING], *([what, *line.cells()] for what, line in lines.items())]
    if markdown:
        table.insert(1, ["---"] * len(HEADING))
        yield from ("| " + " | ".join(cells) + " |" for cells in table)
    else:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="rows: " + ", ".join(ROWS), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="row", help="which to measure; all but burst unless told")
    parser.add_argument("--rounds", type=int, default=3, help="of each row (3)")
    parser.add_argument("--lines", type=int, default=2_000_000, help="of rates and once (2,000,000)")
    parser.add_argument("--records", type=int, default=200, help="of latency, one at a time (200)")
    parser.add_argument("--seconds", type=float, default=30, help="that busy and idle are watched (30)")
    parser.add_argument("--connectors", type=int, help="of busy (100), burst (200) and idle (300)")
    parser.add_argument("--only", choices=KINDS, help="measure one side alone")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/performance.md has it")
    chosen = parser.parse_args()
    if unknown := [row for row in chosen.rows if row not in ROWS]:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    rows = chosen.rows or [row for row in ROWS if row not in BY_NAME_ONLY]
    sizes = Sizes(chosen.lines, chosen.records, chosen.seconds, chosen.connectors)
    kinds = (chosen.only,) if chosen.only else KINDS
    load = os.getloadavg()[0]
    lines: dict[str, Line] = {}

    def say(kind: str, figure: Figure) -> None:
        print(f"    {kind}: {figure.what}: {figure.quantity.show(figure.value)}", file=sys.stderr, flush=True)
        lines.setdefault(figure.what, Line(figure.quantity)).found[kind].append(figure.value)

    # However it is asked to end, it stops what it started, and shows what it has.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        measure(rows, kinds, chosen.rounds, sizes, say)
    except KeyboardInterrupt:
        sys.exit("Stopped before the end.")
    finally:
        if lines:
            print(
                f"\n{sizes.lines:,} lines of {WIDTH} bytes, medians of {chosen.rounds} rounds, {os.cpu_count()} cores,"
                f" load {load:.1f} before\n"
            )
            print("\n".join(shown(lines, chosen.markdown)))


if __name__ == "__main__":
    main()
