"""Links: what the header Link of an answer says (RFC 8288)."""

from __future__ import annotations

import re
from typing import Final

_TEXT: Final = r'"(?:[^"\\]|\\.)*"'
_LINK: Final = re.compile(rf"[\s,]*<([^>]*)>((?:\s*;\s*[^\s=;,]+(?:\s*=\s*(?:{_TEXT}|[^\s\",;]*))?)*)")
_PARAMETER: Final = re.compile(rf";\s*([^\s=;,]+)(?:\s*=\s*(?:({_TEXT})|([^\s\",;]*)))?")


def next_link(header: str) -> str | None:
    """Where the first link of the relation "next" leads; None where there is none. What comes after something that is
    no link is not looked at."""
    end = 0
    while found := _LINK.match(header, end):
        end = found.end()
        # Of a parameter that is given twice the first counts.
        relations = [quoted[1:-1] or plain for name, quoted, plain in _PARAMETER.findall(found[2]) if _is_rel(name)]
        if relations and "next" in relations[0].lower().split():
            return found[1].strip()
    return None


def _is_rel(name: str) -> bool:
    return name.lower() == "rel"
