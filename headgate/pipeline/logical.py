"""Logical types: Connect's Decimal, Date, Time and Timestamp, to and from what they are stored as."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from headgate.api import DataError, Schema
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from headgate.java.dates.civil import DAY_MS

_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MS: Final = dt.timedelta(milliseconds=1)
FIRST_MS: Final = (dt.datetime.min.replace(tzinfo=dt.UTC) - _EPOCH) // _MS
LAST_MS: Final = (dt.datetime.max.replace(tzinfo=dt.UTC) - _EPOCH) // _MS
"""The first and the last millisecond that Python has a date for."""


def days_of(value: dt.date) -> int:
    """Days since the epoch."""
    return value.toordinal() - _EPOCH_DAY


def date_of(days: int) -> dt.date:
    try:
        return dt.date.fromordinal(days + _EPOCH_DAY)
    except (OverflowError, ValueError):
        raise DataError(f"Date is out of range: day {days}") from None


def ms_of_time(value: dt.time) -> int:
    """Milliseconds since midnight; what is finer is lost."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def time_of(ms: int) -> dt.time:
    if not 0 <= ms < DAY_MS:
        raise DataError(f"Time values must use number of milliseconds greater than 0 and less than {DAY_MS}")
    return (_EPOCH + ms * _MS).time()


def ms_of(value: dt.datetime) -> int:
    """Milliseconds since the epoch; a datetime without zone is taken as UTC."""
    return ((value if value.tzinfo else value.replace(tzinfo=dt.UTC)) - _EPOCH) // _MS


def datetime_of(ms: int) -> dt.datetime:
    try:
        return _EPOCH + ms * _MS
    except OverflowError:
        raise DataError(f"Timestamp is out of range: {ms} ms") from None


def instant_ms(value: dt.date | dt.time) -> int:
    """The milliseconds that the java.util.Date of any of the three would hold."""
    if isinstance(value, dt.time):
        return ms_of_time(value)
    return ms_of(value) if isinstance(value, dt.datetime) else days_of(value) * DAY_MS


def scale_of(schema: Schema) -> int:
    parameters: Mapping[str, str] = schema.parameters
    if "scale" not in parameters:
        raise DataError("Invalid Decimal schema: scale parameter not found.")
    try:
        return int(parameters["scale"])
    except ValueError:
        raise DataError("Invalid scale parameter found in Decimal schema: ") from None


def bytes_of_decimal(schema: Schema, value: Decimal) -> bytes:
    """The unscaled value, big-endian, two's complement, as short as it can be."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise DataError(f"Decimal value is not a number: {value}")
    scale = scale_of(schema)
    if -exponent != scale:
        raise DataError(
            f"Decimal value has mismatching scale for given Decimal schema. "
            f"Schema has scale {scale}, value has scale {-exponent}."
        )
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    bits = (unscaled if unscaled >= 0 else ~unscaled).bit_length()
    return unscaled.to_bytes(bits // 8 + 1, "big", signed=True)


def decimal_of_bytes(schema: Schema, data: bytes) -> Decimal:
    if not data:
        raise DataError("Zero length Decimal")
    unscaled = int.from_bytes(data, "big", signed=True)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale_of(schema)))


TO_NUMBER: Final[Mapping[str, Callable[[Any], int]]] = {
    DATE_NAME: days_of,
    TIME_NAME: ms_of_time,
    TIMESTAMP_NAME: ms_of,
}
_OF_NUMBER: Final[Mapping[str, Callable[[int], Any]]] = {
    DATE_NAME: date_of,
    TIME_NAME: time_of,
    TIMESTAMP_NAME: datetime_of,
}


def to_base(schema: Schema) -> Callable[[Any], Any] | None:
    """How values of this type become what they are stored as; None for one that is not logical."""
    return partial(bytes_of_decimal, schema) if schema.name == DECIMAL_NAME else TO_NUMBER.get(schema.name or "")


def of_base(schema: Schema) -> Callable[[Any], Any] | None:
    """The way back."""
    return partial(decimal_of_bytes, schema) if schema.name == DECIMAL_NAME else _OF_NUMBER.get(schema.name or "")
