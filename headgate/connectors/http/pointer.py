"""Pointer: a place in a JSON value (RFC 6901)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from headgate.java.json import MISSING

_LONE_TILDE: Final = re.compile("~(?![01])")
_INDEX: Final = re.compile("0|[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class Pointer:
    names: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Pointer:
        """Raises ValueError."""
        if text and not text.startswith("/"):
            raise ValueError("A JSON pointer begins with /, or is empty: then it means the whole value")
        if _LONE_TILDE.search(text):
            raise ValueError("In a JSON pointer ~ is written as ~0, and / within a name as ~1")
        return cls(tuple(name.replace("~1", "/").replace("~0", "~") for name in text.split("/")[1:]))

    def of(self, tree: Any) -> Any:
        """What stands there; MISSING where there is no such place."""
        for name in self.names:
            if isinstance(tree, dict):
                tree = tree.get(name, MISSING)
            elif isinstance(tree, list) and _INDEX.fullmatch(name) and int(name) < len(tree):
                tree = tree[int(name)]
            else:
                return MISSING
        return tree
