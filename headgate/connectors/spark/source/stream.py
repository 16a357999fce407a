"""The stream of a data source, of either kind: where it begins, how far it goes, and the rows in between."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType
from pyspark.sql.worker.plan_data_source_read import records_to_arrow_batches

from headgate.api import ConnectError
from headgate.connectors.spark.source.blocks import Block, ReadPiece, packed, pieces
from headgate.connectors.spark.source.offset import StreamPosition, plain
from headgate.connectors.spark.source.shape import SourceShape


class DataStream(Protocol):
    """All of it is called from one thread."""

    def initial(self) -> dict[str, Any]: ...

    def ahead(self, start: Mapping[str, Any]) -> dict[str, Any]:
        """How far it can be read now; `start` if there is nothing."""

    def pieces(self, session: SparkSession, position: StreamPosition) -> Generator[ReadPiece, None, None]:
        """What is left of the batch that the position is in."""

    def partitions(self, position: StreamPosition) -> NumberedPartitions | None:
        """The same, for executors; None: it is not theirs to read, or the position is within a partition."""

    def commit(self, end: Mapping[str, Any]) -> None:
        """All before it is stored, and will not be asked for again."""

    @property
    def commits(self) -> bool:
        """Whether the data source wants to know."""

    def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class SourceRows:
    """How what a data source reads becomes Arrow; by PySpark itself. Goes to the executors."""

    source: type[DataSource]
    columns: StructType
    most: int

    def batches(self, read: Iterable[Any]) -> Iterator[pa.RecordBatch]:
        kind: pa.Schema | None = None
        # It only asks for the name, which belongs to the class.
        for batch in records_to_arrow_batches(iter(read), self.most, self.columns, self.source):  # type: ignore[arg-type]
            kind = kind or batch.schema
            if batch.schema != kind:  # PySpark looks at the first one only
                raise ValueError(
                    f"{self.source.name()} gave a RecordBatch with other columns than before: {batch.schema}"
                )
            yield batch


@dataclass(frozen=True, slots=True)
class _ReadPartition:
    reader: DataSourceStreamReader
    rows: SourceRows

    def __call__(self, given: Iterable[tuple[int, Any]]) -> Iterator[Block]:
        for number, partition in given:
            yield from packed(number, self.rows.batches(self.reader.read(partition)), self.rows.most)


@dataclass(frozen=True, slots=True)
class NumberedPartitions:
    """Partitions that are read where they are sent: a frame has their numbers, one in each of its own partitions."""

    _reader: DataSourceStreamReader
    _rows: SourceRows
    _partitions: Sequence[Any]

    def __len__(self) -> int:
        return len(self._partitions)

    def frame(self, session: SparkSession) -> DataFrame:
        return session.range(0, len(self), 1, len(self))

    def batches(self, numbered: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """On an executor."""
        for numbers in numbered:
            for number in numbers.column(0).to_pylist():
                yield from self._rows.batches(self._reader.read(self._partitions[number]))


@dataclass(frozen=True, slots=True)
class PartitionRecords:
    """For a SourceFrame."""

    partitions: NumberedPartitions
    shape: SourceShape

    def __call__(self, numbered: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        return self.shape.tables(self.partitions.batches(numbered))


@dataclass(eq=False)
class PartitionedStream:
    """Fits DataStream: executors read its partitions."""

    _reader: DataSourceStreamReader
    _rows: SourceRows
    _found: tuple[StreamPosition, Sequence[Any]] | None = None
    """The partitions of the batch that the position is in."""

    def initial(self) -> dict[str, Any]:
        return plain(self._reader.initialOffset(), "What initialOffset returned")

    def ahead(self, start: Mapping[str, Any]) -> dict[str, Any]:
        asked: Callable[..., Any] = self._reader.latestOffset
        # Before Spark 4.2 it took nothing.
        found = (
            asked(dict(start), self._reader.getDefaultReadLimit()) if inspect.signature(asked).parameters else asked()
        )
        return plain(found, "What latestOffset returned")

    def pieces(self, session: SparkSession, position: StreamPosition) -> Generator[ReadPiece, None, None]:
        left = list(enumerate(self._of(position)))[position.partition :]
        if left:
            read = _ReadPartition(self._reader, self._rows)
            blocks = session.sparkContext.parallelize(left, len(left)).mapPartitions(read)
            yield from pieces(blocks, position.partition, position.rows, self._rows.most)

    def partitions(self, position: StreamPosition) -> NumberedPartitions | None:
        if position.rows:
            return None
        return NumberedPartitions(self._reader, self._rows, self._of(position)[position.partition :])

    def _of(self, position: StreamPosition) -> Sequence[Any]:
        assert position.until is not None
        if self._found is None or self._found[0] != position:
            self._found = position, list(self._reader.partitions(dict(position.start), dict(position.until)))
        return self._found[1]

    def commit(self, end: Mapping[str, Any]) -> None:
        self._reader.commit(dict(end))

    @property
    def commits(self) -> bool:
        return type(self._reader).commit is not DataSourceStreamReader.commit

    def stop(self) -> None:
        self._reader.stop()


@dataclass(eq=False)
class SimpleStream:
    """Fits DataStream: it is read here, in the worker, as in Spark's driver."""

    _reader: SimpleDataSourceStreamReader
    _rows: SourceRows
    _read: list[tuple[StreamPosition, Iterable[Any]]] = field(default_factory=list)
    """What came with the last answer to how far it goes, until it is taken."""

    def initial(self) -> dict[str, Any]:
        return plain(self._reader.initialOffset(), "What initialOffset returned")

    def ahead(self, start: Mapping[str, Any]) -> dict[str, Any]:
        rows, end = self._reader.read(dict(start))
        told = plain(end, "The end that read returned")
        if told == start and next(iter(rows), None) is not None:
            raise ConnectError(f"{self._rows.source.__qualname__} has read rows, but not moved on from {dict(start)}")
        self._read = [(StreamPosition(start, told), rows)]
        return told

    def pieces(self, session: SparkSession, position: StreamPosition) -> Generator[ReadPiece, None, None]:
        assert position.until is not None
        read, self._read = self._read, []
        if read and read[0][0] == position:
            return self._pieces(read[0][1], 0)
        try:
            again = self._reader.readBetweenOffsets(dict(position.start), dict(position.until))
        except PySparkNotImplementedError as error:
            raise ConnectError(
                f"{self._rows.source.__qualname__} has no readBetweenOffsets, which is needed to go on within a batch:"
                " write it, or raise batch.size and reset or alter the offsets of the connector"
            ) from error
        return self._pieces(again, position.rows)

    def partitions(self, position: StreamPosition) -> None:
        """It has none."""

    def _pieces(self, read: Iterable[Any], skip: int) -> Generator[ReadPiece, None, None]:
        end, waiting = 0, None
        for block in packed(0, self._rows.batches(read), self._rows.most):
            before, end = end, end + block.rows
            if end <= skip:
                continue
            if waiting is not None:
                yield waiting
            with pa.ipc.open_stream(block.data) as stream:
                waiting = ReadPiece(stream.read_all().slice(max(0, skip - before)), 0, end, last=False)
        if waiting is not None:
            yield ReadPiece(waiting.table, 0, waiting.end, last=True)

    def commit(self, end: Mapping[str, Any]) -> None:
        self._reader.commit(dict(end))

    @property
    def commits(self) -> bool:
        return type(self._reader).commit is not SimpleDataSourceStreamReader.commit

    def stop(self) -> None:
        """Nothing to end."""


def opened(source: DataSource, columns: StructType, most: int) -> DataStream:
    """Raises whatever the data source raises."""
    rows = SourceRows(type(source), columns, most)
    try:
        return PartitionedStream(source.streamReader(columns), rows)
    except PySparkNotImplementedError:
        return SimpleStream(source.simpleStreamReader(columns), rows)
