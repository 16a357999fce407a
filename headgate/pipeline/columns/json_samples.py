"""What JSON texts without schema look like, learnt from some of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from headgate.pipeline.columns.json_groups import JsonGroups, Kinds
from headgate.pipeline.columns.json_layout import JsonLayout, JsonMember, ListOf, Node, StructOf
from headgate.pipeline.columns.json_scalars import BOOLEAN, FLOAT, INTEGER, NULL, TEXT, Scalar

_SCALARS: Final[Mapping[type, Scalar]] = {
    type(None): NULL,
    bool: BOOLEAN,
    int: INTEGER,
    float: FLOAT,
    str: TEXT,
}
_STRINGS: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


class Differ(Exception):
    """Two values that are not of one kind."""


def plain_groups() -> JsonGroups:
    """Reads texts without schema."""
    return JsonGroups(Kinds(layouts, joined))


def layouts(texts: Sequence[str]) -> list[JsonLayout]:
    """Those that these texts have, as far as they are JSON."""
    found: list[JsonLayout] = []
    for new in filter(None, map(_layout, texts)):
        for place, other in enumerate(found):
            if both := joined(other, new):
                found[place] = both
                break
        else:
            found.append(new)
    return found


def _layout(text: str) -> JsonLayout | None:
    try:
        return JsonLayout.of(kind_of(orjson.loads(text), ascii_only=text.isascii()), spaced=is_spaced(text))
    except (orjson.JSONDecodeError, Differ):
        return None


def joined(one: JsonLayout, other: JsonLayout) -> JsonLayout | None:
    """A layout that has the texts of both; None when there is none."""
    try:
        return JsonLayout.of(_both(one.node, other.node), spaced=one.spaced) if one.spaced is other.spaced else None
    except Differ:
        return None


def is_spaced(text: str) -> bool:
    """Whether there are spaces in it other than those in strings."""
    return " " in _STRINGS.sub("", text)


def quoted(name: str, *, ascii_only: bool) -> str:
    return json.dumps(name, ensure_ascii=ascii_only)


def kind_of(value: Any, *, ascii_only: bool) -> Node:
    if isinstance(value, dict):
        members = ((name, kind_of(item, ascii_only=ascii_only)) for name, item in value.items())
        return StructOf(tuple(JsonMember(name, quoted(name, ascii_only=ascii_only), node) for name, node in members))
    if isinstance(value, list):
        item: Node = NULL
        for each in value:
            item = _both(item, kind_of(each, ascii_only=ascii_only))
        return ListOf(item)
    return _SCALARS[type(value)]


def _both(one: Node, other: Node) -> Node:
    """The kind of both. Raises Differ."""
    if one is other or other is NULL:
        return one
    if one is NULL:
        return other
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return ListOf(_both(one.item, other.item))
    if isinstance(one, StructOf) and isinstance(other, StructOf):
        pairs = list(zip(one.members, other.members, strict=False))
        if len(one.members) == len(other.members) and all(each.quoted == same.quoted for each, same in pairs):
            return StructOf(
                tuple(JsonMember(each.name, each.quoted, _both(each.node, same.node)) for each, same in pairs)
            )
    raise Differ
