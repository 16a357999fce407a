"""Dates as text by the patterns of Java's SimpleDateFormat, in UTC and English."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from headgate.java.dates import parser
from headgate.java.dates.civil import DAY_MS, civil, day_of, weekday
from headgate.java.dates.names import HALVES, MONTHS, WEEKDAYS
from headgate.java.dates.pattern import Token, tokens

_HOUR_MS: Final = 3_600_000
_RESOLUTIONS: Final = {**dict.fromkeys("HkKha", _HOUR_MS), "m": 60_000, "s": 1000, "S": 1}
_CYCLES: Final = {_HOUR_MS: DAY_MS, 60_000: _HOUR_MS, 1000: 60_000, 1: 1000}


@dataclass(frozen=True, slots=True)
class DatePart:
    """A part of a pattern whose text says one thing about a moment, such as its minute."""

    unit: int
    """All milliseconds of one such span have the same text, ..."""
    cycle: int | None
    """... and so do moments that are so many milliseconds apart; None when all spans differ."""
    format: Callable[[int], str]


class DateFormat:
    """One pattern, ready for use. Raises ValueError, with Java's reason, for what is no pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern: Final = pattern
        self.tokens: Final = tokens(pattern)
        self._writers = [_writer(token) for token in self.tokens]
        self.resolution: Final = min((_RESOLUTIONS.get(token.letter, DAY_MS) for token in self.tokens), default=DAY_MS)
        """All milliseconds of one such span have the same text."""
        self.parts: Final = _parts(self.tokens, self._writers)
        """Their texts, one after the other, are the text of the whole."""

    def format(self, ms: int) -> str:
        return _text(self._writers, ms)

    def parse(self, text: str) -> int:
        """Milliseconds since the epoch; what the pattern lacks is that of 1970. Raises ValueError."""
        return parser.parse(self.tokens, text)


@dataclass(slots=True)
class _Moment:
    day: int
    ms: int
    """Since midnight."""
    civil: tuple[int, int, int]

    @property
    def of_era(self) -> int:
        return self.civil[0] if self.civil[0] > 0 else 1 - self.civil[0]

    @property
    def hour(self) -> int:
        return self.ms // _HOUR_MS

    @property
    def day_of_year(self) -> int:
        return self.day - day_of(self.civil[0], 1, 1) + 1

    @property
    def days_into_month(self) -> int:
        """Not the day of the month in October 1582, from which ten days are missing."""
        return self.day - day_of(*self.civil[:2], 1)

    @property
    def week(self) -> tuple[int, int]:
        """Year and week, from Sunday; the first one is that of 1 January."""
        year = self.civil[0]
        saturday = self.day - weekday(self.day) + 6
        if saturday >= day_of(year + 1, 1, 1):
            return year + 1, 1
        return year, (saturday - day_of(year, 1, 1)) // 7 + 1


def _text(writers: Sequence[Callable[[_Moment], str]], ms: int) -> str:
    day, rest = divmod(ms, DAY_MS)
    moment = _Moment(day, rest, civil(day))
    return "".join([write(moment) for write in writers])


def _parts(tokens: Sequence[Token], writers: Sequence[Callable[[_Moment], str]]) -> Sequence[DatePart]:
    found: list[tuple[int, list[Callable[[_Moment], str]]]] = []
    for token, write in zip(tokens, writers, strict=True):
        unit = _RESOLUTIONS.get(token.letter, DAY_MS)
        if not found or (token.letter and unit != found[-1][0]):
            found.append((unit, []))
        found[-1][1].append(write)
    return [DatePart(unit, _CYCLES.get(unit), partial(_text, group)) for unit, group in found]


def _year(count: int) -> Callable[[int], str]:
    if count == 2:
        return lambda year: f"{year % 100:02}"
    return lambda year: f"{'-' if year < 0 else ''}{abs(year):0{count}}"


_NUMBERS: Final[Mapping[str, Callable[[_Moment], int]]] = {
    "M": lambda at: at.civil[1],
    "L": lambda at: at.civil[1],
    "d": lambda at: at.civil[2],
    "D": lambda at: at.day_of_year,
    "w": lambda at: at.week[1],
    "W": lambda at: (at.days_into_month + weekday(at.day - at.days_into_month)) // 7 + 1,
    "F": lambda at: at.days_into_month // 7 + 1,
    "u": lambda at: weekday(at.day) or 7,
    "H": lambda at: at.hour,
    "k": lambda at: at.hour or 24,
    "K": lambda at: at.hour % 12,
    "h": lambda at: at.hour % 12 or 12,
    "m": lambda at: at.ms // 60_000 % 60,
    "s": lambda at: at.ms // 1000 % 60,
    "S": lambda at: at.ms % 1000,
}


def _writer(token: Token) -> Callable[[_Moment], str]:
    letter, count = token.letter, token.count
    if not letter:
        return lambda _: token.text
    if letter in "ML" and count > 2:
        return _named(MONTHS, count, lambda at: at.civil[1] - 1)
    if letter == "E":
        return _named(WEEKDAYS, count, lambda at: weekday(at.day))
    if letter in "yY":
        shown = _year(count)
        return (lambda at: shown(at.of_era)) if letter == "y" else (lambda at: shown(at.week[0]))
    if letter in "aG":
        index: Callable[[_Moment], int] = (lambda at: at.hour // 12) if letter == "a" else (lambda at: at.civil[0] > 0)
        names = HALVES if letter == "a" else ("BC", "AD")
        return lambda at: names[index(at)]
    if letter in "zZX":
        zone = {"z": "Coordinated Universal Time" if count > 3 else "UTC", "Z": "+0000", "X": "Z"}[letter]
        return lambda _: zone
    number = _NUMBERS[letter]
    return lambda at: f"{number(at):0{count}}"


def _named(names: Sequence[str], count: int, index: Callable[[_Moment], int]) -> Callable[[_Moment], str]:
    shown = names if count > 3 else [name[:3] for name in names]
    return lambda at: shown[index(at)]
