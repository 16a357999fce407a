"""Pattern: texts that match a regular expression, of those that can be made without trying."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.api import Schema, schema
from headgate.connectors.datagen.generator import LEAST_WIDTH, BadSchema, Generator
from headgate.connectors.datagen.random_rows import RandomRows, part_of

_LONGEST: Final = 1000
_DEEPEST: Final = 20
_REPEATED: Final = 8
"""How often what may come any number of times comes at most."""
_WORD: Final = string.ascii_letters + string.digits + "_"
_ESCAPES: Final = {"d": string.digits, "w": _WORD, "s": " ", "t": "\t", "n": "\n"}
_QUANTIFIERS: Final = {"?": (0, 1), "*": (0, _REPEATED), "+": (1, _REPEATED)}

_Mask = np.ndarray[Any, np.dtype[np.bool_]]
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of these characters, which are bytes."""

    characters: bytes


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of these, one after the other."""

    parts: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Either:
    parts: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Repeated:
    part: Piece
    least: int
    most: int


Piece = OneOf | AllOf | Either | Repeated


def literal(text: str) -> AllOf:
    return AllOf(tuple(OneOf(bytes([byte])) for byte in text.encode()))


def _length(piece: Piece) -> int:
    """Of the longest text, in bytes, all alternatives included: that is what has to be made. Nothing counts, too."""
    match piece:
        case OneOf():
            return 1
        case Repeated(part, _, most):
            return _length(part) * max(1, most)
        case _:
            return max(1, sum(map(_length, piece.parts)))


@dataclass(frozen=True)
class PatternTexts(Generator):
    piece: Piece
    schema: Schema = schema.STRING

    @classmethod
    def of(cls, pattern: str, before: str = "", behind: str = "") -> PatternTexts:
        """Raises BadSchema for what is no pattern, or none that can be followed."""
        around = (literal(before), PatternReader(pattern).read(), literal(behind))
        return cls(AllOf(tuple(piece for piece in around if piece != AllOf(()))))

    def __post_init__(self) -> None:
        if _length(self.piece) > _LONGEST:
            raise BadSchema(f"a pattern may make at most {_LONGEST} bytes")

    @property
    def width(self) -> int:
        return max(LEAST_WIDTH, _length(self.piece))

    def column(self, rows: RandomRows, stream: int) -> pa.Array:
        drawing = _Drawing(rows, stream)
        made = list(drawing.bytes_of(self.piece, np.ones(len(rows), np.bool_)))
        if not made:
            return pa.repeat(pa.scalar("", pa.string()), len(rows))
        data = np.stack([characters for characters, _ in made], axis=1)
        return texts_of(data, np.stack([present for _, present in made], axis=1))


def texts_of(data: _Bytes, present: _Mask | None = None) -> pa.Array:
    """A text of each row: the bytes in it that are present."""
    lengths = np.full(len(data), data.shape[1]) if present is None else present.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    kept = np.ascontiguousarray(data) if present is None else data[present]
    return pa.Array.from_buffers(pa.string(), len(data), [None, pa.py_buffer(offsets), pa.py_buffer(kept)])


@dataclass(slots=True)
class _Drawing:
    rows: RandomRows
    stream: int
    draws: int = 0

    def _below(self, bound: int) -> Any:
        self.draws += 1
        return self.rows.below(bound, part_of(self.stream, self.draws))

    def bytes_of(self, piece: Piece, present: _Mask) -> Iterator[tuple[_Bytes, _Mask]]:
        """Each byte that there may be, and in which rows it is there."""
        match piece:
            case OneOf(characters) if len(characters) == 1:
                yield np.full(len(self.rows), characters[0], np.uint8), present
            case OneOf(characters):
                yield np.frombuffer(characters, np.uint8)[self._below(len(characters))], present
            case AllOf(parts):
                for part in parts:
                    yield from self.bytes_of(part, present)
            case Either(parts):
                chosen = self._below(len(parts))
                for number, part in enumerate(parts):
                    yield from self.bytes_of(part, present & (chosen == number))
            case Repeated(part, least, most):
                count = least + self._below(most - least + 1)
                for number in range(most):
                    yield from self.bytes_of(part, present if number < least else present & (count > number))


class PatternReader:
    """Literals, escapes, classes, groups, alternatives, and quantifiers."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def read(self) -> Piece:
        piece = self._alternatives()
        if self._at < len(self._pattern):
            raise self._wrong("a bracket that was not opened")
        return piece

    def _wrong(self, what: str) -> BadSchema:
        return BadSchema(f"the pattern {self._pattern!r} has at character {self._at + 1} {what}")

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        self._at += 1
        return self._pattern[self._at - 1 : self._at]

    def _alternatives(self) -> Piece:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong("too many brackets in brackets")
        found = [self._one_after_the_other()]
        while self._peek() == "|":
            self._next()
            found.append(self._one_after_the_other())
        self._depth -= 1
        return found[0] if len(found) == 1 else Either(tuple(found))

    def _one_after_the_other(self) -> Piece:
        parts: list[Piece] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified(self._atom()))
        return AllOf(tuple(parts))

    def _atom(self) -> Piece:
        character = self._next()
        match character:
            case "(":
                if self._peek() == "?":
                    if self._pattern[self._at : self._at + 2] != "?:":
                        raise self._wrong("a kind of group that is not known here")
                    self._at += 2
                inner = self._alternatives()
                if self._next() != ")":
                    raise self._wrong("the end, with a bracket left open")
                return inner
            case "[":
                return OneOf(self._class())
            case "\\":
                characters = self._escaped()
                return OneOf(characters.encode()) if characters.isascii() else literal(characters)
            case ".":
                return OneOf((string.ascii_letters + string.digits).encode())
            case "^" if self._at == 1:
                return AllOf(())
            case "$" if self._at == len(self._pattern):
                return AllOf(())
            case "*" | "+" | "?" | "{" | "}" | "]" | "^" | "$":
                self._at -= 1
                raise self._wrong(f"a {character} that does not belong there")
        return literal(character)

    def _escaped(self) -> str:
        """The characters that an escape stands for."""
        character = self._next()
        if character in _ESCAPES:
            return _ESCAPES[character]
        if not character or character.isalnum():
            raise self._wrong("an escape that is not known here")
        return character

    def _class(self) -> bytes:
        found = ""
        if self._peek() == "^":
            raise self._wrong("a class of all other characters, which is not known here")
        while not (self._peek() == "]" and found):
            first = self._member()
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._next()
                last = self._member()
                if len(first) != 1 or len(last) != 1 or not first <= last <= "~":
                    raise self._wrong("the end of a range that is none, or goes beyond ASCII")
                first = "".join(map(chr, range(ord(first), ord(last) + 1)))
            found += first
            if not found.isascii():
                raise self._wrong("a class with characters beyond ASCII")
        self._next()
        return "".join(dict.fromkeys(found)).encode()

    def _member(self) -> str:
        character = self._next()
        if not character:
            raise self._wrong("the end, with a class left open")
        return self._escaped() if character == "\\" else character

    def _quantified(self, piece: Piece) -> Piece:
        if self._peek() == "{":
            self._next()
            text, found, _ = self._pattern[self._at :].partition("}")
            least, comma, most = text.partition(",")
            if not found or not re.fullmatch(r"[0-9]{1,6}(,[0-9]{0,6})?", text):
                raise self._wrong("a number of times that is none")
            self._at += len(text) + 1
            low = int(least)
            high = int(most) if most else low + (_REPEATED if comma else 0)
        elif self._peek() in ("?", "*", "+"):
            low, high = _QUANTIFIERS[self._next()]
        else:
            return piece
        repeated = Repeated(piece, low, high)
        if low > high or _length(repeated) > _LONGEST:
            raise self._wrong(f"a number of times that is none, or makes more than {_LONGEST} bytes")
        return repeated
