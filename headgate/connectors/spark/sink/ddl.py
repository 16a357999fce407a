"""Spark's DDL text, as in `id BIGINT NOT NULL, tags ARRAY<STRING>`, read into Arrow's types and written from them.

Spark has a parser of its own, but in the JVM: a configuration is checked where there may be none yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", "UTC")
_TYPES: Final[Mapping[str, pa.DataType]] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "BYTE": pa.int8(),
    "SMALLINT": pa.int16(),
    "SHORT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "LONG": pa.int64(),
    "FLOAT": pa.float32(),
    "REAL": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}
_NAMES: Final = {kind: name for name, kind in reversed([*_TYPES.items()])}
_DECIMAL: Final = ("DECIMAL", "DEC", "NUMERIC")
_MOST_DIGITS: Final = 38
_TOKEN: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|('(?:[^'\\]|\\.|'')*'|\w+|[<>(),:]))")
_MOST_NESTED: Final = 50


class NoDdl(ValueError):
    """The text is none; the message says what is wrong with it."""


def parse(text: str) -> pa.Schema:
    """Raises NoDdl."""
    reader = _Reader(text)
    fields = reader.fields("")
    if not fields:
        raise NoDdl("It names no columns")
    return pa.schema(fields)


def written(schema: pa.Schema) -> str:
    """What `parse` reads as the same schema."""
    return ", ".join(_column(field, " ") for field in schema)


def type_name(kind: pa.DataType) -> str:
    """As Spark's users know it."""
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(_column(field, ': ') for field in kind)}>"
    return _NAMES.get(kind) or str(kind).upper()


def _column(field: pa.Field, between: str) -> str:
    name = field.name if re.fullmatch(r"[A-Za-z_]\w*", field.name, re.ASCII) else f"`{field.name.replace('`', '``')}`"
    return f"{name}{between}{type_name(field.type)}{'' if field.nullable else ' NOT NULL'}"


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0

    def fields(self, end: str) -> list[pa.Field]:
        """Up to the token `end`, which is read too; an empty one is the end of the text."""
        found: list[pa.Field] = []
        while self._peek() != end:
            if found:
                self._expect(",")
            found.append(self._field(end != ""))
        self._at += 1
        names = [field.name.lower() for field in found]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise NoDdl(f"Column {twice} is named twice; Spark does not tell capitals from small letters")
        return found

    def _field(self, within: bool) -> pa.Field:
        name, quoted = self._next()
        if not quoted and not re.fullmatch(r"\w+", name):
            raise NoDdl(f"{_shown(name)} is found where the name of a column is expected")
        if within or self._peek() == ":":
            self._expect(":", optional=True)
        kind = self._type()
        nullable = True
        if self._word() == "NOT":
            self._at += 1
            if self._next()[0].upper() != "NULL":
                raise NoDdl(f"NOT of column {name} is not followed by NULL")
            nullable = False
        if self._word() == "COMMENT":
            self._at += 2  # it is for the readers of the text
        return pa.field(name, kind, nullable)

    def _type(self) -> pa.DataType:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise NoDdl(f"Types are nested more than {_MOST_NESTED} deep")
        try:
            return self._one_type()
        finally:
            self._depth -= 1

    def _one_type(self) -> pa.DataType:
        name = self._next()[0].upper()
        if name in _DECIMAL:
            return self._decimal()
        if name in ("ARRAY", "MAP", "STRUCT"):
            self._expect("<")
            if name == "STRUCT":
                fields = self.fields(">")
                if not fields:
                    raise NoDdl("A STRUCT needs fields")
                return pa.struct(fields)
            first = self._type()
            if name == "MAP":
                self._expect(",")
                first = pa.map_(first, self._type())
            self._expect(">")
            return first if name == "MAP" else pa.list_(first)
        if name not in _TYPES:
            known = ", ".join(dict.fromkeys([*_NAMES.values(), "DECIMAL(p,s)", "ARRAY<>", "MAP<,>", "STRUCT<>"]))
            raise NoDdl(f"{_shown(name)} is no type of a column; there are {known}")
        return _TYPES[name]

    def _decimal(self) -> pa.DataType:
        digits = [10, 0]
        if self._peek() == "(":
            self._at += 1
            digits[0] = self._number()
            if self._peek() == ",":
                self._at += 1
                digits[1] = self._number()
            self._expect(")")
        if not 0 < digits[0] <= _MOST_DIGITS or digits[1] > digits[0]:
            raise NoDdl(f"DECIMAL({digits[0]},{digits[1]}) does not exist: at most {_MOST_DIGITS} digits, all told")
        return pa.decimal128(*digits)

    def _number(self) -> int:
        text = self._next()[0]
        if not re.fullmatch(r"[0-9]{1,4}", text):
            raise NoDdl(f"{_shown(text)} is no number of digits")
        return int(text)

    def _word(self) -> str:
        return self._peek().upper()

    def _peek(self) -> str:
        token, quoted = self._tokens[self._at] if self._at < len(self._tokens) else ("", False)
        return f"`{token}`" if quoted else token

    def _next(self) -> tuple[str, bool]:
        if self._at >= len(self._tokens):
            raise NoDdl("The text ends in the middle")
        self._at += 1
        return self._tokens[self._at - 1]

    def _expect(self, token: str, optional: bool = False) -> None:
        if self._peek() == token:
            self._at += 1
        elif not optional:
            raise NoDdl(f"{_shown(self._peek())} is found where {token!r} is expected")


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Each with whether it stood in backticks."""
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise NoDdl(f"{_shown(text[at:].strip()[:20])} cannot be read")
        yield (found[1].replace("``", "`"), True) if found[1] is not None else (found[2], False)
        at = found.end()


def _shown(token: str) -> str:
    return repr(token) if token else "The end of the text"
