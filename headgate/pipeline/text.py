"""The text of a value, as Java's toString gives it: what StringConverter writes, and columns in the TEXT form hold."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from headgate.api import Schema, SchemaType, Struct
from headgate.java.dates.format import DateFormat
from headgate.java.numbers import decimal_text, double_text, widened
from headgate.java.text import decode_utf8
from headgate.pipeline.logical import instant_ms

_DATE: Final = DateFormat("EEE MMM dd HH:mm:ss zzz y")
"""As Date.toString."""
_INT64: Final = 1 << 63
_SHAPED: Final = frozenset({SchemaType.FLOAT32, SchemaType.ARRAY, SchemaType.MAP})
"""Types that may hold a FLOAT32 without a struct in between."""


def text(value: Any, schema: Schema | None = None) -> str:
    """The schema matters for FLOAT32 only, whose text is shorter than that of the same number as FLOAT64."""
    plain = _PLAIN.get(type(value))
    if plain is not None and (schema is None or schema.type not in _SHAPED):
        return plain(value)
    return _any(value, schema)


def java_class(value: Any) -> str:
    """The name of the Java class that would hold this value; error messages of Kafka Connect name it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "java.lang.Boolean"
    if isinstance(value, int):
        return "java.lang.Long" if -_INT64 <= value < _INT64 else "java.math.BigInteger"
    found = next((name for kind, name in _JAVA_CLASSES if isinstance(value, kind)), None)
    return found or f"{type(value).__module__}.{type(value).__qualname__}"


_JAVA_CLASSES: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (str, "java.lang.String"),
    (float, "java.lang.Double"),
    ((bytes, bytearray, memoryview), "[B"),
    ((list, tuple), "java.util.ArrayList"),
    (Mapping, "java.util.HashMap"),
    (Struct, "org.apache.kafka.connect.data.Struct"),
    (Decimal, "java.math.BigDecimal"),
    ((dt.date, dt.time), "java.util.Date"),
)


def _any(value: Any, schema: Schema | None) -> str:
    if isinstance(value, Struct):
        shown = ((member, value.get_without_default(member.name)) for member in value.schema.fields)
        return f"Struct{{{','.join(f'{m.name}={text(v, m.schema)}' for m, v in shown if v is not None)}}}"
    keys, items = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
    if isinstance(value, Mapping):
        return f"{{{', '.join([f'{text(k, keys)}={text(v, items)}' for k, v in value.items()])}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join([text(item, items) for item in value])}]"
    if isinstance(value, float):
        return double_text(widened(value) if schema is not None and schema.type is SchemaType.FLOAT32 else value)
    if isinstance(value, bytes | bytearray | memoryview):
        # Java shows an object's address here, which is of no use to anyone.
        return decode_utf8(bytes(value))
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, dt.date | dt.time):
        return _DATE.format(instant_ms(value))
    return "null" if value is None else str(value)


def _dict_text(value: dict[Any, Any]) -> str:
    # The usual key is a string, the usual value a plain one: a look at the type saves two calls.
    get = _PLAIN.get
    shown = [
        f"{key if type(key) is str else text(key)}={item if type(item) is str else get(type(item), text)(item)}"
        for key, item in value.items()
    ]
    return f"{{{', '.join(shown)}}}"


_PLAIN: Final[Mapping[type, Callable[[Any], str]]] = {
    str: str,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    float: double_text,
    dict: _dict_text,
    list: lambda value: f"[{', '.join([text(item) for item in value])}]",
}
