"""What a statement gives, as Connect's: schemas of types, and values as a schema, or none, wants them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as kinds

from headgate.api import ConnectError, Schema, Struct
from headgate.api import schema as schemas
from headgate.pipeline.schemas import inner
from headgate.pipeline.sql.types import PLAIN

Make = Callable[[Any], Any]

_PLAIN: Final = {
    **{kind: Schema(plain) for plain, kind in PLAIN.items()},
    pa.large_string(): schemas.STRING,
    pa.large_binary(): schemas.BYTES,
    pa.date32(): schemas.DATE,
    # Nothing but NULL: any type will do.
    pa.null(): schemas.STRING,
}


class NoType(ConnectError):
    """A column of a statement has a type that Connect has not."""

    def __init__(self, where: str, kind: object) -> None:
        super().__init__(f"Column {where} has the type {kind}, which records cannot have: CAST it to another one")


def schema_of(kind: pa.DataType, where: str) -> Schema:
    """Everything may be null: SQL knows no better, and a schema must not depend on the batch. Raises NoType."""
    if kinds.is_decimal(kind):
        return schemas.decimal(kind.scale, optional=True)
    if kinds.is_struct(kind):
        members = {field.name: schema_of(field.type, f"{where}.{field.name}") for field in _members(kind, where)}
        return schemas.struct(members, optional=True)
    if kinds.is_list(kind):
        return schemas.array(schema_of(kind.value_type, f"{where}[]"), optional=True)
    if kinds.is_map(kind):
        keys, values = schema_of(kind.key_type, f"{where} (keys)"), schema_of(kind.item_type, f"{where} (values)")
        return schemas.mapping(keys, values, optional=True)
    if kinds.is_time(kind):
        return schemas.TIME.as_optional()
    if kinds.is_timestamp(kind):
        return schemas.TIMESTAMP.as_optional()
    if kind not in _PLAIN:
        raise NoType(where, kind)
    return _PLAIN[kind].as_optional()


def _members(kind: pa.StructType, where: str) -> list[pa.Field]:
    members = list(kind)
    if any(b"variant" in (member.metadata or {}) for member in members):
        raise NoType(where, "VARIANT")
    names = [member.name for member in members]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConnectError(f"Column {where} has two fields of the name {', '.join(sorted(twice))}")
    return members


def typed(kind: pa.DataType, schema: Schema) -> Make | None:
    """How a value out of Arrow becomes one of the schema, which has this type; None: it is one already."""
    if kinds.is_struct(kind):
        makes = [typed(field.type, each) for field, each in zip(kind, inner(schema), strict=True)]
        names = [field.name for field in kind]

        def struct(value: Any) -> Any:
            items = [value[name] for name in names]
            return Struct.of(schema, [_done(make, item) for make, item in zip(makes, items, strict=True)])

        return struct
    if kinds.is_list(kind):
        return _list(typed(kind.value_type, *inner(schema)))
    if kinds.is_map(kind):
        keys, items = inner(schema)
        return _map(typed(kind.key_type, keys), typed(kind.item_type, items))
    if kinds.is_timestamp(kind):
        return lambda value: value.astimezone(dt.UTC) if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return None


def untyped(kind: pa.DataType, where: str) -> Make | None:
    """The same for a value without schema: what JSON has no type for, as Spark's to_json writes it. Raises NoType."""
    if kinds.is_struct(kind):
        members = [(field.name, untyped(field.type, f"{where}.{field.name}")) for field in _members(kind, where)]

        def mapping(value: Any) -> Any:
            return {name: _done(each, value[name]) for name, each in members if value[name] is not None}

        return mapping
    if kinds.is_list(kind):
        return _list(untyped(kind.value_type, f"{where}[]"))
    if kinds.is_map(kind):
        return _map(untyped(kind.key_type, f"{where} (keys)"), untyped(kind.item_type, f"{where} (values)"))
    if kinds.is_decimal(kind):
        return int if kind.scale == 0 else float
    if kinds.is_timestamp(kind):
        return _instant
    if kinds.is_date32(kind) or kinds.is_time(kind):
        return lambda value: value.isoformat()
    schema_of(kind, where)
    return None


def _done(make: Make | None, value: Any) -> Any:
    return value if value is None or make is None else make(value)


def _list(items: Make | None) -> Make | None:
    return None if items is None else lambda value: [_done(items, item) for item in value]


def _map(keys: Make | None, items: Make | None) -> Make:
    return lambda value: {_done(keys, key): _done(items, item) for key, item in value}


def _instant(value: dt.datetime) -> str:
    moment = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return f"{moment.isoformat(timespec='milliseconds')}Z"
