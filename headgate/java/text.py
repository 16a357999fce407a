"""Text as Java reads it from bytes."""

from __future__ import annotations

import re
from typing import Final

_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


def decode_utf8(data: bytes) -> str:
    """What is not UTF-8 becomes U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Python sees three wrong bytes in an encoded surrogate where Java sees one wrong character.
        return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", data).decode(errors="replace")
