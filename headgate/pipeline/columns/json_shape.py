"""The shape of JSON objects: which fields, in which order, of which types, and how the text is spaced.

Texts of one shape can be read by columns without losing anything: its pattern admits no text that `JsonConverter` and
Arrow would read differently. Nested values, missing fields, minus zero, and escapes that may be half a surrogate pair
do not match it; numbers beyond 64 bits, or of too many digits, are refused when they are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from headgate.java.json import LONG_NUMBER, LONGEST_TEXT, has_long_number
from headgate.pipeline.columns.frame import Column, NotByColumns, joined

_SAMPLES: Final = 8
_LONGEST: Final = 20_000
"""A longer pattern, of hundreds of fields, takes too long, and at last is refused."""
_STRIDE: Final = 16
_NULL: Final = type(None)
_POWER: Final = "[eE][+-]?[0-9]{1,2}"
_PATTERNS: Final[Mapping[type, str]] = {
    _NULL: "null",
    bool: "null|true|false",
    int: "null|0|-?[1-9][0-9]*",
    # Minus zero is a matter of its own, and so is what is too small to be anything else.
    float: rf"null|(?:0|-?[1-9][0-9]*)(?:\.[0-9]+(?:{_POWER})?|{_POWER})|-0\.0{{0,20}}[1-9][0-9]*",
    str: r'null|"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-cefA-CEF][0-9a-fA-F]{3})*"',
}
_TYPES: Final[Mapping[type, pa.DataType]] = {
    _NULL: pa.null(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
}


@dataclass(frozen=True, slots=True)
class Shape:
    schema: pa.Schema
    pattern: str

    @classmethod
    def of(cls, texts: Column) -> Shape | None:
        """The shape of the first object among some of these texts; None when there is none."""
        found: dict[str, type] = {}
        first = ""
        for place in range(0, len(texts), max(1, len(texts) // _SAMPLES)):
            text = texts[place].as_py() or ""
            fields = _fields(text)
            if not found:
                found, first = fields, text
            elif list(found) == list(fields):
                found = {name: fields[name] if kind is _NULL else kind for name, kind in found.items()}
        if not found:
            return None
        pattern = _pattern(found, spaced=first.startswith(f"{{{_quoted(next(iter(found)))}: "))
        schema = pa.schema([(name, _TYPES[kind]) for name, kind in found.items()])
        return cls(schema, pattern) if len(pattern) <= _LONGEST else None

    def matches(self, texts: Column) -> Any:
        """A mask, in numpy: which of the texts have this shape. Null has none."""
        return pc.match_substring_regex(texts, self.pattern).fill_null(False).to_numpy(zero_copy_only=False)

    def read(self, texts: Column) -> dict[str, Column]:
        """The fields of texts that all match. Raises NotByColumns."""
        data = _in_one_piece(texts)
        if _too_long(data, pc.max(pc.binary_length(texts)).as_py() or 0):
            raise NotByColumns("a number or a text that may be too long")
        table = pyarrow.json.read_json(
            pa.BufferReader(data),
            read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=pyarrow.json.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="error"),
        )
        if table.num_rows != len(texts):
            raise NotByColumns("not one object for each text")
        fields = {name: joined(table.column(name)) for name in self.schema.names}
        if any(pa.types.is_floating(column.type) and not _moderate(column) for column in fields.values()):
            raise NotByColumns("a number that is read digit by digit")
        return fields


def runs(mask: Any) -> Iterator[tuple[int, int, bool]]:
    """From a mask: first, end and value of each run."""
    if len(mask) == 0:
        return
    edges = [0, *(np.flatnonzero(np.diff(mask)) + 1).tolist(), len(mask)]
    for first, end in pairwise(edges):
        yield first, end, bool(mask[first])


def _fields(text: str) -> dict[str, type]:
    """The types of an object's fields; empty for what is no object, or not one of plain values."""
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    types = {name: type(item) for name, item in tree.items()} if isinstance(tree, dict) else {}
    return types if _TYPES.keys() >= set(types.values()) else {}


def _pattern(fields: Mapping[str, type], *, spaced: bool) -> str:
    """With spaces as Python writes JSON, or without, as others do."""
    colon, comma = (": ", ", ") if spaced else (":", ",")
    parts = [f"{re.escape(_quoted(name) + colon)}(?:{_PATTERNS[kind]})" for name, kind in fields.items()]
    return rf"\A\{{{comma.join(parts)}\}}\z"


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _moderate(column: Column) -> bool:
    return bool(pc.all(pc.less(pc.abs(column), 2.0**63), min_count=0).as_py())


def _too_long(data: pa.Buffer, longest: int) -> bool:
    """Whether Jackson may refuse one of the texts for the length of a value. Looks for digits at one byte in some
    first: all of them take as long as to read the texts."""
    if longest <= len(LONG_NUMBER):
        return False
    digits = (np.frombuffer(data, np.uint8)[::_STRIDE] - ord("0") < 10).tobytes()
    suspicious = digits.find(b"\x01" * (len(LONG_NUMBER) // _STRIDE)) >= 0
    return longest > LONGEST_TEXT or (suspicious and has_long_number(data.to_pybytes()))


def _in_one_piece(texts: Column) -> pa.Buffer:
    """All texts as they lie there: one object after the other needs nothing in between."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return texts.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
