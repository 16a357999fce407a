"""DeltaTarget: rows in a Delta table, appended or by their keys, with the offsets in the commits that they came by.

Delta skips a transaction whose application has committed this version already, and refuses one of two that try it at
the same time. So a version is taken once, and whoever wrote it has signed it.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import ConnectError
from headgate.connectors.spark.sink.append import save, shown, writer_of
from headgate.connectors.spark.sink.columns import Evolution
from headgate.connectors.spark.sink.config import SparkSinkConfig
from headgate.connectors.spark.sink.ddl import type_name
from headgate.connectors.spark.sink.table_entry import TableEntry, application_of, taken
from headgate.connectors.spark.sink.target import Opened, RowBatch, frame_of, schema_of, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DELETED: Final = "_headgate_deleted"
_VIEW: Final = "headgate_rows"
_SETTINGS: Final[Mapping[str, str]] = {
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
}
"""What is an option of a writer, as a setting of a session: for statements."""
_LOOKS: Final = (20, 2_000, None)
"""Commits of the history that are looked at: others may have committed since, and a long history takes long."""
_NOT_THERE: Final = (
    "DELTA_MISSING_DELTA_TABLE", "DELTA_TABLE_NOT_FOUND", "DELTA_TABLE_ONLY_OPERATION", "TABLE_OR_VIEW_NOT_FOUND",
)  # fmt: skip


class DeltaTarget:
    """Fits `target.Target`."""

    def __init__(self, config: SparkSinkConfig) -> None:
        self._config = config
        self._application = application_of(config.name)
        self._name = config.table or f"delta.`{_uri(config).replace('`', '``')}`"
        self._version = 0

    def open(self, session: SparkSession) -> Opened:
        with told(shown(self._config)):
            schema = schema_of(session, self._config)
            last = self._last(session) if schema is not None and self._config.exactly_once else TableEntry()
        self._version = last.version
        return Opened(schema, last.offsets)

    def write(self, session: SparkSession, batch: RowBatch) -> None:
        entry = TableEntry(self._version + 1, batch.offsets, uuid.uuid4().hex)
        with told(shown(self._config)):
            existing = schema_of(session, self._config)
            if existing is None:
                kept = batch.rows if batch.deleted is None else batch.rows.filter(pc.invert(batch.deleted))
                if not kept.num_rows:
                    return  # there is no table to keep offsets in
                self._append(session, kept, entry)
            elif batch.deleted is None or not batch.rows.num_rows:
                self._append(session, batch.rows if batch.rows.num_rows else existing.empty_table(), entry)
            else:
                self._merge(session, batch.rows, batch.deleted, existing, entry)
            if self._config.exactly_once:
                self._check(session, entry)
        self._version += 1

    # --- one commit ---------------------------------------------------------------------------------------------------

    def _signature(self, entry: TableEntry) -> Mapping[str, str]:
        if not self._config.exactly_once:
            return {}
        values = (self._application, str(entry.version), entry.text(self._application))
        return dict(zip(_SETTINGS, values, strict=True))

    def _append(self, session: SparkSession, rows: pa.Table, entry: TableEntry) -> None:
        writer = writer_of(frame_of(session, rows), self._config).options(**self._signature(entry))
        save(writer, self._config)

    def _merge(
        self, session: SparkSession, rows: pa.Table, deleted: pa.Array, existing: pa.Schema, entry: TableEntry
    ) -> None:
        if self._config.evolution is Evolution.ADD and _adds(rows.schema, existing):
            # An append of nothing adds columns, also within others, as no statement does.
            save(writer_of(frame_of(session, rows.schema.empty_table()), self._config), self._config)
        # Its own, for its settings: those of the worker's session would be of all tasks.
        apart = session.newSession()
        for name, value in self._signature(entry).items():
            apart.conf.set(_SETTINGS[name], value)
        frame_of(apart, rows.append_column(_DELETED, deleted)).createOrReplaceTempView(_VIEW)
        try:
            apart.sql(_statement(self._name, rows.schema.names, self._config.key_columns)).collect()
        finally:
            apart.catalog.dropTempView(_VIEW)

    def _check(self, session: SparkSession, entry: TableEntry) -> None:
        """That it was not skipped. Raises Taken."""
        found = self._last(session)
        if found.writer == entry.writer:
            return
        if found.version < entry.version:
            raise ConnectError(
                f"{shown(self._config)} has a version of {self._application} whose offsets its history has forgotten,"
                " so nothing was written. Create the connector under another name, with the group of this one as"
                " consumer.override.group.id"
            )
        raise taken(shown(self._config))

    def _last(self, session: SparkSession) -> TableEntry:
        """Of this connector, as far as the table's history goes back."""
        from pyspark.errors import AnalysisException

        for most in _LOOKS:
            try:
                history = session.sql(f"DESCRIBE HISTORY {self._name}{'' if most is None else f' LIMIT {most}'}")
                texts = [row.userMetadata for row in history.select("userMetadata").collect()]
            except AnalysisException as error:
                if error.getCondition() in _NOT_THERE:
                    return TableEntry()
                raise
            found = next(filter(None, (TableEntry.read(text, self._application) for text in texts)), None)
            if found is not None or most is None or len(texts) < most:
                return found or TableEntry()
        raise AssertionError("the last look is at all of it")


def _statement(target: str, names: Sequence[str], keys: Sequence[str]) -> str:
    quoted = [_quoted(name) for name in names]
    same = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in keys)
    changes = ", ".join(f"t.{name} = s.{name}" for name in quoted)
    return (
        f"MERGE INTO {target} t USING {_VIEW} s ON {same}"  # noqa: S608 - names are quoted, and there are no values
        f" WHEN MATCHED AND s.{_DELETED} THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {changes}"
        f" WHEN NOT MATCHED AND NOT s.{_DELETED} THEN INSERT ({', '.join(quoted)})"
        f" VALUES ({', '.join(f's.{name}' for name in quoted)})"
    )


def _adds(new: pa.Schema, old: pa.Schema) -> bool:
    types = {field.name: type_name(field.type) for field in old}
    return any(types.get(field.name) != type_name(field.type) for field in new)


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _uri(config: SparkSinkConfig) -> str:
    assert config.location is not None
    return config.location.uri
