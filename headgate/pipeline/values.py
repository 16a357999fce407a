"""Values as text that shows their type: what headers hold, and what InsertHeader's literal is read as."""

from __future__ import annotations

import base64
import datetime as dt
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from headgate.api import DataError, Schema, SchemaType, Struct
from headgate.api import schema as schemas
from headgate.java.dates.civil import DAY_MS
from headgate.java.numbers import float32
from headgate.pipeline.logical import datetime_of, instant_ms
from headgate.pipeline.text import java_class, text

Value = tuple[Schema | None, Any]

_TOKEN: Final = re.compile(r'[:,{}\[\]"]|(?:\\.|[^\\:,{}\[\]"])+\\?|\\', re.DOTALL)
_NUMBER: Final = re.compile(r"([+-]?\d+\.?\d*|[+-]\.\d+)([eE][+-]?\d{1,10})?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(r"\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_TIMESTAMP: Final = re.compile(rf"{_DATE.pattern}T{_TIME.pattern}", re.ASCII)
_TEMPORAL: Final = (schemas.DATE_NAME, schemas.TIME_NAME, schemas.TIMESTAMP_NAME)
_INTEGERS: Final = ((7, schemas.INT8), (15, schemas.INT16), (31, schemas.INT32), (63, schemas.INT64))
_RANKS: Final = tuple(SchemaType[name] for name in ("INT8", "INT16", "INT32", "INT64", "FLOAT32", "FLOAT64"))
_MOST_DIGITS: Final = 19
_BYTES: Final = (bytes, bytearray, memoryview)


def parse(source: str) -> Value:
    """The value that the text looks like, with its schema: a number, boolean, null, list, map, date or time; otherwise
    the text itself. Lists and maps of mixed types have no schema."""
    if not source:
        return schemas.STRING, source
    try:
        return _Parser(source, _TOKEN.findall(source)).value(embedded=False)
    except RecursionError:  # lists in lists without end
        return schemas.STRING, source


def show(value: Any, schema: Schema | None = None) -> str:
    """The text that `parse` understands. Raises DataError for a value that Connect has no type for."""
    if isinstance(value, str):
        return value
    shown = _embedded(value, schema)
    return shown.strip('"') if isinstance(value, _BYTES) else shown


def _embedded(value: Any, schema: Schema | None) -> str:
    keys, items = (schema.key_schema, schema.value_schema) if schema is not None else (None, None)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if value is None or isinstance(value, bool | int | float | Decimal):
        return text(value, schema)
    if isinstance(value, _BYTES):
        return f'"{base64.b64encode(value).decode("ascii")}"'
    if isinstance(value, list | tuple):
        return f"[{','.join(_embedded(item, items) for item in value)}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{_embedded(key, keys)}:{_embedded(item, items)}' for key, item in value.items())}}}"
    if isinstance(value, Struct):
        members = ((member, value[member.name]) for member in value.schema.fields)
        return f"{{{','.join(f'{_embedded(m.name, None)}:{_embedded(item, m.schema)}' for m, item in members)}}}"
    if isinstance(value, dt.date | dt.time):
        return _temporal_text(instant_ms(value))
    raise DataError(f"Failed to serialize unexpected value type {java_class(value)}: {value}")


def _temporal_text(ms: int) -> str:
    # java.util.Date does not say which of the three it is, so Connect guesses from the number.
    at = datetime_of(ms)
    date, time = f"{at.year:04}-{at:%m-%d}", f"{at:%H:%M:%S}.{at.microsecond // 1000:03}Z"
    if ms < DAY_MS:
        return time
    return date if ms % DAY_MS == 0 else f"{date}T{time}"


class _NotThis(Exception):
    """The text is no list or map after all."""


@dataclass(slots=True)
class _Parser:
    """Goes through the tokens: delimiters, and the text between them with its escapes."""

    source: str
    tokens: list[str]
    at: int = 0

    def take(self, expected: str) -> bool:
        """Skip this token, and blanks before it, if it comes next."""
        start = self.at
        self._skip_blanks()
        if self.at < len(self.tokens) and self.tokens[self.at].strip() == expected:
            self.at += 1
            return True
        self.at = start
        return False

    def _skip_blanks(self) -> None:
        """But not the last one: that is the value itself."""
        while self.at < len(self.tokens) - 1 and not self.tokens[self.at].strip():
            self.at += 1

    def value(self, *, embedded: bool) -> Value:
        if embedded and self.take('"'):
            return self._string()
        for word, found in (
            ("null", (None, None)),
            ("true", (schemas.BOOLEAN, True)),
            ("false", (schemas.BOOLEAN, False)),
        ):
            start = self.at
            if self.take(word):
                if embedded or self.at == len(self.tokens):
                    return found
                self.at = start
        start = self.at
        try:
            if self.take("["):
                return self._list()
            if self.take("{"):
                return self._map()
        except _NotThis:
            self.at = start
        return self._scalar(embedded=embedded)

    def _string(self) -> Value:
        start = self.at
        while self.at < len(self.tokens) and self.tokens[self.at].strip() != '"':
            self.at += 1
        content = "".join(self.tokens[start : self.at])
        self.at += 1
        schema, value = parse(content)
        if schema is not None and schema.name in _TEMPORAL:
            return schema, value
        return schemas.STRING, content

    def _list(self) -> Value:
        elements: list[Value] = []
        while self.at < len(self.tokens):
            if self.take("]"):
                return _list_of(elements)
            if self.take(","):
                raise _NotThis
            elements.append(self.value(embedded=True))
            start = self.at
            if self.take("]"):
                self.at = start
            elif not self.take(","):
                raise _NotThis
        raise _NotThis

    def _map(self) -> Value:
        entries: list[tuple[Value, Value]] = []
        while self.at < len(self.tokens):
            if self.take("}"):
                return _map_of(entries)
            if self.take(","):
                raise _NotThis
            key = self.value(embedded=True)
            if key[1] is None or not self.take(":"):
                raise _NotThis
            if self.at == len(self.tokens):
                raise _NotThis
            entries.append((key, self.value(embedded=True)))
            self.take(",")
        raise _NotThis

    def _scalar(self, *, embedded: bool) -> Value:
        if self.at == len(self.tokens):
            raise _NotThis
        self._skip_blanks()
        token = self.tokens[self.at]
        self.at += 1
        if not token.strip():
            return schemas.STRING, token
        token = token.strip()
        if token[0].isdigit():
            # A colon ends a token, so a time is five of them.
            five = token + "".join(self.tokens[self.at : self.at + 4])
            for candidate, length in ((five, 4), (token, 0)):
                found = _temporal(candidate.replace("\\:", ":"))
                if found is not None:
                    self.at += length
                    return found
        if _NUMBER.fullmatch(token):
            number = _number(token)
            if number is not None:
                return number
        if embedded:
            raise _NotThis
        return schemas.STRING, self.source


def _temporal(token: str) -> Value | None:
    try:
        if _DATE.fullmatch(token):
            return schemas.DATE, dt.date.fromisoformat(token)
        if _TIME.fullmatch(token):
            return schemas.TIME, dt.time.fromisoformat(token[:-1])
        if _TIMESTAMP.fullmatch(token):
            return schemas.TIMESTAMP, dt.datetime.fromisoformat(token)
    except ValueError:
        pass
    return None


def _number(token: str) -> Value | None:
    try:
        value = Decimal(token)
    except ArithmeticError:
        return None
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > 0x7FFFFFFF:
        return None
    if value.adjusted() < _MOST_DIGITS and value == value.to_integral_value():
        for bits, schema in _INTEGERS:
            if -(1 << bits) <= value < 1 << bits:
                return schema, int(value)
    if exponent != 0:
        for schema, converted in ((schemas.FLOAT32, float32(float(value))), (schemas.FLOAT64, float(value))):
            if math.isfinite(converted):
                return schema, converted
    return schemas.decimal(-exponent), value


def _list_of(elements: list[Value]) -> Value:
    common, known = _common([schema for schema, value in elements if schema is not None or value is not None])
    values = [_aligned(common, value) for _, value in elements]
    return (schemas.array(common) if common is not None and known else None), values


def _map_of(entries: list[tuple[Value, Value]]) -> Value:
    keys, keys_known = _common([key[0] for key, _ in entries])
    items, items_known = _common([item[0] for _, item in entries if item[0] is not None or item[1] is not None])
    try:
        found = {_aligned(keys, key[1]): _aligned(items, item[1]) for key, item in entries}
    except TypeError:  # a list or map as key, which Python's maps do not take
        raise _NotThis from None
    known = keys is not None and items is not None and keys_known and items_known
    return (schemas.mapping(keys, items) if known and keys is not None and items is not None else None), found


def _common(found: list[Schema | None]) -> tuple[Schema | None, bool]:
    """The one schema that fits all, and whether there is one."""
    common: Schema | None = None
    for schema in found:
        if schema is None:
            return None, False
        if common is None or common.type is schema.type:
            common = schema
        elif common.type in _RANKS and schema.type in _RANKS:
            common = max(common, schema, key=lambda each: _RANKS.index(each.type))
        else:
            return None, False
    return common, common is not None


def _aligned(schema: Schema | None, value: Any) -> Any:
    if schema is None:
        return value
    if value is None:
        raise _NotThis  # a list with a schema of its own holds no null
    if schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64) and isinstance(value, int):
        return float32(float(value)) if schema.type is SchemaType.FLOAT32 else float(value)
    return value
