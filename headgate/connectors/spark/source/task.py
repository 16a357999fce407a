"""DataSourceTask: rows of a PySpark data source."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headgate.api import ConfigError, ConnectError, Reach, ReachKind, SourceFrame, SourceTable
from headgate.connectors.spark.source.config import ALWAYS, PROVIDER, SparkSourceConfig
from headgate.connectors.spark.source.offset import SOURCE, StreamPosition
from headgate.connectors.spark.source.polling import SparkPolling, failure
from headgate.connectors.spark.source.provider import found, parts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from headgate.connectors.spark.source.shape import SourceShape
    from headgate.connectors.spark.source.stream import DataStream

log = logging.getLogger(__name__)


class DataSourceTask(SparkPolling):
    """The data source's own methods are called here, by one thread; `read` of a stream reader runs on the executors. A
    batch is what lies between two offsets of the data source. One that is large is given piece by piece, and the offset
    of a piece names both ends of the batch and the place within it: then it can be read again from there."""

    def __init__(self) -> None:
        super().__init__()
        self._stream: DataStream | None = None
        self._stored = threading.Event()
        self._told: Mapping[str, Any] | None = None
        self._next_commit = 0.0
        self._before_frame: StreamPosition | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self.config = SparkSourceConfig.of(config)
        provider = self.config.provider
        assert provider is not None
        self.context.require(Reach(ReachKind.CODE, parts(provider)[0], PROVIDER))
        self._class = found(PROVIDER, provider)
        self._partition = {SOURCE: provider}
        stored = self.context.offset_reader.offset(self._partition)
        self._position = None if stored is None else StreamPosition.read(stored)
        self._told = self._position.start if self._position else None

    def _next(self) -> SourceTable | SourceFrame | None:
        stream = self._opened()
        self._tell_stored(stream)
        position = self._position
        if position is None:
            # Where it begins is stored at once, before any row: whatever happens then, it is begun there again.
            self._position = StreamPosition(stream.initial())
            self._told = self._position.start
            return self._given(None)
        if self._pieces is None:
            if position.until is None:
                end = stream.ahead(position.start)
                if end == position.start:
                    self._look_later()
                    return None
                position = replace(position, until=end)
            frame = self._frame(stream, position)
            if frame is not None:
                return frame
            self._pieces = stream.pieces(self._session(), position)
        try:
            piece = next(self._pieces, None)
        except Exception as error:
            problem = failure(f"{self.config.provider} could not be read", error)
            raise problem from problem.__cause__
        assert position.until is not None
        if piece is None or piece.last:
            self._let_go()
            self._position = StreamPosition(position.until)
        else:
            self._position = replace(position, partition=piece.place, rows=piece.end)
        return self._given(None if piece is None else piece.table)

    def _given(self, read: pa.Table | None) -> SourceTable:
        import pyarrow as pa

        assert self._position is not None
        return SourceTable(
            topic=self.config.topic,
            table=pa.table({"value": pa.nulls(0)}) if read is None else self._shape.records(read),
            source_partition=self._partition,
            source_offset=self._position.written(),
            value_schema=None if read is None else self._shape.value_schema,
            key_schema=None if read is None else self._shape.key_schema,
        )

    def _frame(self, stream: DataStream, position: StreamPosition) -> SourceFrame | None:
        """What is left of the batch, for executors to send; None: it comes piece by piece."""
        from headgate.connectors.spark.source.stream import PartitionRecords

        if not self._gives_frames:
            return None
        # How much is in a partition, only reading it tells. More of them than cores are seldom made for a few rows.
        fewest = 1 if self.config.executors == ALWAYS else self._session().sparkContext.defaultParallelism + 1
        partitions = stream.partitions(position)
        if partitions is None or len(partitions) < fewest:
            return None
        assert position.until is not None
        self._before_frame, self._position = position, StreamPosition(position.until)
        return SourceFrame(
            topic=self.config.topic,
            frame=partitions.frame,
            source_partition=self._partition,
            source_offset=self._position.written(),
            value_schema=self._shape.value_schema,
            key_schema=self._shape.key_schema,
            records=PartitionRecords(partitions, self._shape),
        )

    def _go_back(self) -> None:
        self._position = self._before_frame

    def _opened(self) -> DataStream:
        if self._stream is None:
            from headgate.connectors.spark.source.shape import SourceShape
            from headgate.connectors.spark.source.stream import opened

            self._session()  # which is needed to read lists of columns
            source = self._class(options(self.config.options))
            columns = self._columns(source)
            self._shape: SourceShape = SourceShape.of(columns, self.config)
            self._stream = opened(source, columns, self.config.batch_size)
        return self._stream

    def _columns(self, source: DataSource) -> StructType:
        from pyspark.sql.types import StructType

        from headgate.connectors.spark.source.shape import columns_of

        if self.config.schema is not None:
            return columns_of(self.config.schema)
        told = source.schema()
        if isinstance(told, StructType):
            return told
        try:
            return columns_of(str(told))
        except ConfigError as error:
            raise ConnectError(f"What {self.config.provider} says of its columns cannot be read: {error}") from error

    # --- what is stored -----------------------------------------------------------------------------------------------

    def commit(self) -> None:
        self._stored.set()

    def _tell_stored(self, stream: DataStream) -> None:
        """On the thread that all of the data source's methods are called from. What is stored is asked for: more may
        have been polled by now."""
        if not stream.commits:
            return
        if not self._stored.is_set() or time.monotonic() < self._next_commit:
            return
        self._stored.clear()
        self._next_commit = time.monotonic() + self.config.interval_s
        stored = self.context.offset_reader.offset(self._partition)
        if stored is not None and (end := StreamPosition.read(stored).start) != self._told:
            stream.commit(end)
            self._told = end

    def stop(self) -> None:
        super().stop()
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            self._next_commit = 0.0
            self._tell_stored(stream)
        except Exception as error:
            log.warning("%s was not told how far it is stored: %s", self.config.provider, error)
        with suppress(Exception):
            stream.stop()


def options(given: Mapping[str, str]) -> Any:
    """As Spark hands them over: found whatever the case of their names."""
    from pyspark.sql.datasource import CaseInsensitiveDict

    return CaseInsensitiveDict(given)
