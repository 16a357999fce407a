"""Statement: the text of an Sql transform, as far as it can be judged without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

TABLE: Final = "records"
"""The name by which a statement finds the batch."""

_FIRST_WORDS: Final = ("select", "with", "from", "values", "table")
_JAVA_CALLS: Final = frozenset({"reflect", "java_method", "try_reflect"})
_TYPED: Final = ("key", "value")
_TOKEN: Final = re.compile(
    r"""
      (?P<blank> \s+ | --[^\n]* | /\*.*?\*/ )
    | (?P<text> '(?:\\.|''|[^'\\])*' | "(?:\\.|""|[^"\\])*" )
    | `(?P<quoted> (?:``|[^`])* )`
    | (?P<word> [^\W\d]\w* )
    | (?P<mark> . )
    """,
    re.DOTALL | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    content: str

    @property
    def name(self) -> str | None:
        """What it is called, if it is a name."""
        return self.content if self.kind in ("word", "quoted") else None


class Statement:
    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = list(_tokens(text))

    def problem(self) -> str | None:
        """Why this can be no statement of a transform; None when Spark has to be asked."""
        tokens = self._tokens
        if not tokens:
            return "A statement is needed"
        first = tokens[0]
        starts = first.kind == "word" and first.content.lower() in _FIRST_WORDS
        if not starts and first != _Token("mark", "("):
            return f"Only a query is possible: SELECT, WITH, FROM, VALUES or TABLE must come first, not {first.content}"
        if any(token.content == ";" and token.kind == "mark" for token in tokens[:-1]):
            return "It must be one statement, without a semicolon inside"
        for token, following in zip(tokens, [*tokens[1:], None], strict=True):
            if (token.name or "").lower() in _JAVA_CALLS and following is not None and following.content == "(":
                return f"{token.content}() calls Java, which may have side effects: it cannot be used here"
        if not any((token.name or "").lower() == TABLE for token in tokens):
            return f"It must read from the table {TABLE}, which holds the batch"
        return None

    def fields(self) -> dict[tuple[str, ...], None]:
        """The paths into keys and values that it names: `value.address.city` is ("value", "address", "city"), and
        `value.*` is ("value", "*")."""
        found: dict[tuple[str, ...], None] = {}
        at = 0
        while at < len(self._tokens):
            path, at = self._path(at)
            start = next((place for place, name in enumerate(path) if name.lower() in _TYPED), None)
            if start is not None and len(path) > start + 1:
                found[(path[start].lower(), *path[start + 1 :])] = None
        return found

    def _path(self, at: int) -> tuple[list[str], int]:
        """The names with dots between them, or in brackets, that begin here; and where to go on."""
        tokens = self._tokens
        path: list[str] = []
        name = tokens[at].name
        at += 1
        while name is not None:
            path.append(name)
            following = [token.content for token in tokens[at : at + 3]]
            name = None
            if following[:1] == ["."] and len(following) > 1:
                name = "*" if following[1] == "*" else tokens[at + 1].name
                at += 2 if name is not None else 0
            elif len(following) == 3 and following[0] == "[" and following[2] == "]" and tokens[at + 1].kind == "text":
                name = following[1]
                at += 3
        return path, at


def _tokens(text: str) -> Iterator[_Token]:
    for found in _TOKEN.finditer(text):
        kind = str(found.lastgroup)
        content = found[kind]
        if kind == "quoted":
            content = content.replace("``", "`")
        elif kind == "text":
            content = content[1:-1]
        if kind != "blank":
            yield _Token(kind, content)
