"""Files of an Iceberg table, as pyiceberg knows them.

Which columns and partitions they have, what a file that Spark wrote is to the table, and which files have rows of
certain keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg import expressions
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import (
    ArrowScan,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import partition_record_value
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.typedef import Record

from headgate.api import ConnectError

_ROW: Final = "headgate_row"
_MOST_NAMED: Final = 200
"""Pyiceberg compares no more values than these with what is known of a file."""


def columns_of(schema: Schema) -> pa.Schema:
    """Those that rows are made to fit. Raises ConnectError where Spark has no such type."""
    return pa.schema([_plain(field, field.name) for field in schema_to_pyarrow(schema, include_field_ids=False)])


def _plain(field: pa.Field, column: str) -> pa.Field:
    kind = field.type
    if pa.types.is_large_string(kind):
        kind = pa.string()
    elif pa.types.is_large_binary(kind):
        kind = pa.binary()
    elif pa.types.is_large_list(kind) or pa.types.is_list(kind):
        kind = pa.list_(_plain(kind.value_field, column))
    elif pa.types.is_map(kind):
        kind = pa.map_(_plain(kind.key_field, column).type, _plain(kind.item_field, column))
    elif pa.types.is_struct(kind):
        kind = pa.struct([_plain(each, column) for each in kind])
    elif not _written(kind):
        raise ConnectError(f"Column {column} has a type that Spark cannot write to Iceberg: {kind}")
    return field.with_type(kind)


def _written(kind: pa.DataType) -> bool:
    known = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32())
    return kind in known or pa.types.is_decimal(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us")


def partitions_of(rows: pa.Table, metadata: TableMetadata) -> tuple[pa.Array, list[Record]]:
    """Which partition each row belongs to, by number, and what these are."""
    schema, numbers, found = metadata.schema(), np.zeros(rows.num_rows, np.int64), [()]
    for field in metadata.spec().fields:
        name = schema.find_column_name(field.source_id)
        if name not in rows.column_names:
            raise ConnectError(f"The table is partitioned by {name}, which is not a column of its own")
        encoded = pc.dictionary_encode(rows.column(name).combine_chunks(), null_encoding="encode")
        transform: Any = field.transform.transform(schema.find_type(field.source_id))
        given = encoded.dictionary.to_pylist()
        values = [transform(partition_record_value(field, value, schema)) for value in given]
        places = {value: place for place, value in enumerate(dict.fromkeys(values))}
        indices = np.array([places[value] for value in values], np.int64)[encoded.indices.to_numpy()]
        together, numbers = np.unique(numbers * len(places) + indices, return_inverse=True)
        named = list(places)
        found = [(*found[each // len(named)], named[each % len(named)]) for each in together.tolist()]
    return pa.array(numbers, pa.int64()), [Record(*values) for values in found]


def data_file(path: str, partition: Record, metadata: TableMetadata, io: FileIO) -> DataFile:
    """Of a Parquet file that is there, with what its footer tells of its columns. It has their names and no ids: the
    table's name mapping has those."""
    file = io.new_input(path)
    with file.open() as stream:
        footer = pq.read_metadata(stream)
    schema = metadata.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=footer,
        stats_columns=compute_statistics_plan(schema, metadata.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=len(file),
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def touched_files(metadata: TableMetadata, io: FileIO, keys: pa.Table) -> Iterator[tuple[DataFile, pa.Table]]:
    """The files that have rows with these keys, each with its other rows; there may be none."""
    schema, names = metadata.schema(), keys.column_names
    columns = columns_of(schema)
    for task in DataScan(table_metadata=metadata, io=io, row_filter=_perhaps(keys)).plan_files():
        scan = ArrowScan(metadata, io, schema, AlwaysTrue())
        rows = scan.to_table([task]).cast(columns)
        numbered = rows.select(names).append_column(_ROW, pa.array(range(rows.num_rows), pa.int64()))
        gone = numbered.join(keys, names, join_type="left semi").column(_ROW)
        if len(gone):
            yield task.file, rows.filter(pc.invert(pc.is_in(numbered.column(_ROW), gone.combine_chunks())))


def _perhaps(keys: pa.Table) -> BooleanExpression:
    """What a file need not have for sure, but must have by its statistics, to have rows with one of the keys."""
    found: BooleanExpression = AlwaysTrue()
    for name, column in zip(keys.column_names, keys.columns, strict=True):
        if not pa.types.is_floating(column.type) and not pa.types.is_boolean(column.type):
            found = And(found, _among(name, column))
    return found


def _among(name: str, column: pa.ChunkedArray) -> BooleanExpression:
    values: Sequence[Any] = pc.unique(column).to_pylist()
    made: Any = expressions  # whose constructors are not those that mypy believes to see
    if len(values) <= _MOST_NAMED:
        return cast(BooleanExpression, made.In(name, values))
    return And(made.GreaterThanOrEqual(name, min(values)), made.LessThanOrEqual(name, max(values)))
