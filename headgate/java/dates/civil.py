"""Civil days: days since the epoch as year, month and day of Java's calendar, which is Julian until October 1582."""

from __future__ import annotations

import datetime as dt
from typing import Final

DAY_MS: Final = 86_400_000
GREGORIAN: Final = -141427
"""15 October 1582, the day after 4 October."""

_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_LAST: Final = dt.date.max.toordinal() - _EPOCH


def day_of(year: int, month: int, day: int) -> int:
    """Months and days beyond the end go on counting: the 40th of January is in February. Year 0 is 1 BC."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    gregorian = _march_days(year, month) + _leap_days(year, month) + day - 719469
    return gregorian if gregorian >= GREGORIAN else _julian_start(year, month) + day - 1


def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of the month."""
    if GREGORIAN <= day <= _LAST:
        date = dt.date.fromordinal(day + _EPOCH)
        return date.year, date.month, date.day
    year = 1970 + day * 100 // 36525
    # A good guess, which is out by a year at most in the times that milliseconds of 64 bits reach.
    while day_of(year + 1, 1, 1) <= day:
        year += 1
    while day_of(year, 1, 1) > day:
        year -= 1
    month = next(each for each in range(12, 0, -1) if day_of(year, each, 1) <= day)
    return year, month, day - day_of(year, month, 1) + 1


def weekday(day: int) -> int:
    """0 is Sunday."""
    return (day + 4) % 7


def _march_days(year: int, month: int) -> int:
    """Days from 1 March of year 0 to the first of this month, as if no year was a leap year."""
    if month <= 2:
        year, month = year - 1, month + 12
    return year * 365 + (153 * (month - 3) + 2) // 5


def _leap_days(year: int, month: int) -> int:
    year -= month <= 2
    return year // 4 - year // 100 + year // 400


def _julian_start(year: int, month: int) -> int:
    return _march_days(year, month) + (year - (month <= 2)) // 4 - 719470
