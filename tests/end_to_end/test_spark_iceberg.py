"""SparkSink to Iceberg: what readers of the table see after whatever has happened, told by pyiceberg."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from dead_letters_support import committed
from harness import JSON, STRING, Client, await_
from iceberg_support import CATALOG, TABLE, catalog_in, properties
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyspark.sql import SparkSession
from spark_sink_runtime import OTHER, WHERE, SinkTrial

from headgate.api import ConnectError
from headgate.api.testing import MemoryConnectorContext
from headgate.cli.assembly import StandaloneWorker
from headgate.connectors import SparkSink
from headgate.connectors.ledger import Taken
from headgate.connectors.spark.sink.ddl import parse
from headgate.connectors.spark.sink.iceberg_table import IcebergTable

pytestmark = pytest.mark.spark

Make = Callable[..., SinkTrial]
Rows = Callable[[], list[Mapping[str, Any]]]
EXACT = {"exactly_once": "true"}
UPSERT = {**EXACT, "mode": "upsert", "key_columns": "id"}
NOON = dt.datetime(2030, 1, 31, 12, tzinfo=dt.UTC)


@pytest.fixture
def session(worker: StandaloneWorker, tmp_path: Path) -> SparkSession:
    """With a catalog of this test alone."""
    made = worker.engine.session().newSession()
    for key, value in properties(tmp_path).items():
        made.conf.set(f"spark.sql.catalog.{CATALOG}.{key}", value)
    return made


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    made = catalog_in(tmp_path)
    yield made
    made.close()


@pytest.fixture
def make(session: SparkSession) -> Iterator[Make]:
    """Tasks that write at each commit, to the same table."""
    made: list[SinkTrial] = []

    def begin(**config: str) -> SinkTrial:
        given = {key.replace("_", "."): value for key, value in config.items()}
        full = {"format": "iceberg", "catalog": CATALOG, "table": TABLE, "rotate.records": "1", **given}
        one = SinkTrial(full, session=session)
        one.task.open([WHERE, OTHER])
        made.append(one)
        return one

    yield begin
    for each in made:
        each.task.stop()


@pytest.fixture
def table(catalog: Catalog) -> Callable[[], Table]:
    return lambda: catalog.load_table(TABLE)


@pytest.fixture
def rows(table: Callable[[], Table]) -> Rows:
    """What readers see."""
    return lambda: sorted(table().scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def orders(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, "region": f"0{number % 2}", **more} for number in numbers]


def ids(rows: Rows) -> list[int]:
    return [row["id"] for row in rows()]


class Crash(Exception):
    """The process is gone."""


def crash(*_: object) -> None:
    raise Crash


def test_rows_of_all_types_are_the_same_to_other_readers(make: Make, rows: Rows, table: Callable[[], Table]) -> None:
    ddl = (
        "id BIGINT NOT NULL, small SMALLINT, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE, price DECIMAL(10,2),"
        " big DECIMAL(38,9), data BINARY, flag BOOLEAN, x FLOAT, y DOUBLE, tags ARRAY<STRING>,"
        " m MAP<STRING, STRUCT<n: INT>>, s STRUCT<t: TIMESTAMP, l: ARRAY<STRUCT<d: DECIMAL(5,1)>>>"
    )
    full = {
        "id": 1, "small": 7, "at": "2030-01-31T12:00:00Z", "local": "2030-01-31T12:00:00.000001", "day": "2030-01-31",
        "price": 1.5, "big": "12345678901234567890.123456789", "data": b"\x00\xff", "flag": True, "x": 0.5, "y": -1e300,
        "tags": ["a", None], "m": {"k": {"n": 1}}, "s": {"t": "1969-12-31T23:59:59.999Z", "l": [{"d": 2.5}, None]},
    }  # fmt: skip
    one = make(schema=ddl)
    one.put([full])
    one.put([{"id": 2, "tags": [], "m": {}}], first=1)
    assert one.commit(2, 0) == {WHERE: 2, OTHER: 0}
    first, second = rows()
    assert first == {
        **full, "at": NOON, "local": dt.datetime(2030, 1, 31, 12, 0, 0, 1), "day": NOON.date(),
        "price": Decimal("1.50"), "big": Decimal("12345678901234567890.123456789"), "m": [("k", {"n": 1})],
        "s": {"t": dt.datetime(1969, 12, 31, 23, 59, 59, 999000, dt.UTC), "l": [{"d": Decimal("2.5")}, None]},
    }  # fmt: skip
    assert second == {**dict.fromkeys(full), "id": 2, "tags": [], "m": []}
    for text in ("at = '2030-01-31T12:00:00+00:00'", "price = 1.50", "big > 1", "day = '2030-01-31'", "y < 0"):
        assert len(table().scan(row_filter=text).to_arrow()) == 1, "by what is known of the file"
    again = make()
    again.put([{"id": 3, "small": 8}], first=2)
    again.commit(3, 0)
    assert ids(rows) == [1, 2, 3]
    with pytest.raises(ConnectError, match="There is no column more"):
        again.put([{"id": 4, "more": 1}], first=3)


def test_rows_are_in_the_partitions_of_a_column(make: Make, rows: Rows, table: Callable[[], Table]) -> None:
    one = make(partition_by="region,day", schema="id BIGINT, region STRING, day DATE")
    one.put([{"id": 1, "region": "a=/b", "day": "2030-01-31"}, {"id": 2}, {"id": 3, "region": "a=/b"}, {"id": 4}])
    one.commit(4, 0)
    assert [row["region"] for row in rows()] == ["a=/b", None, "a=/b", None]
    found = table().inspect.partitions().to_pylist()
    shown = {(each["partition"]["region"], each["partition"]["day"], each["record_count"]) for each in found}
    assert shown == {("a=/b", NOON.date(), 1), (None, None, 2), ("a=/b", None, 1)}
    assert [task.file.record_count for task in table().scan("day = '2030-01-31'").plan_files()] == [1]
    with pytest.raises(ConnectError, match=r"is partitioned by region, day, and partition.by says day\. Leave it out"):
        make(partition_by="day")


# --- exactly once -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("crashed", "following"), [("before", 2), ("after", 3)])
def test_it_goes_on_where_the_table_ends_after_a_crash(
    make: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch, table: Callable[[], Table], crashed: str, following: int
) -> None:
    first = make(**EXACT)
    first.put(orders(0, 1))
    first.commit(2, 0)
    first.put(orders(2), first=2)
    commit = IcebergTable.commit

    def and_crash(self: IcebergTable, *given: Any) -> None:
        commit(self, *given)
        crash()

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", crash if crashed == "before" else and_crash)
        with pytest.raises(ConnectError, match="Crash"):
            first.commit(3, 0)
    assert len(ids(rows)) == following
    assert len(list(Path(table().location().removeprefix("file://")).rglob("*.parquet"))) == 2, "it was staged"
    second = make(**EXACT)
    assert second.context.rewound == {WHERE: following, OTHER: 0}
    second.put(orders(1, 2, 3), first=1)
    second.commit(4, 0)
    assert ids(rows) == [0, 1, 2, 3]


def test_a_zombie_changes_nothing(make: Make, rows: Rows, table: Callable[[], Table]) -> None:
    zombie = make(**EXACT)
    zombie.put(orders(0, 1, 2))
    second = make(**EXACT)
    second.put(orders(0, 1))
    second.commit(2, 0)
    with pytest.raises(Taken, match=r"Another task writes to lake\.shop\.orders"):
        zombie.commit(3, 0)
    assert (ids(rows), len(table().snapshots())) == ([0, 1], 1)
    zombie.put(orders(0, 1, 2))  # it goes on after what the other has written
    zombie.commit(3, 0)
    assert ids(rows) == [0, 1, 2]


@pytest.mark.parametrize("who", ["its successor", "somebody else"])
def test_of_two_who_commit_at_the_same_time_one_is_first(
    make: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch, table: Callable[[], Table], who: str
) -> None:
    one = make(**EXACT)
    one.put(orders(0, 1))
    one.commit(2, 0)
    other = make(**EXACT, **({} if who == "its successor" else {"name": "another"}))
    commit = IcebergTable.commit

    def late(self: IcebergTable, *given: Any) -> None:
        monkeypatch.setattr(IcebergTable, "commit", commit)
        other.put(orders(2), first=2)
        other.commit(3, 0)
        commit(self, *given)

    monkeypatch.setattr(IcebergTable, "commit", late)
    one.put(orders(2, 3), first=2)
    if who == "its successor":
        with pytest.raises(Taken):
            one.commit(4, 0)
        assert ids(rows) == [0, 1, 2]
        files = {Path(task.file.file_path.removeprefix("file://")) for task in table().scan().plan_files()}
        assert set(Path(table().location().removeprefix("file://")).rglob("*.parquet")) == files, "nothing is left over"
    else:
        one.commit(4, 0)
        assert ids(rows) == [0, 1, 2, 2, 3]
        assert make(**EXACT).context.rewound == {WHERE: 4, OTHER: 0}


def test_offsets_of_what_was_dropped_are_kept_and_others_may_write_too(
    make: Make, rows: Rows, table: Callable[[], Table]
) -> None:
    one = make(**EXACT)
    one.put(orders(0))
    one.commit(1, 0)
    table().append(table().scan().to_arrow())
    one.now = 1000.0
    one.commit(7, 0)
    assert make(**EXACT).context.rewound == {WHERE: 7, OTHER: 0}
    assert make(**EXACT, name="another").context.rewound == {}
    assert ids(rows) == [0, 0]


@pytest.mark.kip(875, "altering offsets")
def test_offsets_that_a_user_sets_are_the_tables(make: Make, rows: Rows, session: SparkSession) -> None:
    connector = SparkSink()
    connector.context = MemoryConnectorContext("sink", session=session)
    config = {"format": "iceberg", "catalog": CATALOG, "table": TABLE, "exactly.once": "true", "name": "sink"}
    assert connector.alter_offsets(config, {WHERE: 1})  # there is no table yet
    first = make(**EXACT)
    first.put(orders(0, 1))
    first.commit(2, 0)
    assert connector.alter_offsets(config, {WHERE: 1, OTHER: None})
    again = make(**EXACT)
    assert again.context.rewound == {WHERE: 1}
    again.put(orders(1), first=1)
    again.commit(2, 0)
    assert ids(rows) == [0, 1, 1]


# --- upsert -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partition_by", ["", "region"])
def test_rows_are_changed_and_deleted_by_their_keys_once(
    make: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch, partition_by: str
) -> None:
    config = {**UPSERT, "partition_by": partition_by} if partition_by else UPSERT
    if partition_by:
        monkeypatch.setattr("headgate.connectors.spark.sink.iceberg._MOST_BYTES", 1)  # each file by itself
    first = make(**config)
    first.put([None], keys=[9])
    first.commit(1, 0)  # there is nothing, and no table to keep it in
    first.put([*orders(1, 2, n=1), *orders(1, n=2), None], keys=[1, 2, 1, 9], first=1)
    first.commit(5, 0)
    assert rows() == [*orders(1, n=2), *orders(2, n=1)]
    first.put([None, *orders(3, 1, n=3)], keys=[2, 3, 1], first=5)
    commit = IcebergTable.commit

    def and_crash(self: IcebergTable, *given: Any) -> None:
        commit(self, *given)
        crash()

    with monkeypatch.context() as patch:
        patch.setattr(IcebergTable, "commit", and_crash)
        with pytest.raises(ConnectError, match="Crash"):
            first.commit(8, 0)
    second = make(**config)
    assert second.context.rewound == {WHERE: 8, OTHER: 0}
    second.put([None], keys=[3], first=8)
    second.commit(9, 0)
    assert rows() == orders(1, n=3)


def test_columns_are_added_also_by_an_upsert(make: Make, rows: Rows) -> None:
    one = make(**{**UPSERT, "exactly_once": "false"}, schema_evolution="add")
    one.put([{"id": 1, "s": {"x": 1}}], keys=[1])
    one.commit(1, 0)
    one.put([{"id": 2, "s": {"x": 2, "y": "a"}, "more": 0.5}, {"id": 1, "s": {"x": 3}}], keys=[2, 1], first=1)
    one.commit(3, 0)
    assert rows() == [
        {"id": 1, "s": {"x": 3, "y": None}, "more": None},
        {"id": 2, "s": {"x": 2, "y": "a"}, "more": 0.5},
    ]


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_column_of_others_that_may_not_be_null_is_not(make: Make, catalog: Catalog) -> None:
    catalog.create_namespace("shop")
    catalog.create_table(TABLE, parse("id BIGINT NOT NULL, region STRING"))
    one = make(schema="region STRING")
    one.put([{"region": "eu"}])
    with pytest.raises(ConnectError, match=r"Column id of lake.shop.orders may not be null, and a row has no value"):
        one.commit(1, 0)


def test_what_is_missing_is_named(make: Make, session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectError, match=r"knows no catalog sea: its file must say .*spark\.sql\.catalog\.sea\.type"):
        make(catalog="sea")
    make().task.open([WHERE])
    one = make()
    one.put(orders(0, 1))
    monkeypatch.setattr("headgate.connectors.spark.sink.iceberg._uri", lambda folder: f"file:{folder[7:]}-elsewhere")
    with pytest.raises(ConnectError, match=r"^Cannot write to lake\.shop\.orders: FileNotFoundError"):
        one.commit(2, 0)


def test_rows_that_the_worker_does_not_find_are_not_committed(
    make: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with executors that have a disk of their own."""
    one = make()
    one.put(orders(0, 1))
    monkeypatch.setattr("pyspark.sql.classic.dataframe.DataFrame.inputFiles", lambda _: [])
    with pytest.raises(ConnectError, match=r"Of 2 rows for lake\.shop\.orders this worker finds 0 in"):
        one.commit(2, 0)
    assert ids(rows) == []


# --- a worker ---------------------------------------------------------------------------------------------------------


def test_a_connector_writes_to_a_table_that_the_worker_file_names(
    client: Client, worker: StandaloneWorker, producer: Producer, topic: str, name: str
) -> None:
    config = {
        "connector.class": "headgate.SparkSink", "topics": topic, "format": "iceberg", "catalog": CATALOG,
        "table": TABLE, "key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "false",
        "rotate.ms": "300", "exactly.once": "true",
    }  # fmt: skip
    refused = client.create(name, {**config, "table": "shop.other"}, 400)
    assert "lake.shop.other cannot be used" in refused["message"]
    producer.produce(topic, b'{"id": 1}')
    producer.produce(topic, b'{"id": 2}')
    assert producer.flush(30) == 0
    client.create(name, config)
    await_(lambda: committed(client, name) == 2, "the commit of both", 90)
    client.call("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    producer.produce(topic, b'{"id": 3}')
    assert producer.flush(30) == 0
    await_(lambda: committed(client, name) == 3, "the third", 90)
    folder = Path(worker.raw[f"spark.sql.catalog.{CATALOG}.uri"].removeprefix("sqlite:///")).parent
    made = catalog_in(folder)
    try:
        assert sorted(row["id"] for row in made.load_table(TABLE).scan().to_arrow().to_pylist()) == [1, 2, 3]
    finally:
        made.close()
