"""Changes: what a batch of records does to one table, as columns, and which of its records cannot be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import DataError, Schema, SchemaType, SinkRecord, Struct
from headgate.connectors.jdbc.cells import kind_of
from headgate.connectors.jdbc.merge import INSERT
from headgate.connectors.jdbc.sink_config import (
    KAFKA,
    KAFKA_FIELDS,
    RECORD_KEY,
    RECORD_VALUE,
    JdbcSinkConfig,
)
from headgate.connectors.jdbc.target import Wanted

TOPIC: Final = "original_topic"
PARTITION: Final = "original_partition"
OFFSET: Final = "original_offset"
_ROW: Final = "row"
COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", TOPIC, PARTITION, OFFSET)


@dataclass(frozen=True, slots=True)
class Put:
    """A table as the task was given it, with the schemas of the moment."""

    table: pa.Table
    key_schema: Schema | None
    value_schema: Schema | None

    def where(self, mask: pa.Array) -> Put:
        """This very one where all of it is meant."""
        if pc.all(mask, min_count=0).as_py():
            return self
        return Put(self.table.filter(mask), self.key_schema, self.value_schema)

    def by_topic(self) -> Iterator[tuple[str, Put]]:
        topics = self.table.column("topic").unique().to_pylist()
        for topic in topics:
            yield topic, self if len(topics) == 1 else self.where(pc.equal(self.table.column("topic"), topic))

    def record(self, row: int) -> SinkRecord:
        """As a task that takes records would have it."""
        cells = {name: self.table.column(name)[row].as_py() for name in COLUMNS}
        key, value = _plain(self.key_schema, cells.pop("key")), _plain(self.value_schema, cells.pop("value"))
        return SinkRecord(**cells, key=key, value=value, key_schema=self.key_schema, value_schema=self.value_schema)


def _plain(schema: Schema | None, value: Any) -> Any:
    """With structs where the schema has them: Arrow gives dictionaries."""
    if schema is None or value is None:
        return value
    if schema.type is SchemaType.STRUCT:
        return Struct.of(schema, [_plain(each.schema, value.get(each.name)) for each in schema.fields])
    if schema.type is SchemaType.ARRAY:
        return [_plain(schema.value_schema, each) for each in value]
    if schema.type is SchemaType.MAP:
        return {_plain(schema.key_schema, name): _plain(schema.value_schema, each) for name, each in value}
    return value


@dataclass(frozen=True, slots=True)
class Change:
    """Rows of one table that are written, or deleted, together."""

    put: Put
    rows: pa.Array
    """Of the put, in its order."""
    columns: Mapping[str, pa.Array]
    """With as many values as these are."""
    wanted: tuple[Wanted, ...]
    keys: tuple[str, ...]
    deletes: bool = False


@dataclass(slots=True)
class Sorted:
    """The changes of a put, and its records that are none."""

    changes: list[Change] = field(default_factory=list)
    bad: list[tuple[int, DataError]] = field(default_factory=list)


def changes_of(put: Put, config: JdbcSinkConfig) -> Sorted:
    """Of a put of one topic. The last record of a key wins, unless rows are inserted whatever their keys are."""
    made = Sorted()
    value = put.table.column("value").combine_chunks()
    null = value.is_null()
    live, dead = _rows(pc.invert(null)), _rows(null)
    deleting, writing = None, None
    if len(dead) and not config.deletes:
        told = "It has no value, and delete.enabled is not true: set it, or drop such records with a transform"
        made.bad += [(row, DataError(told)) for row in dead.to_pylist()]
    elif len(dead):
        deleting = _try(made, dead, lambda: _key_columns(put, config))
    if len(live):
        writing = _try(made, live, lambda: _all_columns(put, config, value))
    for change, deletes, rows in ((deleting, True, dead), (writing, False, live)):
        if change is not None:
            columns, keys = change
            good = _with_keys(made, rows, columns, keys)
            wanted = tuple(_wanted(name, array, optional) for name, (array, optional) in columns.items())
            arrays = {name: _taken(array, good) for name, (array, _) in columns.items()}
            made.changes.append(Change(put, good, arrays, wanted, keys, deletes))
    if config.insert_mode != INSERT or config.deletes:
        _last_of_each_key(made)
    made.changes = [change for change in made.changes if len(change.rows)]
    return made


_Columns = dict[str, tuple[pa.Array, bool]]


def _rows(mask: pa.Array) -> pa.Array:
    """Those that it names, by their numbers."""
    return pc.indices_nonzero(mask).cast(pa.int64())


def _taken(array: pa.Array, rows: pa.Array) -> pa.Array:
    """These of them, which ascend."""
    return array if len(array) == len(rows) else array.take(rows)


def _try(made: Sorted, rows: pa.Array, columns: Any) -> tuple[_Columns, tuple[str, ...]] | None:
    """What is wrong with the schema is wrong with each of its records."""
    try:
        found: tuple[_Columns, tuple[str, ...]] = columns()
        return found
    except DataError as error:
        made.bad += [(row, error) for row in rows.to_pylist()]
        return None


def _fields(array: pa.Array, schema: Schema | None) -> _Columns:
    """Of structs; with defaults in place of what was not set."""
    found: _Columns = {}
    for index, member in enumerate(array.type):
        column = pc.struct_field(array, index)
        known = schema.fields[index].schema if schema is not None else None
        if known is not None and known.default is not None:
            column = pc.fill_null(column, pa.scalar(known.default, column.type))
        found[member.name] = column, known is None or known.optional or known.default is not None
    return found


def _key_columns(put: Put, config: JdbcSinkConfig) -> tuple[_Columns, tuple[str, ...]]:
    if config.pk_mode == KAFKA:
        names = config.pk_fields or KAFKA_FIELDS
        given = [put.table.column(name).combine_chunks() for name in ("topic", "partition", "offset")]
        return {name: (array, False) for name, array in zip(names, given, strict=True)}, tuple(names)
    key = put.table.column("key").combine_chunks()
    if pa.types.is_null(key.type):
        raise DataError("It has no key, and pk.mode=record_key needs one")
    if not pa.types.is_struct(key.type):
        if len(config.pk_fields) != 1:
            raise DataError("Its key is no struct: pk.fields must say what its column is called")
        _check(config.pk_fields[0], key.type)
        return {config.pk_fields[0]: (key, False)}, config.pk_fields
    fields = _chosen(_fields(key, put.key_schema), config.pk_fields, "key")
    return fields, tuple(fields)


def _all_columns(put: Put, config: JdbcSinkConfig, value: pa.Array) -> tuple[_Columns, tuple[str, ...]]:
    if not pa.types.is_struct(value.type):
        raise DataError(
            "Its value is no struct, and a row has columns: use a converter that gives structs, or the transform"
            " HoistField"
        )
    fields = _fields(value, put.value_schema)
    columns: _Columns = {}
    keys: tuple[str, ...] = ()
    if config.pk_mode in (KAFKA, RECORD_KEY):
        columns, keys = _key_columns(put, config)
    elif config.pk_mode == RECORD_VALUE:
        columns = _chosen(fields, config.pk_fields, "value")
        keys = tuple(columns)
    for name, (array, optional) in fields.items():
        if name not in columns and (not config.fields or name in config.fields):
            _check(name, array.type)
            columns[name] = array, optional
    return columns, keys


def _chosen(fields: _Columns, names: Sequence[str], where: str) -> _Columns:
    missing = [name for name in names if name not in fields]
    if missing:
        raise DataError(f"Its {where} has no field {', '.join(missing)}, which pk.fields names")
    chosen = {name: fields[name] for name in (names or fields)}
    for name, (array, _) in chosen.items():
        _check(name, array.type)
    return chosen


def _check(name: str, kind: pa.DataType) -> None:
    if kind_of(kind) is None:
        raise DataError(
            f"Field {name} is a {kind}, and no column is made of that: use the transform Flatten or ReplaceField"
        )


def _with_keys(made: Sorted, rows: pa.Array, columns: _Columns, keys: Sequence[str]) -> pa.Array:
    nulls = [columns[name][0].is_null().take(rows) for name in keys if columns[name][0].null_count]
    if not nulls:
        return rows
    null = reduce(pc.or_, nulls)
    told = f"Its primary key {', '.join(keys)} is null"
    made.bad += [(row, DataError(told)) for row in rows.filter(null).to_pylist()]
    return rows.filter(pc.invert(null))


def _last_of_each_key(made: Sorted) -> None:
    """So that no statement meets a row twice. Deletes come first, all of them: what is written stays."""
    keyed = [
        pa.table(
            [change.rows, *(change.columns[name] for name in change.keys)], [_ROW, *map(str, range(len(change.keys)))]
        )
        for change in made.changes
    ]
    if not keyed:
        return
    last = _last(pa.concat_tables(keyed))
    for number, change in enumerate(made.changes):
        kept = pc.is_in(change.rows, _last(keyed[number]) if change.deletes else last)
        if not pc.all(kept, min_count=0).as_py():
            columns = {name: array.filter(kept) for name, array in change.columns.items()}
            made.changes[number] = replace(change, rows=change.rows.filter(kept), columns=columns)


def _last(keyed: pa.Table) -> pa.Array:
    """The rows with the highest number of each key."""
    found = keyed.group_by(keyed.column_names[1:], use_threads=False).aggregate([(_ROW, "max")])
    return found.column(f"{_ROW}_max").combine_chunks()


def _wanted(name: str, array: pa.Array, optional: bool) -> Wanted:
    kind = kind_of(array.type)
    assert kind is not None
    return Wanted(name, kind, optional, array.type.scale if kind == "decimal" else 0)
