"""Structs, and maps without a schema, as columns: what `transforms.structs` is for records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import Schema
from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.columns.refusing import refuse

_SHAPES: Final = (pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.binary())


def fields_of(values: Values, *, replace_null: bool = False) -> dict[str, Values]:
    """With `replace_null`, a default stands where nothing was set. Raises NotByColumns where there is something that
    is neither a struct nor a map; where all is null, and there is no schema, there are no fields."""
    if not pa.types.is_struct(values.data.type):
        known = values.data.is_valid()
        if values.schema is not None or known.true_count:
            raise NotByColumns("neither structs nor maps", known if known.true_count else None)
        return {}
    if not replace_null or values.schema is None:
        return values.fields
    return {name: with_default(each, values) for name, each in values.fields.items()}


def with_default(field: Values, parent: Values) -> Values:
    """The default of the field stands where the parent is set and it is not."""
    assert field.schema is not None
    rows = None if field.schema.default is None else missing(field.data, nulls(parent.data))
    if rows is None:
        return field
    default = single(field.schema.default, field.schema)
    if default is None:
        raise NotByColumns("a default that columns may change", rows)
    places = np.where(rows, len(field), np.arange(len(field)))
    return replace(field, data=pa.concat_arrays([field.data, default]).take(pa.array(places)))


def structs_of(schema: Schema, fields: Iterable[Values], given: Values) -> Values:
    """Of values that fit, in the order of the schema; null where `given` is. Raises NotByColumns where a required field
    is null."""
    null, columns = nulls(given.data), list(fields)
    require(schema, columns, null)
    named = {member.name: each for member, each in zip(schema.fields, columns, strict=True)}
    return Values.of_fields(named, len(given), schema, null)


def maps_of(fields: Mapping[str, Values], given: Values) -> Values:
    """Without schema, null where `given` is."""
    return Values.of_fields(fields, len(given), null=nulls(given.data))


def require(schema: Schema, fields: Iterable[Values], null: pa.Array | None) -> None:
    """Raises NotByColumns where a required field is null in a struct that is not."""
    for member, each in zip(schema.fields, fields, strict=True):
        if not member.schema.optional:
            refuse("a required field that is null", missing(each.data, null))


def nulls(data: pa.Array) -> pa.Array | None:
    """A mask of them, if there are any."""
    return data.is_null() if data.null_count else None


def missing(data: pa.Array, null: pa.Array | None) -> pa.Array | None:
    """A mask of what is null where the parent, of which this is the mask, is not; None when that is nothing."""
    found = nulls(data)
    if found is None or null is None:
        return found
    found = pc.and_not(found, null)
    return found if found.true_count else None


def single(value: Any, schema: Schema | None) -> pa.Array | None:
    """A column of one row, or None where it would hold something that is not quite the value."""
    try:
        made = Values(pa.array([value])) if schema is None else values_of(schema, [value])
    except (NotByColumns, pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError):
        return None
    (found,) = objects(made)
    same = repr(found) == repr(value) and found == value  # 1 is not True, and 1.50 is not 1.5
    return made.data if same and (schema is not None or _is_shape(made.data.type)) else None


def repeated(one: pa.Array, count: int, null: pa.Array | None = None) -> pa.Array:
    """A column of one row in each of so many, but null where the mask says so."""
    return one.take(pa.array(np.zeros(count, np.int64), mask=None if null is None else np.asarray(null)))


def _is_shape(kind: pa.DataType) -> bool:
    """Whether Values without schema may be of this type."""
    if pa.types.is_struct(kind):
        return all(_is_shape(each.type) for each in kind)
    return _is_shape(kind.value_type) if pa.types.is_list(kind) else kind in _SHAPES
