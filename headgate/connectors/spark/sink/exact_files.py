"""ExactFiles: files that Spark writes out of sight, and that count together with the offsets behind them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.api import ConnectError
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
        self._ledger = ledger_of(config)
        self._number = 0

    def open(self, session: SparkSession) -> Opened:
        master = session.sparkContext.master or ""
        if not master.startswith("local"):
            raise ConnectError(
                f"Files are written exactly once by executors of this machine only, and spark.master is {master}. Use"
                " format=delta on a store that all executors reach"
            )
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

    def _save(self, session: SparkSession, rows: pa.Table, folder: Path) -> None:
        by, options = self._config.partition_by, self._config.options
        plain = self._config.format == PARQUET
        files = ParquetFiles.of(session, folder, rows.schema, by, options) if plain else None
        if files is not None:
            files.write(session, rows, files_for(rows))
        else:
            writer_of(frame_of(session, rows), self._config).save(f"file:{folder}")


def ledger_of(config: SparkSinkConfig) -> FileLedger:
    assert config.location is not None
    assert config.location.local is not None
    return FileLedger(Path(config.location.local), config.name)
