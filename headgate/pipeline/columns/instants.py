"""Instants as columns: what `transforms.instants` is for one value. Milliseconds are int64."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api.frame import NotByColumns, Values, arrow_type
from headgate.java.dates.civil import DAY_MS
from headgate.java.dates.format import DateFormat
from headgate.pipeline.columns.dates import formatted, of_numbers, parsed, spans
from headgate.pipeline.columns.refusing import refuse
from headgate.pipeline.logical import FIRST_MS, LAST_MS
from headgate.pipeline.transforms.instants import PRECISIONS, SCHEMAS, Instants, form_of_schema

_MOST: Final = (1 << 63) - 1
_DATE: Final = DateFormat("yyyy-MM-dd")
_TIME: Final = DateFormat("HH:mm:ss.SSS'Z'")


def convert(values: Values, form: str, instants: Instants) -> pa.Array:
    """In the new form; null stays null. Raises DataError for a schema that has no form, and NotByColumns for rows that
    cannot be converted."""
    given, data = _form_of(values), values.data
    if data.null_count == len(data):
        return pa.nulls(len(data), pa.null() if values.schema is None else arrow_type(SCHEMAS[form]))
    if data.type != arrow_type(SCHEMAS[given]):
        raise NotByColumns("a name that is not true of the schema")
    if values.schema is None and form in ("Date", "Time", "Timestamp"):
        raise NotByColumns("dates without a schema", data.is_valid())
    return _written(_read(given, data, instants), form, instants)


def numbers(data: pa.Array) -> pa.Array:
    """What dates, times or timestamps are stored as."""
    return data.view(pa.int64() if pa.types.is_timestamp(data.type) else pa.int32())


def milliseconds(data: pa.Array) -> pa.Array:
    """Of dates, times or timestamps, as java.util.Date holds them."""
    found = numbers(data).cast(pa.int64())
    return pc.multiply(found, DAY_MS) if pa.types.is_date(data.type) else found


def timestamps(ms: pa.Array) -> pa.Array:
    """Raises NotByColumns for those that Python has no date for."""
    refuse("a date beyond those of Python", pc.or_(pc.less(ms, FIRST_MS), pc.greater(ms, LAST_MS)).fill_null(False))
    return ms.cast(pa.timestamp("ms", "UTC"))


def shown(data: pa.Array) -> pa.Array:
    """Dates, times or timestamps as `values.show` gives them."""
    ms = milliseconds(data)
    date, time = formatted(ms, _DATE), formatted(ms, _TIME)
    midnight = pc.equal(of_numbers(ms, lambda each: each % DAY_MS), 0)
    later = pc.if_else(midnight, date, pc.binary_join_element_wise(date, time, "T"))
    return pc.if_else(pc.less(ms, DAY_MS), time, later)


def _form_of(values: Values) -> str:
    if values.schema is not None:
        return form_of_schema(values.schema)
    if pa.types.is_string(values.data.type):
        return "string"
    if not pa.types.is_int64(values.data.type):
        refuse("what is no timestamp", values.data.is_valid())
    return "unix"


def _read(form: str, data: pa.Array, instants: Instants) -> pa.Array:
    """Milliseconds of what is in this form."""
    if form == "string":
        if instants.format is None:
            raise NotByColumns("no format for text", data.is_valid())
        return parsed(data, instants.format)
    return _scaled(data, *PRECISIONS[instants.precision]) if form == "unix" else milliseconds(data)


def _written(ms: pa.Array, form: str, instants: Instants) -> pa.Array:
    """Milliseconds in this form."""
    if form == "string":
        assert instants.format is not None
        return formatted(ms, instants.format)
    if form == "unix":
        parts, times = PRECISIONS[instants.precision]
        return _scaled(ms, times, parts)
    if form == "Time":
        return of_numbers(ms, lambda each: each % DAY_MS).cast(pa.int32()).view(pa.time32("ms"))
    at = timestamps(ms)
    return at if form == "Timestamp" else spans(ms, DAY_MS).cast(pa.int32()).view(pa.date32())


def _scaled(given: pa.Array, times: int, parts: int) -> pa.Array:
    """As Java's TimeUnit: towards zero, and never beyond what a long holds."""
    if times == 1:
        return given if parts == 1 else pc.divide(given, parts)
    most = _MOST // times
    scaled = pc.if_else(pc.greater(given, most), _MOST, pc.multiply(given, times))
    return pc.if_else(pc.less(given, -most), -_MOST - 1, scaled)
