"""IcebergTarget: rows in an Iceberg table, appended or by their keys, with the offsets in the commits they came by.

Executors write the files, and pyiceberg commits them, in the worker.

A commit is made to the snapshot that was looked at, or not at all. So whoever finds the offsets of another there has
changed nothing, and whoever finds its own is the only one that goes on after them.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import ConnectError
from headgate.connectors.spark.sink.columns import Columns, Evolution
from headgate.connectors.spark.sink.config import SparkSinkConfig
from headgate.connectors.spark.sink.table_entry import TableEntry, application_of, taken
from headgate.connectors.spark.sink.target import Opened, RowBatch, frame_of, told

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyspark.sql import SparkSession

    from headgate.connectors.spark.sink.iceberg_table import IcebergCatalog, IcebergTable

log = logging.getLogger(__name__)

_CATALOG: Final = "spark.sql.catalog"
_PARTITION: Final = "headgate_partition"
_PARTITION_FOLDER: Final = re.compile(rf"{_PARTITION}=([0-9]+)/")
_PARQUET: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
}
"""As Iceberg has them in Parquet; settings of a session, not of a writer."""
_NO_MARK: Final = "mapreduce.fileoutputcommitter.marksuccessfuljobs"
_TRIES: Final = 10
"""So often others may be first."""
_MOST_BYTES: Final = 128 * 1024 * 1024
"""Of rows that are written together, when files are written anew."""


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """Files that nobody sees yet."""

    added: Sequence[DataFile]
    replaced: Sequence[DataFile]
    shape: Any
    """Columns and partitions that they were made for."""


class IcebergTarget:
    """Fits `target.Target`."""

    def __init__(self, config: SparkSinkConfig) -> None:
        assert config.table is not None
        self._config = config
        self._table = config.table
        self._shown = f"{config.catalog}.{config.table}"
        self._application = application_of(config.name)
        self._catalog: IcebergCatalog | None = None
        self._last = TableEntry()

    def open(self, session: SparkSession) -> Opened:
        from headgate.connectors.spark.sink.iceberg_table import IcebergCatalog, asked

        properties = catalog_properties(session, self._config.catalog)
        with asked(self._shown):
            self._catalog = IcebergCatalog(self._config.catalog, properties)
            table = self._catalog.load(self._table)
            self._last = TableEntry() if table is None else self._entry(table)
            return Opened() if table is None else Opened(self._checked(table).columns, self._last.offsets)

    def write(self, session: SparkSession, batch: RowBatch) -> None:
        from headgate.connectors.spark.sink.iceberg_table import Outdated, asked

        entry = TableEntry(self._last.version + 1, batch.offsets, uuid.uuid4().hex)
        notes = {self._application: entry.text(self._application)} if self._config.exactly_once else {}
        staged: StagedFiles | None = None
        for _ in range(_TRIES):
            with asked(self._shown):
                table = self._loaded(batch)
                if table is None:
                    return  # there is no table to keep offsets in
                if self._entry(table).writer != self._last.writer:
                    self._discard(table, staged)
                    raise taken(self._shown)
            if staged is None or batch.deleted is not None or staged.shape != _shape(table):
                self._discard(table, staged)
                staged = self._stage(session, table, batch)
            if not (notes or staged.added or staged.replaced):
                return
            try:
                with asked(self._shown):
                    table.commit(staged.added, staged.replaced, notes)
            except Outdated:
                continue
            self._last = entry if self._config.exactly_once else TableEntry()
            return
        if table is not None:
            self._discard(table, staged)
        raise ConnectError(f"Others have changed {self._shown} {_TRIES} times before this commit: it is tried again")

    # --- the table ----------------------------------------------------------------------------------------------------

    def _loaded(self, batch: RowBatch) -> IcebergTable | None:
        """With all columns of the rows. None: there is none, and there are no rows either."""
        assert self._catalog is not None
        table = self._catalog.load(self._table)
        if table is None:
            kept = batch.rows if batch.deleted is None else batch.rows.filter(pc.invert(batch.deleted))
            if not kept.num_rows:
                return None
            self._catalog.create(self._table, self._required(batch.rows.schema), self._config.partition_by)
            table = self._catalog.load(self._table)
            if table is None:
                raise ConnectError(f"{self._shown} is gone again, just after it was created")
        self._checked(table)
        if self._config.evolution is Evolution.ADD and batch.rows.num_rows:
            table.add_columns(batch.rows.schema)
        return table

    def _required(self, columns: pa.Schema) -> pa.Schema:
        """NOT NULL as `schema` says: rows of an upsert may be null wherever they are no keys."""
        given = self._config.schema
        known = {} if given is None else {each.name: each.nullable for each in given}
        return pa.schema([each.with_nullable(known.get(each.name, each.nullable)) for each in columns])

    def _checked(self, table: IcebergTable) -> IcebergTable:
        wanted, found = self._config.partition_by, table.partitioned_by
        if wanted and wanted != found:
            raise ConnectError(
                f"{self._shown} is partitioned by {', '.join(found) or 'nothing'}, and partition.by says"
                f" {', '.join(wanted)}. Leave it out to write to the table as it is"
            )
        return table

    def _entry(self, table: IcebergTable) -> TableEntry:
        """Of this connector, the newest."""
        if not self._config.exactly_once:
            return TableEntry()
        return TableEntry.read(table.note(self._application), self._application) or TableEntry()

    # --- files --------------------------------------------------------------------------------------------------------

    def _stage(self, session: SparkSession, table: IcebergTable, batch: RowBatch) -> StagedFiles:
        if not batch.rows.num_rows:
            return StagedFiles((), (), _shape(table))
        rows = self._fitted(table.columns, batch.rows)
        if batch.deleted is None:
            return StagedFiles(self._written(session, table, rows), (), _shape(table))
        return self._merged(session, table, rows, batch.deleted)

    def _merged(self, session: SparkSession, table: IcebergTable, rows: pa.Table, deleted: pa.Array) -> StagedFiles:
        """Files that have rows with the same keys are written anew, without these."""
        from headgate.connectors.spark.sink.iceberg_files import touched_files
        from headgate.connectors.spark.sink.iceberg_table import asked

        added: list[DataFile] = []
        replaced: list[DataFile] = []
        waiting = [rows.filter(pc.invert(deleted))]
        touched = touched_files(table.metadata, table.io, rows.select(self._config.key_columns))
        while True:
            with asked(self._shown):
                found = next(touched, None)
            if found is None or sum(each.nbytes for each in waiting) > _MOST_BYTES:
                added += self._written(session, table, pa.concat_tables(waiting))
                waiting = []
            if found is None:
                return StagedFiles(added, replaced, _shape(table))
            replaced.append(found[0])
            waiting.append(found[1])

    def _written(self, session: SparkSession, table: IcebergTable, rows: pa.Table) -> list[DataFile]:
        """By executors, where readers of the table do not look yet."""
        from headgate.connectors.spark.sink.iceberg_files import data_file, partitions_of
        from headgate.connectors.spark.sink.iceberg_table import asked

        if not rows.num_rows:
            return []
        for each in rows.schema:
            if not each.nullable and rows.column(each.name).null_count:
                raise ConnectError(
                    f"Column {each.name} of {self._shown} may not be null, and a row has no value for it"
                )
        name = f"headgate-{uuid.uuid4().hex}"
        folder = f"{table.data_folder}/{name}"
        metadata = table.metadata
        with asked(self._shown):
            numbers, partitions = partitions_of(rows, metadata)
        with told(self._shown):
            # Its own, for its settings: those of the worker's session would be of all tasks.
            apart = session.newSession()
            for key, value in _PARQUET.items():
                apart.conf.set(key, value)
            several = len(partitions) > 1
            frame = frame_of(apart, rows.append_column(_PARTITION, numbers) if several else rows)
            writer = frame.write.format("parquet").options(**self._config.options).option(_NO_MARK, False)
            (writer.partitionBy(_PARTITION) if several else writer).save(_uri(folder))
            found = apart.read.schema(frame.schema).parquet(_uri(folder)).inputFiles()
        paths = sorted(path.rpartition(f"{name}/")[2] for path in found)
        with asked(self._shown):
            files = [data_file(f"{folder}/{each}", partitions[_number(each)], metadata, table.io) for each in paths]
        if (count := sum(file.record_count for file in files)) != rows.num_rows:
            raise ConnectError(
                f"Of {rows.num_rows} rows for {self._shown} this worker finds {count} in {folder}, so nothing was"
                " committed. Executors must write where the worker reads"
            )
        return files

    def _fitted(self, columns: pa.Schema, rows: pa.Table) -> pa.Table:
        for name in rows.column_names:
            if name not in columns.names:
                raise ConnectError(f"{self._shown} has no column {name}. With schema.evolution=add it is added")
        return Columns(columns, self._config.evolution).complete([rows])

    def _discard(self, table: IcebergTable, staged: StagedFiles | None) -> None:
        """They are no part of the table for sure."""
        for file in () if staged is None else staged.added:
            try:
                table.io.delete(file.file_path)
            except Exception as error:  # it only takes room
                log.warning("%s is of no use any more, and cannot be deleted: %s", file.file_path, error)


def catalog_properties(session: SparkSession, name: str) -> dict[str, str]:
    """What the worker file says of a catalog. Raises ConnectError."""
    prefix = f"{_CATALOG}.{name}."
    found = {key.removeprefix(prefix): value for key, value in session.conf.getAll.items() if key.startswith(prefix)}
    if not found:
        raise ConnectError(
            f"This worker knows no catalog {name}: its file must say what it is and where, with {prefix}type and"
            f" {prefix}uri"
        )
    return found


def _shape(table: IcebergTable) -> Any:
    metadata = table.metadata
    return metadata.schema(), metadata.spec()


def _number(path: str) -> int:
    found = _PARTITION_FOLDER.match(path)
    return 0 if found is None else int(found[1])


def _uri(folder: str) -> str:
    """By its scheme: a path alone may be one of another file system, if the worker file says so."""
    return f"file:{folder}" if folder.startswith("/") else folder
