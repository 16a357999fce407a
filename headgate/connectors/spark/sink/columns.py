"""Columns: what a table's columns are, how rows are made to fit them, and which rows do not. Pure, over Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import DataError
from headgate.connectors.spark.sink.ddl import TIMESTAMP, type_name


class Evolution(Enum):
    """What is done about a field that no column is there for."""

    FAIL = "fail"
    ADD = "add"
    IGNORE = "ignore"


class Misfit(DataError):
    """Some value cannot be put into its column."""


@dataclass(frozen=True, slots=True)
class Fitted:
    columns: Columns
    """Those that there are now."""
    rows: pa.Table
    """The rows that fit, without those columns that are null in all of them."""
    kept: pa.Array
    """Which rows these are: int64, ascending."""
    refused: Mapping[int, Misfit]
    """The others, by their numbers."""


@dataclass(frozen=True, slots=True)
class Columns:
    schema: pa.Schema
    evolution: Evolution = Evolution.FAIL
    forming: bool = False
    """Nothing was written yet, and nobody has said what the columns are: they are what comes."""
    unknown: frozenset[str] = frozenset()
    """Columns that are there, of types that only their values tell."""
    required: tuple[str, ...] = ()
    """Columns that need a value, besides those that may not be null."""

    def fit(self, rows: pa.Table) -> Fitted:
        """Fields become columns by their names."""
        grown = self._grown(rows.schema)
        refused: dict[int, Misfit] = {}
        made: dict[str, pa.Array] = {}
        named = {field.name: field for field in grown.schema}
        for name in rows.column_names:
            data = _whole(rows.column(name))
            if name in named:
                made[name] = _fitted_rows(data, named[name].type, name, grown.evolution, refused)
            elif grown.evolution is not Evolution.IGNORE and column_type(data.type) is not None:
                refused |= {row: grown._no_column(name) for row in _where(pc.is_valid(data)) if row not in refused}
        for name in (*self.required, *(field.name for field in grown.schema if not field.nullable)):
            null = _where(pc.is_null(made[name])) if name in made else range(rows.num_rows)
            error = Misfit(f"Column {name} may not be null, and there is no value for it")
            refused |= {row: error for row in null if row not in refused}
        if not len(grown.schema):
            nothing = Misfit("There are no columns yet, and no field has a value to tell the type of one")
            refused = {row: refused.get(row, nothing) for row in range(rows.num_rows)}
        kept = pa.array(np.setdiff1d(np.arange(rows.num_rows), list(refused)), pa.int64())
        if not made:  # a table without columns would not know how many rows it has
            made = {field.name: pa.nulls(rows.num_rows, field.type) for field in [*grown.schema][:1]}
        table = pa.table(list(made.values()), pa.schema([named[name] for name in made]))
        return Fitted(grown, table.take(kept) if refused and made else table, kept, refused)

    def complete(self, tables: Sequence[pa.Table]) -> pa.Table:
        """All rows with all columns: those that came before a column was there have nulls in it."""
        return pa.concat_tables([self._completed(table) for table in tables]) if tables else self.schema.empty_table()

    def _completed(self, table: pa.Table) -> pa.Table:
        made = []
        for field in self.schema:
            if field.name not in table.column_names:
                made.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            else:  # it may have got fields since
                old = table.column(field.name)
                same = old.type == field.type
                made.append(old if same else pa.chunked_array([_fitted(_whole(old), field.type, self.evolution)]))
        return pa.table(made, self.schema)

    def only(self, names: Sequence[str]) -> Columns:
        """These of them, all of which are there."""
        return replace(self, schema=pa.schema([self.schema.field(name) for name in names]))

    def written(self) -> Columns:
        """They are the target's from now on, if there are any."""
        return replace(self, forming=False) if self.forming and len(self.schema) else self

    def _grown(self, given: pa.Schema) -> Columns:
        if self.evolution is not Evolution.ADD and not self.forming:
            given = pa.schema([field for field in given if field.name in self.unknown])
        grown = _grown(pa.struct(self.schema), pa.struct(given))
        return self if grown == pa.struct(self.schema) else replace(self, schema=pa.schema(list(grown)))

    def _no_column(self, name: str) -> Misfit:
        like = next((field.name for field in self.schema if field.name.lower() == name.lower()), None)
        if like is not None:
            return Misfit(f"There is no column {name}, only {like}, and Spark does not tell them apart")
        return Misfit(f"There is no column {name}. With schema.evolution=add it is added, with ignore it is left out")


# --- what columns come of ---------------------------------------------------------------------------------------------


def column_type(kind: pa.DataType) -> pa.DataType | None:
    """That of a column for such values; None where they do not tell, because all that is known of them is null."""
    if pa.types.is_time(kind):
        return pa.int32()  # milliseconds of the day, as Connect has it: not every format of Spark has times
    if pa.types.is_timestamp(kind):
        return TIMESTAMP if kind.tz is not None else pa.timestamp("us")
    if pa.types.is_map(kind):
        key, item = column_type(kind.key_type), column_type(kind.item_type)
        return None if key is None or item is None else pa.map_(key, item)
    if pa.types.is_list(kind):
        item = column_type(kind.value_type)
        return None if item is None else pa.list_(item)
    if pa.types.is_struct(kind):
        found = [(field.name, column_type(field.type)) for field in kind]
        known = [pa.field(name, each) for name, each in found if each is not None]
        return pa.struct(known) if known else None
    return None if pa.types.is_null(kind) else kind


def _grown(old: pa.DataType, new: pa.DataType) -> pa.DataType:
    """With the fields that only the new one has, wherever they are."""
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        theirs = {field.name: field.type for field in new}
        made = [each.with_type(_grown(each.type, theirs[each.name])) if each.name in theirs else each for each in old]
        there = {field.name.lower() for field in old}
        added = [(name, column_type(kind)) for name, kind in theirs.items() if name.lower() not in there]
        return pa.struct([*made, *(pa.field(name, kind) for name, kind in added if kind is not None)])
    if pa.types.is_map(old) and pa.types.is_map(new):
        return pa.map_(old.key_type, _grown(old.item_type, new.item_type))
    if pa.types.is_list(old) and pa.types.is_list(new):
        return pa.list_(old.value_field.with_type(_grown(old.value_type, new.value_type)))
    return old


# --- values into columns ----------------------------------------------------------------------------------------------


def _fitted_rows(
    data: pa.Array, kind: pa.DataType, name: str, evolution: Evolution, refused: dict[int, Misfit]
) -> pa.Array:
    """Null where a value does not fit, which is then among the refused: halves are tried until those are alone."""

    def fit(first: int, part: pa.Array) -> pa.Array:
        try:
            return _fitted(part, kind, evolution)
        except Misfit as error:
            if len(part) == 1:
                error.within(name)
                refused.setdefault(first, error)
                return pa.nulls(1, kind)
            half = len(part) // 2
            left, right = part.take(_numbers(0, half)), part.take(_numbers(half, len(part)))
            return pa.concat_arrays([fit(first, left), fit(first + half, right)])

    return fit(0, data)


def _fitted(data: pa.Array, kind: pa.DataType, evolution: Evolution) -> pa.Array:
    """All of them, in the type of the column. Raises Misfit."""
    given = data.type
    if given == kind:
        return data
    if data.null_count == len(data):
        return pa.nulls(len(data), kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(given):
        return _struct(data, kind, evolution)
    if pa.types.is_map(kind) and pa.types.is_map(given):
        keys, items = _fitted(data.keys, kind.key_type, evolution), _fitted(data.items, kind.item_type, evolution)
        return pa.MapArray.from_arrays(data.offsets, keys, items, type=kind, mask=pc.is_null(data))
    if pa.types.is_map(kind) and pa.types.is_struct(given):
        return _map_of_struct(data, kind, evolution)
    if pa.types.is_list(kind) and pa.types.is_list(given):
        items = _fitted(data.values, kind.value_type, evolution)
        return pa.ListArray.from_arrays(data.offsets, items, type=kind, mask=pc.is_null(data))
    cast = next((cast for takes, gives, cast in _CASTS if gives(kind) and takes(given)), None)
    problem = Misfit(f"A value of type {type_name(given)} does not fit a column of type {type_name(kind)}")
    if cast is None:
        raise problem
    try:
        return cast(data, kind)
    except pa.ArrowInvalid as error:
        shown = f": {data[0]}" if len(data) == 1 else ""
        raise Misfit(f"{problem}{shown}") from error


def _struct(data: pa.Array, kind: pa.DataType, evolution: Evolution) -> pa.Array:
    given = dict(zip((field.name for field in data.type), data.flatten(), strict=True))
    made, there = [], pc.is_valid(data)
    for field in kind:
        part = given.pop(field.name, None)
        try:
            fitted = pa.nulls(len(data), field.type) if part is None else _fitted(part, field.type, evolution)
        except Misfit as error:
            error.within(field.name)
            raise
        if not field.nullable and pc.any(pc.and_(there, pc.is_null(fitted))).as_py():
            raise Misfit(f"Field {field.name} may not be null, and there is no value for it")
        made.append(fitted)
    extra = [name for name, part in given.items() if part.null_count < len(part) and column_type(part.type) is not None]
    if extra and evolution is not Evolution.IGNORE:
        raise Misfit(f"There is no field {extra[0]} in a column of type {type_name(kind)}")
    return pa.StructArray.from_arrays(made, fields=list(kind), mask=pc.invert(there))


def _map_of_struct(data: pa.Array, kind: pa.DataType, evolution: Evolution) -> pa.Array:
    """Maps without a schema come as structs."""
    items = [_fitted(part, kind.item_type, evolution).to_pylist() for part in data.flatten()]
    names = [field.name for field in data.type]
    rows = zip(*items, strict=True) if items else [()] * len(data)
    there = pc.is_valid(data).to_pylist()
    made = [list(zip(names, row, strict=True)) if valid else None for valid, row in zip(there, rows, strict=True)]
    try:
        return pa.array(made, kind)
    except pa.ArrowException as error:
        raise Misfit(f"A map with text for keys does not fit a column of type {type_name(kind)}") from error


def _cast(data: pa.Array, kind: pa.DataType) -> pa.Array:
    return data.cast(kind)


def _decimal_of_whole(data: pa.Array, kind: pa.DataType) -> pa.Array:
    return data.cast(pa.decimal128(19, 0)).cast(kind)


def _decimal_of_text(data: pa.Array, kind: pa.DataType) -> pa.Array:
    return data.cast(pa.string()).cast(kind)


def _time_of_day(data: pa.Array, kind: pa.DataType) -> pa.Array:
    return data.cast(pa.int32()).cast(kind)


def _instant_of_whole(data: pa.Array, kind: pa.DataType) -> pa.Array:
    return data.cast(pa.int64()).cast(pa.timestamp("ms", "UTC")).cast(kind)


def _instant_of_text(data: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return data.cast(kind)
    except pa.ArrowInvalid:  # without a zone it is meant as UTC
        return data.cast(pa.timestamp("us")).cast(kind)


def _is_instant(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _is_local(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) and kind.tz is None


_Is = Callable[[pa.DataType], bool]
_is = pa.types
_CASTS: Final[tuple[tuple[_Is, _Is, Callable[[pa.Array, pa.DataType], pa.Array]], ...]] = (
    # from, to: Arrow refuses numbers that would not be the same afterwards
    (_is.is_integer, _is.is_integer, _cast),
    (_is.is_floating, _is.is_integer, _cast),
    (_is.is_time, _is.is_integer, _time_of_day),
    (_is.is_integer, _is.is_floating, _cast),
    (_is.is_floating, _is.is_floating, _cast),
    (_is.is_decimal, _is.is_decimal, _cast),
    (_is.is_integer, _is.is_decimal, _decimal_of_whole),
    (_is.is_floating, _is.is_decimal, _decimal_of_text),
    (_is.is_string, _is.is_decimal, _decimal_of_text),
    (_is.is_string, _is.is_date, _cast),
    (_is_instant, _is_instant, _cast),
    (_is.is_integer, _is_instant, _instant_of_whole),
    (_is.is_string, _is_instant, _instant_of_text),
    (_is_local, _is_local, _cast),
    (_is.is_string, _is_local, _cast),
    (_is.is_large_string, _is.is_string, _cast),
    (_is.is_large_binary, _is.is_binary, _cast),
)


def _whole(data: pa.ChunkedArray) -> pa.Array:
    """One array that begins where its buffers do: what a slice leaves out is none of its values."""
    made = data.combine_chunks()
    made = made if isinstance(made, pa.Array) else pa.concat_arrays(made.chunks)
    return made.take(_numbers(0, len(made))) if pa.types.is_nested(made.type) else made


def _numbers(start: int, end: int) -> pa.Array:
    return pa.array(np.arange(start, end), pa.int64())


def _where(mask: pa.Array) -> list[int]:
    found: list[int] = pc.indices_nonzero(mask).to_pylist()
    return found
