"""JdbcSource with a real PostgreSQL, a real SQLite and real Spark: types, modes, offsets, faults."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from jdbc_support import Polled, PostgresStore, SqliteStore, Store, source_task
from pyspark.sql import SparkSession

from headgate.api import ConnectError, schema
from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext, SourceConnectorSuite
from headgate.cli.assembly import StandaloneWorker
from headgate.connectors.jdbc.source import JdbcSource
from headgate.dev.postgres import Postgres

pytestmark = pytest.mark.spark

QUICK = {"poll.interval.ms": "20", "table.poll.interval.ms": "20", "topic.prefix": "db-"}


@pytest.fixture(scope="module")
def session(worker: StandaloneWorker) -> SparkSession:
    return worker.engine.session()


@pytest.fixture
def pg(postgres: Postgres, unique: Callable[[str], str]) -> PostgresStore:
    return PostgresStore(postgres, unique("test"))


@pytest.fixture(params=["postgresql", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return SqliteStore(tmp_path / "db")
    made: PostgresStore = request.getfixturevalue("pg")
    return made


def config(store: Store, mode: str = "incrementing", **more: str) -> dict[str, str]:
    extra = {"incrementing.column.name": "id"} if "incrementing" in mode else {}
    schema_of = {"schema.pattern": store.schema} if isinstance(store, PostgresStore) else {}
    return {**store.config, **QUICK, **schema_of, **extra, "mode": mode, "table.whitelist": "orders", **more}


def orders(store: Store, first: int, last: int) -> None:
    rows = ", ".join(f"({number}, 'item {number}')" for number in range(first, last + 1))
    store.run(f"INSERT INTO orders (id, item) VALUES {rows}")


@pytest.fixture
def table(store: Store) -> Store:
    store.run("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, item VARCHAR(40) NOT NULL)")
    return store


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return [row["id"] for row in rows]


# --- acceptance -------------------------------------------------------------------------------------------------------


class TestAcceptance(SourceConnectorSuite):
    connector = JdbcSource

    def add_data(self, count: int) -> None:
        count_so_far = int(self.store.run("SELECT count(*) FROM orders")[0][0])
        if count:
            orders(self.store, count_so_far + 1, count_so_far + count)

    @pytest.fixture(autouse=True)
    def _given(self, table: Store, session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store = table
        self.config = config(table, **{"batch.max.rows": "2"})
        monkeypatch.setattr(MemorySourceTaskContext, "spark", lambda _: session)


# --- types ------------------------------------------------------------------------------------------------------------

EVERY_TYPE = """
CREATE TABLE orders (id BIGSERIAL PRIMARY KEY, s SMALLINT, i INT NOT NULL, r REAL, f DOUBLE PRECISION, ok BOOLEAN,
  n NUMERIC(10, 2), free NUMERIC, t TEXT, c CHAR(3), b BYTEA, d DATE, tm TIME, tmz TIMETZ, ts TIMESTAMP, tz TIMESTAMPTZ,
  j JSONB, u UUID, many INT[]);
INSERT INTO orders (s, i, r, f, ok, n, free, t, c, b, d, tm, tmz, ts, tz, j, u, many) VALUES
  (-7, 2147483647, 1.5, 2.25, true, 12345678.90, 0.1, 'größer', 'abc', '\\x00ff', '1969-12-31', '23:59:59.999999',
   '01:00:00+02', '2024-07-01 12:00:00.123456', '2024-07-01 12:00:00.5+02', '{"a": 1}',
   '11111111-2222-3333-4444-555555555555', '{1}');
INSERT INTO orders (i) VALUES (1)
"""


def test_every_type_of_postgresql(pg: PostgresStore, session: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    pg.run(EVERY_TYPE)
    with source_task(session, config(pg, **{"db.timezone": "Europe/Berlin"})) as task:
        polled = Polled(task)
        full, empty = polled.until(2)
    assert full == {
        "id": 1, "s": -7, "i": 2147483647, "r": 1.5, "f": 2.25, "ok": True, "n": Decimal("12345678.90"),
        "free": Decimal("0.1"), "t": "größer", "c": "abc", "b": b"\x00\xff", "d": dt.date(1969, 12, 31),
        "tm": dt.time(23, 59, 59, 999000), "tmz": dt.time(23, 0), "j": '{"a": 1}',
        "ts": dt.datetime(2024, 7, 1, 10, 0, 0, 123000, dt.UTC),  # noon in Berlin, in whole milliseconds
        "tz": dt.datetime(2024, 7, 1, 10, 0, 0, 500000, dt.UTC), "u": "11111111-2222-3333-4444-555555555555",
    }  # fmt: skip
    assert {name for name, value in empty.items() if value is not None} == {"id", "i"}
    found = polled.tables[0].value_schema
    assert found is not None
    assert found.name == "orders"
    assert found.field("i").schema == schema.INT32  # type: ignore[union-attr]
    assert found.field("n").schema == schema.decimal(2, optional=True)  # type: ignore[union-attr]
    assert found.field("ts").schema == schema.TIMESTAMP.as_optional()  # type: ignore[union-attr]
    assert "left out: many" in caplog.text
    assert polled.tables[0].topic == "db-orders"


def test_types_of_sqlite(tmp_path: Path, session: SparkSession) -> None:
    store = SqliteStore(tmp_path / "db")
    store.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY NOT NULL, t TEXT, f REAL, n DECIMAL(9, 2), b BLOB, ts TIMESTAMP);"
        "INSERT INTO orders VALUES (5000000000, 'x', 1.5, 2.25, X'00ff', 1719828000123), (5000000001, NULL, NULL, NULL,"
        " NULL, NULL)"
    )
    with source_task(session, config(store)) as task:
        full, empty = Polled(task).until(2)
    instant = dt.datetime(2024, 7, 1, 10, 0, 0, 123000, dt.UTC)
    assert full == {"id": 5000000000, "t": "x", "f": 1.5, "n": Decimal("2.25"), "b": b"\x00\xff", "ts": instant}
    assert empty == {**dict.fromkeys(full), "id": 5000000001}


# --- modes and offsets ------------------------------------------------------------------------------------------------


def test_rows_come_in_the_order_of_their_numbers_and_go_on_after_a_restart(table: Store, session: SparkSession) -> None:
    orders(table, 1, 25)
    offsets = MemoryOffsets()
    given = config(table, **{"batch.max.rows": "10"})
    with source_task(session, given, offsets) as task:
        polled = Polled(task, offsets)
        assert ids(polled.once()) == list(range(1, 11))
        assert ids(polled.once()) == list(range(11, 21))
        assert [each.source_offset for each in polled.tables] == [{"incrementing": 10}, {"incrementing": 20}]
        name = polled.tables[0].source_partition
        assert name is not None
        assert name["protocol"] == "1"
        assert name["table"].endswith("orders")
    orders(table, 26, 30)
    with source_task(session, given, offsets) as task:
        assert ids(Polled(task, offsets).until(10)) == list(range(21, 31))


@pytest.mark.parametrize("shape", ["qualified", "with the catalog", "old"])
def test_offsets_of_confluents_connector_are_gone_on_from(pg: PostgresStore, session: SparkSession, shape: str) -> None:
    pg.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT)")
    orders(pg, 1, 5)
    names = {"qualified": f"{pg.schema}.orders", "with the catalog": f"postgres.{pg.schema}.orders", "old": "orders"}
    partition = {"table": names[shape], **({} if shape == "old" else {"protocol": "1"})}
    offsets = MemoryOffsets([(partition, {"incrementing": 3})])
    with source_task(session, config(pg), offsets) as task:
        polled = Polled(task, offsets)
        assert ids(polled.until(2)) == [4, 5]
        assert polled.tables[0].source_partition == partition


def test_a_timestamp_is_gone_on_from_to_the_microsecond(pg: PostgresStore, session: SparkSession) -> None:
    pg.run("CREATE TABLE orders (id INT, at TIMESTAMP NOT NULL)")
    pg.run(
        "INSERT INTO orders SELECT n, timestamp '2024-01-01 00:00:00.000001' + n * interval '1 us'"
        " FROM generate_series(1, 6) n"
    )
    offsets = MemoryOffsets()
    given = config(pg, "timestamp", **{"timestamp.column.name": "at", "batch.max.rows": "4"})
    with source_task(session, given, offsets) as task:
        polled = Polled(task, offsets)
        assert ids(polled.until(6)) == [1, 2, 3, 4, 5, 6]
        assert polled.tables[-1].source_offset == {"timestamp": 1704067200000, "timestamp_nanos": 7000}
    pg.run(
        "INSERT INTO orders VALUES (7, '2024-01-01 00:00:00.000007'), (8, '2024-01-01 00:00:00.000008'),"
        " (9, now() + interval '1 day')"
    )
    with source_task(session, given, offsets) as task:
        polled = Polled(task, offsets)
        assert ids(polled.until(1)) == [8]  # 7 has the time of a row that was read, 9 is still to come
        assert [polled.once() for _ in range(5)] == [[]] * 5


@pytest.mark.parametrize("rows", [3, 100])
def test_a_crash_within_rows_of_one_timestamp_loses_none(pg: PostgresStore, session: SparkSession, rows: int) -> None:
    pg.run("CREATE TABLE orders (id INT, at TIMESTAMPTZ NOT NULL)")
    pg.run(
        "INSERT INTO orders SELECT n, timestamptz '2024-01-01 00:00:00Z' + (n / 4) * interval '1 s'"
        " FROM generate_series(1, 30) n"
    )
    offsets = MemoryOffsets()
    given = config(pg, "timestamp", **{"timestamp.column.name": "at", "batch.max.rows": str(rows)})
    seen: set[int] = set()
    for _ in range(40):  # a crash after every batch
        with source_task(session, given, offsets) as task:
            seen.update(ids(Polled(task, offsets).once()))
            if len(seen) == 30:
                break
            if rows == 3:  # smaller than a group of four: only the rest of a cursor gets past it
                seen.update(ids(Polled(task, offsets).once()))
    assert seen == set(range(1, 31))


def test_timestamp_and_number_together_are_exact_after_every_row(pg: PostgresStore, session: SparkSession) -> None:
    pg.run("CREATE TABLE orders (id INT NOT NULL, at TIMESTAMP NOT NULL, changed TIMESTAMP)")
    pg.run(
        "INSERT INTO orders SELECT n, timestamp '2024-01-01 00:00:00' + (n / 4) * interval '1 s'"
        " FROM generate_series(1, 12) n"
    )
    offsets = MemoryOffsets()
    given = config(pg, "timestamp+incrementing", **{"timestamp.column.name": "changed,at", "batch.max.rows": "1"})
    seen = []
    for _ in range(12):
        with source_task(session, given, offsets) as task:
            seen += ids(Polled(task, offsets).once())
    assert seen == list(range(1, 13))
    pg.run("UPDATE orders SET changed = timestamp '2024-02-01 00:00:00' WHERE id = 5")
    with source_task(session, given, offsets) as task:
        assert ids(Polled(task, offsets).until(1)) == [5]


def test_where_timestamps_begin(pg: PostgresStore, session: SparkSession) -> None:
    pg.run("CREATE TABLE orders (id INT, at TIMESTAMPTZ NOT NULL)")
    pg.run("INSERT INTO orders VALUES (1, '2024-01-01 00:00:00Z'), (2, '2024-01-02 00:00:00Z')")
    given = config(pg, "timestamp", **{"timestamp.column.name": "at"})
    with source_task(session, {**given, "timestamp.initial": "1704067200000"}) as task:
        assert ids(Polled(task).until(1)) == [2]
    with source_task(session, {**given, "timestamp.initial": "-1"}) as task:
        polled = Polled(task)
        assert polled.once() == []
        pg.run("INSERT INTO orders VALUES (3, clock_timestamp())")
        assert ids(polled.until(1)) == [3]


def test_a_row_waits_until_it_is_as_old_as_the_delay(pg: PostgresStore, session: SparkSession) -> None:
    pg.run("CREATE TABLE orders (id INT, at TIMESTAMPTZ NOT NULL)")
    pg.run("INSERT INTO orders VALUES (1, clock_timestamp()), (2, clock_timestamp() - interval '1 hour')")
    given = config(pg, "timestamp", **{"timestamp.column.name": "at", "timestamp.delay.interval.ms": "60000"})
    with source_task(session, given) as task:
        polled = Polled(task)
        assert ids(polled.until(1)) == [2]
        assert polled.once() == []


def test_bulk_gives_all_of_it_again_and_again_without_offsets(table: Store, session: SparkSession) -> None:
    orders(table, 1, 3)
    with source_task(session, config(table, "bulk", **{"batch.max.rows": "2"})) as task:
        polled = Polled(task)
        assert sorted(ids(polled.until(6))) == [1, 1, 2, 2, 3, 3]
        assert {each.source_offset for each in polled.tables} == {None}


@pytest.mark.parametrize("mode", ["bulk", "incrementing"])
def test_a_query_in_place_of_tables(table: Store, session: SparkSession, mode: str) -> None:
    orders(table, 1, 6)
    given = {**config(table, mode), "query": "SELECT id, item AS what FROM orders WHERE id > 2;", "topic.prefix": "q"}
    del given["table.whitelist"]
    with source_task(session, given) as task:
        polled = Polled(task)
        assert polled.until(4)[:4] == [{"id": n, "what": f"item {n}"} for n in (3, 4, 5, 6)]
        first = polled.tables[0]
    expected = (None, None) if mode == "bulk" else ({"query": "query"}, {"incrementing": 6})
    assert (first.source_partition, first.source_offset) == expected
    assert (first.topic, first.value_schema and first.value_schema.name) == ("q", None)


def test_the_column_that_the_database_counts_up_is_found(pg: PostgresStore, session: SparkSession) -> None:
    pg.run("CREATE TABLE orders (a INT, nr BIGSERIAL PRIMARY KEY); INSERT INTO orders (a) VALUES (7), (8)")
    given = {**config(pg), "incrementing.column.name": ""}
    with source_task(session, given) as task:
        polled = Polled(task)
        assert polled.until(2) == [{"a": 7, "nr": 1}, {"a": 8, "nr": 2}]
        assert polled.tables[-1].source_offset == {"incrementing": 2}


# --- tables -----------------------------------------------------------------------------------------------------------


def test_tables_are_chosen_found_later_and_dealt_out(pg: PostgresStore, session: SparkSession) -> None:
    def make(*names: str) -> None:
        for name in names:
            pg.run(f"CREATE TABLE {name} (id INT PRIMARY KEY); INSERT INTO {name} VALUES (1)")

    make("one", "two", "three", "skipped", "other")
    given = {**config(pg), "table.name.pattern": "[a-z]{3,7}", "table.blacklist": "skipped", "tasks.max": "2"}
    del given["table.whitelist"]
    topics: list[set[str]] = []
    with source_task(session, given, number=0) as first, source_task(session, given, number=1) as second:
        both = [Polled(first), Polled(second)]

        def seen(expected: int) -> list[set[str]]:
            for _ in range(100):
                for each in both:
                    each.once()
                found = [{table.topic for table in each.tables} for each in both]
                if sum(map(len, found)) == expected:
                    break
            return found

        topics = seen(4)
        assert set.union(*topics) == {"db-one", "db-two", "db-three", "db-other"}
        assert not set.intersection(*topics)
        make("later")
        assert set.union(*seen(5)) >= {"db-later"}


def test_a_column_that_is_added_while_it_runs(table: Store, session: SparkSession) -> None:
    orders(table, 1, 1)
    with source_task(session, config(table)) as task:
        polled = Polled(task)
        assert polled.until(1) == [{"id": 1, "item": "item 1"}]
        table.run("ALTER TABLE orders ADD COLUMN more INT")
        table.run("INSERT INTO orders VALUES (2, 'x', 5)")
        assert polled.until(1) == [{"id": 2, "item": "x", "more": 5}]


# --- far behind -------------------------------------------------------------------------------------------------------


def test_executors_read_a_table_that_is_far_behind_in_order_and_in_bounds(
    pg: PostgresStore, session: SparkSession
) -> None:
    pg.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT)")
    # With gaps, and in no order on disk.
    pg.run("INSERT INTO orders SELECT n * n, n FROM generate_series(1, 5000) n ORDER BY md5(n::text)")
    offsets = MemoryOffsets()
    given = config(pg, **{"load.max.rows": "2000", "load.partitions": "4", "batch.max.rows": "300"})
    expected = [n * n for n in range(1, 5001)]
    with source_task(session, given, offsets) as task:
        polled = Polled(task, offsets)
        rows = [row for _ in range(5) for row in polled.once()]
        assert max(each.table.num_rows for each in polled.tables) == 300
    with source_task(session, given, offsets) as task:  # another one, in the middle of what was read ahead
        rows += Polled(task, offsets).until(5000 - len(rows))
    assert ids(rows) == expected


# --- what fails -------------------------------------------------------------------------------------------------------


def failure(session: SparkSession, given: dict[str, str]) -> str:
    with source_task(session, given) as task, pytest.raises(ConnectError) as raised:
        Polled(task).until(1)
    return str(raised.value)


def test_a_wrong_password_is_told_without_it(pg: PostgresStore, session: SparkSession) -> None:
    said = failure(session, {**config(pg), "connection.password": "not-this-one"})
    assert "does not let us in" in said
    assert "connection.password" in said
    assert "not-this-one" not in said


def test_a_password_in_the_url_is_not_told(pg: PostgresStore, session: SparkSession) -> None:
    url = f"{pg.server.url}?user=postgres&password=not-this-one"
    said = failure(session, {**config(pg), "connection.url": url, "connection.user": "", "connection.password": ""})
    assert "does not let us in" in said
    assert "not-this-one" not in said


def test_a_host_that_nobody_knows(pg: PostgresStore, session: SparkSession) -> None:
    attempts = {"connection.attempts": "2", "connection.backoff.ms": "10"}
    said = failure(session, {**config(pg), "connection.url": "jdbc:postgresql://nowhere.invalid/db", **attempts})
    assert re.search("After 2 attempts: The database cannot be reached, check connection.url.*nowhere.invalid", said)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"table.whitelist": "missing"}, "has no table missing: create it"),
        ({"incrementing.column.name": "nr"}, "has no column nr; it has id, item"),
    ],
)
def test_what_is_missing_is_told(table: Store, session: SparkSession, change: dict[str, str], told: str) -> None:
    assert told in failure(session, {**config(table), **change})


def test_a_column_that_may_be_null_is_refused_unless_that_is_wanted(pg: PostgresStore, session: SparkSession) -> None:
    pg.run("CREATE TABLE orders (id INT, item TEXT); INSERT INTO orders VALUES (NULL, 'x'), (1, 'y')")
    assert "column id may be null" in failure(session, config(pg))
    with source_task(session, config(pg, **{"validate.non.null": "false"})) as task:
        assert Polled(task).until(1) == [{"id": 1, "item": "y"}]


def test_a_driver_that_is_not_there(session: SparkSession) -> None:
    given = {**QUICK, "connection.url": "jdbc:mysql://localhost/db", "mode": "bulk"}
    said = failure(session, given)
    assert "put the driver's jar into spark.jars of the worker file" in said
    assert "com.mysql:mysql-connector-j" in said


def test_a_file_of_sqlite_that_is_not_there_is_not_made(tmp_path: Path, session: SparkSession) -> None:
    given = {**QUICK, "connection.url": f"jdbc:sqlite:{tmp_path}/none", "mode": "bulk"}
    assert "cannot be opened" in failure(session, given)
    assert not (tmp_path / "none").exists()


@pytest.fixture
def mortal() -> Iterator[Postgres]:
    with Postgres() as running:
        yield running


def test_a_database_that_dies_is_waited_for_and_nothing_is_lost(mortal: Postgres, session: SparkSession) -> None:
    store = PostgresStore(mortal, "test")
    store.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT)")
    orders(store, 1, 50)
    offsets = MemoryOffsets()
    given = config(store, **{"batch.max.rows": "10", "load.partitions": "1"})
    with source_task(session, given, offsets) as task:
        polled = Polled(task, offsets)
        rows = polled.until(20)  # in the middle of a cursor
        mortal.kill()
        for _ in range(3):
            rows += polled.once()
        mortal.restart()
        orders(store, 51, 60)
        rows += polled.until(60 - len(rows))
        assert ids(rows) == list(range(1, 61))
