"""ResultCursor: rows of a query, never one by one, but as Arrow batches that the JVM makes, as Spark itself would."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from headgate.connectors.jdbc.database import ColumnFact, Database, facts_of

_BATCH_BYTES: Final = 64 * 1024 * 1024


class ResultCursor:
    """An open result. Batches are Arrow tables of the Spark types that the reader wants. A thread of the JVM makes them
    and sends them through a socket of its own, where one or two wait: what py4j hands over is text, and costs ten times
    as much."""

    def __init__(self, database: Database, sql: str, parameters: Sequence[Any], fetch_size: int) -> None:
        self._database = database
        self._statement, self._result = database.query(sql, parameters, fetch_size)
        self._server: Any = None
        self._stream: Any = None
        self._socket: Any = None
        self._read: bytes | None = None

    def facts(self) -> list[ColumnFact]:
        with self._database.told():
            return facts_of(self._result.getMetaData())

    def begin(self, spark_types: str, batch_rows: int) -> None:
        """To be called once before `next`; `spark_types` is a schema as DDL, column by column."""
        from pyspark.util import local_connect_and_auth

        jvm = self._database.jvm
        schema = jvm.org.apache.spark.sql.types.StructType.fromDDL(spark_types)
        dialect = jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(self._database.config.url.text)
        metrics = jvm.org.apache.spark.executor.InputMetrics()
        utils = _scala(jvm, "org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils")
        arrow = _scala(jvm, "org.apache.spark.sql.execution.arrow.ArrowConverters")
        python = _scala(jvm, "org.apache.spark.api.python.PythonRDD")
        with self._database.told():
            rows = utils.resultSetToSparkInternalRows(self._result, dialect, schema, metrics, jvm.scala.Option.empty())
            batches = arrow.toBatchWithSchemaIterator(rows, schema, batch_rows, _BATCH_BYTES, "UTC", False, False)
            where, secret, self._server = python.serveIterator(batches, "serve-jdbc")
        self._stream, self._socket = local_connect_and_auth(where, secret)
        self._socket.settimeout(None)  # a query may take its time

    def more(self) -> bool:
        if self._read is None:
            self._read = self._next()
        return bool(self._read)

    def next(self) -> pa.Table:
        """To be called while there are more."""
        data, self._read = self._read if self._read is not None else self._next(), None
        return pa.ipc.open_stream(data).read_all()

    def _next(self) -> bytes:
        """Empty at the end."""
        with suppress(OSError):  # then it is asked why
            length = self._stream.read(4)
            if len(length) == 4:
                size = int.from_bytes(length, "big")
                data: bytes = self._stream.read(size)
                if len(data) == size:
                    return data
        with self._database.told():
            self._server.getResult()  # raises what the thread has met
        return b""

    def close(self) -> None:
        """Ends what the database keeps for it, too."""
        self.abandon()
        with suppress(Exception):
            self._statement.close()
        self._database.rollback()

    def abandon(self) -> None:
        """Of a connection that is gone, or will be."""
        for each in (self._stream, self._socket):
            with suppress(Exception):  # its JVM may be gone as well
                if each is not None:
                    each.close()


def _scala(jvm: Any, name: str) -> Any:
    """A Scala object with methods that are public in Java only."""
    return jvm.java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)
