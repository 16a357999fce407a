"""A transform such as a user writes: a function of one record."""

from __future__ import annotations

from headgate.api import SinkRecord


def mark(record: SinkRecord) -> SinkRecord:
    value = {name: field for name, field in record.value.items() if name != "note"}
    value["origin"] = "bench"
    return record.with_value(value)
