"""The text of JSON bytes as Jackson finds it: it guesses the encoding, and is lax in its own way."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
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
_LAX: Final = "as-jackson"
_REFUSED: Final = "_\x00"
"""Stands for what is not in the encoding: it may follow a value, but is none, is in none, and ends none."""


def text_of(data: bytes) -> tuple[str, bool]:
    """And whether it was UTF-8. What Jackson would refuse if it came to it is left to whoever reads the text. Raises
    ValueError."""
    start, encoding = _guessed(data)
    if encoding is None:
        raise ValueError("Unsupported UCS-4 endianness")
    return data[start:].decode(encoding, _LAX), encoding == "utf-8"


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


def _lax(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    data, at = error.object, error.start
    order: Literal["big", "little"] = "big" if error.encoding.endswith("be") else "little"
    if error.encoding.startswith("utf-16"):
        high = 0xD800 <= int.from_bytes(data[at : at + 2], order) < 0xDC00  # then Java takes the next with it
        return "\ufffd", min(len(data), at + (4 if high else 2))
    if error.encoding.startswith("utf-32"):
        if at + 4 > len(data):
            return _REFUSED, len(data)
        code = int.from_bytes(data[at : at + 4], order)
        if 0xD800 <= code < 0xE000:
            return chr(code), at + 4
        raise error
    first = data[at]
    more = next((count for count, lead in enumerate((0xC0, 0xE0, 0xF0), 1) if lead <= first < (lead >> 1) + 0x80), 0)
    rest = data[at + 1 : at + 1 + more]
    escaped = (at - len(data[:at].rstrip(b"\\"))) % 2
    code = first & (0x3F >> more)
    for byte in rest:
        code = code << 6 | byte & 0x3F
    whole = more and len(rest) == more and all(byte & 0xC0 == 0x80 for byte in rest)
    if not whole or 0xD800 <= code < 0xE000 or escaped:
        return _REFUSED, at + 1
    if more == 3:  # too large, or longer than it need be: Jackson does not look
        code -= 0x10000
        return chr((0xD800 | code >> 10) & 0xFFFF) + chr(0xDC00 | code & 0x3FF), at + 4
    return (f"\\u{code:04x}" if code < 0x80 else chr(code)), at + 1 + more


codecs.register_error(_LAX, _lax)
