"""The failure table of the architecture page, row by row: which fault breaks it, or why none does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PAGE: Final = Path(__file__).parents[2] / "docs" / "architecture.md"
_TITLE: Final = "## What happens when things fail"

LEFT_OUT: Final[Mapping[str, str]] = {
    "the offsets file": "a worker alone has one, a cluster has not",
    "a standalone worker dies": "this is a cluster",
    "the topic of source offsets was deleted": "what it held would be lost, and nothing could be counted",
    "the topic of configs, offsets or states": "the same",
    "a broker has lost sight of a transaction": "no client can make a broker forget one",
    "a command takes longer than 90 s": "it would take longer than all the others together",
}
"""By the beginnings of rows."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that breaks, or that operators do; done when the cluster is left to itself again."""

    act: Callable[[], None]
    rows: tuple[str, ...] = ()
    """The rows that it is about, by their beginnings."""
    breaks: bool = False
    """Whether requests may be answered by 500 or 503, or not at all, meanwhile."""
    restarts: bool = False
    """Whether a worker is ended and started anew."""

    @property
    def name(self) -> str:
        return self.act.__name__


def rows() -> list[str]:
    """The first cells of the table."""
    _, _, section = _PAGE.read_text().partition(_TITLE)
    cells = [line.split("|")[1].strip() for line in section.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return cells[2:]  # behind the head, and the line below it


def broken(faults: Sequence[Fault]) -> list[str]:
    """The rows that these are about."""
    beginnings = tuple(row for fault in faults for row in fault.rows)
    return [row for row in rows() if row.startswith(beginnings)] if beginnings else []


def forgotten(faults: Sequence[Fault]) -> list[str]:
    """Rows that no fault is about, without a word why."""
    known = {*broken(faults), *(row for row in rows() if row.startswith(tuple(LEFT_OUT)))}
    return [row for row in rows() if row not in known]
