"""What JDBC connectors say and understand without a database: URLs, statements, types, offsets, keys."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import ConfigError, ConnectError, Reach, ReachKind, Schema, schema
from headgate.connectors.jdbc.cells import parameters_of
from headgate.connectors.jdbc.columns import Column
from headgate.connectors.jdbc.connection import ConnectionConfig
from headgate.connectors.jdbc.database import ColumnFact, Instant, TableName
from headgate.connectors.jdbc.dialect import DIALECTS, MYSQL, POSTGRESQL, SQLITE, Dialect, Family
from headgate.connectors.jdbc.merge import Merge
from headgate.connectors.jdbc.offsets import Offset, check_change, partitions_of
from headgate.connectors.jdbc.query import Query
from headgate.connectors.jdbc.sink import JdbcSink
from headgate.connectors.jdbc.sink_config import CONFIG as SINK_CONFIG
from headgate.connectors.jdbc.sink_config import JdbcSinkConfig
from headgate.connectors.jdbc.source import JdbcSource
from headgate.connectors.jdbc.source_config import JdbcSourceConfig
from headgate.connectors.jdbc.url import JdbcUrl, jdbc_reaches
from headgate.sandbox import Sandbox

SOURCE = {"connection.url": "jdbc:postgresql://db:5432/shop", "mode": "bulk", "topic.prefix": "t"}
SINK = {"connection.url": "jdbc:postgresql://db:5432/shop"}

# --- URLs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "hosts", "file", "shown"),
    [
        ("jdbc:postgresql://db/shop", ("db",), None, "jdbc:postgresql://db/shop"),
        ("jdbc:postgresql://a:1,[::1]:2/shop?ssl=true", ("a:1", "[::1]:2"), None, "jdbc:postgresql://a:1,[::1]:2/shop"),
        ("jdbc:postgresql:shop", ("localhost",), None, "jdbc:postgresql://localhost/shop"),
        ("jdbc:mysql://db:3306/shop?password=x", ("db:3306",), None, "jdbc:mysql://db:3306/shop"),
        ("jdbc:sqlite:/data/shop.db?busy_timeout=5", (), "/data/shop.db", "jdbc:sqlite:/data/shop.db"),
    ],
)
def test_a_url_is_taken_apart(text: str, hosts: tuple[str, ...], file: str | None, shown: str) -> None:
    url = JdbcUrl.parse(text)
    assert (url.hosts, url.file, url.shown) == (hosts, file, shown)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "postgresql://db/shop",
        "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil/x.sql'",
        "jdbc:postgresql://user:secret@db/shop",
        "jdbc:mysql://address=(host=db)(autoDeserialize=true)/shop",
        "jdbc:mysql:loadbalance://db/shop",
        "jdbc:postgresql://db/shop#x",
        "jdbc:sqlite:",
        "jdbc:sqlite::memory:",
        "jdbc:sqlite::resource:http://evil/x.db",
        "jdbc:sqlite:file:/etc/passwd?vfs=x",
    ],
)
@pytest.mark.parametrize(("connector", "config"), [(JdbcSource, SOURCE), (JdbcSink, SINK)])
def test_a_url_that_is_none_is_refused_without_being_shown(connector: Any, config: dict[str, str], text: str) -> None:
    values = connector().validate({**config, "connection.url": text})
    (errors,) = [value.errors for value in values if value.name == "connection.url"]
    assert errors
    assert "secret" not in " ".join(errors)


@pytest.mark.parametrize(
    "parameter",
    [
        "socketFactory=x", "sslfactory=x", "sslhostnameverifier=x", "sslpasswordcallback=x", "loggerFile=/tmp/x",
        "authenticationPluginClassName=x", "service=x", "xmlFactoryFactory=x", "PGHOST=evil", "socket%46actory=x",
    ],
)  # fmt: skip
@pytest.mark.parametrize("mode", ["compatible", "strict", "open"])
def test_what_may_load_classes_is_refused_unless_all_is_open(parameter: str, mode: str) -> None:
    config = {**SINK, "connection.url": f"jdbc:postgresql://db/shop?ssl=true&{parameter}"}
    sandbox = Sandbox(mode=mode, hosts=("db",))
    refused = [sandbox.problem(reach) for reach in JdbcSink.reaches(config)]
    told = [each for each in refused if each]
    assert bool(told) is (mode != "open")
    assert all(parameter.partition("=")[0] in each and "harmless" in each for each in told)


@pytest.mark.parametrize(
    "parameter", ["autoDeserialize", "allowLoadLocalInfile", "queryInterceptors", "ha.loadBalanceStrategy"]
)
def test_properties_beside_the_url_are_looked_at_too(parameter: str) -> None:
    config = {"connection.url": "jdbc:mysql://db/shop", f"connection.{parameter}": "true"}
    assert Reach(ReachKind.OPTION, parameter, f"connection.{parameter}") in list(JdbcSource.reaches(config))


def test_hosts_and_files_are_declared() -> None:
    url = "jdbc:postgresql://a:1,b/shop?sslrootcert=/etc/root.crt"
    assert list(jdbc_reaches({"connection.url": url}, ReachKind.WRITE)) == [
        Reach(ReachKind.HOST, "a:1", "connection.url"),
        Reach(ReachKind.HOST, "b", "connection.url"),
        Reach(ReachKind.READ, "/etc/root.crt", "connection.url"),
    ]
    file = {"connection.url": "jdbc:sqlite:/data/x.db"}
    assert [each.kind for each in JdbcSource.reaches(file)] == [ReachKind.READ]
    assert [each.kind for each in JdbcSink.reaches(file)] == [ReachKind.WRITE]


def test_secrets_are_not_shown() -> None:
    config = {"connection.url": "jdbc:postgresql://db/shop?password=first", "connection.password": "second"}
    made = ConnectionConfig.of(SINK_CONFIG.parse(config), config)
    said = made.hidden(f"no luck with {made.url.text}, first, second")
    assert "first" not in said + repr(made)
    assert "second" not in said + repr(made)


# --- keys against each other ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connector", "change", "key", "told"),
    [
        (JdbcSource, {"table.whitelist": "a", "query": "SELECT 1"}, "table.whitelist", "Set only one of"),
        (JdbcSource, {"mode": "timestamp"}, "timestamp.column.name", "mode=timestamp needs it"),
        (JdbcSource, {"mode": "incrementing", "query": "SELECT 1"}, "incrementing.column.name", "needs it"),
        (JdbcSource, {"incrementing.column.name": "id"}, "incrementing.column.name", "does not use it"),
        (JdbcSource, {"query": "ATTACH DATABASE '/x' AS y"}, "query", "SELECT or WITH"),
        (JdbcSource, {"mode": "often"}, "mode", "must be one of"),
        (JdbcSource, {"db.timezone": "Nowhere/None"}, "db.timezone", "no time zone"),
        (JdbcSource, {"timestamp.granularity": "nanos_long"}, "timestamp.granularity", "must be one of"),
        (JdbcSink, {"insert.mode": "upsert"}, "pk.mode", "needs to know the key"),
        (JdbcSink, {"delete.enabled": "true"}, "delete.enabled", "pk.mode=record_key"),
        (JdbcSink, {"pk.mode": "kafka", "pk.fields": "a"}, "pk.fields", "three names"),
        (JdbcSink, {"quote.sql.identifiers": "never"}, "quote.sql.identifiers", "always"),
    ],
)
def test_what_does_not_go_together_is_told(connector: Any, change: dict[str, str], key: str, told: str) -> None:
    config = {**(SOURCE if connector is JdbcSource else SINK), **change}
    found = {value.name: value.errors for value in connector().validate(config) if value.errors}
    assert list(found) == [key]
    assert told in " ".join(found[key])
    parsed: Any = JdbcSourceConfig if connector is JdbcSource else JdbcSinkConfig
    with pytest.raises(ConfigError):
        parsed.of(config)


# --- statements of the source -----------------------------------------------------------------------------------------

TABLE = TableName("db", "public", 'or"ders')
END, AT = Instant(9), Instant(5)
ALL = 'SELECT * FROM "public"."or""ders"'
TIME = 'COALESCE("a", "b")'
BOTH = f'{ALL} WHERE {TIME} < ? AND (({TIME} = ? AND "id" > ?) OR {TIME} > ?) ORDER BY {TIME} ASC, "id" ASC'


@pytest.mark.parametrize(
    ("mode", "offset", "text", "parameters"),
    [
        ("bulk", Offset(), 'SELECT * FROM "public"."or""ders"', []),
        ("incrementing", Offset(), 'SELECT * FROM "public"."or""ders" WHERE "id" IS NOT NULL ORDER BY "id" ASC', []),
        ("incrementing", Offset(7), 'SELECT * FROM "public"."or""ders" WHERE "id" > ? ORDER BY "id" ASC', [7]),
        ("timestamp", Offset(), f'{ALL} WHERE {TIME} < ? ORDER BY {TIME} ASC', [END]),
        ("timestamp", Offset(None, 5), f'{ALL} WHERE {TIME} > ? AND {TIME} < ? ORDER BY {TIME} ASC', [AT, END]),
        ("timestamp+incrementing", Offset(7, 5), BOTH, [END, AT, 7, AT]),
    ],
)  # fmt: skip
def test_statements_by_mode(mode: str, offset: Offset, text: str, parameters: list[Any]) -> None:
    query = Query(POSTGRESQL, mode, TABLE, None, "id", ("a", "b"))
    assert query.after(offset, END) == (text, parameters)


def test_a_query_is_a_relation_like_any_other() -> None:
    query = Query(SQLITE, "incrementing", None, "SELECT 1 AS id", "id", suffix="-- hint")
    assert query.after(Offset(3), None) == (
        'SELECT * FROM (SELECT 1 AS id) AS q WHERE "id" > ? ORDER BY "id" ASC -- hint',
        [3],
    )
    assert Query(MYSQL, "bulk", None, "SELECT 1").after(Offset(), None) == ("SELECT 1", [])
    assert (
        Query(POSTGRESQL, "bulk", TableName(None, "s", "T"), quoting=False).after(Offset(), None)[0]
        == "SELECT * FROM s.T"
    )


# --- statements of the sink -------------------------------------------------------------------------------------------

FACTS = {"id": ColumnFact("id", 4, "serial"), "b": ColumnFact("b", -2, "bytea")}
PG_ROWS = "unnest(CAST(? AS int4[]), CAST(? AS bytea[])) AS r(c0, c1)"
LITE_ROWS = "(SELECT json_extract(value, '$[0]') AS c0, json_extract(value, '$[1]') AS c1 FROM json_each(?)) AS r"
PG_INSERT = f'INSERT INTO "t" ("id", "b") SELECT r.c0, r.c1 FROM {PG_ROWS} WHERE 1 = 1'
LITE_INSERT = f'INSERT INTO "t" ("id", "b") SELECT r.c0, unhex(r.c1) FROM {LITE_ROWS} WHERE 1 = 1'
CONFLICT = ' ON CONFLICT ("id") DO UPDATE SET "b" = EXCLUDED."b"'
MY_ROWS = "JSON_TABLE(CAST(? AS JSON), '$[*]' COLUMNS (c0 LONGTEXT PATH '$[0]', c1 LONGTEXT PATH '$[1]')) AS r"

MY_INSERT = f"INSERT INTO `t` (`id`, `b`) SELECT r.c0, unhex(r.c1) FROM {MY_ROWS} WHERE 1 = 1"


@pytest.mark.parametrize(
    ("dialect", "how", "text"),
    [
        (POSTGRESQL, "insert", PG_INSERT),
        (POSTGRESQL, "upsert", PG_INSERT + CONFLICT),
        (POSTGRESQL, "update", f'UPDATE "t" AS t SET "b" = r.c1 FROM {PG_ROWS} WHERE t."id" = r.c0'),
        (POSTGRESQL, "delete", f'DELETE FROM "t" WHERE ("id") IN (SELECT r.c0 FROM {PG_ROWS})'),
        (SQLITE, "upsert", LITE_INSERT + CONFLICT),
        (MYSQL, "insert", MY_INSERT),
        (MYSQL, "upsert", MY_INSERT + " ON DUPLICATE KEY UPDATE `b` = VALUES(`b`)"),
        (MYSQL, "update", f"UPDATE `t` AS t JOIN {MY_ROWS} ON t.`id` = r.c0 SET t.`b` = unhex(r.c1)"),
        (MYSQL, "delete", f"DELETE FROM `t` WHERE (`id`) IN (SELECT r.c0 FROM {MY_ROWS})"),
    ],
)  # fmt: skip
def test_merges_by_dialect(dialect: Dialect, how: str, text: str) -> None:
    assert Merge(dialect, dialect.quoted("t"), ("id", "b"), ("id",), FACTS, frozenset({"b"})).sql(how) == text


def test_what_is_no_common_type_is_text_on_the_way() -> None:
    facts = {"id": ColumnFact("id", 4, "int4"), "m": ColumnFact("m", 12, '"shop"."mood"')}
    sql = Merge(POSTGRESQL, '"t"', ("id", "m"), ("id",), facts).sql("insert")
    assert 'SELECT r.c0, CAST(r.c1 AS "shop"."mood") FROM unnest(CAST(? AS int4[]), CAST(? AS text[]))' in sql


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([1, None, -3]), "{1,NULL,-3}"),
        (pa.array(['say "so"', "a\\b", None, "", "NULL", "x,y}"]), r"""{"say \"so\"","a\\b",NULL,"","NULL","x,y}"}"""),
        (pa.array([b"\x00\xff"]), r"""{"\\x00ff"}"""),
        (pa.array([0.1, float("nan"), float("-inf")]), "{0.1,nan,-inf}"),
        (pa.array([0.1], pa.float32()), "{0.10000000149011612}"),
        (pa.array([True, None]), "{true,NULL}"),
        (pa.array([Decimal("0.00000012")]), "{0.00000012}"),
        (pa.array([dt.date(2030, 1, 31)]), '{"2030-01-31"}'),
        (pa.array([1500], pa.time32("ms")), '{"00:00:01.500"}'),
        (pa.array([1500], pa.timestamp("ms", "UTC")), '{"1970-01-01 00:00:01.500+00"}'),
        (pa.nulls(1), "{NULL}"),
        (pa.array([9, 1, 2]).slice(1), "{1,2}"),
    ],
    ids=lambda each: str(each.type) if isinstance(each, pa.Array) else "",
)
def test_columns_for_postgresql_are_arrays(column: pa.Array, text: str) -> None:
    assert parameters_of([column], Family.POSTGRESQL, "UTC") == [text]


def test_digits_are_those_of_the_zone() -> None:
    column = pa.array([1500], pa.timestamp("ms", "UTC"))
    assert parameters_of([column], Family.POSTGRESQL, "Asia/Tokyo") == ['{"1970-01-01 09:00:01.500+0900"}']


def test_columns_for_others_are_one_document() -> None:
    columns = [pa.array([1, None]), pa.array(["ä", "b"]), pa.array([True, False])]
    assert parameters_of(columns, Family.SQLITE, "UTC") == ['[[1,"ä",1],[null,"b",0]]']


def test_a_table_of_nothing_but_its_key() -> None:
    sql = Merge(POSTGRESQL, '"t"', ("id",), ("id",), FACTS).sql("upsert")
    assert sql.endswith('ON CONFLICT ("id") DO NOTHING')


# --- types ------------------------------------------------------------------------------------------------------------


def number(precision: int, scale: int, kind: int = 2) -> ColumnFact:
    return ColumnFact("n", kind, "numeric", precision, scale, nullable=False)


@pytest.mark.parametrize(
    ("fact", "none", "precision_only", "best_fit", "eager"),
    [
        (number(2, 0), schema.decimal(0), schema.INT8, schema.INT8, schema.INT8),
        (number(4, 0), schema.decimal(0), schema.INT16, schema.INT16, schema.INT16),
        (number(9, 0), schema.decimal(0), schema.INT32, schema.INT32, schema.INT32),
        (number(17, 0), schema.decimal(0), schema.INT64, schema.INT64, schema.INT64),
        (number(18, 0), schema.decimal(0), schema.decimal(0), schema.decimal(0), schema.decimal(0)),
        (number(9, 2), schema.decimal(2), schema.decimal(2), schema.FLOAT64, schema.FLOAT64),
        (number(30, 2), schema.decimal(2), schema.decimal(2), schema.decimal(2), schema.FLOAT64),
        (number(9, 2, kind=3), schema.decimal(2), schema.decimal(2), schema.decimal(2), schema.decimal(2)),
    ],
)
def test_numbers_by_mapping(
    fact: ColumnFact, none: Schema, precision_only: Schema, best_fit: Schema, eager: Schema
) -> None:
    mappings = {"none": none, "precision_only": precision_only, "best_fit": best_fit, "best_fit_eager_double": eager}
    assert {name: Column.of(fact, Family.POSTGRESQL, name).schema for name in mappings} == mappings


@pytest.mark.parametrize(
    ("family", "fact", "expected"),
    [
        (Family.MYSQL, ColumnFact("x", -6, "TINYINT UNSIGNED", signed=False), schema.INT16),
        (Family.MYSQL, ColumnFact("x", 4, "INT UNSIGNED", signed=False), schema.INT64),
        (Family.MYSQL, ColumnFact("x", -7, "BIT", 1), schema.INT8),
        (Family.POSTGRESQL, ColumnFact("x", -7, "bool", 1), schema.BOOLEAN),
        (Family.POSTGRESQL, ColumnFact("x", -7, "bit", 9), schema.BYTES),
        (Family.POSTGRESQL, ColumnFact("x", 1111, "uuid"), schema.STRING),
        (Family.POSTGRESQL, ColumnFact("x", 1111, "point"), None),
        (Family.POSTGRESQL, ColumnFact("x", 2003, "_int4"), None),
        (Family.SQLITE, ColumnFact("x", 4, "INTEGER"), schema.INT64),
    ],
)
def test_types_by_database(family: Family, fact: ColumnFact, expected: Schema | None) -> None:
    assert Column.of(fact, family).schema == (None if expected is None else expected.as_optional())


# --- offsets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "offset"),
    [
        ({"incrementing": 7}, Offset(7)),
        ({"timestamp": 1704067200123, "timestamp_nanos": 123456000}, Offset(None, 1704067200123456)),
        ({"timestamp": -1, "timestamp_nanos": 999000000, "incrementing": 0}, Offset(0, -1000)),
    ],
)
def test_offsets_have_confluents_shape(stored: dict[str, Any], offset: Offset) -> None:
    assert Offset.of(stored) == offset
    assert offset.stored() == stored


def test_an_offset_from_before_there_were_nanos() -> None:
    assert Offset.of({"timestamp": 1704067200123}) == Offset(None, 1704067200123000)
    assert Offset.of(None) == Offset()


def test_partitions_have_confluents_shapes() -> None:
    assert list(partitions_of(TableName("db", "public", "orders"))) == [
        {"protocol": "1", "table": "db.public.orders"},
        {"protocol": "1", "table": "public.orders"},
        {"table": "orders"},
    ]
    assert partitions_of(TableName(None, None, "orders"))[0] == {"protocol": "1", "table": "orders"}


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({"file": "x"}, {"incrementing": 1}),
        ({"table": 5}, {"incrementing": 1}),
        ({"table": "orders"}, {"incrementing": "1"}),
        ({"table": "orders"}, {"incrementing": True}),
        ({"table": "orders"}, {"position": 1}),
        ({"table": "orders"}, {"timestamp_nanos": 1}),
        ({"table": "orders"}, {}),
    ],
)
def test_offsets_that_could_not_be_gone_on_from_are_refused(partition: dict[str, Any], offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError):
        check_change(partition, offset)
    assert JdbcSource().alter_offsets(SOURCE, [(partition, None)])


def test_the_dialects_are_those_of_the_urls() -> None:
    assert list(DIALECTS) == ["postgresql", "sqlite", "mysql"]
