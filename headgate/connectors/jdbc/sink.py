"""JdbcSink: records into tables of a database."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import (
    ConfigValue,
    ConnectError,
    DataError,
    Form,
    Reach,
    ReachKind,
    SinkConnector,
    TableSinkTask,
    TopicPartition,
)
from headgate.connectors.jdbc.cells import parameters_of
from headgate.connectors.jdbc.changes import COLUMNS, OFFSET, PARTITION, TOPIC, Change, Put, Sorted, changes_of
from headgate.connectors.jdbc.database import Database, DatabaseLost, DataRefused
from headgate.connectors.jdbc.dialect import Family
from headgate.connectors.jdbc.merge import DELETE, Merge
from headgate.connectors.jdbc.offset_ledger import OffsetLedger, PartitionTaken
from headgate.connectors.jdbc.sink_config import CONFIG, JdbcSinkConfig, validated
from headgate.connectors.jdbc.target import Targets
from headgate.connectors.jdbc.url import jdbc_reaches

NAME: Final = "name"
_GATHERED_ROWS: Final = 100_000
"""With exactly.once: so many are held before offsets are asked to be committed."""
_LETTERS_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A put of one topic, whose table is there."""

    put: Put
    table: str
    found: Sorted


class JdbcSinkTask(TableSinkTask):
    """Without exactly.once each put is a transaction. With it, puts are gathered, and written in one transaction with
    the offsets behind them when these are to be committed; the database says where to go on."""

    columns = COLUMNS
    form = Form.TYPED

    def __init__(self) -> None:
        self._database: Database | None = None
        self._failures = 0
        self._held: set[TopicPartition] = set()
        self._gathered: list[Put] = []
        self._superseded: PartitionTaken | None = None
        self._stopping = threading.Event()

    def start(self, config: Mapping[str, str]) -> None:
        self._config = JdbcSinkConfig.of(config)
        self._reaches = list(jdbc_reaches(config, ReachKind.WRITE))
        self._ledger = OffsetLedger(config.get(NAME, ""), self._config.ledger) if self._config.exactly_once else None

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self._held.update(partitions)
        if self._ledger is not None:
            attempts = self._config.connection.attempts
            for number in range(1, attempts + 1):
                try:
                    self._begin(self._ledger, partitions)
                    return
                except DatabaseLost as lost:
                    if number == attempts:
                        raise ConnectError(f"After {attempts} attempts: {lost}") from None
                    if self._stopping.wait(self._config.connection.backoff_s):
                        raise

    def put(self, table: pa.Table) -> None:
        if self._superseded is not None:
            raise self._superseded
        if not table.num_rows:
            return
        given = Put(table, self.key_schema, self.value_schema)
        if self._ledger is None:
            with self._retried():
                self._write(self._prepared([given]))
                self._connected().commit()
            return
        self._gathered.append(given)
        if sum(each.table.num_rows for each in self._gathered) >= _GATHERED_ROWS:
            self.context.request_commit()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        if self._ledger is None:
            return offsets
        held = {where: until for where, until in offsets.items() if where in self._held}
        try:
            with self._retried():
                return self._commit(self._ledger, held)
        except Exception as error:
            if isinstance(error, PartitionTaken):
                self._superseded = error
            elif not isinstance(error, DatabaseLost):
                with suppress(ConnectError):  # then it goes on from what was let pass last, which is as good
                    self._begin(self._ledger, sorted(self._held))
            raise
        finally:
            self._gathered.clear()

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        self._held.difference_update(partitions)
        gone = dict.fromkeys(partitions, (0, (1 << 63) - 1))
        kept = (each.where(pc.invert(_within(each.table, gone))) for each in self._gathered)
        self._gathered = [each for each in kept if each.table.num_rows]

    def stop_requested(self) -> None:
        self._stopping.set()

    def stop(self) -> None:
        self._gathered.clear()
        self._forget()

    # --- the connection -----------------------------------------------------------------------------------------------

    def _connected(self) -> Database:
        session = self.context.spark()
        if self._database is not None and self._database.jvm is not session._jvm:
            self._forget()  # its JVM is gone
        if self._database is None:
            for reach in self._reaches:
                self.context.require(reach)
            self._database = Database(session, self._config.connection, read_only=False)
            self._targets = Targets(self._database, self._config.create, self._config.evolve)
        return self._database

    def _forget(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    @contextmanager
    def _retried(self) -> Iterator[None]:
        """Undoes what was begun and failed; counts how often the database was not there."""
        try:
            yield
        except DatabaseLost as lost:
            self._forget()
            self._failures += 1
            if self._failures > self._config.retries:
                raise ConnectError(
                    f"After {self._failures} tries (max.retries={self._config.retries}): {lost}"
                ) from None
            self.context.timeout(self._config.backoff_ms)
            raise
        except Exception:
            database = self._database
            if database is not None:
                self._targets.forget()  # a table may have been changed by others
                database.rollback()
            raise
        self._failures = 0

    # --- with offsets in the database ---------------------------------------------------------------------------------

    def _begin(self, ledger: OffsetLedger, partitions: Sequence[TopicPartition]) -> None:
        database = self._connected()
        try:
            ledger.make(database)
            places = ledger.take(database, partitions)
            database.commit()
        except DataRefused as refused:
            database.rollback()  # another task made the same row at the same moment
            raise DatabaseLost(str(refused)) from None
        except DatabaseLost:
            self._forget()
            raise
        except Exception:
            database.rollback()
            raise
        for where, following in places.items():
            if following is not None:
                self.context.offset(where, following)

    def _commit(self, ledger: OffsetLedger, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        database = self._connected()
        if not self._gathered and not offsets:
            return offsets
        prepared = self._prepared(self._gathered)
        following = {where: ledger.lock(database, where) for where in sorted(offsets)}
        ranges = {where: (following[where] or 0, until) for where, until in offsets.items()}
        self._write([self._narrowed(each, ranges) for each in prepared])
        for where, (after, until) in ranges.items():
            if until > after or following[where] is None:
                ledger.move(database, where, until)
        database.commit()
        return offsets

    # --- writing ------------------------------------------------------------------------------------------------------

    def _prepared(self, puts: Iterable[Put]) -> list[_Prepared]:
        """With tables and columns there, before the transaction: making them would end it in some databases."""
        self._connected()
        found = [
            _Prepared(of_topic, self._config.table(topic), changes_of(of_topic, self._config))
            for put in puts
            for topic, of_topic in put.by_topic()
        ]
        for each in found:
            for change in each.found.changes:
                if change.deletes:
                    self._targets.look_for(each.table)
                else:
                    self._targets.columns(each.table, change.wanted, change.keys)
        return found

    def _narrowed(self, prepared: _Prepared, ranges: Mapping[TopicPartition, tuple[int, int]]) -> _Prepared:
        """What of it belongs to these offsets: all, as a rule."""
        put = prepared.put.where(_within(prepared.put.table, ranges))
        return prepared if put is prepared.put else replace(prepared, put=put, found=changes_of(put, self._config))

    def _write(self, prepared: Sequence[_Prepared]) -> None:
        database = self._connected()
        letters: list[Future[None]] = []
        for each in prepared:
            letters += [self._refuse(each.put, row, error) for row, error in each.found.bad]
            for change in each.found.changes:
                letters += self._change(database, each.table, change)
        for letter in letters:
            letter.result(_LETTERS_S)

    def _change(self, database: Database, table: str, change: Change) -> Iterator[Future[None]]:
        if change.deletes and not self._targets.there(table):
            return
        facts = self._targets.columns(table, change.wanted, change.keys)
        names = [each.name for each in change.wanted]
        binary = frozenset(each.name for each in change.wanted if each.kind == "binary")
        merge = Merge(database.dialect, self._targets.quoted(table), names, change.keys, facts, binary)
        sql = merge.sql(DELETE if change.deletes else self._config.insert_mode)
        size = self._config.batch_rows
        for begin in range(0, len(change.rows), size):
            yield from self._rows(database, sql, change, begin, min(begin + size, len(change.rows)))

    def _rows(self, database: Database, sql: str, change: Change, begin: int, end: int) -> Iterator[Future[None]]:
        """Those that the database does not take are found by halves."""
        columns = [array.slice(begin, end - begin) for array in change.columns.values()]
        parameters = parameters_of(columns, database.dialect.family, self._config.connection.time_zone)
        try:
            with database.attempt():
                database.execute(sql, parameters)
        except DataRefused as refused:
            if end - begin == 1:
                yield self._refuse(change.put, change.rows[begin].as_py(), refused)
                return
            middle = (begin + end) // 2
            yield from self._rows(database, sql, change, begin, middle)
            yield from self._rows(database, sql, change, middle, end)

    def _refuse(self, put: Put, row: int, error: DataError) -> Future[None]:
        record = put.record(row)
        if self.context.reporter is None:
            place = f"{record.original_topic}, partition {record.original_partition}, offset {record.original_offset}"
            raise ConnectError(
                f"The record of topic {place} cannot be written: {error}. Mend the table or what writes the topic; or"
                " set errors.tolerance=all with a dead letter queue or errors.log.enable=true, to leave such ones out"
            )
        return self.context.reporter.report(record, error)


def _within(table: pa.Table, ranges: Mapping[TopicPartition, tuple[int, int]]) -> pa.Array:
    """Which rows belong to these offsets."""
    if any(table.column(name).null_count for name in (TOPIC, PARTITION, OFFSET)):
        raise ConnectError(
            "A record does not say which one of Kafka it was: a transform made it anew instead of changing it"
        )
    found = pa.array([False] * table.num_rows)
    for where, (after, until) in ranges.items():
        offsets = table.column(OFFSET)
        there = pc.and_(pc.equal(table.column(TOPIC), where.topic), pc.equal(table.column(PARTITION), where.partition))
        in_range = pc.and_(pc.greater_equal(offsets, after), pc.less(offsets, until))
        found = pc.or_(found, pc.and_(there, in_range).combine_chunks())
    return found


class JdbcSink(SinkConnector):
    """Writes records into tables of a database: inserts, upserts, updates and deletes."""

    aliases = ("headgate.connectors.JdbcSink", "io.confluent.connect.jdbc.JdbcSinkConnector")
    config = CONFIG
    task_class: ClassVar[type[JdbcSinkTask]] = JdbcSinkTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Iterable[Reach]:
        return jdbc_reaches(config, ReachKind.WRITE)

    def start(self, config: Mapping[str, str]) -> None:
        self._raw = {**config, NAME: self.context.name}
        self._family = JdbcSinkConfig.of(config).connection.url.dialect.family

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One for SQLite, which has one writer."""
        return [self._raw] * (1 if self._family is Family.SQLITE else max_tasks)

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        return validated(config)

    def alter_offsets(self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
        """With exactly.once the database says where to go on: there they are changed, in one transaction."""
        parsed = JdbcSinkConfig.of(config)
        if parsed.exactly_once:
            ledger = OffsetLedger(self.context.name, parsed.ledger)
            with closing(Database(self.context.spark(), parsed.connection, read_only=False)) as database:
                ledger.make(database)
                ledger.alter(database, offsets)
                database.commit()
        return True
