"""Requirements: what a transform must be given, or else the record fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.api import DataError, Record, Schema, SinkRecord, SourceRecord, Struct
from headgate.pipeline.text import java_class


def require_map(value: Any, purpose: str) -> Mapping[str, Any]:
    # A dict needs no look at what a Mapping is.
    if type(value) is dict or isinstance(value, Mapping):
        return value
    raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(value)}")


def require_struct(value: Any, purpose: str) -> Struct:
    if isinstance(value, Struct):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {java_class(value)}")


def require_schema(schema: Schema | None, purpose: str) -> Schema:
    if schema is None:
        raise DataError(f"Schema required for [{purpose}]")
    return schema


def require_sink(record: Record, purpose: str) -> SinkRecord:
    if isinstance(record, SinkRecord):
        return record
    kind = "org.apache.kafka.connect.source.SourceRecord" if isinstance(record, SourceRecord) else java_class(record)
    raise DataError(f"Only SinkRecord supported for [{purpose}], found: {kind}")
