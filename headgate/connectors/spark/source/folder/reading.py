"""Files read by Spark, several in one job, each of them in the order of its records."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from headgate.connectors.spark.source.blocks import Block, ReadPiece, packed, pieces
from headgate.connectors.spark.source.folder.formats import reader_options

_BLOCKS = "place INT, start BIGINT, rows INT, data BINARY"


@dataclass(frozen=True, slots=True)
class _Pack:
    """On an executor: what it has read, as blocks of one file each."""

    names: Sequence[str]
    most: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        places = {name: place for place, name in enumerate(self.names)}
        for batch in batches:
            names, starts, records = batch.columns
            rows = pa.RecordBatch.from_struct_array(records)
            for begin, end in _runs(names, starts):
                place, start = places[unquote(names[begin].as_py())], starts[begin].as_py()  # Spark has them as in URLs
                for block in packed(place, [rows.slice(begin, end - begin)], self.most, start):
                    yield _row(block)


def _runs(*columns: pa.Array) -> Iterator[tuple[int, int]]:
    """Where rows begin and end that have the same values in all of these."""
    count = len(columns[0])
    if count:
        changes = [np.flatnonzero(pc.not_equal(column[1:], column[:-1]).to_numpy(False)) + 1 for column in columns]
        yield from pairwise([0, *sorted({int(each) for found in changes for each in found}), count])


def _row(block: Block) -> pa.RecordBatch:
    kinds = (pa.int32(), pa.int64(), pa.int32(), pa.binary())
    return pa.RecordBatch.from_arrays(
        [pa.array([each], kind) for each, kind in zip(block, kinds, strict=True)], list(Block._fields)
    )


@dataclass(frozen=True, slots=True)
class FileReading:
    format: str
    options: Mapping[str, str]
    most: int

    def columns(self, session: SparkSession, path: str) -> StructType:
        """What Spark finds in a file."""
        found: StructType = self._reader(session).load(_url(path)).schema
        return found

    def frame(self, session: SparkSession, paths: Sequence[str], columns: StructType) -> DataFrame:
        found: DataFrame = self._reader(session).schema(columns).load([_url(path) for path in paths])
        return found

    def pieces(
        self, session: SparkSession, paths: Sequence[str], columns: StructType, skip: int
    ) -> Generator[ReadPiece, None, None]:
        """All records of these files, but for the first `skip` of the first. The place of a piece is the number of the
        file that it ends in."""
        found = self.frame(session, paths, columns)
        frame = found.select(sql.col("_metadata.file_name"), sql.col("_metadata.file_block_start"), sql.struct("*"))
        blocks = frame.mapInArrow(_Pack([os.path.basename(path) for path in paths], self.most), _BLOCKS)
        # Spark gives several files to one partition, as it likes; one that it splits stays in the order of its records.
        yield from pieces(blocks.rdd, 0, skip, self.most, mixed=len(paths) > 1)

    def _reader(self, session: SparkSession) -> Any:
        return session.read.format(self.format).options(**reader_options(self.format, self.options))


def _url(path: str) -> str:
    return f"file://{path}" if path.startswith("/") else path
