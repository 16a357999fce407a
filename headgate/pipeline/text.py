"""The text of a value, as Java's toString gives it: what StringConverter writes, and columns in the TEXT form hold."""

from __future__ import annotations

import datetime as dt
import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from headgate.api import Schema, SchemaType, Struct
from headgate.pipeline.logical import datetime_of, instant_ms

_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_SMALLEST_NORMAL_32: Final = 2.0**-126
_INT64: Final = 1 << 63
_SHAPED: Final = frozenset({SchemaType.FLOAT32, SchemaType.ARRAY, SchemaType.MAP})
"""Types that may hold a FLOAT32 without a struct in between."""


def text(value: Any, schema: Schema | None = None) -> str:
    """The schema matters for FLOAT32 only, whose text is shorter than that of the same number as FLOAT64."""
    plain = _PLAIN.get(type(value))
    if plain is not None and (schema is None or schema.type not in _SHAPED):
        return plain(value)
    return _any(value, schema)


def decode_utf8(data: bytes) -> str:
    """As Java does: what is not UTF-8 becomes U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Python sees three wrong bytes in an encoded surrogate where Java sees one wrong character.
        return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", data).decode(errors="replace")


def double_text(value: float) -> str:
    """As Double.toString: `1.0`, `1.0E20`, `NaN`."""
    # Within these bounds Java and Python agree; outside Java counts in powers of ten.
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3 or value == 0.0:
        return repr(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if len(digits) == 1:
        # Java takes the nearest number of two digits where one would do: 4.9E-324, not 5.0E-324.
        sign, digits, exponent = Decimal(f"{value:.1e}").as_tuple()
    power = int(exponent) + len(digits) - 1
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{power}"


def float32(value: float) -> float:
    """The nearest number that FLOAT32 can hold."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def widened(value: float) -> float:
    """The FLOAT64 whose text is the text of this FLOAT32: 1.1, though its exact value is 1.10000002384185791015625."""
    single = float32(value)
    if not math.isfinite(single) or single == 0.0:
        return single
    # Six digits always survive, and shorter numbers show fewer; only subnormal ones may need less than six.
    for precision in range(2 if abs(single) < _SMALLEST_NORMAL_32 else 6, 9):
        candidate = float(f"{single:.{precision}g}")
        if float32(candidate) == single:
            return candidate
    return float(f"{single:.9g}")


def decimal_text(value: Decimal) -> str:
    """As BigDecimal.toString, which has no negative zero."""
    return str(abs(value) if value.is_zero() else value)


def java_class(value: Any) -> str:
    """The name of the Java class that would hold this value; error messages of Kafka Connect name it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "java.lang.Boolean"
    if isinstance(value, int):
        return "java.lang.Long" if -_INT64 <= value < _INT64 else "java.math.BigInteger"
    return next((name for kind, name in _JAVA_CLASSES if isinstance(value, kind)), _python_class(value))


def _python_class(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


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
        return _date_text(value)
    return str(value)


def _dict_text(value: dict[Any, Any]) -> str:
    # The usual key is a string, the usual value a plain one: a look at the type saves two calls.
    get = _PLAIN.get
    shown = [
        f"{key if type(key) is str else text(key)}={item if type(item) is str else get(type(item), text)(item)}"
        for key, item in value.items()
    ]
    return f"{{{', '.join(shown)}}}"


def _date_text(value: dt.date | dt.time) -> str:
    at = datetime_of(instant_ms(value))
    return f"{_WEEKDAYS[at.weekday()]} {_MONTHS[at.month - 1]} {at:%d %H:%M:%S} UTC {at.year:04}"


_PLAIN: Final[Mapping[type, Callable[[Any], str]]] = {
    str: str,
    int: int.__repr__,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "null",
    float: double_text,
    dict: _dict_text,
    list: lambda value: f"[{', '.join([text(item) for item in value])}]",
}
