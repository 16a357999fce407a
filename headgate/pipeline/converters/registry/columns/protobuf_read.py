"""Protobuf by columns: the bytes of many messages of one type become Arrow arrays, one field of all messages at a time.

A message is its fields, each behind a tag that says its number. Any of them may be missing, and parsers take them in
any order; but serializers write them in the order of their numbers. So they are read in that order: where the tag is
that of the field, the field is there, and elsewhere it is not. Where bytes are left after the last field, the message
was written otherwise, and is refused: with fields in another order, twice, or unknown.

A field that is missing is null where Connect sees that, and else what Protobuf takes it for: zero, or an empty text.
Fields that are repeated are read in rounds: the first of all messages that have one, then the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from headgate.api import Schema, SchemaType
from headgate.api.frame import NotByColumns, arrow_type
from headgate.api.schema import BYTES, DATE_NAME, DECIMAL_NAME, INT64, TIME_NAME, TIMESTAMP_NAME
from headgate.pipeline import logical
from headgate.pipeline.converters.registry import protobuf_names as names
from headgate.pipeline.converters.registry.columns import arrays
from headgate.pipeline.converters.registry.columns import protobuf_logical as moments
from headgate.pipeline.converters.registry.columns.cursors import Cursors
from headgate.pipeline.converters.registry.columns.protobuf_kinds import DELIMITED, FieldKind, delimited, kind_of, tag
from headgate.pipeline.converters.registry.columns.rounds import Rounds, repeating
from headgate.pipeline.converters.registry.columns.varints import Longs
from headgate.pipeline.converters.registry.protobuf_connect import real_oneofs
from headgate.pipeline.schemas import inner

T = TypeVar("T")
Read = Callable[[Cursors, Longs], pa.Array]
"""Of what stands between the cursors and these ends."""

_MOMENTS: Final[Mapping[str | None, tuple[tuple[str, ...], Callable[..., pa.Array]]]] = {
    DATE_NAME: (("year", "month", "day"), moments.dates),
    TIME_NAME: (("hours", "minutes", "seconds", "nanos"), moments.times),
    TIMESTAMP_NAME: (("seconds", "nanos"), moments.timestamps),
}
_ABSENT: Final = (0, "", b"")


def reader(schema: Schema, descriptor: Any) -> Callable[[Cursors], pa.Array]:
    """Of messages of this descriptor, which are this schema in Connect. Raises NotByColumns."""
    read = _message(schema, descriptor)

    def whole(cursors: Cursors) -> pa.Array:
        ends = cursors.source.ends[cursors.rows]
        made = read(cursors, ends)
        cursors.refuse(cursors.at != ends)
        return made

    return whole


def _message(schema: Schema, descriptor: Any) -> Read:
    made, marked = arrow_type(schema), names.optional_fields(descriptor)
    unions = {f"{each.name}_{each.index}" for each in real_oneofs(descriptor)}
    reads: dict[int, tuple[str, Read]] = {}
    for member in schema.fields:
        for each in member.schema.fields if member.name in unions else (member,):
            field = descriptor.fields_by_name[each.name]
            may_miss = each is not member or field.message_type is not None or each.name in marked
            reads[field.number] = each.name, _field(each.schema, field, may_miss)
    in_order = [reads[number] for number in sorted(reads)]

    def read(cursors: Cursors, ends: Longs) -> pa.Array:
        found = {name: each(cursors, ends) for name, each in in_order}
        children = [
            _union(cursors, arrow_type(each.schema), [found[one.name] for one in each.schema.fields])
            if each.name in unions
            else found[each.name]
            for each in schema.fields
        ]
        return arrays.array(cursors, made, children=children)

    return read


def _union(cursors: Cursors, made: pa.DataType, members: list[pa.Array]) -> pa.Array:
    """Of a oneof: a struct of which one field is set, or null. Of two, the last would be the one."""
    counts = sum((~each.is_null().to_numpy(zero_copy_only=False) for each in members), np.zeros(len(cursors), np.int64))
    cursors.refuse(counts > 1)
    around, cursors.live = cursors.live, counts > 0
    union = arrays.array(cursors, made, children=members)
    cursors.live = around
    return union


# --- fields -----------------------------------------------------------------------------------------------------------


def _field(schema: Schema, field: Any, may_miss: bool) -> Read:
    if field.is_required or (not may_miss and not field.is_repeated and field.default_value not in _ABSENT):
        raise NotByColumns("a Protobuf schema of an old kind")
    if field.is_repeated:
        return _map(schema, field) if schema.type is SchemaType.MAP else _array(schema, field)
    return _single(_kind(schema, field), field, may_miss)


def _single(kind: FieldKind, field: Any, may_miss: bool) -> Read:
    take = _taker(kind, field)

    def read(cursors: Cursors, ends: Longs) -> pa.Array:
        around = cursors.live
        taken = take(cursors, ends)
        if not may_miss:
            cursors.live = around
        made = kind.make(cursors, *taken)
        cursors.live = around
        return made

    return read


def _taker(kind: FieldKind, field: Any) -> Callable[[Cursors, Longs], Any]:
    """Takes values where the field is there; of all cursors, only these are live then."""
    expected = tag(field.number, kind.wire)

    def take(cursors: Cursors, ends: Longs) -> Any:
        present = cursors.at_tag(expected) & (cursors.at < ends)
        if cursors.live is not None:
            present &= cursors.live
        cursors.live = None if present.all() else present
        cursors.move(len(expected))
        return kind.take(cursors)

    return take


def _within(read: Callable[[Cursors, Longs], T]) -> Callable[[Cursors], T]:
    """Reads what is in messages that begin here, with their lengths."""

    def take(cursors: Cursors) -> T:
        starts, _ = delimited(cursors)
        after = cursors.at
        # Not beyond the row, or one that is damaged would be read through all that follow.
        ends = np.minimum(after, np.maximum(starts, cursors.source.ends[cursors.rows]))
        cursors.refuse(ends != after)
        cursors.at = starts
        found = read(cursors, ends)
        cursors.refuse(cursors.at != ends)
        cursors.at = after
        return found

    return take


def _kind(schema: Schema, field: Any) -> FieldKind:
    """Of single values, or of items."""
    message = field.message_type
    if message is None:
        return kind_of(schema, field)
    fields = message.fields_by_name
    if schema.name == DECIMAL_NAME:
        parts = [(fields["value"], kind_of(BYTES, fields["value"]))]
        parts += [(fields[each], kind_of(INT64, fields[each])) for each in ("precision", "scale")]
        return FieldKind(DELIMITED, _parts(parts), _decimals(schema))
    if schema.name in _MOMENTS:
        wanted, make = _MOMENTS[schema.name]
        return FieldKind(DELIMITED, _parts([(fields[each], kind_of(INT64, fields[each])) for each in wanted]), make)
    if schema.type is SchemaType.STRUCT:
        whole = _within(_message(schema, message))
        return FieldKind(DELIMITED, lambda cursors: (whole(cursors),), _as_it_is)
    kind = kind_of(schema, fields["value"])  # in a wrapper
    return FieldKind(DELIMITED, _parts([(fields["value"], kind)]), kind.make)


def _parts(parts: Sequence[tuple[Any, FieldKind]]) -> Callable[[Cursors], tuple[Any, ...]]:
    """What is in messages of these fields, of which none is repeated or seen to be missing."""
    takes = [(field.number, place, _taker(kind, field)) for place, (field, kind) in enumerate(parts)]

    def read(cursors: Cursors, ends: Longs) -> tuple[Any, ...]:
        around, found = cursors.live, {}
        for _, place, take in sorted(takes, key=itemgetter(0)):
            found[place] = take(cursors, ends)
            cursors.live = around
        return tuple(each for place in sorted(found) for each in found[place])

    return _within(read)


def _decimals(schema: Schema) -> Callable[..., pa.Array]:
    made, expected = arrow_type(schema), logical.scale_of(schema)

    def make(cursors: Cursors, starts: Longs, lengths: Longs, _: Longs, scale: Longs) -> pa.Array:
        cursors.refuse(scale != expected)
        return arrays.decimals(cursors, made, starts, lengths)

    return make


def _as_it_is(_: Cursors, made: pa.Array) -> pa.Array:
    return made


# --- repeated fields --------------------------------------------------------------------------------------------------


def _array(schema: Schema, field: Any) -> Read:
    (items,) = inner(schema)
    made, read = arrow_type(schema), _items(_kind(items, field), field)

    def array(cursors: Cursors, ends: Longs) -> pa.Array:
        offsets, values = read(cursors, ends).ordered(made.value_type)
        return arrays.array(cursors, made, offsets.astype(np.int32), children=[values])

    return array


def _map(schema: Schema, field: Any) -> Read:
    made, (keys, values) = arrow_type(schema), inner(schema)
    if not (pa.types.is_integer(made.key_type) or made.key_type in (pa.string(), pa.bool_())):
        raise NotByColumns("a map with unusual keys")
    key, value = (field.message_type.fields_by_name[each] for each in ("key", "value"))
    read_key, read_value = _field(keys, key, False), _field(values, value, value.message_type is not None)
    entry = pa.struct([made.key_field, made.item_field])

    def both(cursors: Cursors, ends: Longs) -> tuple[pa.Array]:
        children = [read_key(cursors, ends), read_value(cursors, ends)]
        # A message that is missing is one without fields here, and not null.
        cursors.refuse(children[1].is_null().to_numpy(zero_copy_only=False))
        return (arrays.array(cursors, entry, children=children),)

    read = _items(FieldKind(DELIMITED, _within(both), _as_it_is), field)

    def mapping(cursors: Cursors, ends: Longs) -> pa.Array:
        offsets, entries = read(cursors, ends).ordered(entry)
        cursors.refuse(repeating(offsets, entries.field(0)))
        return arrays.array(cursors, made, offsets.astype(np.int32), children=[entries])

    return mapping


def _items(kind: FieldKind, field: Any) -> Callable[[Cursors, Longs], Rounds]:
    """Each behind a tag of its own; or packed, all of them behind one."""
    if not field.is_packed:
        expected = tag(field.number, kind.wire)
        return lambda cursors, ends: _rounds(cursors, ends, kind, expected)
    packed = FieldKind(DELIMITED, _within(lambda cursors, ends: _rounds(cursors, ends, kind, b"")), _as_it_is)
    take = _taker(packed, field)

    def read(cursors: Cursors, ends: Longs) -> Rounds:
        around = cursors.live
        rounds: Rounds = take(cursors, ends)
        cursors.live = around
        return rounds

    return read


def _rounds(cursors: Cursors, ends: Longs, kind: FieldKind, expected: bytes) -> Rounds:
    rounds, at = Rounds(len(cursors)), cursors.at.copy()
    rows = np.arange(len(cursors)) if cursors.live is None else np.flatnonzero(cursors.live)
    going, ends = Cursors(cursors.source, cursors.rows[rows], at[rows]), ends[rows]
    while True:
        more = going.at_tag(expected) & (going.at < ends) & ~going.source.wrong[going.rows]
        if not more.all():
            at[rows[~more]] = going.at[~more]
            kept = np.flatnonzero(more)
            going, ends, rows = going.only(kept), ends[kept], rows[kept]
        if not rows.size:
            break
        if not going.source.is_worth(len(going)):
            going.refuse(np.ones(len(going), np.bool_))
            break
        going.move(len(expected))
        rounds.add(rows, kind.make(going, *kind.take(going)))
    cursors.at = at
    return rounds
