"""JdbcSink with a real PostgreSQL, a real SQLite and real Spark: what is written, how often, and what fails."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from jdbc_support import PostgresStore, SinkRun, SqliteStore, Store, records_of
from pyspark.sql import SparkSession

from headgate.api import ConnectError, RetriableError, SinkRecord, TopicPartition, schema
from headgate.api.testing import MemoryConnectorContext, MemoryReporter, SinkConnectorSuite
from headgate.cli.assembly import StandaloneWorker
from headgate.connectors.jdbc.offset_ledger import PartitionTaken
from headgate.connectors.jdbc.sink import JdbcSink
from headgate.dev.postgres import Postgres

pytestmark = pytest.mark.spark

Start = Callable[..., SinkRun]
MADE = {"auto.create": "true"}
UPSERT = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id", **MADE}
EXACT = {"exactly.once": "true", **MADE}


@pytest.fixture(scope="module")
def session(worker: StandaloneWorker) -> SparkSession:
    return worker.engine.session()


@pytest.fixture
def pg(postgres: Postgres, unique: Callable[[str], str]) -> PostgresStore:
    return PostgresStore(postgres, unique("sink"))


@pytest.fixture(params=["postgresql", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "sqlite":
        return SqliteStore(tmp_path / "db")
    made: PostgresStore = request.getfixturevalue("pg")
    return made


@pytest.fixture
def start(session: SparkSession) -> Iterator[Start]:
    runs: list[SinkRun] = []

    def begin(store: Store, more: Mapping[str, str], **options: Any) -> SinkRun:
        quick = {"connection.backoff.ms": "50", "retry.backoff.ms": "50"}
        runs.append(SinkRun(session, {**store.config, **quick, **more}, **options))
        return runs[-1]

    yield begin
    for run in runs:
        run.stop()


def value(number: int, **more: Any) -> dict[str, Any]:
    return {"key": number, "value": {"id": number, "item": f"item {number}", **more}}


def rows(store: Store, columns: str = "id, item") -> list[list[str]]:
    return store.run(f"SELECT {columns} FROM orders ORDER BY id")


def expected(*numbers: int) -> list[list[str]]:
    return [[str(number), f"item {number}"] for number in numbers]


class TestAcceptance(SinkConnectorSuite):
    connector = JdbcSink

    @pytest.fixture(autouse=True, params=["at least once", "exactly once"])
    def _given(self, store: Store, session: SparkSession, request: pytest.FixtureRequest) -> None:
        self.store, self.session = store, session
        self.config = {**store.config, **(EXACT if request.param == "exactly once" else MADE)}

    def make_records(self, first: int, count: int) -> list[SinkRecord]:
        made = super().make_records(first, count)
        return [each.replace(value={"text": each.value}, value_schema=None) for each in made]

    def batch(self, task: Any, records: Sequence[SinkRecord]) -> Any:
        first = records[0].offset if records else 0
        return records_of([{"key": each.key, "value": each.value} for each in records], first=first)

    def written(self) -> list[dict[str, str]]:
        return [{"text": text} for (text,) in self.store.run("SELECT text FROM orders")]


# --- what is written --------------------------------------------------------------------------------------------------


def test_rows_are_inserted_into_a_table_that_is_made(store: Store, start: Start) -> None:
    run = start(store, MADE)
    run.put([value(1), value(2)])
    run.put([value(3)], first=2)
    assert rows(store) == expected(1, 2, 3)


def test_the_last_of_a_key_wins_within_a_batch_and_between_batches(store: Store, start: Start) -> None:
    run = start(store, UPSERT)
    run.put([value(1, n=1), value(2, n=1), value(1, n=2)])
    run.put([value(2, n=3), value(3, n=3)], first=3)
    assert rows(store, "id, n") == [["1", "2"], ["2", "3"], ["3", "3"]]


def test_a_record_without_value_deletes(store: Store, start: Start) -> None:
    run = start(store, {**UPSERT, "delete.enabled": "true"})
    run.put([value(number) for number in range(1, 6)])
    gone = [{"key": 1, "value": None}, {"key": 2, "value": None}, value(2), {"key": 9, "value": None}]
    run.put([*gone, value(3), {"key": 3, "value": None}], first=5)
    assert rows(store) == expected(2, 4, 5)
    run.task.put(records_of([{"key": 4, "value": None}], first=11))  # nothing but deletes
    assert rows(store) == expected(2, 5)


def test_nothing_is_deleted_from_a_table_that_is_not_there(store: Store, start: Start) -> None:
    run = start(store, {**UPSERT, "delete.enabled": "true"})
    run.put([{"key": 1, "value": None}])
    run.put([value(1)], first=1)
    assert rows(store) == expected(1)


def test_a_deleted_row_can_be_inserted_again_in_one_batch(store: Store, start: Start) -> None:
    run = start(store, {**UPSERT, "insert.mode": "insert", "delete.enabled": "true"})
    run.put([value(1)])
    run.put([{"key": 1, "value": None}, value(1)], first=1)
    assert rows(store) == expected(1)


def test_updates_change_only_rows_that_are_there(store: Store, start: Start) -> None:
    store.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT, n INT); INSERT INTO orders VALUES (1, 'old', 7)")
    run = start(store, {"insert.mode": "update", "pk.mode": "record_value", "pk.fields": "id"})
    run.put([value(1), value(2)])
    assert rows(store, "id, item, n") == [["1", "item 1", "7"]]


def test_a_key_of_kafkas_makes_inserts_harmless_to_repeat(store: Store, start: Start) -> None:
    run = start(store, {"insert.mode": "upsert", "pk.mode": "kafka", **MADE})
    for _ in range(2):
        run.put([value(1), value(2)], first=7)
    found = rows(store, "__connect_topic, __connect_partition, __connect_offset, id")
    assert found == [["orders", "0", "7", "1"], ["orders", "0", "8", "2"]]


def test_only_fields_that_are_wanted_go_into_a_table_of_another_name(store: Store, start: Start) -> None:
    table = f"{store.schema}.t_orders" if isinstance(store, PostgresStore) else "t_orders"
    run = start(store, {**MADE, "table.name.format": table.replace("orders", "${topic}"), "fields.whitelist": "id"})
    run.put([value(1)])
    assert store.run("SELECT * FROM t_orders") == [["1"]]


TYPED = schema.struct(
    {
        "id": schema.INT32, "big": schema.INT64.as_optional(), "f": schema.FLOAT64, "ok": schema.BOOLEAN,
        "t": schema.OPTIONAL_STRING, "b": schema.OPTIONAL_BYTES, "n": schema.decimal(2), "d": schema.DATE,
        "tm": schema.TIME, "ts": schema.TIMESTAMP, "say": schema.Schema(schema.SchemaType.STRING, default="hm"),
    }
)  # fmt: skip
INSTANT = dt.datetime(2024, 7, 1, 10, 0, 0, 123000, dt.UTC)
FULL = {
    "id": 1, "big": 2**62, "f": 0.1, "ok": True, "t": "quote ' \" \\ größer", "b": b"\x00\xff", "n": Decimal("12.30"),
    "d": dt.date(1969, 12, 31), "tm": dt.time(1, 2, 3, 4000), "ts": INSTANT, "say": None,
}  # fmt: skip


def typed(row: Mapping[str, Any]) -> pa.Table:
    from headgate.api.frame import arrow_type

    table = records_of([{"key": 1, "value": None}])
    column = table.column_names.index("value")
    return table.set_column(column, "value", pa.array([row], arrow_type(TYPED)))


def test_every_type_is_written_to_postgresql(pg: PostgresStore, start: Start) -> None:
    run = start(pg, {**MADE, "db.timezone": "Europe/Berlin"})
    run.task.value_schema = TYPED
    run.task.put(typed(FULL))
    assert rows(pg, "*") == [
        ["1", str(2**62), "0.1", "t", "quote ' \" \\ größer", "\\x00ff", "12.30", "1969-12-31", "01:02:03.004",
         "2024-07-01 12:00:00.123", "hm"]
    ]  # fmt: skip
    types = pg.run(
        f"SELECT data_type, is_nullable FROM information_schema.columns WHERE table_schema = '{pg.schema}'"
        " ORDER BY ordinal_position"
    )
    assert [kind for kind, _ in types] == [
        "integer", "bigint", "double precision", "boolean", "text", "bytea", "numeric", "date",
        "time without time zone", "timestamp without time zone", "text",
    ]  # fmt: skip
    assert [null for _, null in types] == ["NO", "YES", "NO", "NO", "YES", "YES", "NO", "NO", "NO", "NO", "YES"]
    pg.run("DROP TABLE orders; CREATE TABLE orders (id INT, f REAL, ts TIMESTAMPTZ, t JSONB, say UUID)")
    run = start(pg, {"fields.whitelist": "id,f,ts,t,say"})
    run.task.value_schema = TYPED
    odd = {"t": '{"a": 1}', "f": math.nan, "say": "11111111-2222-3333-4444-555555555555"}
    run.task.put(typed({**FULL, **odd}))
    found = rows(pg, "id, f, extract(epoch from ts), t->'a', say")
    assert found == [["1", "NaN", "1719828000.123000", "1", "11111111-2222-3333-4444-555555555555"]]


def test_every_type_is_written_to_sqlite(tmp_path: Path, start: Start) -> None:
    store = SqliteStore(tmp_path / "db")
    run = start(store, MADE)
    run.task.value_schema = TYPED
    run.task.put(typed(FULL))
    assert rows(store, "id, big, f, ok, t, hex(b), n, d, tm, ts, say") == [
        ["1", str(2**62), "0.1", "1", "quote ' \" \\ größer", "00FF", "12.3", "-86400000", "01:02:03.004",
         "1719828000123", "hm"]
    ]  # fmt: skip


# --- tables -----------------------------------------------------------------------------------------------------------


def test_a_missing_table_is_told(store: Store, start: Start) -> None:
    run = start(store, {})
    with pytest.raises(ConnectError, match=r"no table orders: create it, or set auto.create=true"):
        run.put([value(1)])


def test_a_missing_column_is_told_or_added(store: Store, start: Start) -> None:
    start(store, MADE).put([value(1)])
    with pytest.raises(ConnectError, match=r"no column more: add it, or set auto.evolve=true"):
        start(store, MADE).put([value(2, more=5)])
    start(store, {**MADE, "auto.evolve": "true"}).put([value(2, more=5)])
    assert rows(store, "id, more") == [["1", ""], ["2", "5"]]


def test_a_column_that_may_not_be_null_is_not_added(store: Store, start: Start) -> None:
    start(store, MADE).put([value(1)])
    run = start(store, {**MADE, "auto.evolve": "true"})
    made = schema.struct({"id": schema.INT64, "item": schema.STRING, "more": schema.INT64})
    with pytest.raises(ConnectError, match=r"more cannot be added.*neither optional nor has a default"):
        run.put([value(2, more=5)], value=made)


# --- records that do not fit ------------------------------------------------------------------------------------------


def test_records_that_the_database_refuses_are_reported_and_the_others_written(store: Store, start: Start) -> None:
    store.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT CHECK (length(item) < 7))")
    reporter = MemoryReporter()
    run = start(store, {}, reporter=reporter)
    run.put([value(number) for number in [*range(1, 12), 3]])
    assert rows(store) == expected(*range(1, 10))
    assert [record.original_offset for record, _ in reporter.reported] == [9, 10, 11]
    assert reporter.reported[0][0].value == {"id": 10, "item": "item 10"}


def test_without_a_place_for_them_the_task_fails_and_names_the_record(store: Store, start: Start) -> None:
    store.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT)")
    run = start(store, {})
    with pytest.raises(ConnectError, match=r"topic orders, partition 0, offset 2 cannot be written.*errors.tolerance"):
        run.put([value(1), value(2), value(1)])
    assert rows(store) == []


@pytest.mark.parametrize(
    ("config", "row", "told"),
    [
        (MADE, {"key": 1, "value": "text"}, "no struct"),
        (MADE, {"key": 1, "value": {"id": 1, "many": [1]}}, "Field many is a list"),
        (MADE, {"key": 1, "value": None}, "delete.enabled"),
        (UPSERT, {"key": None, "value": {"id": 1}}, "has no key"),
        ({**UPSERT, "pk.fields": "a,b"}, {"key": 1, "value": {"id": 1}}, "pk.fields must say"),
        ({**UPSERT, "pk.mode": "record_value", "pk.fields": "x"}, {"key": 1, "value": {"id": 1}}, "no field x"),
        ({**UPSERT, "pk.mode": "record_value"}, {"key": 1, "value": {"id": None}}, "is null"),
    ],
)
def test_records_without_rows_in_them(
    store: Store, start: Start, config: dict[str, str], row: dict[str, Any], told: str
) -> None:
    reporter = MemoryReporter()
    start(store, config, reporter=reporter).put([row])
    assert [told in str(error) for _, error in reporter.reported] == [True]


# --- exactly once -----------------------------------------------------------------------------------------------------


def ledger(store: Store) -> list[list[str]]:
    return store.run("SELECT topic, kafka_partition, next_offset FROM headgate_offsets ORDER BY 1, 2")


def test_records_and_offsets_are_visible_together(store: Store, start: Start) -> None:
    run = start(store, EXACT)
    run.put([value(1), value(2)])
    assert ledger(store) == [["orders", "0", ""]]
    assert run.commit(2) == {TopicPartition("orders", 0): 2}
    assert (rows(store), ledger(store)) == (expected(1, 2), [["orders", "0", "2"]])
    after = start(store, EXACT)
    assert after.context.rewound == {TopicPartition("orders", 0): 2}


def test_what_comes_again_is_not_written_again(store: Store, start: Start) -> None:
    run = start(store, EXACT)
    run.put([value(1), value(2)])
    run.commit(2)
    run.put([value(1), value(2), value(3)])  # Kafka did not hear of the commit
    run.commit(3)
    assert rows(store) == expected(1, 2, 3)


def test_a_zombie_that_wakes_up_changes_nothing(store: Store, start: Start) -> None:
    zombie = start(store, EXACT)
    zombie.put([value(1), value(2), value(3)])
    after = start(store, EXACT)
    with pytest.raises(PartitionTaken):  # before its successor has written anything
        zombie.commit(3)
    after.put([value(1), value(2)])
    after.commit(2)
    with pytest.raises(PartitionTaken):
        zombie.put([value(3)], first=2)
    assert (rows(store), ledger(store)) == (expected(1, 2), [["orders", "0", "2"]])
    after.put([value(3)], first=2)
    after.commit(3)
    assert rows(store) == expected(1, 2, 3)


def test_a_crash_between_the_rows_and_the_commit_leaves_nothing(
    store: Store, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(store, EXACT)
    run.put([value(0)])
    run.commit(1)
    run.put([value(1), value(2)], first=1)
    database = run.task._database
    assert database is not None
    monkeypatch.setattr(database, "commit", lambda: (_ for _ in ()).throw(RuntimeError("crash")))
    with pytest.raises(RuntimeError):
        run.commit(3)
    monkeypatch.undo()
    after = start(store, EXACT)
    assert after.context.rewound == {TopicPartition("orders", 0): 1}
    after.put([value(1), value(2)], first=1)
    after.commit(3)
    assert (rows(store), ledger(store)) == (expected(0, 1, 2), [["orders", "0", "3"]])


def test_partitions_that_go_take_only_their_own_records_with_them(pg: PostgresStore, start: Start) -> None:
    both = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    run = start(pg, EXACT, partitions=both)
    run.put([value(1)])
    run.put([value(2)], partition=1)
    run.task.close([both[0]])
    run.task.pre_commit({both[1]: 1})
    assert rows(pg) == expected(2)
    assert ledger(pg) == [["orders", "0", ""], ["orders", "1", "1"]]


@pytest.mark.kip(875, "altering offsets")
def test_offsets_that_a_user_sets_are_the_databases(store: Store, session: SparkSession, start: Start) -> None:
    where, other = TopicPartition("orders", 0), TopicPartition("orders", 1)
    old = start(store, EXACT)
    old.put([value(1), value(2), value(3)])
    old.commit(3)

    def alter(offsets: dict[TopicPartition, int | None]) -> None:
        connector = JdbcSink()
        connector.context = MemoryConnectorContext("sink", session=session)
        assert connector.alter_offsets({**store.config, **EXACT}, offsets)

    alter({where: 1, other: 7})
    assert ledger(store) == [["orders", "0", "1"], ["orders", "1", "7"]]
    with pytest.raises(PartitionTaken):  # one that was not stopped in time
        old.commit(3)
    again = start(store, EXACT, partitions=[where, other])
    assert again.context.rewound == {where: 1, other: 7}
    again.put([value(4), value(5)], first=1)
    again.commit(3)
    assert (rows(store), ledger(store)) == (expected(1, 2, 3, 4, 5), [["orders", "0", "3"], ["orders", "1", "7"]])
    alter({where: None})
    assert ledger(store) == [["orders", "0", ""], ["orders", "1", "7"]]
    alter({})
    assert start(store, EXACT, partitions=[where, other]).context.rewound == {}


def test_bad_records_are_reported_before_offsets_move(store: Store, start: Start) -> None:
    store.run("CREATE TABLE orders (id BIGINT PRIMARY KEY, item TEXT)")
    reporter = MemoryReporter()
    run = start(store, EXACT, reporter=reporter)
    run.put([value(1), value(1), value(2)])
    run.commit(3)
    assert (rows(store), ledger(store)) == (expected(1, 2), [["orders", "0", "3"]])
    assert [record.original_offset for record, _ in reporter.reported] == [1]


# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def mortal() -> Iterator[PostgresStore]:
    with Postgres() as running:
        yield PostgresStore(running, "sink")


@pytest.mark.parametrize("exact", [False, True], ids=["at least once", "exactly once"])
def test_a_database_that_dies_is_waited_for(mortal: PostgresStore, start: Start, exact: bool) -> None:
    run = start(mortal, EXACT if exact else MADE)
    run.put([value(1)])
    run.commit(1)
    mortal.server.kill()
    for _ in range(2):
        with pytest.raises(RetriableError):
            _put_and_commit(run)
    assert run.context.timeouts == [50, 50]
    mortal.server.restart()
    _put_and_commit(run)
    assert rows(mortal) == expected(1, 2, 3)


def _put_and_commit(run: SinkRun) -> None:
    run.put([value(2), value(3)], first=1)
    run.commit(3)


def test_a_database_that_does_not_come_back_fails_the_task(mortal: PostgresStore, start: Start) -> None:
    run = start(mortal, {**MADE, "max.retries": "1"})
    run.put([value(1)])
    mortal.server.kill()
    with pytest.raises(RetriableError):
        run.put([value(2)], first=1)
    with pytest.raises(ConnectError, match=r"After 2 tries .*cannot be reached") as raised:
        run.put([value(2)], first=1)
    assert not isinstance(raised.value, RetriableError)
    mortal.server.restart()


def test_a_wrong_password_is_told_without_it(pg: PostgresStore, start: Start) -> None:
    with pytest.raises(ConnectError, match=r"does not let us in") as raised:
        start(pg, {**EXACT, "connection.password": "not-this-one"})
    assert "not-this-one" not in str(raised.value)
