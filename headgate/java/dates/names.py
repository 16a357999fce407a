"""Names in dates, in English, as Java's SimpleDateFormat writes and reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
HALVES: Final = ("AM", "PM")

_ZONES: Final = {"Eastern": ("E", -5), "Central": ("C", -6), "Mountain": ("M", -7), "Pacific": ("P", -8)}
ZONES: Final[Mapping[str, int]] = {
    **dict.fromkeys(("UTC", "UT", "WET", "Coordinated Universal Time", "Greenwich Mean Time"), 0),
    **dict.fromkeys(("WEST", "CET", "Central European Standard Time"), 1),
    **dict.fromkeys(("CEST", "EET", "Central European Summer Time"), 2),
    **dict.fromkeys(("EEST", "MSK"), 3),
    **dict.fromkeys(("JST", "Japan Standard Time"), 9),
    **{f"{short}ST": hours for short, hours in _ZONES.values()},
    **{f"{short}DT": hours + 1 for short, hours in _ZONES.values()},
    **{f"{name} Standard Time": hours for name, (_, hours) in _ZONES.items()},
    **{f"{name} Daylight Time": hours + 1 for name, (_, hours) in _ZONES.items()},
}
"""Hours ahead of UTC. Java knows many more, some of which mean different things in different places."""
