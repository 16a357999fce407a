"""Casts: a value as another primitive type, as Apache's Cast does it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.java import numbers
from headgate.pipeline import values
from headgate.pipeline.logical import TO_NUMBER
from headgate.pipeline.schemas import BITS
from headgate.pipeline.text import java_class, text

Cast: TypeAlias = Callable[[Any], Any]

TARGETS: Final = tuple(
    SchemaType[name] for name in ("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64", "BOOLEAN", "STRING")
)
SOURCES: Final = (*TARGETS, SchemaType.BYTES)
_NESTED: Final = ((list | tuple, "ARRAY"), (Mapping, "MAP"), (Struct, "STRUCT"))


def _to_integer(bits: int) -> dict[type, Cast]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return {
        int: lambda value: value if low <= value <= high else numbers.wrap(value, bits),
        float: lambda value: numbers.cut(value, bits),
        bool: int,
        str: lambda value: numbers.parse_integer(value, bits),
        Decimal: lambda value: numbers.cut_decimal(value, bits),
    }


_CASTS: Final[Mapping[SchemaType, Mapping[type, Cast]]] = {
    **{kind: _to_integer(bits) for kind, bits in BITS.items()},
    SchemaType.FLOAT32: {
        int: numbers.float32_of,
        float: numbers.float32,
        bool: float,
        str: numbers.parse_float,
        Decimal: numbers.float32_of,
    },
    SchemaType.FLOAT64: {int: float, float: float, bool: float, str: numbers.parse_double, Decimal: float},
    SchemaType.BOOLEAN: {
        int: bool,
        float: lambda value: numbers.cut(value, 64) != 0,
        bool: bool,
        str: lambda value: value.lower() == "true",
        Decimal: lambda value: numbers.cut_decimal(value) != 0,
    },
    SchemaType.STRING: {
        **dict.fromkeys((int, float, bool, Decimal), text),
        str: str,
        bytes: lambda value: base64.b64encode(value).decode("ascii"),
    },
}


def cast_to(target: SchemaType, schema: Schema | None) -> Cast:
    """How a value of this schema, or without one, becomes one of the target type. Null stays null."""
    plain = _plain_cast(target, schemaless=schema is None)
    if schema is None:
        return plain
    if schema.type not in SOURCES:
        return _refused(schema.type.value)
    to_base = TO_NUMBER.get(schema.name or "")
    if to_base is not None:
        if target is SchemaType.STRING:
            return lambda value: None if value is None else values.show(value)
        return lambda value: None if value is None else plain(to_base(value))
    if schema.type is SchemaType.FLOAT32 and target in (SchemaType.STRING, SchemaType.FLOAT64):
        narrow: Cast = (lambda value: text(value, schema)) if target is SchemaType.STRING else numbers.float32
        return lambda value: None if value is None else narrow(value)
    return plain


def _refused(kind: str) -> Cast:
    def cast(value: Any) -> None:
        if value is not None:
            raise refusal(kind)

    return cast


def _plain_cast(target: SchemaType, *, schemaless: bool) -> Cast:
    casts = _CASTS[target]
    known = {kind: cast for kind, cast in casts.items() if kind is not Decimal} if schemaless else casts

    def cast(value: Any) -> Any:
        found = known.get(type(value))
        if found is None:
            return None if value is None else cast(_plain(value, target, schemaless))
        try:
            return found(value)
        except ValueError:
            raise DataError(f"Value ({value}) was out of range for requested data type") from None

    return cast


def _plain(value: Any, target: SchemaType, schemaless: bool) -> Any:
    """A value of a subclass as one of the type itself. Raises DataError for what cannot be cast."""
    if isinstance(value, bytes | bytearray | memoryview):
        if target is SchemaType.STRING:
            return bytes(value)
        raise DataError("Unexpected type in Cast transformation: class [B")
    for base in (int, float, str, *(() if schemaless else (Decimal,))):
        if isinstance(value, base):
            return base(value)
    for kinds, name in _NESTED:
        if isinstance(value, kinds):
            raise refusal(name)
    if schemaless:
        raise DataError(
            f"Cast transformation was passed a value of type class {java_class(value)} which is not supported"
            " by Connect's data API"
        )
    raise DataError(f"Unexpected type in Cast transformation: class {java_class(value)}")


def refusal(kind: str) -> DataError:
    known = ", ".join(each.value for each in SOURCES)
    return DataError(f"Cast transformation does not support casting from {kind}; supported types are [{known}]")
