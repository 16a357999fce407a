"""Values of Protobuf by columns, of each type that is no message: how they are read, and what is made of them.

Between the two, those that are missing are 0, or empty: that is what Protobuf takes them for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.api import Schema
from headgate.api.frame import NotByColumns, arrow_type
from headgate.pipeline.converters.registry.columns import arrays, varints
from headgate.pipeline.converters.registry.columns.cursors import Cursors
from headgate.pipeline.converters.registry.columns.varints import Longs, Words

# The last three bits of a tag, which say where a value ends.
VARINT: Final = 0
EIGHT_BYTES: Final = 1
DELIMITED: Final = 2
FOUR_BYTES: Final = 5

_LOW: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class FieldKind:
    wire: int
    take: Callable[[Cursors], Any]
    """Reads numbers, or the places and lengths of bytes."""
    make: Callable[..., pa.Array]
    """Of cursors, and of what was taken there."""


def kind_of(schema: Schema, field: Any) -> FieldKind:
    """Of the values of a field that is this schema in Connect. Raises NotByColumns."""
    made = arrow_type(schema)
    # By FieldDescriptor's numbers of types, which are part of Protobuf itself.
    match field.type:
        case 1 if made == pa.float64():
            return FieldKind(EIGHT_BYTES, _numbers(Cursors.word), _doubles)
        case 2 if made == pa.float32():
            return FieldKind(FOUR_BYTES, _numbers(_four), _floats)
        case 8 if made == pa.bool_():
            return FieldKind(VARINT, _numbers(Cursors.varint), arrays.booleans)
        case 9 if made == pa.string():
            return FieldKind(DELIMITED, delimited, arrays.texts)
        case 12 if made == pa.binary():
            return FieldKind(DELIMITED, delimited, arrays.slices)
        case 14 if made == pa.string():
            return _enum({each.number: each.name for each in field.enum_type.values})
        case number if number in _INTEGERS and pa.types.is_integer(made):
            wire, read = _INTEGERS[number]
            return FieldKind(wire, _numbers(read), lambda cursors, values: arrays.integers(cursors, made, values, None))
    raise NotByColumns("an unusual Protobuf schema")


def tag(number: int, wire: int) -> bytes:
    """What stands before a value of this field."""
    left, made = number << 3 | wire, bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])


def delimited(cursors: Cursors) -> tuple[Longs, Longs]:
    """Where bytes begin, behind their length, and the length."""
    return cursors.span(cursors.varint().view(np.int64))


def _numbers(read: Callable[[Cursors], npt.NDArray[Any]]) -> Callable[[Cursors], tuple[npt.NDArray[Any]]]:
    def take(cursors: Cursors) -> tuple[npt.NDArray[Any]]:
        found = read(cursors)
        return (found if cursors.live is None else found * cursors.live,)

    return take


def _doubles(cursors: Cursors, words: Words) -> pa.Array:
    return arrays.array(cursors, pa.float64(), words)


def _floats(cursors: Cursors, words: Words) -> pa.Array:
    return arrays.array(cursors, pa.float32(), words.astype(np.uint32))


def _four(cursors: Cursors) -> Words:
    return cursors.word(4) & _LOW


_INTEGERS: Final[Mapping[int, tuple[int, Callable[[Cursors], Longs]]]] = {
    # Those of 32 bits lose what is above when they become that.
    **dict.fromkeys((3, 4, 5), (VARINT, lambda cursors: cursors.varint().view(np.int64))),
    6: (EIGHT_BYTES, lambda cursors: cursors.word().view(np.int64)),
    7: (FOUR_BYTES, lambda cursors: _four(cursors).view(np.int64)),
    13: (VARINT, lambda cursors: (cursors.varint() & _LOW).view(np.int64)),
    15: (FOUR_BYTES, lambda cursors: _four(cursors).view(np.int64)),
    16: (EIGHT_BYTES, lambda cursors: cursors.word().view(np.int64)),
    17: (VARINT, lambda cursors: varints.signed(cursors.varint() & _LOW)),
    18: (VARINT, Cursors.signed),
}


def _enum(symbols: Mapping[int, str]) -> FieldKind:
    numbers = np.array(sorted(symbols), np.int64)
    names = pa.array([symbols[each] for each in sorted(symbols)], pa.string())

    def make(cursors: Cursors, raw: Words) -> pa.Array:
        values = raw.view(np.int64).astype(np.int32)
        places = np.searchsorted(numbers, values)
        # Beyond the last one, where no symbol is.
        places[numbers[np.minimum(places, len(numbers) - 1)] != values] = len(numbers)
        return arrays.choices(cursors, names, places)

    return FieldKind(VARINT, _numbers(Cursors.varint), make)
