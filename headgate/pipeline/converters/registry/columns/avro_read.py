"""Avro by columns: the bytes of many records of one schema become Arrow arrays, one value of all records at a time.

A reader is made once for each Avro schema: a function for each type, put together as the schema is. Given cursors that
stand at its value in each record, it reads that value of all of them, moves the cursors behind it, and gives an array.
A record is its fields, one after the other. Where a union says null, the cursor is not live: it stays, and the array
has null there. Items of arrays and maps are read in rounds: the first of all records that have one, then the second of
those that have two, and so on.

It gives what fastavro and our decoder make of the same bytes, or refuses the record: damaged ones, those with a value
that the type has no room for, and what could be read but is not what serializers write.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headgate.api import Schema
from headgate.api.frame import NotByColumns, arrow_type
from headgate.api.schema import DATE_NAME, TIME_NAME, TIMESTAMP_NAME
from headgate.java.dates.civil import DAY_MS
from headgate.pipeline import logical
from headgate.pipeline.converters.registry import avro_names as names
from headgate.pipeline.converters.registry.columns import arrays
from headgate.pipeline.converters.registry.columns.cursors import Cursors
from headgate.pipeline.converters.registry.columns.rounds import Rounds, repeating
from headgate.pipeline.converters.registry.columns.varints import Longs
from headgate.pipeline.schemas import inner

Read = Callable[[Cursors], pa.Array]
Named = Mapping[str, Any]
"""Avro's named types, as fastavro has parsed them."""

_NULL: Final = ("null", {"type": "null"})
_RANGES: Final[Mapping[str | None, tuple[int, int]]] = {
    DATE_NAME: (logical.days_of(dt.date.min), logical.days_of(dt.date.max)),
    TIME_NAME: (0, DAY_MS - 1),
    TIMESTAMP_NAME: (logical.ms_of(dt.datetime.min), logical.ms_of(dt.datetime.max)),
}
_INT: Final = (-(1 << 31), (1 << 31) - 1)


def reader(tree: Any, schema: Schema, named: Named) -> Read:
    """Of values of this Avro schema, as fastavro has parsed it, which is this one of Connect. Raises NotByColumns."""
    if isinstance(tree, list):
        return _optional(tree, schema, named)
    kind = tree if isinstance(tree, str) else tree["type"]
    if kind in named:
        return reader(named[kind], schema, named)
    made = arrow_type(schema)
    match kind:
        case "int" | "long" if pa.types.is_integer(made) or schema.name in _RANGES:
            within = _INT if made == pa.int32() else _RANGES.get(schema.name)
            return lambda cursors: arrays.integers(cursors, made, cursors.signed(), within)
        case "float" if made == pa.float32():
            return lambda cursors: arrays.array(cursors, made, cursors.word(4).astype(np.uint32))
        case "double" if made == pa.float64():
            return lambda cursors: arrays.array(cursors, made, cursors.word())
        case "boolean" if made == pa.bool_():
            return lambda cursors: arrays.booleans(cursors, cursors.byte())
        case "string" if made == pa.string():
            return _text
        case "bytes" | "fixed" if made == pa.binary() or pa.types.is_decimal(made):
            return _bytes(None if kind == "bytes" else tree["size"], made)
        case "enum" if made == pa.string():
            symbols = pa.array(tree["symbols"], made)
            return lambda cursors: arrays.choices(cursors, symbols, cursors.signed())
        case "array" if pa.types.is_list(made):
            (items,) = inner(schema)
            return _array(made, tree["items"], items, named)
        case "array" | "map" if pa.types.is_map(made):
            return _map(made, tree, schema, named)
        case "record" | "error" if pa.types.is_struct(made) and schema.name != names.UNION:
            return _record(made, tree["fields"], {each.name: each.schema for each in schema.fields}, named)
    raise NotByColumns("an unusual Avro schema")


def _optional(tree: list[Any], schema: Schema, named: Named) -> Read:
    """Of a union of null and one type."""
    types = [each for each in tree if each not in _NULL]
    if len(tree) != 2 or len(types) != 1:
        raise NotByColumns("an Avro union of several types")
    read, made = reader(types[0], schema, named), arrow_type(schema)
    # Numbers of the types, as varints in zig-zag.
    is_set, is_null = (0, 2) if tree[0] is types[0] else (2, 0)

    def optional(cursors: Cursors) -> pa.Array:
        branch = cursors.byte()
        present = branch == is_set
        if present.all():
            return read(cursors)
        cursors.refuse(~present & (branch != is_null))
        around = cursors.live
        live = present if around is None else present & around
        if not live.any():
            return pa.nulls(len(cursors), made)
        cursors.live = live
        values = read(cursors)
        cursors.live = around
        return values

    return optional


def _record(made: pa.DataType, fields: list[Any], schemas: Mapping[str, Schema], named: Named) -> Read:
    if [each["name"] for each in fields] != list(schemas):
        raise NotByColumns("an Avro record of unusual fields")
    reads = [reader(each["type"], schemas[each["name"]], named) for each in fields]
    return lambda cursors: arrays.array(cursors, made, children=[read(cursors) for read in reads])


def _text(cursors: Cursors) -> pa.Array:
    return arrays.texts(cursors, *cursors.span(cursors.signed()))


def _bytes(size: int | None, made: pa.DataType) -> Read:
    """Of a size that the schema says, or of one that stands before them."""

    def span(cursors: Cursors) -> tuple[Longs, Longs]:
        return cursors.span(cursors.signed() if size is None else np.full(len(cursors), size, np.int64))

    if pa.types.is_decimal(made):
        return lambda cursors: arrays.decimals(cursors, made, *span(cursors))
    return lambda cursors: arrays.slices(cursors, *span(cursors))


# --- arrays and maps --------------------------------------------------------------------------------------------------


def _array(made: pa.DataType, tree: Any, items: Schema, named: Named) -> Read:
    if _is_nothing(tree, named):
        raise NotByColumns("an Avro array of nothing")
    read = reader(tree, items, named)

    def array(cursors: Cursors) -> pa.Array:
        offsets, values = _items(cursors, read, made.value_type)
        return arrays.array(cursors, made, offsets.astype(np.int32), children=[values])

    return array


def _map(made: pa.DataType, tree: Any, schema: Schema, named: Named) -> Read:
    keys, values = inner(schema)
    entry = pa.struct([made.key_field, made.item_field])
    if keys.optional or not (pa.types.is_integer(made.key_type) or made.key_type in (pa.string(), pa.bool_())):
        raise NotByColumns("a map with unusual keys")
    if tree["type"] == "map":
        fields = [{"name": "key", "type": "string"}, {"name": "value", "type": tree["values"]}]
    else:
        items = tree["items"]
        fields = (named[items] if isinstance(items, str) else items)["fields"]
    read = _record(entry, fields, {"key": keys, "value": values}, named)

    def mapping(cursors: Cursors) -> pa.Array:
        offsets, entries = _items(cursors, read, entry)
        cursors.refuse(repeating(offsets, entries.field(0)))
        return arrays.array(cursors, made, offsets.astype(np.int32), children=[entries])

    return mapping


def _items(cursors: Cursors, read: Read, kind: pa.DataType) -> tuple[Longs, pa.Array]:
    """Where the items of each row begin, and the items of all. In each row they stand in blocks: a count, then so many
    items; the last count is 0."""
    rounds, at = Rounds(len(cursors)), cursors.at.copy()
    rows = np.arange(len(cursors)) if cursors.live is None else np.flatnonzero(cursors.live)
    while rows.size:
        block = Cursors(cursors.source, cursors.rows[rows], at[rows])
        counts = _counts(block)
        left, here = counts, rows
        while True:
            more = (left > 0) & block.unfinished()
            if not more.all():
                block.refuse((left > 0) & ~more)
                at[here[~more]] = block.at[~more]
                kept = np.flatnonzero(more)
                block, left, here = block.only(kept), left[kept], here[kept]
            if not here.size:
                break
            if not block.source.is_worth(len(block)):
                block.refuse(np.ones(len(block), np.bool_))
                break
            rounds.add(here, read(block))
            left = left - 1
        # Those that have been refused might say for ever that there is more.
        rows = rows[(counts > 0) & ~cursors.source.wrong[cursors.rows[rows]]]
    cursors.at = at
    return rounds.ordered(kind)


def _counts(cursors: Cursors) -> Longs:
    """Of items in the blocks that begin here."""
    counts = cursors.signed()
    sized = np.flatnonzero(counts < 0)
    if sized.size:
        # Then the size of the block follows.
        size = cursors.only(sized)
        size.varint()
        cursors.at[sized] = size.at
        counts = np.abs(counts)
        cursors.refuse(counts < 0)
    return counts


def _is_nothing(tree: Any, named: Named) -> bool:
    """Whether values of this type take no bytes at all."""
    if isinstance(tree, list):
        return False
    kind = tree if isinstance(tree, str) else tree["type"]
    if kind in named:
        return _is_nothing(named[kind], named)
    if kind in ("record", "error"):
        return all(_is_nothing(each["type"], named) for each in tree["fields"])
    return kind == "null" or (kind == "fixed" and tree["size"] == 0)
