"""SparkSink's targets on the worker's Spark: what is in them after whatever has happened, told by reading them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark_sink_runtime import OTHER, WHERE, SinkTrial

from headgate.api import ConnectError, SinkRecord, TopicPartition, schema
from headgate.api.testing import MemoryConnectorContext, SinkConnectorSuite
from headgate.cli.assembly import StandaloneWorker
from headgate.connectors import SparkSink
from headgate.connectors.ledger import Taken
from headgate.connectors.spark.sink.delta import DeltaTarget
from headgate.connectors.spark.sink.file_ledger import FileLedger

pytestmark = pytest.mark.spark

Make = Callable[..., SinkTrial]
NOON = dt.datetime(2030, 1, 31, 12, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def session(worker: StandaloneWorker) -> SparkSession:
    made = worker.engine.session()
    made.range(1).collect()
    return made


@pytest.fixture
def make(session: SparkSession, tmp_path: Path) -> Iterator[Make]:
    """Tasks that write at each commit, to the same folder."""
    made: list[SinkTrial] = []

    def begin(**config: str) -> SinkTrial:
        given = {key.replace("_", "."): value for key, value in config.items()}
        full = {"path": str(tmp_path / "out"), "rotate.records": "1", **given}
        one = SinkTrial(full, session=session)
        one.task.open([WHERE, OTHER])
        made.append(one)
        return one

    yield begin
    for each in made:
        each.task.stop()


@pytest.fixture
def ids(session: SparkSession, tmp_path: Path) -> Callable[..., list[int]]:
    """What readers see."""

    def read(form: str = "parquet", **options: str) -> list[int]:
        if not any((tmp_path / "out").glob("[!_.]*")):
            return []
        frame = session.read.format(form).options(**options).schema("id BIGINT").load(str(tmp_path / "out"))
        return sorted(row.id for row in frame.collect())

    return read


def orders(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": number, "region": f"0{number % 2}", **more} for number in numbers]


@pytest.mark.parametrize("exactly_once", ["false", "true"], ids=["at least once", "exactly once"])
def test_rows_of_all_types_are_appended_and_the_columns_kept(
    make: Make, session: SparkSession, tmp_path: Path, exactly_once: str
) -> None:
    ddl = (
        "id BIGINT NOT NULL, region STRING, at TIMESTAMP, day DATE, price DECIMAL(10,2), tags ARRAY<STRING>,"
        " m MAP<STRING, INT>, s STRUCT<x: DOUBLE, y: BINARY>, local TIMESTAMP_NTZ"
    )
    row = {
        "id": 1, "region": "01", "at": "2030-01-31T12:00:00Z", "day": "2030-01-31", "price": 1.5, "tags": ["a", None],
        "m": {"k": 1}, "s": {"x": 1.0, "y": None}, "local": "2030-01-31T12:00:00",
    }  # fmt: skip
    first = make(schema=ddl, partition_by="region", exactly_once=exactly_once)
    first.put([row])
    assert first.commit(1, 0) == {WHERE: 1, OTHER: 0}
    second = make(partition_by="region", exactly_once=exactly_once)
    second.put([{"id": 2, "region": "02", "tags": []}], first=1)
    second.commit(2, 0)
    with pytest.raises(ConnectError, match="There is no column more"):
        second.put([{"id": 3, "more": 1}], first=2)
    with pytest.raises(ConnectError, match="A value of type STRING does not fit a column of type BIGINT"):
        second.put([{"id": "3"}], first=2)
    found = session.read.schema(ddl).parquet(str(tmp_path / "out")).orderBy("id").collect()
    assert [each.region for each in found] == ["01", "02"]
    one = found[0].asDict(recursive=True)
    local = dt.datetime(2030, 1, 31, 12)
    assert (one["at"].astimezone(dt.UTC), one["local"], one["day"]) == (NOON, local, dt.date(2030, 1, 31))
    assert (str(one["price"]), one["tags"], one["m"], one["s"]) == (
        "1.50",
        ["a", None],
        {"k": 1},
        {"x": 1.0, "y": None},
    )


def test_what_spark_cannot_write_is_told_in_one_sentence(make: Make, tmp_path: Path) -> None:
    one = make(format="csv")
    one.put([{"tags": [1]}])
    with pytest.raises(ConnectError, match=r"^Cannot write to file:.*CSV.*ARRAY<BIGINT>"):
        one.commit(1, 0)


def test_a_table_of_the_catalog_is_appended_to(make: Make, session: SparkSession, name: str) -> None:
    table = name.replace("-", "_")
    config = {"table": table, "name": "sink", "format": "parquet", "rotate.records": "1"}
    try:
        for start in (0, 2):
            one = SinkTrial(config, session=session)
            one.task.open([WHERE])
            one.put(orders(start, start + 1), first=start)
            one.commit(start + 2)
        assert sorted(row.id for row in session.table(table).collect()) == [0, 1, 2, 3]
    finally:
        session.sql(f"DROP TABLE IF EXISTS {table}")


# --- files, exactly once ----------------------------------------------------------------------------------------------

EXACT = {"exactly_once": "true", "partition_by": "region"}


@pytest.mark.parametrize("form", ["parquet", "orc", "json", "csv"])
def test_files_go_on_where_they_end(make: Make, ids: Callable[..., list[int]], form: str) -> None:
    first = make(format=form, **EXACT)
    first.put(orders(0, 1, 2))
    first.commit(3, 0)
    first.put(orders(3, 4), first=3)  # and it is gone before it writes them
    second = make(format=form, **EXACT)
    assert second.context.rewound == {WHERE: 3, OTHER: 0}
    second.put(orders(1, 2, 3), first=1)
    second.commit(4, 0)
    assert ids(form) == [0, 1, 2, 3]


class Crash(Exception):
    """The process is gone."""


def crash(*_: object) -> None:
    raise Crash


@pytest.mark.parametrize("step", ["commit", "settle"], ids=["before the commit", "after it"])
def test_a_crash_loses_and_doubles_nothing(
    make: Make, ids: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    first = make(**EXACT)
    first.put(orders(0, 1))
    first.commit(2, 0)
    first.put(orders(2, 3), first=2)
    with monkeypatch.context() as patch:
        patch.setattr(FileLedger, step, crash)
        with pytest.raises(Crash):
            first.commit(4, 0)
    assert ids() == [0, 1]
    second = make(**EXACT)
    following = second.context.rewound[WHERE]
    assert (following, ids()) == ((2, [0, 1]) if step == "commit" else (4, [0, 1, 2, 3]))
    second.put(orders(*range(following, 6)), first=following)
    second.commit(6, 0)
    assert ids() == [0, 1, 2, 3, 4, 5]


def test_a_zombie_changes_nothing(make: Make, ids: Callable[..., list[int]]) -> None:
    zombie = make(**EXACT)
    zombie.put(orders(0, 1, 2))
    second = make(**EXACT)
    second.put(orders(0, 1))
    second.commit(2, 0)
    with pytest.raises(Taken, match="Another task writes to folder"):
        zombie.commit(3, 0)
    assert ids() == [0, 1]
    zombie.put(orders(0, 1, 2))  # it goes on after what the other has written
    zombie.commit(3, 0)
    second.put(orders(2, 3), first=2)
    with pytest.raises(Taken):
        second.commit(4, 0)
    second.put(orders(2, 3), first=2)
    second.commit(4, 0)
    assert ids() == [0, 1, 2, 3]


def test_a_zombie_that_is_writing_when_its_successor_opens_changes_nothing(
    make: Make, ids: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie = make(**EXACT)
    zombie.put(orders(0, 1, 2))
    commit = FileLedger.commit
    opened: list[SinkTrial] = []

    def late(self: FileLedger, staged: Any) -> None:
        monkeypatch.setattr(FileLedger, "commit", commit)
        opened.append(make(**EXACT))
        commit(self, staged)

    monkeypatch.setattr(FileLedger, "commit", late)
    with pytest.raises(Taken):
        zombie.commit(3, 0)
    assert ids() == []
    opened[0].put(orders(0, 1, 2))
    opened[0].commit(3, 0)
    assert ids() == [0, 1, 2]


def test_a_folder_that_cannot_be_written_holds_it_up_and_no_more(
    make: Make, ids: Callable[..., list[int]], tmp_path: Path
) -> None:
    one, out = make(**EXACT), tmp_path / "out"
    out.mkdir(exist_ok=True)
    (out / "region=01").touch()
    one.put(orders(0, 1, 2))
    with pytest.raises(ConnectError, match=r"Cannot write to folder .*: File exists"):
        one.commit(3, 0)
    with pytest.raises(ConnectError, match="Cannot write to folder"):
        one.put(orders(0, 1, 2))
    (out / "region=01").unlink()
    one.put(orders(0, 1, 2))
    one.commit(3, 0)
    assert ids() == [0, 1, 2]


def test_columns_that_were_added_are_known_after_a_restart(make: Make, session: SparkSession, tmp_path: Path) -> None:
    first = make(schema_evolution="add", **EXACT)
    first.put(orders(0))
    first.commit(1, 0)
    first.put(orders(1, more=True), first=1)
    first.commit(2, 0)
    second = make(**EXACT)
    second.put(orders(2, more=False), first=2)
    second.commit(3, 0)
    found = session.read.option("mergeSchema", True).parquet(str(tmp_path / "out")).orderBy("id").collect()
    assert [each.more for each in found] == [None, True, False]


@pytest.mark.kip(875, "altering offsets")
def test_offsets_that_a_user_sets_are_the_folders(make: Make, ids: Callable[..., list[int]], tmp_path: Path) -> None:
    config = {"path": str(tmp_path / "out"), "exactly.once": "true", "name": "sink"}
    first = make(**EXACT)
    first.put(orders(0, 1))
    first.commit(2, 0)
    assert SparkSink().alter_offsets(config, {WHERE: 1})
    assert make(**EXACT).context.rewound == {WHERE: 1, OTHER: 0}
    assert SparkSink().alter_offsets(config, {})
    again = make(**EXACT)
    assert again.context.rewound == {}
    again.put(orders(0))
    again.commit(1, 0)
    assert ids() == [0, 0, 1]


# --- Delta ------------------------------------------------------------------------------------------------------------

DELTA = {"format": "delta", "exactly_once": "true"}
UPSERT = {**DELTA, "mode": "upsert", "key_columns": "id"}


@pytest.fixture
def rows(session: SparkSession, tmp_path: Path) -> Callable[[], list[Mapping[str, Any]]]:
    def read() -> list[Mapping[str, Any]]:
        found = session.read.format("delta").load(str(tmp_path / "out")).orderBy("id").collect()
        return [row.asDict() for row in found]

    return read


Rows = Callable[[], list[Mapping[str, Any]]]


def numbers(rows: Rows) -> list[int]:
    return [row["id"] for row in rows()]


@pytest.mark.parametrize("heard", [False, True], ids=["nobody hears of", "is heard of"])
def test_delta_goes_on_after_a_commit_that(
    make: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch, heard: bool
) -> None:
    first = make(**DELTA)
    first.put(orders(0, 1))
    first.commit(2, 0)
    first.put(orders(2), first=2)
    with monkeypatch.context() as patch:
        if not heard:
            patch.setattr(DeltaTarget, "_check", crash)
        with suppress(Crash):
            first.commit(3, 0)
    second = make(**DELTA)
    assert second.context.rewound == {WHERE: 3, OTHER: 0}
    second.put(orders(1, 2, 3), first=1)
    second.commit(4, 0)
    assert numbers(rows) == [0, 1, 2, 3]


def test_delta_shuts_out_a_zombie(make: Make, rows: Rows) -> None:
    zombie = make(**DELTA)
    zombie.put(orders(0, 1, 2))
    second = make(**DELTA)
    second.put(orders(0, 1))
    second.commit(2, 0)
    with pytest.raises(Taken, match="Another task writes to"):
        zombie.commit(3, 0)
    assert numbers(rows) == [0, 1]
    zombie.put(orders(0, 1, 2))
    zombie.commit(3, 0)
    assert numbers(rows) == [0, 1, 2]


def test_delta_keeps_offsets_of_what_was_dropped_and_others_may_write_too(
    make: Make, rows: Rows, session: SparkSession, tmp_path: Path
) -> None:
    one = make(**DELTA)
    one.put(orders(0))
    one.commit(1, 0)
    session.sql(f"UPDATE delta.`{tmp_path / 'out'}` SET region = 'x'")
    one.now = 1000.0
    one.commit(7, 0)
    assert make(**DELTA).context.rewound == {WHERE: 7, OTHER: 0}
    assert rows() == [{"id": 0, "region": "x"}]


def test_rows_are_changed_and_deleted_by_their_keys_once(
    make: Make, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = make(**UPSERT)
    first.put([{"id": 1, "n": 1}, {"id": 2, "n": 1}, {"id": 1, "n": 2}, None], keys=[1, 2, 1, 9])
    first.commit(4, 0)
    assert rows() == [{"id": 1, "n": 2}, {"id": 2, "n": 1}]
    first.put([None, {"id": 3, "n": 3}, {"id": 1, "n": 3}], keys=[2, 3, 1], first=4)
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTarget, "_check", crash)
        with pytest.raises(Crash):
            first.commit(7, 0)
    second = make(**UPSERT)
    assert second.context.rewound == {WHERE: 7, OTHER: 0}
    second.put([None], keys=[3], first=7)
    second.commit(8, 0)
    assert rows() == [{"id": 1, "n": 3}]


def test_columns_are_added_to_delta_also_by_an_upsert(make: Make, rows: Rows) -> None:
    one = make(**{**UPSERT, "exactly_once": "false"}, schema_evolution="add")
    one.put([{"id": 1, "s": {"x": 1}}], keys=[1])
    one.commit(1, 0)
    one.put([{"id": 2, "s": {"x": 2, "y": "a"}, "more": 0.5}], keys=[2], first=1)
    one.commit(2, 0)
    first, second = rows()
    assert (first["s"].asDict(), first["more"]) == ({"x": 1, "y": None}, None)
    assert (second["s"].asDict(), second["more"]) == ({"x": 2, "y": "a"}, 0.5)


def alter(session: SparkSession, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]) -> bool:
    connector = SparkSink()
    connector.context = MemoryConnectorContext("sink", session=session)
    return connector.alter_offsets({"name": "sink", **config}, offsets)


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize("mode", [DELTA, UPSERT], ids=["append", "upsert"])
def test_offsets_that_a_user_sets_are_the_tables(
    make: Make, rows: Rows, session: SparkSession, tmp_path: Path, mode: Mapping[str, str]
) -> None:
    config = {"path": str(tmp_path / "out"), **{key.replace("_", "."): value for key, value in mode.items()}}
    assert alter(session, config, {WHERE: 1})  # there is no table yet: the group says it alone
    assert make(**mode).context.rewound == {}
    first = make(**mode)
    first.put(orders(0, 1, 2))
    first.commit(3, 0)
    assert alter(session, config, {WHERE: 1, OTHER: 5})
    first.put(orders(3), first=3)
    with pytest.raises(Taken):  # one that was not stopped in time
        first.commit(4, 5)
    assert numbers(rows) == [0, 1, 2]
    again = make(**mode)
    assert again.context.rewound == {WHERE: 1, OTHER: 5}
    again.put(orders(1), first=1)
    again.commit(2, 5)
    assert numbers(rows) == ([0, 1, 1, 2] if mode is DELTA else [0, 1, 2])
    assert alter(session, config, {WHERE: None})
    assert make(**mode).context.rewound == {OTHER: 5}
    assert alter(session, config, {})
    assert make(**mode).context.rewound == {}


# --- what is expected of every connector ------------------------------------------------------------------------------

VALUE = schema.struct({"id": schema.INT64, "region": schema.STRING})


class Accepted(SinkConnectorSuite):
    connector = SparkSink
    form = "parquet"

    @pytest.fixture(autouse=True)
    def given_a_folder(self, session: SparkSession, tmp_path: Path) -> None:
        self.session, self.folder = session, tmp_path / "out"
        once = str(self.form == "orc").lower()
        self.config = {"path": str(self.folder), "format": self.form, "rotate.records": "1", "exactly.once": once}

    def make_records(self, first: int, count: int) -> list[SinkRecord]:
        made = super().make_records(first, count)
        return [each.with_value({"id": each.offset, "region": "eu"}, VALUE) for each in made]

    def batch(self, task: Any, records: Any) -> Any:
        from spark_sink_runtime import table

        task.value_schema = VALUE
        first = records[0].offset if records else 0
        keys = [each.key for each in records]
        return table([each.value for each in records], first, self.partition, keys, VALUE)

    def written(self) -> list[Any]:
        if not any(self.folder.glob("[!_.]*")):
            return []
        return [row.asDict() for row in self.session.read.format(self.form).load(str(self.folder)).collect()]


class TestAppending(Accepted):
    pass


class TestExactlyOnce(Accepted):
    form = "orc"
