"""Ratios as a picture: one bar each, to the right where Headgate is better, to the left where it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_TITLE: Final = "Headgate beside Apache Kafka Connect 4.3.1: how many times better"
_LINE: Final = 20
_LABELS: Final = 540
"""Where they end, and the room of the bars begins."""
_HALF: Final = 220
"""Of the room of the bars: the middle is as good as Apache's."""
_NUMBER: Final = 60
_MIDDLE: Final = _LABELS + _NUMBER + _HALF
_WIDTH: Final = _MIDDLE + _HALF + _NUMBER
_BETTER, _WORSE = "#2f7d4f", "#b4552d"


@dataclass(frozen=True, slots=True)
class Bar:
    group: str
    what: str
    better: float
    """So many times; less than one where Headgate is worse."""


def drawn(bars: Sequence[Bar]) -> str:
    """An SVG, group by group. A bar is as long for half as good as for twice as good."""
    longest = max((abs(math.log(bar.better)) for bar in bars), default=0) or 1
    lines = [_text(_MIDDLE, 0, _TITLE, "middle", bold=True)]
    for group in dict.fromkeys(bar.group for bar in bars):
        lines.append(_text(_LABELS, len(lines), group, "end", bold=True))
        members = [bar for bar in bars if bar.group == group]
        lines += ["".join(_drawn(bar, row, longest)) for row, bar in enumerate(members, len(lines))]
    height = (len(lines) + 1) * _LINE
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><rect width="{_WIDTH}" height="{height}" fill="white"/>\n'
        + "\n".join(lines)
        + f'\n<path d="M{_MIDDLE} {1.5 * _LINE}V{height - _LINE / 2}" stroke="black"/>\n</svg>\n'
    )


def _drawn(bar: Bar, row: int, longest: float) -> Iterator[str]:
    length = _HALF * math.log(bar.better) / longest
    start, end = min(_MIDDLE, _MIDDLE + length), _MIDDLE + length
    yield _text(_LABELS, row, bar.what, "end")
    yield (
        f'<rect x="{start:.1f}" y="{(row + 0.65) * _LINE:.1f}" width="{abs(length):.1f}" height="{_LINE * 0.7:.1f}" '
        f'fill="{_BETTER if length > 0 else _WORSE}"/>'
    )
    yield _text(end + math.copysign(4, length), row, f"{bar.better:.2f}", "start" if length > 0 else "end")


def _text(x: float, row: int, text: str, anchor: str, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{(row + 1.15) * _LINE:.1f}" text-anchor="{anchor}"{weight}>{escape(text)}</text>'
