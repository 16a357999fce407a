"""Database: a connection in the driver JVM, through py4j, and what its errors mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError

from headgate.api import ConnectError, DataError, RetriableError
from headgate.connectors.jdbc.connection import ConnectionConfig
from headgate.connectors.jdbc.dialect import Dialect, Family

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOGIN_S: Final = "15"
_WAITS: Final[Mapping[Family, Mapping[str, str]]] = {
    Family.POSTGRESQL: {"connectTimeout": _LOGIN_S, "loginTimeout": _LOGIN_S, "tcpKeepAlive": "true"},
    Family.MYSQL: {"connectTimeout": f"{_LOGIN_S}000", "tcpKeepAlive": "true"},
    Family.SQLITE: {"busy_timeout": "10000"},
}
_READ_ONLY: Final = {"open_mode": "1"}
"""For SQLite, which is to be told before it opens a file, or makes one."""
_WRITING: Final = {"transaction_mode": "IMMEDIATE"}
"""SQLite knows no locks on rows: who writes is alone from the beginning."""
_BUSY: Final = (5, 6)
_MISFIT: Final = (18, 19, 20)
"""Of SQLite's codes: too big, constraint, mismatch."""
_NO_STATE: Final = ""


class DatabaseLost(RetriableError):
    """The connection is gone, or the database asks to try again."""


class DatabaseRefused(ConnectError):
    """It does not let us in: wrong password, no such database."""


class DataRefused(DataError):
    """It does not take these values: a constraint, a length, a type."""


class StatementRefused(ConnectError):
    """It does not understand or allow a statement: a missing table or column, a missing right."""

    no_table = False
    """It was a table that is missing."""


@dataclass(frozen=True, slots=True)
class ColumnFact:
    """What a driver says of a column of a result."""

    name: str
    jdbc_type: int
    type_name: str
    precision: int = 0
    scale: int = 0
    nullable: bool = True
    signed: bool = True
    auto_increment: bool = False


@dataclass(frozen=True, slots=True)
class TableName:
    catalog: str | None
    schema: str | None
    name: str

    @property
    def full(self) -> str:
        """As Confluent's offsets have it."""
        return ".".join(filter(None, (self.catalog, self.schema, self.name)))

    @property
    def qualified(self) -> str:
        return f"{self.schema}.{self.name}" if self.schema else self.name


class Database:
    """Opened by the first call that needs it. Used by one thread at a time, but for `cancel`."""

    def __init__(self, session: SparkSession, config: ConnectionConfig, read_only: bool) -> None:
        self.jvm: Any = session._jvm
        self._gateway: Any = session.sparkContext._gateway
        self.session = session
        self.config = config
        self.dialect: Dialect = config.url.dialect
        self._read_only = read_only
        self._connection: Any = None
        self._at_rest = False
        """It commits by itself until there is something to do."""
        self._statement: Any = None

    # --- the connection -----------------------------------------------------------------------------------------------

    @property
    def connection(self) -> Any:
        if self._connection is None:
            with self.told(opening=True):
                self._connection = self._open()
        if self._at_rest:
            with self.told():
                self._connection.setAutoCommit(False)
            self._at_rest = False
        return self._connection

    def _open(self) -> Any:
        properties = self.jvm.java.util.Properties()
        for name, value in self.properties.items():
            properties.setProperty(name, value)
        connection = self._driver.connect(self.config.url.text, properties)
        self._at_rest = True
        if self._read_only and self.dialect.family is not Family.SQLITE:
            connection.setReadOnly(True)
        return connection

    @property
    def properties(self) -> Mapping[str, str]:
        """What the driver is told, here and on executors."""
        of_sqlite = _READ_ONLY if self._read_only else _WRITING
        more = of_sqlite if self.dialect.family is Family.SQLITE else {}
        return {**_WAITS[self.dialect.family], **more, **self.config.properties}

    @cached_property
    def _driver(self) -> Any:
        registry = self.jvm.org.apache.spark.sql.execution.datasources.jdbc.DriverRegistry
        try:
            registry.register(self.dialect.driver)
        except Py4JJavaError:
            raise ConnectError(
                f"The JDBC driver of {self.dialect.title} is missing: put the driver's jar into spark.jars of the"
                f" worker file, or {self.dialect.jar}:<version> into spark.jars.packages, and start the worker again"
            ) from None
        return registry.get(self.dialect.driver)

    def close(self) -> None:
        connection, self._connection, self._statement = self._connection, None, None
        self._at_rest = False
        if connection is not None:
            with suppress(Exception):  # it may be gone already, or its JVM
                connection.close()

    def cancel(self) -> None:
        """Ends a statement that is under way; from any thread."""
        statement = self._statement
        if statement is not None:
            with suppress(Exception):
                statement.cancel()

    def commit(self) -> None:
        with self.told():
            self.connection.commit()
            self._rest()

    def rollback(self) -> None:
        """Also ends what only reads: a database keeps old rows for it. Closes the connection where that fails."""
        if self._connection is not None:
            try:
                if not self._at_rest:
                    self._connection.rollback()
                    self._rest()
            except Py4JJavaError:
                self.close()

    def _rest(self) -> None:
        # SQLite's driver begins the next transaction, with its lock, right after the last.
        if self.dialect.family is Family.SQLITE:
            self._connection.setAutoCommit(True)
            self._at_rest = True

    # --- statements ---------------------------------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """How many rows it changed."""
        with self.told(), self._prepared(sql, parameters) as statement:
            return int(statement.executeUpdate())

    def rows(self, sql: str, parameters: Sequence[Any] = (), *, width: int) -> list[tuple[Any, ...]]:
        """Few rows, cell by cell, as text and numbers."""
        with self.told(), self._prepared(sql, parameters) as statement:
            found, answer = [], statement.executeQuery()
            while answer.next():
                found.append(tuple(answer.getObject(number + 1) for number in range(width)))
            return found

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """What is done within is undone, and nothing before it, when it raises."""
        with self.told():
            mark = self.connection.setSavepoint()
        try:
            yield
        except DataRefused:
            with self.told():
                self.connection.rollback(mark)
            raise
        with self.told():
            self.connection.releaseSavepoint(mark)

    def now_micros(self) -> int:
        return int(self.rows(self.dialect.now, width=1)[0][0])

    @contextmanager
    def _prepared(self, sql: str, parameters: Sequence[Any]) -> Iterator[Any]:
        statement = self._statement = self.connection.prepareStatement(sql)
        try:
            self._bind(statement, parameters)
            yield statement
        finally:
            self._statement = None
            with suppress(Exception):
                statement.close()

    def _bind(self, statement: Any, parameters: Sequence[Any]) -> None:
        for number, value in enumerate(parameters, 1):
            if isinstance(value, Instant):
                zone = self.jvm.java.util.TimeZone.getTimeZone(self.config.time_zone)
                statement.setTimestamp(number, value.java(self.jvm), self.jvm.java.util.Calendar.getInstance(zone))
            elif isinstance(value, int):
                statement.setLong(number, value)
            else:
                statement.setString(number, value)

    def query(self, sql: str, parameters: Sequence[Any], fetch_size: int) -> tuple[Any, Any]:
        """Statement and result, for a `ResultCursor`."""
        with self.told():
            statement = self._statement = self.connection.prepareStatement(sql)
            # MySQL's driver reads row by row only for this one number; otherwise all of them at once.
            statement.setFetchSize(-(2**31) if self.dialect.family is Family.MYSQL else fetch_size)
            self._bind(statement, parameters)
            return statement, statement.executeQuery()

    # --- what is there ------------------------------------------------------------------------------------------------

    def tables(self, catalog: str | None, schema: str | None, name: str, types: Sequence[str]) -> list[TableName]:
        with self.told():
            kinds = self._gateway.new_array(self.jvm.java.lang.String, len(types))
            for number, kind in enumerate(types):
                kinds[number] = kind
            found, answer = [], self.connection.getMetaData().getTables(catalog, schema, name, kinds)
            while answer.next():
                names = (answer.getString("TABLE_CAT"), answer.getString("TABLE_SCHEM"), answer.getString("TABLE_NAME"))
                found.append(TableName(names[0] or None, names[1] or None, names[2]))
            return found

    def facts(self, sql: str) -> list[ColumnFact]:
        """Of the columns of a query, which is not run to its end."""
        with self.told(), self._prepared(sql, ()) as statement:
            return facts_of(statement.executeQuery().getMetaData())

    # --- errors -------------------------------------------------------------------------------------------------------

    @contextmanager
    def told(self, opening: bool = False) -> Iterator[None]:
        """Turns what Java raises into errors that say what to do. The end of the JVM comes out as it is."""
        try:
            yield
        except Py4JJavaError as error:
            found = self._sql_exception(error.java_exception)
            if found is None:
                first = str(error.java_exception).partition("\n")[0]
                raise ConnectError(f"{self.config.url.shown}: {self.config.hidden(first)}") from None
            problem = self._problem(found, opening)
            if isinstance(problem, DatabaseLost):
                self.close()
            raise problem from None

    def _sql_exception(self, error: Any) -> Any:
        gateway = self._gateway
        for _ in range(8):
            if error is None or is_instance_of(gateway, error, "java.sql.SQLException"):
                break
            error = error.getCause()
        if error is not None and is_instance_of(gateway, error, "java.sql.BatchUpdateException"):
            return error.getNextException() or error
        return error

    def _problem(self, error: Any, opening: bool) -> ConnectError:
        state, code = error.getSQLState() or _NO_STATE, int(error.getErrorCode())
        said = self.config.hidden(" ".join(str(error.getMessage()).split()))
        shown = f"{self.config.url.shown}: {said}"
        if self.dialect.family is Family.SQLITE:
            code &= 0xFF
            if code in _BUSY:
                return DatabaseLost(f"The database is locked by another writer: {shown}")
            if code in _MISFIT:
                return DataRefused(said)
            if opening:
                return DatabaseRefused(f"The database cannot be opened, check its file and the rights on it: {shown}")
            return _refused(f"SQLite refuses a statement: {shown}", "no such table" in said)
        if state.startswith(("28", "3D")):
            return DatabaseRefused(f"The database does not let us in, check {_LOGIN_KEYS}: {shown}")
        if state.startswith(("08", "57P", "53", "58")) or (opening and not state):
            return DatabaseLost(f"The database cannot be reached, check connection.url and the network: {shown}")
        if state.startswith(("40", "55P03")):
            return DatabaseLost(f"The database asks to try again: {shown}")
        if state.startswith(("22", "23")):
            return DataRefused(said)
        return _refused(f"{self.dialect.title} refuses a statement: {shown}", state in _NO_TABLE)


_NO_TABLE: Final = ("42P01", "42S02")


def _refused(message: str, no_table: bool) -> StatementRefused:
    refused = StatementRefused(message)
    refused.no_table = no_table
    return refused


_LOGIN_KEYS: Final = "connection.user, connection.password and the database in connection.url"


@dataclass(frozen=True, slots=True)
class Instant:
    """A timestamp on its way into a statement."""

    micros: int

    def java(self, jvm: Any) -> Any:
        made = jvm.java.sql.Timestamp(self.micros // 1000)
        made.setNanos(self.micros % 1_000_000 * 1000)
        return made


def facts_of(metadata: Any) -> list[ColumnFact]:
    return [
        ColumnFact(
            name=metadata.getColumnLabel(number),
            jdbc_type=metadata.getColumnType(number),
            type_name=metadata.getColumnTypeName(number) or "",
            precision=metadata.getPrecision(number),
            scale=metadata.getScale(number),
            nullable=metadata.isNullable(number) != 0,
            signed=metadata.isSigned(number),
            auto_increment=metadata.isAutoIncrement(number),
        )
        for number in range(1, metadata.getColumnCount() + 1)
    ]
