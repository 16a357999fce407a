"""Avro by columns: Arrow arrays become the bytes of many records of one schema, one value of all records at a time.

A writer is made once for each schema of Connect: a function for each type, put together as the schema is. Given an
array that has its value of each record, it adds the pieces that this value is made of. A record is its fields, one
after the other. Items of arrays and maps become rows of their own first: those of one record stand together then, and
are one more piece of it.

It writes what our encoder and fastavro would, or refuses the record, for a value that is missing or not in its enum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Schema, SchemaType
from headgate.api.frame import NotByColumns, arrow_type
from headgate.pipeline.columns.objects import values_of
from headgate.pipeline.converters.registry import avro_names as names
from headgate.pipeline.converters.registry.avro_schema import AvroOptions
from headgate.pipeline.converters.registry.avro_value import encoder
from headgate.pipeline.converters.registry.columns import repeated, scalars, views
from headgate.pipeline.converters.registry.columns.pieces import Pieces
from headgate.pipeline.converters.registry.columns.varints import Mask
from headgate.pipeline.schemas import BITS, has_text_keys, inner

Write = Callable[[pa.Array, Mask | None, Pieces], None]
"""Adds the pieces of an array's items. The mask says in which rows there is one; without it, in all of them."""


def writer(schema: Schema, options: AvroOptions) -> Write:
    """Of values of this schema, and of null, where that has a default or may be written. Raises NotByColumns, and
    DataError for a default that does not fit."""
    write = _of_type(schema, options)
    default = None if schema.default is None else _default(schema, write)

    def written(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        valid = views.validity(array)
        present, missing = live, None
        if valid is not None:
            present = valid if live is None else valid & live
            missing = ~valid if live is None else ~valid & live
        if schema.optional:
            # Which type of a union follows: null is the first, but for one with a default, where null is never written.
            is_set = 0 if default is not None else 2 if present is None else 2 * present.astype(np.uint64)
            pieces.number(is_set, 1, live)
        elif missing is not None and default is None:
            pieces.refuse(missing)
        if present is None or present.any():
            write(array, present, pieces)
        if missing is not None and default is not None:
            pieces.constant(default, missing)

    return written


def _default(schema: Schema, write: Write) -> bytes:
    encoder(schema)(schema.default)  # Arrow would make some fit that do not
    pieces = Pieces(1)
    write(values_of(schema, [schema.default]).data, None, pieces)
    if pieces.wrong is not None:
        raise NotByColumns("an unusual default")
    found: bytes = pieces.joined()[0].as_py()
    return found


def _of_type(schema: Schema, options: AvroOptions) -> Write:
    """Of values that are not null."""
    made = arrow_type(schema)
    match schema.type:
        case SchemaType.STRUCT if pa.types.is_struct(made) and schema.name != names.UNION:
            return _struct([writer(each, options) for each in inner(schema)])
        case SchemaType.ARRAY if pa.types.is_list(made):
            (items,) = inner(schema)
            return _repeated(_item(items, options))
        case SchemaType.MAP if pa.types.is_map(made):
            keys, values = inner(schema)
            return _repeated(_text if has_text_keys(schema) else _item(keys, options), _item(values, options))
        case SchemaType.STRING if made == pa.string():
            return _enum(schema) if options.enhanced and names.is_enum(schema) else _text
        case SchemaType.BYTES if made == pa.binary():
            return _text
        case SchemaType.BYTES if pa.types.is_decimal(made):
            return _decimal
        case SchemaType.BOOLEAN if made == pa.bool_():
            return lambda array, live, pieces: pieces.number(scalars.truths(array), 1, live)
        case SchemaType.FLOAT32 if made == pa.float32():
            return lambda array, live, pieces: pieces.number(scalars.floats(array), 4, live)
        case SchemaType.FLOAT64 if made == pa.float64():
            return lambda array, live, pieces: pieces.number(scalars.doubles(array), 8, live)
        case kind if kind in BITS and made.bit_width <= BITS[kind] and not pa.types.is_decimal(made):
            return _integer
    raise NotByColumns("an unusual schema")


def _item(schema: Schema, options: AvroOptions) -> Write:
    """Of an array or a map, where null takes no default unless it may be null."""
    return writer(schema if schema.optional else replace(schema, default=None), options)


# --- plain values -----------------------------------------------------------------------------------------------------


def _integer(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
    pieces.signed(scalars.integers(array, live), live)


def _text(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
    """Of bytes too."""
    parts = scalars.contents(array, live)
    pieces.signed(parts.lengths, live)
    pieces.copy(*parts)


def _enum(schema: Schema) -> Write:
    symbols = pa.array(names.symbols(schema), pa.string())

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        found = pc.index_in(array, symbols)
        known = views.validity(found)
        if known is not None:
            pieces.refuse(~known if live is None else ~known & live)
        pieces.signed(scalars.integers(found, known), live)

    return write


def _decimal(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
    unscaled = scalars.Unscaled(array)
    pieces.signed(unscaled.sizes, live)
    unscaled.write(live, pieces)


# --- what has others in it --------------------------------------------------------------------------------------------


def _struct(writes: list[Write]) -> Write:
    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        for number, each in enumerate(writes):
            each(array.field(number), live, pieces)

    return write


def _repeated(*writes: Write) -> Write:
    """Of arrays; or of maps, with keys and values. All items are one block: their number, they themselves, and 0, which
    is the number of the next block."""

    def each(items: list[pa.Array], pieces: Pieces) -> None:
        for write, values in zip(writes, items, strict=True):
            write(values, None, pieces)

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        counts, parts = repeated.counts(array, live), repeated.written(array, live, pieces, each)
        pieces.signed(counts, live)
        pieces.copy(*parts)
        pieces.number(0, 1, counts > 0)

    return write
