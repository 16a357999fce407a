"""Instants: the forms that TimestampConverter knows, to and from milliseconds since the epoch."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import DataError, Schema, SchemaType
from headgate.api import schema as schemas
from headgate.java.dates.civil import DAY_MS
from headgate.java.dates.format import DateFormat
from headgate.pipeline.logical import date_of, datetime_of, instant_ms, time_of
from headgate.pipeline.text import java_class

SCHEMAS: Final[Mapping[str, Schema]] = {
    "string": schemas.STRING,
    "unix": schemas.INT64,
    "Date": schemas.DATE,
    "Time": schemas.TIME,
    "Timestamp": schemas.TIMESTAMP,
}
"""Of each form."""

PRECISIONS: Final[Mapping[str, tuple[int, int]]] = {
    "nanoseconds": (1, 1_000_000),
    "microseconds": (1, 1000),
    "milliseconds": (1, 1),
    "seconds": (1000, 1),
}
"""What a unit is in milliseconds, as a fraction."""

NO_FORMAT: Final = "TimestampConverter requires format option to be specified when using string timestamps"
_NAMES: Final = {schemas.DATE_NAME: "Date", schemas.TIME_NAME: "Time", schemas.TIMESTAMP_NAME: "Timestamp"}
_INT64: Final = 1 << 63


def form_of_schema(schema: Schema) -> str:
    """Raises DataError."""
    if schema.name in _NAMES:
        return _NAMES[schema.name]
    if schema.type is SchemaType.STRING:
        return "string"
    if schema.type is SchemaType.INT64:
        return "unix"
    raise DataError(f"Schema {schema} does not correspond to a known timestamp type format")


def form_of_value(value: Any) -> str:
    """Raises DataError."""
    if isinstance(value, dt.date | dt.time):
        return "Timestamp"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int) and not isinstance(value, bool) and -_INT64 <= value < _INT64:
        return "unix"
    raise DataError(f"TimestampConverter does not support class {java_class(value)} objects as timestamps")


@dataclass(frozen=True, slots=True)
class Instants:
    format: DateFormat | None
    precision: str

    def read(self, form: str, value: Any) -> int:
        """Raises DataError."""
        if form == "string":
            return self._parsed(value)
        if form == "unix":
            if not isinstance(value, int) or isinstance(value, bool):
                raise DataError(f"Expected Unix timestamp to be a Long, but found class {java_class(value)}")
            times, parts = PRECISIONS[self.precision]
            return _scaled(value, times, parts)
        if not isinstance(value, dt.date | dt.time):
            raise DataError(f"Expected {form} to be a java.util.Date, but found class {java_class(value)}")
        return instant_ms(value)

    def _parsed(self, value: Any) -> int:
        if not isinstance(value, str):
            raise DataError(f"Expected string timestamp to be a String, but found class {java_class(value)}")
        if self.format is None:
            raise DataError(NO_FORMAT)
        try:
            return self.format.parse(value)
        except ValueError:
            raise DataError(
                f"Could not parse timestamp: value ({value}) does not match pattern ({self.format.pattern})"
            ) from None

    def writer(self, form: str) -> Callable[[int], Any]:
        if form == "string":
            assert self.format is not None
            return self.format.format
        if form == "unix":
            parts, times = PRECISIONS[self.precision]
            return lambda ms: _scaled(ms, times, parts)
        return _WRITERS[form]


_WRITERS: Final[Mapping[str, Callable[[int], Any]]] = {
    "Date": lambda ms: date_of(ms // DAY_MS),
    "Time": lambda ms: time_of(ms % DAY_MS),
    "Timestamp": datetime_of,
}


def _scaled(value: int, times: int, parts: int) -> int:
    """As Java's TimeUnit: towards zero, and never beyond what a long holds."""
    scaled = value * times
    whole = scaled // parts if scaled >= 0 else -(-scaled // parts)
    return max(-_INT64, min(whole, _INT64 - 1))
