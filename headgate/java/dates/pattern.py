"""Patterns of Java's SimpleDateFormat, split into fields and the text between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LETTERS: Final = frozenset("GyYMLwWDdFEuaHkKhmsSzZX")
_PIECE: Final = re.compile(r"''|'((?:[^']|'')+)'|([a-zA-Z])\2*|[^a-zA-Z']+|'", re.DOTALL)
_LONGEST_ISO_ZONE: Final = 3


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    """As it stands in the pattern, or between fields as it stands in the date."""
    letter: str = ""
    """Of a field; empty for text."""

    @property
    def count(self) -> int:
        return len(self.text)


def tokens(pattern: str) -> Sequence[Token]:
    """Raises ValueError with Java's message."""
    found: list[Token] = []
    for piece in _PIECE.finditer(pattern):
        quoted, letter = piece.groups()
        if letter is not None:
            if letter not in _LETTERS:
                raise ValueError(f"Illegal pattern character '{letter}'")
            if letter == "X" and len(piece[0]) > _LONGEST_ISO_ZONE:
                raise ValueError(f"invalid ISO 8601 format: length={len(piece[0])}")
            found.append(Token(piece[0], letter))
        elif piece[0] == "'":
            raise ValueError("Unterminated quote")
        else:
            found.append(Token("'" if piece[0] == "''" else (quoted or piece[0]).replace("''", "'")))
    return found
