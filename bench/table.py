"""Headgate beside Apache Kafka Connect 4.3.1, or beside other programs where that has no such connector: one table, one
run, one broker, by turns.

`make bench` runs it all; `make bench ARGS="latency start"` chooses rows, and smaller sizes make it quicker. Each turn
has a worker process of its own, and nothing else runs. What counts is the ratio of the medians: figures of one machine
mean little. docs/performance.md says what each row means.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from backlog import backlog
from burst import burst
from connectors import busy, idle
from databases import jdbc_sink, jdbc_source
from exactly_once import exactly_once
from lake import lake_backlog, lake_sink
from latency import latency
from peer import CONNECT
from plot import Bar, drawn
from rates import rates
from side import APACHE, HEADGATE, KINDS
from stage import Stage
from start import start
from turn import Figure, Quantity, Row, Sizes, add_sizes
from workloads import PLAIN, WITH_SCHEMAS, WORKLOADS

from headgate.jars.jars import fetch

ROWS: Final[dict[str, Row]] = {
    "latency": latency,
    "busy": busy,
    "idle": idle,
    "rates": rates(PLAIN),
    "schemas": rates(WITH_SCHEMAS),
    "once": exactly_once,
    "start": start,
}
BY_NAME_ONLY: Final[dict[str, Row]] = {
    "backlog": backlog,
    "burst": burst,
    **{name: rates([workload]) for name, workload in WORKLOADS.items()},
}
BESIDE_OTHERS: Final[dict[str, Row]] = {
    "lake-sink": lake_sink,
    "lake-backlog": lake_backlog,
    "jdbc-source": jdbc_source,
    "jdbc-sink": jdbc_sink,
}
"""By name only, too. What stands on the other side is said by the row."""
ALL: Final = ROWS | BY_NAME_ONLY | BESIDE_OTHERS
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_NONE: Final = "-"
HEADING: Final = ("Work", "Headgate", "Apache Kafka Connect 4.3.1", "ratio", "single rounds")
OTHER: Final = "the other"


@dataclass
class Line:
    """One line of the table, and all that was found for it."""

    quantity: Quantity
    found: dict[str, list[float]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    @property
    def ratio(self) -> float | None:
        """Of the medians; None when one side is missing, or did it in no time."""
        ours, theirs = self.found[HEADGATE], self.found[APACHE]
        return statistics.median(ours) / statistics.median(theirs) if ours and theirs and all(theirs) else None

    def cells(self) -> list[str]:
        ours, theirs = self.found[HEADGATE], self.found[APACHE]
        shown = [self.quantity.show(statistics.median(found)) if found else _NONE for found in (ours, theirs)]
        if (ratio := self.ratio) is None:
            return [*shown, _NONE, _NONE]
        rounds = [mine / other for mine, other in zip(ours, theirs, strict=False)]
        good = "more" if self.quantity.more_is_better else "less"
        shown.append(f"{self.quantity.word} {ratio:.2f} {_TIMES} ({good} is better)")
        shown.append(f"{min(rounds):.2f} to {max(rounds):.2f}")
        return shown

    def bars(self, what: str) -> list[Bar]:
        """One, or none."""
        if not (ratio := self.ratio):
            return []
        return [Bar(self.quantity.word, what, ratio if self.quantity.more_is_better else 1 / ratio)]


def measure(
    rows: Sequence[str], kinds: Sequence[str], rounds: int, sizes: Sizes, say: Callable[[str, Figure], None]
) -> None:
    """Row after row; in each round both sides, the first of one round being the second of the next."""
    if APACHE in kinds and not set(rows) <= BESIDE_OTHERS.keys():
        fetch(CONNECT)  # may take a minute, once; not beside anything that is measured
    with Stage.of(sizes) as stage:
        for row in rows:
            for number in range(rounds):
                for kind in kinds if number % 2 == 0 else kinds[::-1]:
                    with stage.turn(row, kind, number) as turn:
                        figures = list(ALL[row](turn))  # all or none: rounds stay pairs
                    for figure in figures:
                        say(kind, figure)


def shown(lines: dict[str, Line], markdown: bool, heading: Sequence[str] = HEADING) -> Iterator[str]:
    table = [[*heading], *([what, *line.cells()] for what, line in lines.items())]
    if markdown:
        table.insert(1, ["---"] * len(heading))
        yield from ("| " + " | ".join(cells) + " |" for cells in table)
    else:
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for cells in table:
            yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def main() -> None:
    rows = f"rows: {', '.join(ROWS)}\nby name only: {', '.join([*BY_NAME_ONLY, *BESIDE_OTHERS])}"
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=rows, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", nargs="*", metavar="row", help="which to measure; the first list below unless told")
    parser.add_argument("--rounds", type=int, default=3, help="of each row (3)")
    add_sizes(parser)
    parser.add_argument("--records", type=int, default=200, help="of latency, one at a time (200)")
    parser.add_argument("--seconds", type=float, default=30, help="that busy and idle are watched (30)")
    parser.add_argument("--settle", type=float, default=5, help="seconds that they are left alone before that (5)")
    parser.add_argument("--connectors", type=int, help="of busy (100), burst (200) and idle (300)")
    parser.add_argument("--only", choices=KINDS, help="measure one side alone")
    parser.add_argument("--markdown", action="store_true", help="print the table as docs/performance.md has it")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the ratios, too, as SVG")
    chosen = parser.parse_args()
    if unknown := [row for row in chosen.rows if row not in ALL]:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ALL)}")
    watched = (chosen.records, chosen.seconds, chosen.connectors, chosen.settle)
    sizes = Sizes(chosen.lines, chosen.size, chosen.tasks, *watched)
    kinds = (chosen.only,) if chosen.only else KINDS
    others = not set(chosen.rows or ROWS).isdisjoint(BESIDE_OTHERS)
    names = {HEADGATE: HEADGATE, APACHE: OTHER if others else APACHE}
    heading = [OTHER if others and each == HEADING[2] else each for each in HEADING]
    load = os.getloadavg()[0]
    lines: dict[str, Line] = {}

    def say(kind: str, figure: Figure) -> None:
        print(f"    {names[kind]}: {figure.what}: {figure.quantity.show(figure.value)}", file=sys.stderr, flush=True)
        lines.setdefault(figure.what, Line(figure.quantity)).found[kind].append(figure.value)

    # However it is asked to end, it stops what it started, and shows what it has.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        measure(chosen.rows or list(ROWS), kinds, chosen.rounds, sizes, say)
    except KeyboardInterrupt:
        sys.exit("Stopped before the end.")
    finally:
        if lines:
            print(
                f"\nRecords of {sizes.size} bytes, tasks.max={sizes.tasks}, medians of {chosen.rounds} rounds,"
                f" {os.cpu_count()} cores, load {load:.1f} before\n"
            )
            print("\n".join(shown(lines, chosen.markdown, heading)))
            if chosen.plot:
                chosen.plot.write_text(drawn([bar for what, line in lines.items() for bar in line.bars(what)]))


if __name__ == "__main__":
    main()
