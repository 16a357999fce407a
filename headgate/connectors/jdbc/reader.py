"""TableReader: one table or query of a source, read batch by batch.

As a rule through a cursor in the driver JVM: a look that finds nothing takes a millisecond. A table that is far behind
is read by executors, in ranges of its incrementing column, where that is wished.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import ConnectError, SourceTable
from headgate.connectors.jdbc.columns import ResultColumns, instants
from headgate.connectors.jdbc.cursor import ResultCursor
from headgate.connectors.jdbc.database import ColumnFact, Database, Instant
from headgate.connectors.jdbc.offsets import Offset
from headgate.connectors.jdbc.query import BOTH, BULK, INCREMENTING, TIMESTAMP, Query
from headgate.connectors.jdbc.source_config import JdbcSourceConfig

log = logging.getLogger(__name__)

_WHOLE: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT")


@dataclass(eq=False)
class TableReader:
    config: JdbcSourceConfig
    query: Query
    topic: str
    partition: Mapping[str, Any] | None
    offset: Offset
    next_look: float = 0.0
    _cursor: ResultCursor | None = None
    _columns: ResultColumns | None = None
    _given_to: int | None = None
    """The last timestamp that the open cursor has given."""
    _behind: bool = True
    """Executors may be of use."""
    _ready: deque[SourceTable] = field(default_factory=deque)
    _told: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        return f"Table {self.query.table.full}" if self.query.table else "The query"

    @property
    def busy(self) -> bool:
        """There is more to be had without another look."""
        return self._cursor is not None or bool(self._ready)

    def forget(self) -> None:
        """The connection is gone: what was not given yet is read again."""
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.abandon()
        if self._ready:
            self._ready.clear()
            self._behind = True

    def close(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is not None:
            cursor.close()

    def check(self, database: Database) -> None:
        """Finds the columns that offsets are made of. Raises ConnectError where they are missing, or may be null."""
        if self.query.mode == BULK:
            return
        facts = {fact.name: fact for fact in database.facts(self.query.shape())}
        number = self.query.incrementing
        if number is None and self.query.mode in (INCREMENTING, BOTH):
            counted = [fact.name for fact in facts.values() if fact.auto_increment]
            if len(counted) != 1:
                raise ConnectError(
                    f"{self.title} has {len(counted)} columns that the database counts up: set incrementing.column.name"
                )
            number = counted[0]
        found = {name: self._column(name, facts) for name in filter(None, (number, *self.query.timestamps))}
        times = [found[name] for name in self.query.timestamps]
        self.query = replace(
            self.query, incrementing=found[number].name if number else None, timestamps=[each.name for each in times]
        )
        if self.config.non_null and self.query.table is not None:
            for group in ([found[number]] if number else [], times):
                if group and all(fact.nullable for fact in group):
                    raise ConnectError(_NULLABLE.format(self.title, ", ".join(fact.name for fact in group)))

    def _column(self, name: str, facts: Mapping[str, ColumnFact]) -> ColumnFact:
        for fact in facts.values():
            if fact.name == name or (not self.query.quoting and fact.name.lower() == name.lower()):
                return fact
        raise ConnectError(f"{self.title} has no column {name}; it has {', '.join(facts)}")

    # --- one batch ----------------------------------------------------------------------------------------------------

    def batch(self, database: Database) -> SourceTable | None:
        """The next rows; None when there are no more for now."""
        if self._ready:
            return self._given(self._ready.popleft())
        if self._cursor is None and self._behind:
            self._behind = False
            if self._load(database):
                self._behind = True
                return self._given(self._ready.popleft())
        return self._next(database)

    def _given(self, table: SourceTable) -> SourceTable:
        if table.source_offset is not None:
            self.offset = Offset.of(table.source_offset)
        return table

    def _next(self, database: Database) -> SourceTable | None:
        cursor = self._cursor
        if cursor is None:
            cursor = self._begun(database)
            if cursor is None:
                return None
        read = cursor.next()
        more = cursor.more()
        if not more:
            self.close()
        assert self._columns is not None
        return self._given(self._table(self._columns, read, more))

    def _begun(self, database: Database) -> ResultCursor | None:
        """A cursor that has rows."""
        end = None
        if self.query.mode in (TIMESTAMP, BOTH):
            end = Instant(database.now_micros() - self.config.delay_ms * 1000)
        sql, parameters = self.query.after(self.offset, end)
        cursor = self._cursor = ResultCursor(database, sql, parameters, self.config.batch_rows)
        self._columns = columns = self._shaped(cursor.facts(), database)
        cursor.begin(columns.spark, self.config.batch_rows)
        if cursor.more():
            self._given_to = self.offset.micros
            return cursor
        self.close()
        return None

    def _shaped(self, facts: list[ColumnFact], database: Database) -> ResultColumns:
        name = self.query.table.name if self.query.table else None
        columns = ResultColumns.of(facts, database.dialect.family, self.config.mapping, name)
        left_out = frozenset(columns.left_out)
        if left_out - self._told:
            log.warning("%s: columns of types that are not known are left out: %s", self.title, ", ".join(left_out))
            self._told = left_out
        return columns

    # --- tables with offsets ------------------------------------------------------------------------------------------

    def _table(self, columns: ResultColumns, read: pa.Table, more: bool) -> SourceTable:
        structs = columns.structs(read, self.config.connection.time_zone)
        return SourceTable(
            topic=self.topic,
            table=pa.table({"value": structs}),
            source_partition=self.partition,
            source_offset=None if self.query.mode == BULK else self._after(read, more).stored() or None,
            value_schema=columns.schema,
        )

    def _after(self, read: pa.Table, more: bool) -> Offset:
        """Where to go on after these rows. Rows of one timestamp may come in two batches: in timestamp mode the offset
        of the first is that of the timestamp before, so that a crash in between repeats rows instead of losing them."""
        number = None
        if self.query.incrementing and self.query.mode in (INCREMENTING, BOTH):
            number = int(read.column(self.query.incrementing)[-1].as_py())
        if self.query.mode == INCREMENTING:
            return Offset(number)
        times = self._times(read)
        last = times[-1]
        if self.query.mode == BOTH:
            return Offset(number, last)
        if more:
            known = (self.offset.micros, self._given_to, *times)
            self._given_to = last
            return Offset(None, max((each for each in known if each is not None and each < last), default=None))
        return Offset(None, last)

    def _times(self, read: pa.Table) -> list[int]:
        zone = self.config.connection.time_zone
        columns = [instants(read.column(name).combine_chunks(), zone) for name in self.query.timestamps]
        found: list[int] = pc.coalesce(*columns).cast(pa.int64()).to_pylist()
        return found

    # --- far behind ---------------------------------------------------------------------------------------------------

    def _load(self, database: Database) -> bool:
        """Whether there was so much to read that executors have read some of it."""
        if self.config.load_partitions < 2 or self.query.mode != INCREMENTING or self.query.table is None:
            return False
        columns = self._shaped(database.facts(self.query.shape()), database)
        kind = next((each.spark for each in columns.all if each.name == self.query.incrementing), "")
        if kind not in _WHOLE or self.query.suffix:
            return False
        ends = list(self._ends(database))
        database.rollback()
        if len(ends) < 2:
            return False
        conditions = [
            self.query.between(after, until)
            for after, until in zip([self.offset.incrementing, *ends], ends, strict=False)
        ]
        read = self._by_executors(database, columns, conditions)
        if read is None or not read.num_rows:
            return False
        size = self.config.batch_rows
        pieces = (read.slice(begin, size) for begin in range(0, read.num_rows, size))
        self._ready.extend(self._table(columns, piece, more=True) for piece in pieces)
        log.info("%s: executors have read %d rows, up to %d", self.title, read.num_rows, ends[-1])
        return True

    def _ends(self, database: Database) -> Iterator[int]:
        """Of as many full ranges as there are, at most `load.partitions`."""
        after, size = self.offset.incrementing, max(1, self.config.load_rows // self.config.load_partitions)
        for _ in range(self.config.load_partitions):
            sql, parameters = self.query.bound(after, size)
            ((until, count),) = database.rows(sql, parameters, width=2)
            if count < size:
                return
            after = int(until)
            yield after

    def _by_executors(self, database: Database, columns: ResultColumns, conditions: list[str]) -> pa.Table | None:
        connection = database.config
        # "url" and "dbtable" are Spark's own words; what else is given goes to the driver.
        properties = {
            **database.properties,
            "driver": database.dialect.driver,
            "fetchsize": str(self.config.batch_rows),
            "customSchema": columns.spark,
        }
        try:
            frame = database.session.read.jdbc(
                connection.url.text, self.query.source, predicates=conditions, properties=properties
            )
            return frame.toArrow().sort_by(self.query.incrementing)
        except Exception as error:
            if not _from_java(error):
                raise
            # The cursor tells better what is wrong, if it is not only Spark that cannot read this.
            log.warning(
                "%s: executors could not read it, the worker goes on: %s",
                self.title,
                connection.hidden(str(error).partition("\n")[0]),
            )
            return None


_NULLABLE: Final = (
    "{}: column {} may be null, and rows without it would never be read: declare it NOT NULL, or set"
    " validate.non.null=false"
)


def _from_java(error: Exception) -> bool:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    return isinstance(error, Py4JJavaError | PySparkException)
