"""JSON text, byte for byte as Jackson in Kafka Connect reads and writes it.

Kafka compares keys by their bytes, and people compare topics by eye. orjson does the work wherever it agrees with
Jackson, which is nearly always. They differ in numbers beyond 64 bits, in floats that Java writes as powers of ten, in
NaN, in the escapes of some characters, and in how much of a broken text is forgiven.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from itertools import chain
from typing import Any, Final, NoReturn

import orjson

from headgate.java.json_text import forgiven, text_of
from headgate.java.nesting import DEEPEST
from headgate.java.numbers import decimal_text, double_text, wrap


class _Missing(Enum):
    MISSING = "MISSING"


MISSING: Final = _Missing.MISSING
"""What blank text is read as: neither null nor a value."""

_MOST_DIGITS: Final = 1000
"""Of a number that Jackson reads."""
_LONGEST_NAME: Final = 50_000
LONGEST_TEXT: Final = 20_000_000
_INT32: Final = 1 << 31
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

_AS_ZERO: Final = bytes.maketrans(b"123456789+-E{", b"00000000000e[")
_NINETEEN_DIGITS: Final = b"0" * 19
_LONG_POWER: Final = b"e" + b"0" * 10
_MINUS_ZERO: Final = re.compile(rb"-0[.eE]")
LONG_NUMBER: Final = b"0" * (_MOST_DIGITS // 3)
"""A number of so many digits that Jackson refuses it has so many in one of its three parts."""
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_NUMBER: Final = re.compile(r"-?0*([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}
_WORD: Final = re.compile(r"(true|false|null)(.?)", re.DOTALL)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BYTE: Final = re.compile("[\udc80-\udcff]")
"""One that is no UTF-8, as `text_of` has it."""
_PARTS_OF_NAMES: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Nd", "Sc", "Pc", "Mc", "Mn", "Cf"})
_scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]


def loads(data: bytes, *, typed: bool = False) -> Any:
    """The values, MISSING for blank. Raises ValueError.

    Numbers beyond 64 bits stay exact for a schema to decide (`typed`), or are what they are without one."""
    try:
        tree = orjson.loads(data)
    except orjson.JSONDecodeError:
        tree = exact_loads(data)
    else:
        zeros = data.translate(_AS_ZERO)
        if (
            ((zeros.find(_NINETEEN_DIGITS) < 0 and _MINUS_ZERO.search(data) is None) or _settled(tree))
            and zeros.find(_LONG_POWER) < 0
            and (len(data) <= _MOST_DIGITS or _moderate(data, zeros, tree))
        ):
            return tree
        tree = exact_loads(data)
    return tree if typed else plain(tree)


def loads_all(texts: Sequence[bytes | None]) -> list[Any]:
    """The same for many texts, of which None is None. Raises ValueError where one of them needs a closer look."""
    together = b"\n".join([text for text in texts if text is not None])
    zeros = together.translate(_AS_ZERO)
    if zeros.find(_NINETEEN_DIGITS) >= 0 or zeros.find(_LONG_POWER) >= 0 or _MINUS_ZERO.search(together) is not None:
        raise ValueError("a number that is read digit by digit")
    trees = [
        None if text is None else orjson.loads(text) if len(text) <= _MOST_DIGITS else loads(text) for text in texts
    ]
    if MISSING in trees:
        raise ValueError("nothing but blanks")
    return trees


def exact_loads(data: bytes) -> Any:
    """The values with integers of any size and other numbers as Decimal, digit by digit. Raises ValueError."""
    source, of_bytes = text_of(data)
    reader = _Reader(source, of_bytes)
    start = reader.after_blank(0)
    if start == len(source):
        return MISSING
    tree, end = reader.value(start, 0)
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


def has_long_number(data: bytes) -> bool:
    """Whether there may be a number that Jackson refuses for its length."""
    return LONG_NUMBER in data.translate(_AS_ZERO)


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


def _moderate(data: bytes, zeros: bytes, tree: Any) -> bool:
    """Whether nothing in it may be so large that Jackson refuses it. orjson reads texts, names and numbers of any
    length, and a few levels more."""
    if LONG_NUMBER in zeros or len(data) > LONGEST_TEXT:
        return False
    if len(data) <= _LONGEST_NAME and zeros.count(b"[") <= DEEPEST:
        return True
    level = [tree] if type(tree) in (dict, list) else []
    for _ in range(DEEPEST):
        names = chain.from_iterable([each for each in level if type(each) is dict])
        if max(map(len, names), default=0) * 4 > _LONGEST_NAME:
            return False
        level = [
            value
            for each in level
            for value in (each.values() if type(each) is dict else each)
            if type(value) is dict or type(value) is list
        ]
        if not level:
            return True
    return False


def plain(tree: Any) -> Any:
    """What exact numbers are without a schema: integers wrapped into 64 bits, others as float."""
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, int):
        return wrap(tree, 64)
    if isinstance(tree, Decimal):
        return float(tree) if tree else 0.0  # BigDecimal has no negative zero
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(item) for item in tree] if isinstance(tree, list) else tree


@dataclass(frozen=True, slots=True)
class _Reader:
    """Each method reads what begins at a place, and says where it ends."""

    source: str
    of_bytes: bool
    """UTF-8, which Jackson reads without making characters of it first. It is stricter then."""

    def after_blank(self, at: int) -> int:
        found = _BLANK.match(self.source, at)
        return found.end() if found else at

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        """`depth` is how many lists and objects it is in."""
        first = self.source[at : at + 1]
        if first == '"':
            return self.text(at)
        if first in ("{", "["):
            if depth == DEEPEST:
                raise ValueError(f"Document nesting depth ({depth + 1}) exceeds the maximum allowed ({DEEPEST})")
            return (self.object if first == "{" else self.list)(at + 1, depth + 1)
        number = _NUMBER.match(self.source, at)
        if number:
            return _number(number), number.end()
        word = _WORD.match(self.source, at)
        if word and not self._goes_on(word[2]):
            return _WORDS[word[1]], word.end(1)
        raise ValueError(f"Unexpected character at {at}: expected a valid value")

    def _goes_on(self, char: str) -> bool:
        """Whether a word with this character behind it is another one."""
        if char < "0" or (self.of_bytes and char >= "\x7f"):
            return char >= "0"
        return (unicodedata.category(char) in _PARTS_OF_NAMES and char < "\U00010000") or "\x7f" <= char <= "\x9f"

    def _string(self, at: int, *, name: bool) -> tuple[str, int]:
        found, end = _scan_string(self.source, at + 1, True)
        if self.of_bytes and _BYTE.search(self.source, at, end):
            found, _ = _scan_string(forgiven(self.source[at:end], name=name), 1, True)
        return found, end

    def text(self, at: int) -> tuple[str, int]:
        found, end = self._string(at, name=False)
        if len(found) * 2 > LONGEST_TEXT and _units(found) > LONGEST_TEXT:
            raise ValueError(f"String value length ({_units(found)}) exceeds the maximum allowed ({LONGEST_TEXT})")
        return found, end

    def name(self, at: int) -> tuple[str, int]:
        if self.source[at : at + 1] != '"':
            raise ValueError(f"Was expecting double-quote to start field name at {at}")
        found, end = self._string(at, name=True)
        if self.of_bytes and _SURROGATE.search(self.source, at, end):
            # The escape of half a surrogate pair makes no name, and has no UTF-8 either.
            _scan_string(_BYTE.sub("?", self.source[at:end]), 1, True)[0].encode()
        length = len(found.encode("utf-8", "surrogatepass")) if self.of_bytes else _units(found)
        if length > _LONGEST_NAME:
            raise ValueError(f"Name length ({length}) exceeds the maximum allowed ({_LONGEST_NAME})")
        return found, end

    def list(self, at: int, depth: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        at = self.after_blank(at)
        if self.source[at : at + 1] == "]":
            return items, at + 1
        while True:
            item, at = self.value(at, depth)
            items.append(item)
            at, ended = self._separator(at, "]")
            if ended:
                return items, at

    def object(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        members: dict[str, Any] = {}
        at = self.after_blank(at)
        if self.source[at : at + 1] == "}":
            return members, at + 1
        while True:
            name, at = self.name(at)
            at = self.after_blank(at)
            if self.source[at : at + 1] != ":":
                raise ValueError(f"Was expecting a colon to separate field name and value at {at}")
            members[name], at = self.value(self.after_blank(at + 1), depth)
            at, ended = self._separator(at, "}")
            if ended:
                return members, at

    def _separator(self, at: int, end: str) -> tuple[int, bool]:
        at = self.after_blank(at)
        found = self.source[at : at + 1]
        if found != end and found != ",":
            raise ValueError(f"Unexpected {found!r} at {at}: was expecting a comma or {end}")
        return (at + 1, True) if found == end else (self.after_blank(at + 1), False)


def _units(text: str) -> int:
    """How long Java says that it is."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _number(found: re.Match[str]) -> int | Decimal:
    whole, fraction, power = found[1], found[2] or "", found[3] or ""
    digits = len(whole) + len(fraction) + len(power.lstrip("+-"))
    if digits > _MOST_DIGITS:
        raise ValueError(f"Number value length ({digits}) exceeds the maximum allowed ({_MOST_DIGITS})")
    if not fraction and not power:
        return int(found[0])
    exponent = int(power or 0)
    if not (-_INT32 < exponent < _INT32 and -_INT32 <= len(fraction) - exponent < _INT32):
        raise ValueError(f"{found[0]} cannot be read as java.math.BigDecimal: its exponent is out of range")
    return Decimal(found[0])
