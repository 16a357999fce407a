"""Dates, times and timestamps of many Protobuf messages, of and as the numbers that stand in these."""

from __future__ import annotations

import datetime as dt
from typing import Final

import numpy as np
import pyarrow as pa

from headgate.pipeline import logical
from headgate.pipeline.converters.registry.columns import arrays, scalars
from headgate.pipeline.converters.registry.columns.cursors import Cursors
from headgate.pipeline.converters.registry.columns.varints import Longs, Mask

_FIRST_MS: Final = logical.ms_of(dt.datetime.min)
_LAST_MS: Final = logical.ms_of(dt.datetime.max)
_NANOS_IN_MS: Final = 1_000_000
_NANOS: Final = 1_000_000_000


def dates(cursors: Cursors, year: Longs, month: Longs, day: Longs) -> pa.Array:
    wrong = (year < 1) | (year > 9999) | (month < 1) | (month > 12) | (day < 1)
    months = np.where(wrong, 0, 12 * (year - 1970) + month - 1)
    first, following = _first_days(months), _first_days(months + 1)
    cursors.refuse(wrong | (day > following - first))
    return arrays.array(cursors, pa.date32(), (first + day - 1).astype(np.int32))


def times(cursors: Cursors, hours: Longs, minutes: Longs, seconds: Longs, nanos: Longs) -> pa.Array:
    limits = ((hours, 24), (minutes, 60), (seconds, 60), (nanos, _NANOS))
    for values, limit in limits:
        cursors.refuse((values < 0) | (values >= limit))
    ms = ((hours * 60 + minutes) * 60 + seconds) * 1000 + nanos // _NANOS_IN_MS
    return arrays.array(cursors, pa.time32("ms"), ms.astype(np.int32))


def timestamps(cursors: Cursors, seconds: Longs, nanos: Longs) -> pa.Array:
    # What is far away would come back from the other side.
    near = np.clip(seconds, _FIRST_MS // 1000 - 10, _LAST_MS // 1000 + 10)
    cursors.refuse(nanos != nanos.astype(np.int32))
    ms = near * 1000 + nanos // _NANOS_IN_MS
    return arrays.integers(cursors, pa.timestamp("ms", "UTC"), ms, (_FIRST_MS, _LAST_MS))


def date_parts(array: pa.Array, live: Mask | None) -> dict[str, Longs]:
    days = scalars.integers(array, live).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    number = months.astype(np.int64)
    day = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    return {"year": 1970 + number // 12, "month": number % 12 + 1, "day": day}


def time_parts(array: pa.Array, live: Mask | None) -> dict[str, Longs]:
    seconds, ms = np.divmod(scalars.integers(array, live), 1000)
    minutes, second = np.divmod(seconds, 60)
    hours, minute = np.divmod(minutes, 60)
    return {"hours": hours, "minutes": minute, "seconds": second, "nanos": ms * _NANOS_IN_MS}


def timestamp_parts(array: pa.Array, live: Mask | None) -> dict[str, Longs]:
    seconds, ms = np.divmod(scalars.integers(array, live), 1000)
    return {"seconds": seconds, "nanos": ms * _NANOS_IN_MS}


def _first_days(months: Longs) -> Longs:
    """Since the epoch, of months since then."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
