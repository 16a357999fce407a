"""Protobuf by columns: Arrow arrays become the bytes of many messages of one type, one field of all messages at a time.

A writer is made once for each schema of Connect: a function for each type, put together as the schema is. It adds the
pieces that its value of each message is made of, fields in the order of their numbers, as Protobuf writes them. A
message within a message has its length in front, which is known when all its pieces are. Items that are repeated become
rows of their own first: those of one message stand together then, and are one more piece of it.

It writes what Protobuf itself would, or refuses the record: for a value that is missing or unknown, and for maps of
several entries, which Protobuf writes in an order of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Schema, SchemaType
from headgate.api.frame import NotByColumns, arrow_type
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME
from headgate.pipeline import logical
from headgate.pipeline.columns.objects import values_of
from headgate.pipeline.converters.registry import protobuf_names as names
from headgate.pipeline.converters.registry.columns import protobuf_logical as moments
from headgate.pipeline.converters.registry.columns import repeated, scalars, views
from headgate.pipeline.converters.registry.columns.pieces import Pieces
from headgate.pipeline.converters.registry.columns.protobuf_kinds import (
    DELIMITED,
    EIGHT_BYTES,
    FOUR_BYTES,
    VARINT,
    tag,
)
from headgate.pipeline.converters.registry.columns.varints import Longs, Mask, Words
from headgate.pipeline.schemas import BITS, inner

Write = Callable[[pa.Array, Mask | None, Pieces], None]
"""Adds the pieces of an array's items. The mask says in which rows there is one; without it, in all of them."""

_MOMENTS: Final[Mapping[str | None, Callable[[pa.Array, Mask | None], Mapping[str, Longs]]]] = {
    DATE_NAME: moments.date_parts,
    TIME_NAME: moments.time_parts,
    TIMESTAMP_NAME: moments.timestamp_parts,
}


@dataclass(frozen=True, slots=True)
class _Value:
    """How values of one type are written, behind a tag."""

    wire: int
    write: Write
    is_set: Callable[[pa.Array], Mask] | None = None
    """Which are neither 0 nor empty: others are left out, where nobody would see that they are missing."""


def writer(schema: Schema, descriptor: Any) -> Write:
    """Of structs of this schema, as messages of this descriptor, which was made of it. Raises NotByColumns, and
    DataError for a default that does not fit."""
    writes: dict[int, Write] = {}
    for place, member in enumerate(schema.fields):
        if names.is_union(member.schema):
            for number, each in enumerate(member.schema.fields):
                field = descriptor.fields_by_name[each.name]
                writes[field.number] = _of_union(member.schema, place, number, _single(each.schema, field, True))
        else:
            field = descriptor.fields_by_name[member.name]
            writes[field.number] = _of_struct(place, _member(member.schema, field))
    in_order = [writes[number] for number in sorted(writes)]

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        for each in in_order:
            each(array, live, pieces)

    return write


def _of_struct(place: int, write: Write) -> Write:
    return lambda array, live, pieces: write(array.field(place), live, pieces)


def _of_union(schema: Schema, place: int, number: int, write: Write) -> Write:
    """Of the member of a union that is the first to be set."""

    def chosen(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        union = array.field(place)
        valid = union.is_valid().to_numpy(zero_copy_only=False)
        if not schema.optional:
            pieces.refuse(~valid if live is None else ~valid & live)
        first = valid if live is None else valid & live
        for before in range(number):
            first = first & union.field(before).is_null().to_numpy(zero_copy_only=False)
        first = first & union.field(number).is_valid().to_numpy(zero_copy_only=False)
        write(union.field(number), first, pieces)

    if schema.default is not None:
        raise NotByColumns("an unusual default")
    return chosen


# --- fields -----------------------------------------------------------------------------------------------------------


def _member(schema: Schema, field: Any) -> Write:
    """Of a field that may be null, which takes its default, or is not written."""
    write, default = _field(schema, field), None if schema.default is None else _default(schema)

    def written(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        if array.null_count and default is not None:
            array = array.fill_null(default)
        valid = views.validity(array)
        if valid is not None:
            if not schema.optional:
                pieces.refuse(~valid if live is None else ~valid & live)
            live = valid if live is None else valid & live
        if live is None or live.any():
            write(array, live, pieces)

    return written


def _default(schema: Schema) -> pa.Scalar:
    if schema.type in (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT):
        raise NotByColumns("an unusual default")
    if schema.name == DECIMAL_NAME:
        logical.bytes_of_decimal(schema, schema.default)  # Arrow would make one fit that does not
    return values_of(schema, [schema.default]).data[0]


def _field(schema: Schema, field: Any) -> Write:
    if schema.type is SchemaType.MAP:
        return _map(schema, field)
    if schema.type is SchemaType.ARRAY:
        return _array(schema, field)
    return _single(schema, field, field.has_presence)


def _single(schema: Schema, field: Any, is_seen: bool) -> Write:
    """`is_seen`: whether it can be seen that a value is missing, so that all of them have to be written."""
    value = _value(schema, field)
    start = tag(field.number, value.wire)

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        if value.is_set is not None and not is_seen:
            live = value.is_set(array) if live is None else value.is_set(array) & live
        pieces.constant(start, live)
        value.write(array, live, pieces)

    return write


def _array(schema: Schema, field: Any) -> Write:
    (items,) = inner(schema)
    value = _value(items, field)
    # Numbers stand together, behind one tag.
    start = tag(field.number, DELIMITED if field.is_packed else value.wire)

    def each(given: list[pa.Array], pieces: Pieces) -> None:
        (array,) = given
        valid = views.validity(array)
        if valid is not None:
            pieces.refuse(~valid)
        if not field.is_packed:
            pieces.constant(start, None)
        value.write(array, valid, pieces)

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        parts = repeated.written(array, live, pieces, each)
        if field.is_packed:
            some = parts.lengths > 0
            pieces.constant(start, some)
            pieces.varint(parts.lengths.view(np.uint64), some)
        pieces.copy(*parts)

    return write


def _map(schema: Schema, field: Any) -> Write:
    start, is_map = tag(field.number, DELIMITED), field.message_type.GetOptions().map_entry
    members = [field.message_type.fields_by_name[each] for each in ("key", "value")]
    both = zip(inner(schema), members, strict=True)
    writes = [_single(each, member, is_map or member.has_presence) for each, member in both]

    def each(given: list[pa.Array], pieces: Pieces) -> None:
        entry = Pieces(pieces.rows)
        for write, array in zip(writes, given, strict=True):
            valid = views.validity(array)
            if valid is not None:
                pieces.refuse(~valid)
            write(array, valid, entry)
        pieces.constant(start, None)
        _delimit(entry, None, pieces)

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        if is_map:
            pieces.refuse(repeated.counts(array, live) > 1)
        pieces.copy(*repeated.written(array, live, pieces, each))

    return write


def _delimit(message: Pieces, live: Mask | None, pieces: Pieces) -> None:
    """Adds a message, behind its length."""
    pieces.varint(message.sizes().view(np.uint64), live)
    pieces.add(message)


# --- values -----------------------------------------------------------------------------------------------------------


def _value(schema: Schema, field: Any) -> _Value:
    made = arrow_type(schema)
    if field.message_type is not None:
        return _Value(DELIMITED, _within(_message(schema, field.message_type)))
    if field.enum_type is not None and made == pa.string():
        return _enum({each.name: each.number for each in field.enum_type.values})
    match schema.type:
        case SchemaType.STRING | SchemaType.BYTES if made in (pa.string(), pa.binary()):
            return _Value(DELIMITED, _text, lambda array: np.diff(views.bounds(array)) > 0)
        case SchemaType.BOOLEAN if made == pa.bool_():
            return _number(VARINT, scalars.truths, 1)
        case SchemaType.FLOAT32 if made == pa.float32():
            return _number(FOUR_BYTES, scalars.floats, 4)
        case SchemaType.FLOAT64 if made == pa.float64():
            return _number(EIGHT_BYTES, scalars.doubles, 8)
        case kind if kind in BITS and pa.types.is_integer(made):
            return _Value(VARINT, _integer, lambda array: scalars.integers(array, None) != 0)
    raise NotByColumns("an unusual schema")


def _number(wire: int, bits: Callable[[pa.Array], Words], size: int) -> _Value:
    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        pieces.number(bits(array), size, live)

    return _Value(wire, write, lambda array: bits(array) != 0)


def _integer(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
    pieces.varint(scalars.integers(array, live).view(np.uint64), live)


def _text(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
    """Of bytes too."""
    parts = scalars.contents(array, live)
    pieces.varint(parts.lengths.view(np.uint64), live)
    pieces.copy(*parts)


def _enum(symbols: Mapping[str, int]) -> _Value:
    known, numbers = pa.array(list(symbols), pa.string()), pa.array(list(symbols.values()), pa.int32())

    def found(array: pa.Array) -> pa.Array:
        return numbers.take(pc.index_in(array, known))

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        values = found(array)
        valid = views.validity(values)
        if valid is not None:
            pieces.refuse(~valid if live is None else ~valid & live)
        _integer(values, valid if live is None else live, pieces)

    return _Value(VARINT, write, lambda array: scalars.integers(found(array).fill_null(1), None) != 0)


# --- messages within messages -----------------------------------------------------------------------------------------


def _within(write: Write) -> Write:
    def delimited(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        message = Pieces(len(array))
        write(array, live, message)
        _delimit(message, live, pieces)

    return delimited


def _message(schema: Schema, descriptor: Any) -> Write:
    fields = descriptor.fields_by_name
    if schema.name == DECIMAL_NAME:
        return _decimal(schema, fields)
    if schema.name in _MOMENTS:
        return _moment(_MOMENTS[schema.name], fields)
    if schema.type is SchemaType.STRUCT:
        return writer(schema, descriptor)
    return _single(schema, fields["value"], False)  # in a wrapper


def _moment(parts: Callable[[pa.Array, Mask | None], Mapping[str, Longs]], fields: Mapping[str, Any]) -> Write:
    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        for name, values in parts(array, live).items():
            _part(fields[name], values, live, pieces)

    return write


def _decimal(schema: Schema, fields: Mapping[str, Any]) -> Write:
    scale = logical.scale_of(schema)

    def write(array: pa.Array, live: Mask | None, pieces: Pieces) -> None:
        unscaled = scalars.Unscaled(array)
        pieces.constant(tag(fields["value"].number, DELIMITED), live)
        pieces.varint(unscaled.sizes.view(np.uint64), live)
        unscaled.write(live, pieces)
        _part(fields["precision"], unscaled.digits(), live, pieces)
        _part(fields["scale"], np.full(len(array), scale, np.int64), live, pieces)

    return write


def _part(field: Any, values: Longs, live: Mask | None, pieces: Pieces) -> None:
    """A number that is left out when it is 0."""
    present = values != 0 if live is None else (values != 0) & live
    pieces.constant(tag(field.number, VARINT), present)
    pieces.varint((values * present).view(np.uint64), present)
