"""The text of JSON bytes as Jackson finds it: it guesses the encoding, and is lax in its own way."""

from __future__ import annotations

import codecs
import operator
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Literal

_MARKS: Final[Mapping[bytes, str | None]] = {
    b"\x00\x00\xfe\xff": "utf-32-be",
    b"\xff\xfe\x00\x00": "utf-32-le",
    b"\x00\x00\xff\xfe": None,
    b"\xfe\xff\x00\x00": None,
    b"\xfe\xff": "utf-16-be",
    b"\xff\xfe": "utf-16-le",
    b"\xef\xbb\xbf": "utf-8",
}
"""Byte order marks. None: known, and not supported by Java either."""
_ZEROS: Final[Mapping[tuple[bool, ...], str | None]] = {
    (True, True, True, True): "utf-32-be",
    (True, True, True, False): "utf-32-be",
    (False, True, True, True): "utf-32-le",
    (True, False, True, True): None,
    (True, True, False, True): None,
}
"""Which of the first four bytes are zero."""
_WIDE, _TEXT, _NAME = (f"as-jackson-{where}" for where in ("wide", "in-texts", "in-names"))
_ESCAPE: Final = re.compile(r"\\(?:u([\0-\uffff]{4})|.)", re.DOTALL)
_REFUSED: Final = "_\x00"
"""Stands for what is not in the encoding: it may follow a value, but is none, is in none, and ends none."""


def text_of(data: bytes) -> tuple[str, bool]:
    """And whether it was UTF-8: bytes that are not are in it as `surrogateescape` has them, for `forgiven` to look at
    where they are in a string. What Jackson would refuse if it came to it is left to whoever reads the text. Raises
    ValueError."""
    start, encoding = _guessed(data)
    if encoding is None:
        raise ValueError("Unsupported UCS-4 endianness")
    of_bytes = encoding == "utf-8"
    text = data[start:].decode(encoding, "surrogateescape" if of_bytes else _WIDE)
    return text if of_bytes else _ESCAPE.sub(_low_bytes, text), of_bytes


def _low_bytes(escape: re.Match[str]) -> str:
    """Of its hexadecimal digits: where they are characters, Jackson looks at no more."""
    return f"\\u{''.join(chr(ord(each) & 0xFF) for each in escape[1])}" if escape[1] else escape[0]


def forgiven(string: str, *, name: bool) -> str:
    """A string of such a text, with its escapes, and with what Jackson makes of bytes that are no UTF-8. Raises
    ValueError."""
    return string.encode("utf-8", "surrogateescape").decode("utf-8", _NAME if name else _TEXT)


def _guessed(data: bytes) -> tuple[int, str | None]:
    """How long the byte order mark is, and the encoding."""
    zeros = tuple(byte == 0 for byte in data[:4])
    if len(zeros) == 4:  # of fewer it does not look for a mark
        for mark, encoding in _MARKS.items():
            if data.startswith(mark):
                return len(mark), encoding
        if zeros in _ZEROS:
            return 0, _ZEROS[zeros]
    if len(zeros) > 1 and any(zeros[:2]):
        return 0, "utf-16-be" if zeros[0] else "utf-16-le"
    return 0, "utf-8"


def _wide(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start
    order: Literal["big", "little"] = "big" if error.encoding.endswith("be") else "little"
    if error.encoding.startswith("utf-16"):
        high = 0xD800 <= int.from_bytes(data[at : at + 2], order) < 0xDC00  # then Java takes the next with it
        return "\ufffd", min(len(data), at + (4 if high else 2))
    if at + 4 > len(data):
        return _REFUSED, len(data)
    code = int.from_bytes(data[at : at + 4], order)
    if 0xD800 <= code < 0xE000:
        return chr(code), at + 4
    raise error


def _sequence(join: Callable[[int, int], int], error: UnicodeError) -> tuple[str, int]:
    """Longer than it need be, or too large: Jackson does not look. `join` makes the first half of a surrogate pair."""
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start
    more = next((count for count, lead in enumerate((0xC0, 0xE0, 0xF0), 1) if lead <= data[at] < (lead >> 1) + 0x80), 0)
    code, rest = data[at] & (0x3F >> more), data[at + 1 : at + 1 + more]
    for byte in rest:
        code = code << 6 | byte & 0x3F
    whole = more and len(rest) == more and all(byte & 0xC0 == 0x80 for byte in rest)
    if not whole or (more == 2 and 0xD800 <= code < 0xE000):
        raise error
    if more == 3:
        code -= 0x10000
        return chr(join(0xD800, code >> 10) & 0xFFFF) + chr(0xDC00 | code & 0x3FF), at + 4
    return (f"\\u{code:04x}" if code < 0x80 else chr(code)), at + 1 + more


codecs.register_error(_WIDE, _wide)
codecs.register_error(_TEXT, partial(_sequence, operator.or_))
codecs.register_error(_NAME, partial(_sequence, operator.add))
