"""Columns as the Python values that records hold, and back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa

from headgate.api import Schema, SchemaType, Struct
from headgate.api.frame import NotByColumns, Values, arrow_type
from headgate.api.schema import DECIMAL_NAME, validate_value
from headgate.pipeline.logical import scale_of

_NULL: Final = type(None)
_PLAIN: Final[Mapping[type, pa.DataType]] = {
    _NULL: pa.null(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
}


def objects(values: Values) -> list[Any]:
    """One for each row, as a record would hold it: structs as Struct, maps as dict."""
    items = values.data.to_pylist()
    shape = None if values.schema is None else _shaper(values.schema)
    return items if shape is None else [None if item is None else shape(item) for item in items]


def values_of(schema: Schema, items: Sequence[Any], *, exact: bool = False) -> Values:
    """Of values that fit the schema. Raises NotByColumns for those that Arrow has no room for; with `exact`, also for
    structs whose own schema differs, if only in what may stand in their place."""
    plain = _plainer(schema, exact)
    given = items if plain is None else [None if item is None else plain(item) for item in items]
    try:
        return Values(pa.array(given, arrow_type(schema)), schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        raise NotByColumns("a value that Arrow has no room for") from error


def values_alike(items: Sequence[Any], schemas: Sequence[Schema | None]) -> Values:
    """Of values that have one schema, the same object, or none and one shape. Raises NotByColumns for others, and
    DataError for what does not fit its schema."""
    first = schemas[0]
    if len(set(map(id, schemas))) > 1:
        raise NotByColumns("values of several schemas")
    if first is None:
        return values_of_shape(items)
    for item in items:
        if item is not None:
            validate_value(first, item)
    return values_of(first, items, exact=True)


def values_of_shape(items: Sequence[Any]) -> Values:
    """Of values without schema that are all of one shape: dicts of the same names in the same order, lists of one type,
    or of one plain type. Raises NotByColumns for others."""
    return Values(_shaped(items))


def _shaped(items: Sequence[Any]) -> pa.Array:
    kinds = set(map(type, items)) - {_NULL}
    kind = kinds.pop() if len(kinds) == 1 else _NULL
    if kinds or (kind not in _PLAIN and kind not in (dict, list)):
        raise NotByColumns("values of several types")
    if kind is dict:
        return _shaped_maps(items)
    if kind is list:
        lengths = [0 if item is None else len(item) for item in items]
        offsets = pa.array([0, *accumulate(lengths)], pa.int32())
        inner = _shaped([each for item in items if item is not None for each in item])
        return pa.ListArray.from_arrays(offsets, inner, mask=pa.array([item is None for item in items]))
    try:
        return pa.array(items, _PLAIN[kind])
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):  # an integer beyond 64 bits, half a surrogate pair
        raise NotByColumns("a value that Arrow has no room for") from None


def _shaped_maps(items: Sequence[Any]) -> pa.Array:
    present = [item for item in items if item is not None]
    names = list(present[0])
    if any(map(names.__ne__, map(list, present))) or not all(type(name) is str for name in names):
        raise NotByColumns("maps of several shapes")
    null = None
    if len(present) < len(items):
        nothing = dict.fromkeys(names)
        null = pa.array([item is None for item in items])
        present = [nothing if item is None else item for item in items]
    columns = zip(*map(dict.values, present), strict=True)
    fields = {name: Values(_shaped(column)) for name, column in zip(names, columns, strict=True)}
    return Values.of_fields(fields, len(items), null=null).data


def _shaper(schema: Schema) -> Callable[[Any], Any] | None:
    """From what Arrow gives to what a record holds; None where it is the same."""
    if schema.type is SchemaType.STRUCT:
        return _struct_shaper(schema)
    if schema.type is SchemaType.ARRAY and schema.value_schema:
        item = _shaper(schema.value_schema)
        return None if item is None else lambda given: [None if each is None else item(each) for each in given]
    if schema.type is SchemaType.MAP and schema.key_schema and schema.value_schema:
        shape_key, shape_item = _always(_shaper(schema.key_schema)), _always(_shaper(schema.value_schema))
        return lambda given: {shape_key(key): shape_item(item) for key, item in given}
    if pa.types.is_timestamp(arrow_type(schema)):
        return lambda given: given.astimezone(dt.UTC)
    return None


def _struct_shaper(schema: Schema) -> Callable[[Any], Any]:
    members = [(member.name, _always(_shaper(member.schema))) for member in schema.fields]
    return lambda given: Struct.of(schema, [shape(given[name]) for name, shape in members])


def _plainer(schema: Schema, exact: bool) -> Callable[[Any], Any] | None:
    """The way back."""
    if schema.type is SchemaType.STRUCT:
        return _struct_plainer(schema, exact)
    if schema.type is SchemaType.ARRAY and schema.value_schema:
        item = _plainer(schema.value_schema, exact)
        return None if item is None else lambda given: [None if each is None else item(each) for each in given]
    if schema.type is SchemaType.MAP and schema.key_schema and schema.value_schema:
        plain_key, plain_item = (_always(_plainer(each, exact)) for each in (schema.key_schema, schema.value_schema))
        return lambda given: [(plain_key(key), plain_item(each)) for key, each in given.items()]
    return _exact_decimal(-scale_of(schema)) if schema.name == DECIMAL_NAME else None


def _struct_plainer(schema: Schema, exact: bool) -> Callable[[Any], Any]:
    members = [(member.name, _always(_plainer(member.schema, exact))) for member in schema.fields]
    last = schema

    def plain(given: Struct) -> dict[str, Any]:
        nonlocal last
        if exact and given.schema is not last:  # to compare them takes long
            if given.schema != schema:
                raise NotByColumns("a struct of another schema")
            last = given.schema
        return {name: plainer(item) for (name, plainer), item in zip(members, given.values, strict=True)}

    return plain


def _exact_decimal(exponent: int) -> Callable[[Any], Any]:
    """Arrow would give it the digits that it lacks."""

    def checked(given: Decimal) -> Decimal:
        if given.as_tuple().exponent != exponent:
            raise NotByColumns("a decimal of another scale")
        return given

    return checked


def _always(shape: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    return (lambda item: item) if shape is None else (lambda item: None if item is None else shape(item))
