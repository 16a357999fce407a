"""Tables of Iceberg without Spark: what pyiceberg is asked, of tables in a folder and files that Arrow writes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table.maintenance import MaintenanceTable
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField, TimeType, UUIDType

from headgate.api import ConnectError
from headgate.connectors.spark.sink.ddl import parse, written
from headgate.connectors.spark.sink.iceberg import catalog_properties
from headgate.connectors.spark.sink.iceberg_files import columns_of, data_file, partitions_of, touched_files
from headgate.connectors.spark.sink.iceberg_table import IcebergCatalog, IcebergTable, Outdated, asked

NAME = "shop.orders"


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[IcebergCatalog]:
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    made = IcebergCatalog("lake", where)
    yield made
    made._catalog.close()


def catalog_of(tables: IcebergCatalog) -> Catalog:
    return tables._catalog


def created(tables: IcebergCatalog, ddl: str, *partition_by: str) -> IcebergTable:
    tables.create(NAME, parse(ddl), partition_by)
    return loaded(tables)


def loaded(tables: IcebergCatalog) -> IcebergTable:
    found = tables.load(NAME)
    assert found is not None
    return found


@pytest.fixture
def add(tmp_path: Path) -> Callable[..., Any]:
    """One more file with these rows, of one partition."""

    def write(table: IcebergTable, rows: list[dict[str, Any]], **notes: str) -> None:
        data = pa.Table.from_pylist(rows, table.columns)
        path = str(tmp_path / f"{len(list(tmp_path.glob('*.parquet')))}.parquet")
        pq.write_table(data, path)
        (partition,) = partitions_of(data, table.metadata)[1]
        table.commit([data_file(path, partition, table.metadata, table.io)], [], notes)

    return write


def rows_of(tables: IcebergCatalog) -> list[dict[str, Any]]:
    return sorted(catalog_of(tables).load_table(NAME).scan().to_arrow().to_pylist(), key=lambda row: row["id"])


def ids(tables: IcebergCatalog) -> list[int]:
    return [row["id"] for row in rows_of(tables)]


# --- columns ----------------------------------------------------------------------------------------------------------


def test_columns_are_those_that_rows_have_elsewhere(tables: IcebergCatalog) -> None:
    ddl = (
        "id BIGINT NOT NULL, small TINYINT, name STRING, data BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ,"
        " price DECIMAL(20,4), flag BOOLEAN, x FLOAT, y DOUBLE, tags ARRAY<STRING>, m MAP<STRING, ARRAY<INT>>,"
        " s STRUCT<a: STRING, b: STRUCT<c: BINARY>>"
    )
    # Iceberg has no smaller numbers.
    assert written(created(tables, ddl).columns) == ddl.replace("TINYINT", "INT")


@pytest.mark.parametrize("kind", [UUIDType(), TimeType()])
def test_a_column_that_spark_has_no_type_for_is_named(kind: Any) -> None:
    with pytest.raises(ConnectError, match="Column x has a type that Spark cannot write to Iceberg"):
        columns_of(Schema(NestedField(1, "x", kind)))


def test_columns_are_added_within_others_too_and_none_changes(tables: IcebergCatalog, add: Callable[..., Any]) -> None:
    add(created(tables, "id BIGINT NOT NULL, s STRUCT<x: INT>"), [{"id": 1, "s": {"x": 1}}])
    table = loaded(tables)
    table.add_columns(parse("id BIGINT, s STRUCT<x: INT, y: STRING>, more ARRAY<STRUCT<z: DATE>> NOT NULL"))
    add(table, [{"id": 2, "s": {"x": 2, "y": "b"}, "more": [{"z": None}]}])
    assert written(loaded(tables).columns) == (
        "id BIGINT NOT NULL, s STRUCT<x: INT, y: STRING>, more ARRAY<STRUCT<z: DATE>>"
    )
    assert rows_of(tables) == [
        {"id": 1, "s": {"x": 1, "y": None}, "more": None},
        {"id": 2, "s": {"x": 2, "y": "b"}, "more": [{"z": None}]},
    ]


# --- partitions -------------------------------------------------------------------------------------------------------


def test_rows_are_in_the_partition_of_their_values(tables: IcebergCatalog) -> None:
    table = created(tables, "id BIGINT, region STRING, day DATE, price DECIMAL(4,1)", "region", "day", "price")
    day, price = dt.date(1970, 1, 3), Decimal("1.5")
    values = [("eu", day, price), ("us", None, price), ("eu", day, price), (None, None, None), ("eu", None, price)]
    rows = [dict(zip(("region", "day", "price"), each, strict=True)) for each in values]
    numbers, found = partitions_of(pa.Table.from_pylist(rows, table.columns), table.metadata)
    expected = [Record(region, None if date is None else 2, price) for region, date, price in values]
    assert [found[number] for number in numbers.to_pylist()] == expected
    assert len(found) == 4


def test_partitions_that_others_have_chosen_are_kept_to(tables: IcebergCatalog, add: Callable[..., Any]) -> None:
    created(tables, "id BIGINT, at TIMESTAMP")
    with catalog_of(tables).load_table(NAME).update_spec() as update:
        update.add_field("at", DayTransform(), "day")
        update.add_field("id", BucketTransform(2), "bucket")
    table = loaded(tables)
    assert table.partitioned_by == ("day", "bucket")
    at = dt.datetime(1970, 1, 2, 3, tzinfo=dt.UTC)
    rows = [{"id": 5, "at": at}, {"id": 5, "at": at.replace(hour=4)}, {"id": 5, "at": None}, {"id": None, "at": at}]
    numbers, found = partitions_of(pa.Table.from_pylist(rows, table.columns), table.metadata)
    bucket = BucketTransform(2).transform(table.metadata.schema().find_type("id"))(5)
    expected = [Record(1, bucket), Record(1, bucket), Record(None, bucket), Record(1, None)]
    assert [found[number] for number in numbers.to_pylist()] == expected
    add(table, rows[:2])
    assert ids(tables) == [5, 5]


# --- commits ----------------------------------------------------------------------------------------------------------


def test_a_commit_to_what_others_have_changed_changes_nothing(tables: IcebergCatalog, add: Callable[..., Any]) -> None:
    created(tables, "id BIGINT")
    late, first = loaded(tables), loaded(tables)
    add(first, [{"id": 1}])
    with pytest.raises(Outdated):
        add(late, [{"id": 2}])
    assert ids(tables) == [1]
    late = loaded(tables)
    with catalog_of(tables).load_table(NAME).transaction() as other:
        other.set_properties(owner="somebody")
    add(late, [{"id": 3}])  # that has nothing to do with it
    assert ids(tables) == [1, 3]


def test_a_commit_whose_answer_was_lost_is_seen_in_the_table(
    tables: IcebergCatalog, add: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    created(tables, "id BIGINT")
    commit = catalog_of(tables).commit_table

    def lost(*given: Any) -> None:
        commit(*given)
        raise CommitFailedException("It was made already")

    monkeypatch.setattr(catalog_of(tables), "commit_table", lost)
    add(loaded(tables), [{"id": 1}])
    assert ids(tables) == [1]


def test_columns_that_readers_would_not_find_are_not_written(tables: IcebergCatalog, add: Callable[..., Any]) -> None:
    """A table of others gets a name mapping, but one that lacks a column is not touched: it may have older names."""
    created(tables, "id BIGINT, s STRUCT<x: INT>, tags ARRAY<STRING>, m MAP<STRING, INT>")
    add(loaded(tables), [{"id": 1}])
    table = catalog_of(tables).load_table(NAME)
    mapping = table.properties["schema.name-mapping.default"]
    table.transaction().set_properties(
        {"schema.name-mapping.default": mapping.replace('"x"', '"y"')}
    ).commit_transaction()
    with pytest.raises(ConnectError, match=r"name-mapping.default of the table lacks a column, .* s.x"):
        add(loaded(tables), [{"id": 2}])


def test_who_creates_a_table_that_is_there_has_it(tables: IcebergCatalog) -> None:
    assert tables.load(NAME) is None
    assert created(tables, "id BIGINT, region STRING", "region").partitioned_by == ("region",)
    assert written(created(tables, "other INT").columns) == "id BIGINT, region STRING"


def test_the_newest_note_is_told_also_when_its_snapshot_is_gone(
    tables: IcebergCatalog, add: Callable[..., Any]
) -> None:
    created(tables, "id BIGINT")
    assert loaded(tables).note("mine") is None
    for number, note in enumerate([{"mine": "a"}, {"mine": "b"}, {"theirs": "c"}, {}]):
        add(loaded(tables), [{"id": number}], **note)
    assert loaded(tables).note("mine") == "b"
    table = catalog_of(tables).load_table(NAME)
    old = [each.snapshot_id for each in table.metadata.snapshots[:3]]
    MaintenanceTable(table).expire_snapshots().by_ids(old).commit()
    assert [loaded(tables).note(key) for key in ("mine", "theirs", "nobody's")] == ["b", "c", None]


def test_the_note_of_what_was_rolled_back_is_not_told(tables: IcebergCatalog, add: Callable[..., Any]) -> None:
    created(tables, "id BIGINT")
    for note in "ab":
        add(loaded(tables), [{"id": 1}], mine=note)
    table = catalog_of(tables).load_table(NAME)
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(table.metadata.snapshots[0].snapshot_id)
    assert loaded(tables).note("mine") == "a"


# --- files that are touched -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("partition_by", [(), ("region",)])
@pytest.mark.parametrize("more", [0, 500], ids=["few keys", "many keys"])
def test_files_with_rows_of_these_keys_are_replaced(
    tables: IcebergCatalog, add: Callable[..., Any], partition_by: tuple[str, ...], more: int
) -> None:
    table = created(tables, "id BIGINT, region STRING, n INT", *partition_by)
    for number, region in enumerate(["eu", "us", "eu"]):
        add(loaded(tables), [{"id": number * 10 + each, "region": region, "n": each} for each in range(3)])
    wanted = [(1, "eu"), (11, "eu"), (20, "eu"), *((number, "eu") for number in range(100, 100 + more))]
    keys = pa.table({"id": [each for each, _ in wanted], "region": [each for _, each in wanted]})
    table = loaded(tables)
    touched = list(touched_files(table.metadata, table.io, keys))
    assert sorted(kept.column("id").to_pylist() for _, kept in touched) == [[0, 2], [21, 22]]
    table.commit([], [file for file, _ in touched], {})
    assert ids(tables) == [10, 11, 12]


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_what_a_catalog_says_is_told_in_one_line() -> None:
    with pytest.raises(ConnectError, match=r"^Cannot write to lake.x: ValueError: one$"), asked("lake.x"):
        raise ValueError("one\ntwo")
    with (
        pytest.raises(ConnectError, match=r"Cannot write to lake.x: ValueError: 'hadoop' is not a valid"),
        asked("lake.x"),
    ):
        IcebergCatalog("lake", {"type": "hadoop"})


def test_a_catalog_is_what_the_worker_file_says() -> None:
    known = {
        "spark.sql.catalog.lake": "x",
        "spark.sql.catalog.lake.type": "rest",
        "spark.sql.catalog.lake.s3.region": "y",
    }
    session = cast(Any, SimpleNamespace(conf=SimpleNamespace(getAll=known)))
    assert catalog_properties(session, "lake") == {"type": "rest", "s3.region": "y"}
    with pytest.raises(ConnectError, match=r"knows no catalog sea: .* spark\.sql\.catalog\.sea\.type and .*\.sea\.uri"):
        catalog_properties(session, "sea")
