"""Records and short ways for the tests of transforms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.api import Record, Schema, SinkRecord, SourceRecord, Struct, Transform
from headgate.api import schema as s

TIMESTAMP = 1700000000123

STRUCT = s.struct({"a": s.INT32, "b": s.OPTIONAL_STRING}, name="nm", version=3, doc="dd", parameters={"k": "v"})
"""The schema of `S` in the contract, with everything that must survive."""

DEFAULTS = s.struct(
    {"d": Schema(s.SchemaType.INT32, optional=True, default=9), "r": Schema(s.SchemaType.STRING, default="rd")}
)
"""A field that may be null and one that may not, both with defaults."""

KEEP = {"replace.null.with.default": "false"}


def a_map() -> dict[str, Any]:
    """`M` in the contract."""
    return {"a": 5, "b": "x", "n": None, "o": {"p": 1}}


def a_struct() -> Struct:
    """`S` in the contract."""
    return Struct(STRUCT, {"a": 300, "b": "x"})


def sink(value: Any = None, schema: Schema | None = None, **more: Any) -> SinkRecord:
    if schema is None and isinstance(value, Struct):
        schema = value.schema
    given = {"topic": "topic-1", "partition": 0, "offset": 7, "timestamp": TIMESTAMP, **more}
    return SinkRecord(value=value, value_schema=schema, **given)


def source(value: Any = None, schema: Schema | None = None, **more: Any) -> SourceRecord:
    if schema is None and isinstance(value, Struct):
        schema = value.schema
    return SourceRecord(topic="topic-1", value=value, value_schema=schema, **more)


def configured(cls: type[Transform[Any]], config: Mapping[str, str]) -> Transform[Any]:
    made = cls()
    made.configure(config)
    return made


def apply(cls: type[Transform[Any]], config: Mapping[str, str], record: Record) -> Any:
    return configured(cls, config).apply(record)


def typed(value: Any) -> Any:
    """With its type, as 1, 1.0 and True are equal."""
    return type(value), value


def raw(value: Struct) -> dict[str, Any]:
    """What was set, without defaults."""
    return {member.name: value.get_without_default(member.name) for member in value.schema.fields}
