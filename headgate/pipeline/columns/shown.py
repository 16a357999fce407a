"""Columns as text: field by field as Java's toString shows it, and all fields of a record as a map or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.java.json import dumps
from headgate.java.numbers import double_text
from headgate.pipeline.columns.frame import Column, Frame, NotByColumns, is_text

_ESCAPED: Final = r'["\\\x00-\x1f]|[\x{10000}-\x{10ffff}]'


def as_text(frame: Frame) -> Column:
    """`{id=5, name=x}`, or what is no map as it is. Null where there is null."""
    if not isinstance(frame.value, Mapping):
        return shown(frame.value)
    return _map([(f"{name}=", shown(column)) for name, column in frame.value.items()], ", ", frame)


def as_json(frame: Frame) -> Column:
    """`{"id":5,"name":"x"}`, or what is no map as JSON. Null where there is null."""
    if not isinstance(frame.value, Mapping):
        return _json(frame.value)
    return _map([(f"{dumps(name).decode()}:", _json(column)) for name, column in frame.value.items()], ",", frame)


def shown(column: Column) -> Column:
    """Null where there is null. Raises NotByColumns for what is no number."""
    kind = column.type
    if is_text(column):
        return column
    if pa.types.is_boolean(kind):
        return pc.if_else(column, "true", "false")
    if pa.types.is_floating(kind):
        return _floats(column)
    return column.cast(pa.string())


def quoted(column: Column, head: str = "", tail: str = "") -> Column:
    """Text as JSON, with this before and after it. Null where there is null."""
    text = pc.binary_join_element_wise(f'{head}"', column, f'"{tail}', "")
    odd = pc.match_substring_regex(column, _ESCAPED)
    return _mended(text, odd, column, lambda item: f"{head}{dumps(item).decode()}{tail}")


def _json(column: Column) -> Column:
    return quoted(column) if is_text(column) else shown(column)


def _floats(column: Column) -> Column:
    if not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise NotByColumns("not a number")
    size = pc.abs(column)
    # Java writes other numbers as powers of ten.
    plain = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(column, 0.0))
    text = column.cast(pa.string())
    text = pc.if_else(pc.equal(pc.floor(column), column), pc.binary_join_element_wise(text, ".0", ""), text)
    return _mended(text, pc.invert(plain), column, double_text)


def _mended(text: Column, odd: Column, column: Column, show: Callable[[Any], str]) -> Column:
    """The text, with what `show` says of the odd ones."""
    odd = odd.fill_null(False)
    if not pc.any(odd, min_count=0).as_py():
        return text
    return pc.replace_with_mask(text, odd, pa.array(list(map(show, column.filter(odd).to_pylist())), pa.string()))


def _map(fields: list[tuple[str, Column]], comma: str, frame: Frame) -> Column:
    """`fields` are names, with what follows them, and values as text."""
    if not fields:
        return frame.repeated("{}")
    pieces: list[Any] = []
    for name, text in fields:
        pieces += [(comma if pieces else "{") + name, text.fill_null("null") if text.null_count else text]
    return pc.binary_join_element_wise(*pieces, "}", "")
