"""Reads dates as Java's SimpleDateFormat does when it is lenient: the 40th of January is a day in February."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final

from headgate.java.dates.civil import DAY_MS, day_of, weekday
from headgate.java.dates.names import HALVES, MONTHS, WEEKDAYS, ZONES
from headgate.java.dates.pattern import Token

_NUMBER: Final = re.compile(r"-?\d+")
_SAME: Final[Mapping[str, str]] = {"L": "M", "u": "E", "k": "H", "h": "K", "z": "Z", "X": "Z"}
"""Letters of the same field; times are kept as H and K, days of the week from Sunday."""
_OFFSETS: Final = {1: r"([+-])(\d\d)()", 2: r"([+-])(\d\d)([0-5]\d)", 3: r"([+-])(\d\d):([0-5]\d)"}
_GMT: Final = re.compile(r"GMT(?:([+-])(\d\d?):([0-5]\d))?", re.IGNORECASE | re.ASCII)
_CENTURY_BACK: Final = 80


def _unparseable(text: str) -> ValueError:
    return ValueError(f'Unparseable date: "{text}"')


def _one_of(names: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)), re.IGNORECASE)


def _long_and_short(names: Sequence[str]) -> tuple[re.Pattern[str], Mapping[str, int]]:
    numbers = {name[:length].lower(): number for number, name in enumerate(names) for length in (3, None)}
    return _one_of(list(numbers)), numbers


_NAMED: Final[Mapping[str, tuple[re.Pattern[str], Mapping[str, int]]]] = {
    "M": _long_and_short(MONTHS),
    "E": _long_and_short(WEEKDAYS),
    "a": (_one_of(HALVES), {"am": 0, "pm": 1}),
    "G": (_one_of(("AD", "BC")), {"ad": 1, "bc": 0}),
    "Z": (_one_of(list(ZONES)), {name.lower(): hours * 60 for name, hours in ZONES.items()}),
}


def parse(tokens: Sequence[Token], text: str) -> int:
    """Milliseconds since the epoch. Text behind the date is ignored. Raises ValueError."""
    fields: dict[str, int] = {}
    at = 0
    for token, following in zip_longest(tokens, tokens[1:]):
        if not token.letter:
            if not text.startswith(token.text, at):
                raise _unparseable(text)
            at += len(token.text)
            continue
        while text[at : at + 1] in (" ", "\t"):
            at += 1
        # Between digits of two fields only their number of letters tells where one ends.
        abuts = following is not None and bool(following.letter)
        value, at = _field(token, text, at, abuts)
        name = _SAME.get(token.letter, token.letter)
        fields.pop(name, None)
        fields[name] = value  # the order tells which field was read last
    if at == 0:
        raise _unparseable(text)
    return _Date(fields).ms


def _field(token: Token, text: str, at: int, abuts: bool) -> tuple[int, int]:
    """The value of the field that starts here, and where it ends."""
    letter, count = token.letter, token.count
    if letter in "zZX":
        return _zone(letter, count, text, at)
    if letter in "aGE" or (letter in "ML" and count > 2):
        pattern, numbers = _NAMED[_SAME.get(letter, letter)]
        found = pattern.match(text, at)
        if found is None:
            raise _unparseable(text)
        return numbers[found[0].lower()] + (letter in "ML"), found.end()
    end = at + count if abuts else len(text)
    found = _NUMBER.match(text, at, end)
    if found is None or end > len(text):
        raise _unparseable(text)
    return _meaning(letter, count, found[0]), found.end()


def _meaning(letter: str, count: int, digits: str) -> int:
    number = int(digits)
    if letter in "yY" and count <= 2 and len(digits) == 2 and digits.isdigit():
        start = dt.datetime.now(dt.UTC).year - _CENTURY_BACK
        return start + (number - start) % 100
    if (letter, number) in (("h", 12), ("k", 24)):
        return 0
    return number % 7 if letter == "u" else number


def _zone(letter: str, count: int, text: str, at: int) -> tuple[int, int]:
    """Minutes ahead of UTC, and where the zone ends."""
    if letter == "X":
        if text.startswith("Z", at):
            return 0, at + 1
        found = re.compile(_OFFSETS[count], re.ASCII).match(text, at)
    else:
        found = re.compile(_OFFSETS[2], re.ASCII).match(text, at) or _GMT.match(text, at)
        if found is None and (named := _NAMED["Z"][0].match(text, at)):
            return _NAMED["Z"][1][named[0].lower()], named.end()
    if found is None:
        raise _unparseable(text)
    sign, hours, minutes = found.groups()
    ahead = int(hours or 0) * 60 + int(minutes or 0)
    return (-ahead if sign == "-" else ahead), found.end()


class _Date:
    """What the fields that were read mean together; where they disagree, the last one wins."""

    def __init__(self, fields: Mapping[str, int]) -> None:
        self._fields = fields
        self._turns = {name: turn for turn, name in enumerate(fields, start=1)}

    @property
    def ms(self) -> int:
        get = self._fields.get
        minutes = self._hour() * 60 + get("m", 0) - get("Z", 0)
        return self._day() * DAY_MS + minutes * 60_000 + get("s", 0) * 1000 + get("S", 0)

    def _turn(self, *names: str) -> int:
        """When the last of these was read; 0 unless all were."""
        turns = [self._turns.get(name, 0) for name in names]
        return max(turns) if all(turns) else 0

    def _hour(self) -> int:
        hour, half = self._fields.get("K", 0), self._fields.get("a", 0)
        if "H" in self._fields and self._turn("H") > self._turn("K", "a"):
            return self._fields["H"]
        return hour + 12 * half

    def _day(self) -> int:
        fields = self._fields
        year = fields.get("y", 1970)
        if fields.get("G") == 0:
            year = 1 - year
        if self._turn("Y") > self._turn("y"):
            return self._in_week(day_of(fields["Y"], 1, 1), fields.get("w", 1))
        month_start = day_of(year, fields.get("M", 1), 1)
        match self._basis():
            case "W":
                return self._in_week(month_start, fields["W"])
            case "w":
                return self._in_week(day_of(year, 1, 1), fields["w"])
            case "D":
                return day_of(year, 1, 1) + fields["D"] - 1
            case "F":
                return _on_or_before(month_start + 7 * fields.get("F", 1) - 1, fields.get("E", 0))
        return day_of(year, fields.get("M", 1), fields.get("d", 1))

    def _basis(self) -> str:
        """The field that tells the day."""
        whole = {name: self._turn(name) for name in "dD"} | {name: self._turn(name, "E") for name in "WFw"}
        if not any(whole.values()):
            whole = {"W": self._turn("W"), "F": max(self._turn("F"), self._turn("E")), "w": self._turn("w")}
        best = max(whole, key=lambda name: whole[name])
        return best if whole[best] else "d"

    def _in_week(self, start: int, week: int) -> int:
        """A day in a week of the month or year that starts there; weeks start on Sunday, the first one before it."""
        return start - weekday(start) + self._fields.get("E", 0) + 7 * (week - 1)


def _on_or_before(day: int, wanted: int) -> int:
    return day - (weekday(day) - wanted) % 7
