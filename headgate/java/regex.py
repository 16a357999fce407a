"""Regular expressions of Java, as Python takes them; what they are for, names of topics, is ASCII."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

_CLASSES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Lower", "Ll", "IsLowercase", "javaLowerCase"), "a-z"),
    **dict.fromkeys(("Upper", "Lu", "IsUppercase", "javaUpperCase"), "A-Z"),
    **dict.fromkeys(("Alpha", "L", "IsL", "IsAlphabetic", "IsLatin"), "a-zA-Z"),
    **dict.fromkeys(("Digit", "N", "Nd", "IsDigit"), "0-9"),
    **dict.fromkeys(("Space", "IsWhite_Space"), r"\s"),
    "ASCII": r"\x00-\x7f",
    "Alnum": "a-zA-Z0-9",
    "XDigit": "0-9a-fA-F",
    "Punct": r"!-/:-@\[-`{-~",
    "Graph": "!-~",
    "Print": " -~",
    "Blank": r" \t",
    "Cntrl": r"\x00-\x1f\x7f",
}
_PROPERTY: Final = re.compile(r"\\([pP])(?:\{(\w+)\}|(\w))")
_OTHER_ESCAPES: Final = {"z": r"\Z", "Z": r"(?=\n?\Z)", "h": r"[ \t]", "R": r"(?:\r\n|[\n\x0b\f\r])"}
_REFERENCE: Final = re.compile(r"\\(.?)|\$(?:(\d)|\{([a-zA-Z][a-zA-Z0-9]*)\})?", re.DOTALL)


class RegexError(ValueError):
    """No regular expression, or no replacement for what it matches; the message says why."""


@lru_cache(1000)
def compiled(pattern: str) -> re.Pattern[str]:
    """Raises RegexError."""
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:  # the last two of what is too large or too deep
        raise RegexError(str(error)) from None


def _translated(pattern: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        piece, taken = rest[0], 1
        if piece == "\\":
            piece, taken = _escape(rest, in_class=False)
        elif piece == "[":
            piece, taken = _class(rest)
        elif re.match(r"\(\?<[a-zA-Z]", rest):
            piece, taken = "(?P<", 3
        out.append(piece)
        at += taken
    return "".join(out)


def _class(rest: str) -> tuple[str, int]:
    """What stands for the class at the start, and how long that is. Python's hold no others and know no `&&`, but
    one that does is a choice between classes, where others may have to match too."""
    start = at = 2 if rest.startswith("[^") else 1
    joined: list[list[str]] = [["["]]
    """By `&&`: of each, the beginning of a class and then the classes beside it."""
    while at == start or not rest.startswith("]", at):
        found = rest[at : at + 1]
        taken = 1
        if not found:
            raise re.error("unterminated character set")
        if rest.startswith("&&", at):
            joined.append(["["])
            taken = 2
        elif found in "[\\":
            piece, taken = _class(rest[at:]) if found == "[" else _escape(rest[at:], in_class=True)
            if piece.startswith(("[", "(")):
                joined[-1].append(piece)
            else:
                joined[-1][0] += piece
        else:
            joined[-1][0] += rf"\{found}" if found in "&|~]" else found
        at += taken
    if joined == [joined[0][:1]]:
        return f"{rest[:start]}{joined[0][0][1:]}]", at + 1
    unions = ["|".join([f"{first}]", *others] if first != "[" else others) for first, *others in joined]
    both = "".join(f"(?={each})" for each in unions[:-1]) + f"(?:{unions[-1]})"
    return (rf"(?:(?!{both})[\s\S])" if start == 2 else f"(?:{both})"), at + 1


def _escape(rest: str, in_class: bool) -> tuple[str, int]:
    """What stands for the escape at the start, and how long that is."""
    if rest.startswith(r"\Q"):
        quoted, end, _ = rest[2:].partition(r"\E")
        return re.escape(quoted), 2 + len(quoted) + len(end)
    if found := _PROPERTY.match(rest):
        content = _CLASSES.get(found[2] or found[3])
        if content is None:
            raise re.error(f"{found[0]} is not supported here")
        return (
            content if in_class and found[1] == "p" else f"[{'^' if found[1] == 'P' else ''}{content}]"
        ), found.end()
    if found := re.match(r"\\k<(\w+)>", rest):
        return f"(?P={found[1]})", found.end()
    if not in_class and rest[1:2] in _OTHER_ESCAPES:
        return _OTHER_ESCAPES[rest[1]], 2
    return rest[:2], 2


class Replacement:
    """Text with references to groups, `$1` or `${name}`, and escapes, as Java's Matcher has it."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        """Raises RegexError."""
        self._parts: Sequence[str | int] = list(_parts(pattern, text))

    def __call__(self, match: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self._parts)


def _parts(pattern: re.Pattern[str], text: str) -> list[str | int]:
    parts: list[str | int] = []
    at = 0
    while found := _REFERENCE.search(text, at):
        parts.append(text[at : found.start()])
        at = found.end()
        escaped, digit, name = found.groups()
        if escaped is not None:
            if not escaped:
                raise RegexError("character to be escaped is missing")
            parts.append(escaped)
        elif name is not None:
            if name not in pattern.groupindex:
                raise RegexError(f"No group with name {{{name}}}")
            parts.append(pattern.groupindex[name])
        elif digit is not None:
            group = int(digit)
            if group > pattern.groups:
                raise RegexError(f"No group {group}")
            # As many digits as still name a group.
            while at < len(text) and text[at] in "0123456789" and group * 10 + int(text[at]) <= pattern.groups:
                group = group * 10 + int(text[at])
                at += 1
            parts.append(group)
        else:
            raise RegexError("Illegal group reference: group index is missing")
    parts.append(text[at:])
    return parts
