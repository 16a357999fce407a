"""JSON text, byte for byte as Jackson in Kafka Connect reads and writes it.

Kafka compares keys by their bytes, and people compare topics by eye. orjson does the work wherever it agrees with
Jackson, which is nearly always. They differ in numbers beyond 64 bits, in floats that Java writes as powers of ten, in
NaN, in the escapes of some characters, and in how much of a broken text is forgiven.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NoReturn

import orjson

from headgate.java.nesting import DEEPEST
from headgate.java.numbers import decimal_text, double_text, wrap


class _Missing(Enum):
    MISSING = "MISSING"


MISSING: Final = _Missing.MISSING
"""What blank text is read as: neither null nor a value."""

_MAX_NUMBER: Final = 1000
_INT64: Final = 1 << 63

# --- writing ----------------------------------------------------------------------------------------------------------

_SAFE: Final = frozenset({str, int, bool, type(None)})
_ESCAPED: Final = re.compile('[\x00-\x1f"\\\\\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_BEYOND_BMP: Final = re.compile(rb"[\xf0-\xf4]")


def quick_dumps(tree: Any) -> bytes | None:
    """The JSON text of plain values, or None when `dumps` must look closer."""
    try:
        if not _agreed(tree):
            return None
        out = orjson.dumps(tree)
    except (TypeError, RecursionError):  # keys that are no strings, more than 64 bits, lone surrogates, too deep
        return None
    if b"\\u00" in out or not (out.isascii() or _BEYOND_BMP.search(out) is None):
        return None
    return out


def dumps(tree: Any) -> bytes:
    """The JSON text of strings, numbers (Decimal included), booleans, None, lists, and mappings with string keys."""
    quick = quick_dumps(tree)
    return _written(tree).encode() if quick is None else quick


def _agreed(tree: Any) -> bool:
    """Whether orjson writes these numbers as Java does, and knows all these types."""
    kind = type(tree)
    if kind in _SAFE:
        return True
    if kind is float:
        return bool(1e-3 <= tree < 1e7 or -1e7 < tree <= -1e-3 or tree == 0.0)
    if kind is dict:
        tree = tree.values()
    elif kind is not list:
        return False
    return _SAFE.issuperset(map(type, tree)) or all(map(_agreed, tree))


def _written(tree: Any) -> str:
    if isinstance(tree, str):
        return f'"{_ESCAPED.sub(_escape, tree)}"'
    if tree is None:
        return "null"
    if isinstance(tree, bool):
        return "true" if tree else "false"
    if isinstance(tree, int):
        return str(tree)
    if isinstance(tree, float):
        return double_text(tree) if math.isfinite(tree) else f'"{double_text(tree)}"'
    if isinstance(tree, Decimal):
        return decimal_text(tree)
    if isinstance(tree, list | tuple):
        return f"[{','.join([_written(item) for item in tree])}]"
    return f"{{{','.join([f'{_written(key)}:{_written(value)}' for key, value in tree.items()])}}}"


def _escape(match: re.Match[str]) -> str:
    # Jackson writes what UTF-16 needs two units for as two escapes, with capital letters.
    found = match[0]
    units = memoryview(found.encode("utf-16-le", "surrogatepass")).cast("H")
    return _SHORT.get(found) or "".join(f"\\u{unit:04X}" for unit in units)


# --- reading ----------------------------------------------------------------------------------------------------------

_AS_ZERO: Final = bytes.maketrans(b"123456789", b"0" * 9)
_NINETEEN_DIGITS: Final = b"0" * 19
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}
_WORD: Final = re.compile(r"[A-Za-z0-9_$]+")
_scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]


def loads(data: bytes, *, typed: bool = False) -> Any:
    """The values, MISSING for blank. Raises ValueError.

    Numbers beyond 64 bits stay exact for a schema to decide (`typed`), or are what they are without one."""
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError:
        tree = exact_loads(data)
    else:
        if (_NINETEEN_DIGITS not in data.translate(_AS_ZERO) and b"-0." not in data) or _settled(tree):
            return tree
        tree = exact_loads(data)
    return tree if typed else plain(tree)


def exact_loads(data: bytes) -> Any:
    """The values with integers of any size and other numbers as Decimal, digit by digit. Raises ValueError."""
    source = data.decode(json.detect_encoding(data))
    start = _after_blank(source, 0)
    if start == len(source):
        return MISSING
    tree, end = _value(source, start, 0)
    # Anything may follow the first value, but not on the heels of a number.
    if isinstance(tree, int | Decimal) and not isinstance(tree, bool) and source[end : end + 1].strip(" \t\n\r"):
        raise ValueError(f"Expected space separating root-level values at {end}")
    return tree


def strict_loads(data: bytes | str) -> Any:
    """The values, integers of any size. Raises ValueError for blank, and for all that is not JSON to the letter."""
    try:
        return json.loads(data, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError(f"it is nested too deeply: {error}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _settled(tree: Any) -> bool:
    """Whether all numbers are what Java reads, too: orjson takes unsigned numbers, and floats for larger ones."""
    if isinstance(tree, bool):
        return True
    if isinstance(tree, int):
        return -_INT64 <= tree < _INT64
    if isinstance(tree, float):
        return abs(tree) < _INT64 and (tree != 0.0 or math.copysign(1.0, tree) > 0)
    if isinstance(tree, dict):
        return all(map(_settled, tree.values()))
    return not isinstance(tree, list) or all(map(_settled, tree))


def plain(tree: Any) -> Any:
    """What exact numbers are without a schema: integers wrapped into 64 bits, others as float."""
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, int):
        return wrap(tree, 64)
    if isinstance(tree, Decimal):
        return float(tree) + 0.0  # BigDecimal has no negative zero, and -0.0 + 0.0 is 0.0
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(item) for item in tree] if isinstance(tree, list) else tree


def _after_blank(source: str, at: int) -> int:
    found = _BLANK.match(source, at)
    return found.end() if found else at


def _value(source: str, at: int, depth: int) -> tuple[Any, int]:
    """`depth` is how many lists and objects it is in."""
    first = source[at : at + 1]
    if first == '"':
        return _scan_string(source, at + 1, True)
    if first in ("{", "["):
        if depth == DEEPEST:
            raise ValueError(f"Document nesting depth ({depth + 1}) exceeds the maximum allowed ({DEEPEST})")
        return (_object if first == "{" else _list)(source, at + 1, depth + 1)
    number = _NUMBER.match(source, at)
    if number:
        return _number(number), number.end()
    word = _WORD.match(source, at)
    if word and word[0] in _WORDS:
        return _WORDS[word[0]], word.end()
    raise ValueError(f"Unexpected character at {at}: expected a valid value")


def _number(found: re.Match[str]) -> int | Decimal:
    if len(found[0]) > _MAX_NUMBER:
        raise ValueError(f"Number value length ({len(found[0])}) exceeds the maximum allowed ({_MAX_NUMBER})")
    return Decimal(found[0]) if found[1] or found[2] else int(found[0])


def _list(source: str, at: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    at = _after_blank(source, at)
    if source[at : at + 1] == "]":
        return items, at + 1
    while True:
        item, at = _value(source, at, depth)
        items.append(item)
        at, ended = _separator(source, at, "]")
        if ended:
            return items, at


def _object(source: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    at = _after_blank(source, at)
    if source[at : at + 1] == "}":
        return members, at + 1
    while True:
        if source[at : at + 1] != '"':
            raise ValueError(f"Was expecting double-quote to start field name at {at}")
        name, at = _scan_string(source, at + 1, True)
        at = _after_blank(source, at)
        if source[at : at + 1] != ":":
            raise ValueError(f"Was expecting a colon to separate field name and value at {at}")
        members[name], at = _value(source, _after_blank(source, at + 1), depth)
        at, ended = _separator(source, at, "}")
        if ended:
            return members, at


def _separator(source: str, at: int, end: str) -> tuple[int, bool]:
    at = _after_blank(source, at)
    found = source[at : at + 1]
    if found != end and found != ",":
        raise ValueError(f"Unexpected {found or 'end of input'} at {at}: was expecting a comma or {end}")
    return (at + 1, True) if found == end else (_after_blank(source, at + 1), False)
