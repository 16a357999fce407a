"""ExactFiles: files that Spark writes out of sight, and that count together with the offsets behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.api import ConnectError
from headgate.connectors.durable import unwritable
from headgate.connectors.spark.hadoop import HadoopFiles
from headgate.connectors.spark.location import Location
from headgate.connectors.spark.sink.append import shown, writer_of
from headgate.connectors.spark.sink.config import PARQUET, SparkSinkConfig
from headgate.connectors.spark.sink.ddl import parse, written
from headgate.connectors.spark.sink.file_ledger import FileEntry, FileLedger
from headgate.connectors.spark.sink.parquet_files import ParquetFiles
from headgate.connectors.spark.sink.target import Opened, RowBatch, files_for, frame_of, schema_of, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ExactFiles:
    """Fits `target.Target`."""

    def __init__(self, config: SparkSinkConfig) -> None:
        self._config = config
        self._number = 0

    def open(self, session: SparkSession) -> Opened:
        master = session.sparkContext.master or ""
        if _location(self._config).local is not None and not master.startswith("local"):
            raise ConnectError(
                f"Files of this machine are written exactly once by its own executors only, and spark.master is"
                f" {master}. Use a path of hdfs://, or format=delta on a store that all executors reach"
            )
        self._ledger = ledger_of(self._config, session)
        self._ledger.discard_staged()
        self._ledger.settle()
        last = self._ledger.last()
        self._number = last.number
        if last.columns is not None:
            return Opened(parse(last.columns), last.offsets)
        with told(shown(self._config)):
            return Opened(schema_of(session, self._config), last.offsets)

    def write(self, session: SparkSession, batch: RowBatch) -> None:
        columns = written(batch.rows.schema) if len(batch.rows.schema) else None
        staged = self._ledger.stage(FileEntry(self._number + 1, batch.offsets, columns))
        if batch.rows.num_rows:
            with told(shown(self._config)):
                self._save(session, batch.rows, staged.files)
        self._ledger.commit(staged)
        self._number += 1
        self._ledger.settle()

    def _save(self, session: SparkSession, rows: pa.Table, folder: str) -> None:
        config = self._config
        local = _location(config).local is not None
        files = None
        if local and config.format == PARQUET:
            files = ParquetFiles.of(session, folder, rows.schema, config.partition_by, config.options)
        if files is not None:
            files.write(session, rows, files_for(rows))
        else:
            writer_of(frame_of(session, rows), config).save(f"file:{folder}" if local else folder)


def ledger_of(config: SparkSinkConfig, session: SparkSession | None) -> FileLedger:
    """Of this machine's files also without a session. Raises ConnectError."""
    location = _location(config)
    if location.local is not None:
        return FileLedger(location.local, config.name)
    assert session is not None
    try:
        return FileLedger(location.uri, config.name, HadoopFiles(session, location.uri))
    except OSError as error:
        raise unwritable(f"folder {location.uri}", error.strerror or "") from error


def _location(config: SparkSinkConfig) -> Location:
    assert config.location is not None
    return config.location
