"""JdbcSource: tables and queries of a database into Kafka."""

from __future__ import annotations

import logging
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from headgate.api import (
    ConfigValue,
    ConnectError,
    ExactlyOnceSupport,
    Reach,
    ReachKind,
    SourceConnector,
    SourceTable,
    SourceTask,
)
from headgate.connectors.jdbc.database import Database, DatabaseLost, TableName
from headgate.connectors.jdbc.offsets import QUERY_PARTITION, Offset, check_change, partitions_of
from headgate.connectors.jdbc.query import BOTH, BULK, INCREMENTING, TIMESTAMP, Query
from headgate.connectors.jdbc.reader import TableReader
from headgate.connectors.jdbc.source_config import CONFIG, MODE, JdbcSourceConfig, validated
from headgate.connectors.jdbc.url import jdbc_reaches

log = logging.getLogger(__name__)

NUMBER: Final = "jdbc.task"
TASKS: Final = "jdbc.tasks"
"""Keys that the connector gives to its tasks."""

_IDLE_S: Final = 0.5


class JdbcSourceTask(SourceTask):
    """Looks for tables itself, and has those that its number says: no two tasks read the same one."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._database: Database | None = None
        self._readers: deque[TableReader] = deque()
        self._known: set[TableName] = set()
        self._next_search = 0.0
        self._failures = 0
        self._next_try = 0.0
        self._served = False

    def start(self, config: Mapping[str, str]) -> None:
        self._config = JdbcSourceConfig.of(config)
        self._number, self._tasks = int(config.get(NUMBER, "0")), int(config.get(TASKS, "1"))
        self._reaches = list(jdbc_reaches(config, ReachKind.READ))

    def poll(self) -> SourceTable | None:
        if self._stop.is_set() or self._wait_until(self._next_try):
            return None
        database = self._connected()
        try:
            found = self._poll(database)
        except DatabaseLost as lost:
            self._lose(lost)
            raise
        except Exception:
            if self._stop.is_set():
                return None  # the statement was cancelled
            self._forget()
            raise
        self._served, self._failures = True, 0
        return found

    def stop_requested(self) -> None:
        self._stop.set()
        database = self._database
        if database is not None:
            database.cancel()

    def stop(self) -> None:
        self._stop.set()
        self._forget()
        self._readers.clear()

    # --- the connection -----------------------------------------------------------------------------------------------

    def _connected(self) -> Database:
        session = self.context.spark()
        if self._database is not None and self._database.jvm is not session._jvm:
            self._forget()  # its JVM is gone
        if self._database is None:
            for reach in self._reaches:
                self.context.require(reach)
            self._database = Database(session, self._config.connection, read_only=True)
        return self._database

    def _forget(self) -> None:
        database, self._database = self._database, None
        for reader in self._readers:
            reader.forget()
        if database is not None:
            database.close()

    def _lose(self, lost: DatabaseLost) -> None:
        """A database that was there is waited for; one that was never there, only as long as the keys say."""
        self._forget()
        self._failures += 1
        connection = self._config.connection
        if not self._served and self._failures >= connection.attempts:
            raise ConnectError(f"After {self._failures} attempts: {lost}") from None
        self._next_try = time.monotonic() + (_IDLE_S if self._served else connection.backoff_s)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _poll(self, database: Database) -> SourceTable | None:
        if not any(reader.busy for reader in self._readers) and time.monotonic() >= self._next_search:
            self._search(database)
        for _ in range(len(self._readers)):
            reader = self._readers[0]
            if reader.busy or time.monotonic() >= reader.next_look:
                found = reader.batch(database)
                if not reader.busy:
                    reader.next_look = time.monotonic() + self._config.poll_s
                    self._readers.rotate(-1)
                    database.rollback()
                if found is not None:
                    return found
            else:
                self._readers.rotate(-1)
            if self._stop.is_set():
                return None
        looks = [reader.next_look for reader in self._readers]
        self._wait_until(min([*looks, self._next_search]))
        return None

    def _wait_until(self, moment: float) -> bool:
        """Whether there is still something left to wait for."""
        self._stop.wait(max(0.0, min(moment - time.monotonic(), _IDLE_S)))
        return time.monotonic() < moment

    def _search(self, database: Database) -> None:
        config = self._config
        self._next_search = time.monotonic() + config.table_poll_s
        if config.query is not None:
            if not self._readers:
                self._readers.append(self._reader(database, None))
            self._next_search = float("inf")
            return
        tables = {
            each
            for each in database.tables(config.catalog, config.schema, "%", config.types)
            if config.wants(each.full, each.qualified, each.name)
        }
        if not self._served:
            self._complain(tables)
        mine = {each for each in tables if self._is_mine(each)}
        for table in sorted(mine - self._known, key=lambda each: each.full):
            self._readers.append(self._reader(database, table))
            self._known.add(table)
        for table in self._known - mine:
            log.warning("Table %s is gone, and no longer read", table.full)
        self._readers = deque(each for each in self._readers if each.query.table in mine)
        self._known = mine
        database.rollback()

    def _complain(self, tables: Iterable[TableName]) -> None:
        names = {name for each in tables for name in (each.full, each.qualified, each.name)}
        missing = [name for name in self._config.whitelist if name not in names]
        if missing:
            raise ConnectError(
                f"The database has no table {', '.join(missing)}: create it, check table.whitelist, schema.pattern and"
                " table.types, or give the user the right to see it"
            )

    def _is_mine(self, table: TableName) -> bool:
        names = (table.full, table.qualified, table.name)
        listed = next((index for index, each in enumerate(self._config.whitelist) if each in names), None)
        share = zlib.crc32(table.qualified.encode()) if listed is None else listed
        return share % self._tasks == self._number

    def _reader(self, database: Database, table: TableName | None) -> TableReader:
        config = self._config
        partition, stored = self._stored(table)
        offset = Offset.of(stored)
        if config.mode in (TIMESTAMP, BOTH) and offset.micros is None and config.initial_ms is not None:
            now = config.initial_ms == -1
            offset = Offset(offset.incrementing, database.now_micros() if now else config.initial_ms * 1000)
        query = Query(
            database.dialect,
            config.mode,
            table,
            config.query,
            config.incrementing,
            config.timestamps,
            config.suffix,
            config.quoting,
        )
        topic = config.prefix + (table.name if table else "")
        reader = TableReader(config, query, topic, None if config.mode == BULK else partition, offset)
        reader.check(database)
        return reader

    def _stored(self, table: TableName | None) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
        """Where the offset of a table is, or will be, and that offset."""
        partitions = [QUERY_PARTITION] if table is None else partitions_of(table)
        found = self.context.offset_reader.offsets(partitions)
        for partition, offset in zip(partitions, found, strict=True):
            if offset is not None:
                return partition, offset
        return partitions[0], None


class JdbcSource(SourceConnector):
    """Reads tables or a query of a database: all of it again and again, or what is new."""

    aliases = ("headgate.connectors.JdbcSource", "io.confluent.connect.jdbc.JdbcSourceConnector")
    config = CONFIG
    task_class: ClassVar[type[JdbcSourceTask]] = JdbcSourceTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        return jdbc_reaches(config, ReachKind.READ)

    def start(self, config: Mapping[str, str]) -> None:
        self._raw = dict(config)
        self._parsed = JdbcSourceConfig.of(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Tables are dealt out by their place in the white list, else by their names."""
        count = 1 if self._parsed.query else min(max_tasks, len(self._parsed.whitelist) or max_tasks)
        return [{**self._raw, NUMBER: str(number), TASKS: str(count)} for number in range(count)]

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        for partition, offset in offsets:
            if offset is not None:  # anything may be reset
                check_change(partition, offset)
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        # Rows of one timestamp have one offset: of such a group, some may be delivered again.
        exact = config.get(MODE) in (INCREMENTING, BOTH)
        return ExactlyOnceSupport.SUPPORTED if exact else ExactlyOnceSupport.UNSUPPORTED
