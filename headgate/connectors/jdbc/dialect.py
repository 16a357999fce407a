"""Dialect: what differs between databases, as tables and small texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Family(Enum):
    POSTGRESQL = "postgresql"
    SQLITE = "sqlite"
    MYSQL = "mysql"


@dataclass(frozen=True, slots=True)
class Dialect:
    family: Family
    title: str
    driver: str
    """The class of the driver."""
    jar: str
    """Where the driver is, for those who lack it."""
    quote: str
    now: str
    """Asks for the database's time, in microseconds since 1970."""
    types: Mapping[str, str]
    """What columns are made of, by the names that `cells.py` has for Arrow's types."""
    harmless: frozenset[str]
    """Parameters of a URL that make a driver neither load classes nor open files."""
    files: frozenset[str] = frozenset()
    """Parameters that name files to read."""

    def quoted(self, *names: str | None) -> str:
        """One identifier, qualified by those before it; None stands for nothing."""
        mark = self.quote
        return ".".join(f"{mark}{name.replace(mark, mark * 2)}{mark}" for name in names if name)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


POSTGRESQL: Final = Dialect(
    Family.POSTGRESQL,
    "PostgreSQL",
    "org.postgresql.Driver",
    "org.postgresql:postgresql",
    '"',
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
    {
        "int8": "SMALLINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "REAL",
        "double": "DOUBLE PRECISION", "bool": "BOOLEAN", "string": "TEXT", "binary": "BYTEA", "decimal": "DECIMAL",
        "date": "DATE", "time": "TIME", "timestamp": "TIMESTAMP",
    },
    _words(
        "user password ssl sslmode sslpassword sslNegotiation sslResponseTimeout channelBinding ApplicationName"
        " connectTimeout loginTimeout socketTimeout cancelSignalTimeout tcpKeepAlive tcpNoDelay prepareThreshold"
        " preparedStatementCacheQueries preparedStatementCacheSizeMiB defaultRowFetchSize currentSchema options"
        " readOnly readOnlyMode reWriteBatchedInserts stringtype targetServerType hostRecheckSeconds loadBalanceHosts"
        " assumeMinServerVersion binaryTransfer binaryTransferEnable binaryTransferDisable unknownLength"
        " logUnclosedConnections disableColumnSanitiser escapeSyntaxCallMode gssEncMode quoteReturningIdentifiers"
        " maxResultBuffer adaptiveFetch adaptiveFetchMinimum adaptiveFetchMaximum databaseMetadataCacheFields"
        " databaseMetadataCacheFieldsMiB sendBufferSize receiveBufferSize cleanupSavepoints autosave preferQueryMode"
        " protocolVersion allowEncodingChanges"
    ),
    _words("sslrootcert sslcert sslkey"),
)  # fmt: skip
SQLITE: Final = Dialect(
    Family.SQLITE,
    "SQLite",
    "org.sqlite.JDBC",
    "org.xerial:sqlite-jdbc",
    '"',
    "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000",
    {
        "int8": "INTEGER", "int16": "INTEGER", "int32": "INTEGER", "int64": "BIGINT", "float": "REAL",
        "double": "REAL", "bool": "BOOLEAN", "string": "TEXT", "binary": "BLOB", "decimal": "NUMERIC",
        "date": "DATE", "time": "TIME", "timestamp": "TIMESTAMP",
    },
    _words(
        "busy_timeout cache_size case_sensitive_like date_class date_precision date_string_format encoding"
        " foreign_keys journal_mode locking_mode open_mode page_size synchronous transaction_mode"
    ),
)  # fmt: skip
MYSQL: Final = Dialect(
    Family.MYSQL,
    "MySQL",
    "com.mysql.cj.jdbc.Driver",
    "com.mysql:mysql-connector-j",
    "`",
    "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)",
    {
        "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "float": "FLOAT",
        "double": "DOUBLE", "bool": "TINYINT", "string": "TEXT", "binary": "LONGBLOB", "decimal": "DECIMAL(65,{scale})",
        "date": "DATE", "time": "TIME(3)", "timestamp": "DATETIME(3)",
    },
    _words(
        "user password useSSL requireSSL verifyServerCertificate sslMode tlsVersions tlsCiphersuites connectTimeout"
        " socketTimeout tcpKeepAlive tcpNoDelay serverTimezone connectionTimeZone forceConnectionTimeZoneToSession"
        " preserveInstants characterEncoding connectionCollation useUnicode zeroDateTimeBehavior tinyInt1isBit"
        " useCursorFetch defaultFetchSize rewriteBatchedStatements useServerPrepStmts cachePrepStmts prepStmtCacheSize"
        " prepStmtCacheSqlLimit allowPublicKeyRetrieval yearIsDateType nullDatabaseMeansCurrent"
        " jdbcCompliantTruncation useInformationSchema"
    ),
)  # fmt: skip

DIALECTS: Final = {each.family.value: each for each in (POSTGRESQL, SQLITE, MYSQL)}
"""By the second word of a JDBC URL."""
