"""JsonLayout: what JSON texts look like: which fields in which order, of which kinds, and how they are spaced.

Texts of one layout are told from others by one pattern, and are then cut and read without a look at each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api.frame import Values
from headgate.pipeline.columns.json_scalars import TEXT, Scalar
from headgate.pipeline.columns.json_texts import Cursor, Mask, Texts, string_ends

_LONGEST: Final = 20_000
"""A longer pattern, of hundreds of fields, takes too long, and at last is refused."""
_DEEPEST: Final = 100
"""Jackson refuses what has some hundreds of levels more."""
_LONGEST_NAME: Final = 10_000
"""In a map: whether a longer one is refused is a matter of its own."""

Node: TypeAlias = "Scalar | ListOf | MapOf | StructOf | Settled"
"""A kind of values. Null is one of each kind."""


@dataclass(frozen=True, slots=True)
class ListOf:
    item: Node


@dataclass(frozen=True, slots=True)
class MapOf:
    """Objects with any names."""

    item: Node


@dataclass(frozen=True, slots=True)
class JsonMember:
    name: str
    quoted: str
    """The name as it is in the text."""
    node: Node


def struct_column(columns: Mapping[str, pa.Array], null: Mask) -> pa.Array:
    """Null where the mask says so."""
    fields = {name: Values(column) for name, column in columns.items()}
    return Values.of_fields(fields, len(null), null=pa.array(null) if null.any() else None).data


@dataclass(frozen=True, slots=True)
class StructOf:
    """Objects with these names in this order."""

    members: tuple[JsonMember, ...]
    build: Callable[[Mapping[str, pa.Array], Mask], pa.Array] = struct_column
    """From the columns of all members, and which of the objects are null."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A kind of which more is asked than its texts can tell."""

    node: Node
    settle: Callable[[Texts, pa.Array], pa.Array]
    """From the texts and the column that was made of them."""


class TooLong(Exception):
    """A pattern that is of no use."""


@dataclass(frozen=True, slots=True)
class JsonLayout:
    node: Node = field(compare=False)
    spaced: bool
    """As Python writes JSON; or without any spaces, as others do."""
    pattern: str

    @classmethod
    def of(cls, node: Node, *, spaced: bool) -> JsonLayout | None:
        try:
            return cls(node, spaced, rf"\A{_pattern(node, *_separators(spaced))}\z")
        except TooLong:
            return None

    def matches(self, column: pa.Array) -> Mask:
        """Which of the texts have this layout."""
        return pc.match_substring_regex(column, self.pattern).to_numpy(zero_copy_only=False)

    def read(self, column: pa.Array) -> tuple[pa.Array, Mask]:
        """The values of texts that all match, and which of them must be read one by one after all."""
        texts = Texts.of(column)
        return _Reader(*map(str.encode, _separators(self.spaced))).values(self.node, texts), texts.refused


def _separators(spaced: bool) -> tuple[str, str]:
    return (": ", ", ") if spaced else (":", ",")


def _pattern(node: Node, colon: str, comma: str, depth: int = 0) -> str:
    if depth > _DEEPEST:
        raise TooLong
    if isinstance(node, Settled):
        return _pattern(node.node, colon, comma, depth)
    if isinstance(node, StructOf):
        found = comma.join(
            re.escape(m.quoted + colon) + _pattern(m.node, colon, comma, depth + 1) for m in node.members
        )
        found = rf"\{{{found}\}}"
    elif isinstance(node, ListOf):
        item = _pattern(node.item, colon, comma, depth + 1)
        found = rf"\[(?:{item}(?:{comma}{item})*)?\]"
    elif isinstance(node, MapOf):
        item = f"{TEXT.pattern}{colon}{_pattern(node.item, colon, comma, depth + 1)}"
        found = rf"\{{(?:{item}(?:{comma}{item})*)?\}}"
    else:
        found = node.pattern
    if len(found.encode()) > _LONGEST:  # here, as that of lists of lists of lists doubles each time
        raise TooLong
    return f"(?:null|{found})"


@dataclass(frozen=True, slots=True)
class _Reader:
    colon: bytes
    comma: bytes

    def values(self, node: Node, texts: Texts) -> pa.Array:
        if isinstance(node, Settled):
            return node.settle(texts, self.values(node.node, texts))
        if isinstance(node, StructOf):
            return self._value(node, Cursor(texts, nested=_has_lists(node)), b"", None)
        null = texts.null
        if isinstance(node, Scalar):
            return node.read(texts, null)
        offsets, items = texts.items(len(self.comma))
        mask = pa.array(null) if null.any() else None
        if isinstance(node, ListOf):
            return pa.ListArray.from_arrays(offsets, self.values(node.item, items), mask=mask)
        ends = string_ends(items)
        names = TEXT.read(items.between(items.starts, ends), np.zeros(len(items), np.bool_))
        items.refuse(_repeated(offsets, names) | (ends - items.starts > _LONGEST_NAME))
        column = self.values(node.item, items.between(ends + len(self.colon), items.ends))
        return pa.MapArray.from_arrays(offsets, names, column, mask=mask)

    def _value(self, node: Node, cursor: Cursor, follow: bytes, present: Mask | None) -> pa.Array:
        """What is at the cursor, with this text behind it, in those objects that are present."""
        if isinstance(node, Settled):
            start = cursor.at
            column = self._value(node.node, cursor, follow, present)
            return node.settle(cursor.texts.between(start, cursor.at), column)
        if not isinstance(node, StructOf):
            return self.values(node, cursor.value(follow, present))
        null = cursor.null
        here = ~null if null.any() else None
        columns: dict[str, pa.Array] = {}
        heads = [
            (self.comma if place else b"{") + member.quoted.encode() + self.colon
            for place, member in enumerate(node.members)
        ]
        for member, head, rest in zip(node.members, heads, [*heads[1:], b"}" + follow], strict=False):
            cursor.skip(head, here)
            columns[member.name] = self._value(member.node, cursor, rest, here)
        cursor.skip(b"}" if heads else b"{}", here)
        if here is not None:
            cursor.skip(b"null", null if present is None else null & present)
        return node.build(columns, null)


def _has_lists(node: Node) -> bool:
    """Whether there are brackets in its texts other than those of structs."""
    if isinstance(node, Settled):
        return _has_lists(node.node)
    if isinstance(node, StructOf):
        return any(_has_lists(member.node) for member in node.members)
    return not isinstance(node, Scalar)


def _repeated(offsets: pa.Array, names: pa.Array) -> Mask:
    """Which of the names are in their map for the second time."""
    lengths = np.diff(offsets.to_numpy())
    found = np.zeros(len(names), np.bool_)
    if lengths.max(initial=0) > 1:
        codes = names.dictionary_encode()
        pairs = np.repeat(np.arange(len(lengths)) * len(codes.dictionary), lengths) + codes.indices.to_numpy()
        order = np.argsort(pairs, kind="stable")
        found[order[1:]] = np.diff(pairs[order]) == 0
    return found
