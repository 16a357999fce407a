"""What tests of databases use: tables of both kinds of database, and tasks driven as the runtime drives them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import SparkSession

from headgate.api import RetriableError, Schema, SourceTable, TopicPartition
from headgate.api.testing import (
    MemoryConnectorContext,
    MemoryOffsets,
    MemoryReporter,
    MemorySinkTaskContext,
    MemorySourceTaskContext,
)
from headgate.connectors.jdbc.sink import JdbcSink, JdbcSinkTask
from headgate.connectors.jdbc.source import JdbcSource, JdbcSourceTask
from headgate.dev.postgres import USER, Postgres


class Store(Protocol):
    """A database that a test fills, and looks into past any code of ours."""

    @property
    def config(self) -> dict[str, str]: ...

    def run(self, sql: str) -> list[list[str]]: ...


class PostgresStore:
    def __init__(self, server: Postgres, schema: str) -> None:
        self.server, self.schema = server, schema
        server.run(f'CREATE SCHEMA "{schema}"')

    @property
    def config(self) -> dict[str, str]:
        """Of a connection, with names looked up in a schema of the test's own."""
        url = f"{self.server.url}?currentSchema={self.schema}"
        login = {"connection.user": USER, "connection.password": self.server.password}
        return {"connection.url": url, **login}

    def run(self, sql: str) -> list[list[str]]:
        return self.server.run(f'SET search_path = "{self.schema}"; {sql}')


class SqliteStore:
    def __init__(self, file: Path) -> None:
        self.file = file
        self.run("PRAGMA journal_mode = WAL")

    @property
    def config(self) -> dict[str, str]:
        return {"connection.url": f"jdbc:sqlite:{self.file}"}

    def run(self, sql: str) -> list[list[str]]:
        with closing(sqlite3.connect(self.file)) as connection:
            found = []
            for statement in filter(str.strip, sql.split(";")):
                found += connection.execute(statement).fetchall()
            connection.commit()
            return [["" if cell is None else str(cell) for cell in row] for row in found]


@contextmanager
def source_task(
    session: SparkSession, config: Mapping[str, str], offsets: MemoryOffsets | None = None, number: int = 0
) -> Iterator[JdbcSourceTask]:
    connector = JdbcSource()
    connector.start(config)
    given = connector.task_configs(int(config.get("tasks.max", "1")))[number]
    task = JdbcSourceTask()
    task.context = MemorySourceTaskContext(given, offsets, session=session)
    task.start(given)
    try:
        yield task
    finally:
        task.stop_requested()
        task.stop()


class Polled:
    """What a task gives, with its offsets committed as the runtime does."""

    def __init__(self, task: JdbcSourceTask, offsets: MemoryOffsets | None = None) -> None:
        self.task = task
        self.offsets = offsets if offsets is not None else MemoryOffsets()
        self.tables: list[SourceTable] = []

    def once(self, commit: bool = True) -> list[dict[str, Any]]:
        try:
            table = self.task.poll()
        except RetriableError:
            return []
        if table is None:
            return []
        self.tables.append(table)
        if commit and table.source_partition is not None and table.source_offset is not None:
            self.offsets.commit(table.source_partition, table.source_offset)
        return [row["value"] for row in table.table.to_pylist()]

    def until(self, count: int, polls: int = 200) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for _ in range(polls):
            rows += self.once()
            if len(rows) >= count:
                return rows
        raise AssertionError(f"{len(rows)} of {count} rows after {polls} polls")


# --- sinks ------------------------------------------------------------------------------------------------------------


def records_of(
    rows: Sequence[Mapping[str, Any]], topic: str = "orders", partition: int = 0, first: int = 0
) -> pa.Table:
    """As the runtime gives them, with keys and values as they are; `key` and `value` of each row."""
    count = len(rows)
    place: dict[str, Sequence[Any]] = {
        "topic": [topic] * count,
        "partition": [partition] * count,
        "offset": range(first, first + count),
    }
    types = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.int64()}
    columns = {name: pa.array(list(values), types[name]) for name, values in place.items()}
    columns |= {f"original_{name}": array for name, array in columns.items()}
    columns["timestamp"] = pa.array([1_700_000_000_000] * count, types["timestamp"])
    columns |= {name: pa.array([row.get(name) for row in rows]) for name in ("key", "value")}
    return pa.table(columns)


class SinkRun:
    """A task with its partitions, and what a consumer group knows of it."""

    def __init__(
        self,
        session: SparkSession,
        config: Mapping[str, str],
        partitions: Sequence[TopicPartition] = (TopicPartition("orders", 0),),
        reporter: MemoryReporter | None = None,
    ) -> None:
        connector = JdbcSink()
        connector.context = MemoryConnectorContext("sink")
        connector.start(config)
        (given,) = connector.task_configs(1)
        self.partitions = list(partitions)
        self.context = MemorySinkTaskContext(given, partitions, reporter, session)
        self.task = JdbcSinkTask()
        self.task.context = self.context
        self.task.start(given)
        self.task.open(self.partitions)

    def put(self, rows: Sequence[Mapping[str, Any]], first: int = 0, partition: int = 0, **schemas: Schema) -> None:
        self.task.key_schema, self.task.value_schema = schemas.get("key"), schemas.get("value")
        self.task.put(records_of(rows, partition=partition, first=first))

    def commit(self, until: int, partition: int = 0) -> Mapping[TopicPartition, int]:
        return self.task.pre_commit({TopicPartition("orders", partition): until})

    def stop(self) -> None:
        self.task.close(self.partitions)
        self.task.stop()
