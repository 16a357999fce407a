"""Folders as sources: formats, order, places within files, files that cannot be read."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from harness import await_
from pyspark.sql import SparkSession
from spark_source_support import polled, running, values

from headgate.api import ConfigError, ConnectError, Reach, SourceFrame, SourceTable, schema
from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext, SourceConnectorSuite
from headgate.cli.assembly import StandaloneWorker
from headgate.connectors import SparkSource

pytestmark = pytest.mark.spark


@pytest.fixture
def session(worker: StandaloneWorker) -> SparkSession:
    return worker.engine.session()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in {a,b} [x]"  # nothing of it is a pattern
    made.mkdir()
    return made


def config(folder: Path, kind: str = "text", **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    base = {"path": str(folder), "topic": "t", "format": kind, "settle.ms": "0", "poll.interval.ms": "10"}
    return {**base, **given}


def put(folder: Path, name: str, text: str, at: float | None = None) -> None:
    """All at once, as writers should."""
    (folder / f".{name}").write_text(text)
    if at is not None:
        os.utime(folder / f".{name}", (at, at))
    (folder / f".{name}").rename(folder / name)


@pytest.mark.parametrize("order", ["name", "time"])
class TestAcceptance(SourceConnectorSuite):
    connector = SparkSource
    patience = 60.0

    @pytest.fixture(autouse=True)
    def given_a_folder(self, session: SparkSession, folder: Path, order: str) -> None:
        self.session, self.folder, self.count = session, folder, 0
        self.config = config(folder, "json", batch_size="2", order_by=order, schema="id INT")

    def add_data(self, count: int) -> None:
        records = [json.dumps({"id": self.count + number}) for number in range(count)]
        put(self.folder, f"{self.count:04}.json", "".join(f"{each}\n" for each in records))
        self.count += count


def test_lines_of_text_are_values_themselves_in_the_order_of_files(session: SparkSession, folder: Path) -> None:
    put(folder, "b", "three\nfour\n")
    put(folder, "a", "one\ntwo\n")
    put(folder, "_SUCCESS", "no\n")
    with running(session, config(folder)) as task:
        found = polled(task, 4)
        assert values(found) == ["one", "two", "three", "four"]
        given = found[-1]
        assert given.value_schema == schema.OPTIONAL_STRING
        assert (given.source_partition, given.source_offset) == (
            {"path": str(folder)},
            {"file": "b", "records": 2, "done": True},
        )
        put(folder, "a2", "late\n")
        put(folder, "c*", "five\n")
        assert values(polled(task, 1)) == ["five"]


def test_csv_with_a_header_and_a_schema(session: SparkSession, folder: Path) -> None:
    put(folder, "a.csv", "id;name;at\n1;ä;2030-01-31 12:00:00.5\n2;;\n")
    columns = "id INT, name STRING, at TIMESTAMP_NTZ"
    more = {"options_header": "true", "options_sep": ";", "timestamp_column": "at", "key_columns": "id"}
    with running(session, config(folder, "csv", schema=columns, **more)) as task:
        (given,) = polled(task, 2)
    assert given.table.column("key").to_pylist() == [1, 2]
    assert given.table.column("timestamp").to_pylist() == [1896091200500, None]
    assert [value["name"] for value in values([given])] == ["ä", None]


def test_columns_are_those_of_the_first_file_that_has_some_and_stay_so(session: SparkSession, folder: Path) -> None:
    put(folder, "a.json", "")
    put(folder, "b.json", '{"id": 1, "tags": ["x"]}\n')
    put(folder, "c.json", '{"id": 2, "new": true}\n')
    with running(session, config(folder, "json")) as task:
        found = polled(task, 2)
    assert found[0].source_offset == {"file": "a.json", "records": 0, "done": True}
    assert values(found) == [{"id": 1, "tags": ["x"]}, {"id": 2, "tags": None}]
    tags = schema.array(schema.OPTIONAL_STRING).as_optional()
    assert found[-1].value_schema == schema.struct({"id": schema.INT64.as_optional(), "tags": tags})


def test_parquet_of_several_row_groups_goes_on_in_the_middle_of_a_file(session: SparkSession, folder: Path) -> None:
    table = pa.table({"id": pa.array(range(1000)), "inner": pa.array([{"a": [n]} for n in range(1000)])})
    pq.write_table(table, folder / "a.parquet", row_group_size=100)
    pq.write_table(table.slice(0, 10), folder / "b.parquet")
    offsets = MemoryOffsets()
    given = config(folder, "parquet", batch_size="64")
    with running(session, given, offsets) as task:
        found = polled(task, 400, offsets)
    assert (offsets.offset({"path": str(folder)}) or {})["file"] == "a.parquet"
    done = sum(each.table.num_rows for each in found)
    assert 400 <= done < 1000
    with running(session, given, offsets) as task:
        rest = polled(task, 1010 - done, offsets)
    assert values([*found, *rest]) == [*table.to_pylist(), *table.slice(0, 10).to_pylist()]
    assert offsets.offset({"path": str(folder)}) == {"file": "b.parquet", "records": 10, "done": True}


def test_a_file_of_many_splits_keeps_its_order(session: SparkSession, folder: Path) -> None:
    wide = "x" * 200
    lines = [f"{number} {wide}" for number in range(200_000)]  # 40 MB
    put(folder, "a", "\n".join(lines))
    with running(session, config(folder, batch_size="50000")) as task:
        found = polled(task, len(lines))
    assert values(found) == lines
    assert max(each.table.nbytes for each in found) < 5_000_000


def test_by_time_files_come_in_the_order_in_which_they_were_written(session: SparkSession, folder: Path) -> None:
    now = time.time()
    for name, ago in (("c", 30), ("a", 20), ("b", 20)):
        put(folder, name, f"{name}\n", now - ago)
    with running(session, config(folder, order_by="time")) as task:
        found = polled(task, 3)
        assert values(found) == ["c", "a", "b"]
        assert (found[-1].source_offset or {})["modified"] == int((folder / "b").stat().st_mtime_ns // 1_000_000)
        put(folder, "0", "0\n", now - 10)
        assert values(polled(task, 1)) == ["0"]


def test_a_file_that_may_still_be_written_is_waited_for_and_so_are_those_behind_it(
    session: SparkSession, folder: Path
) -> None:
    put(folder, "b", "two\n", time.time() - 100)
    put(folder, "a", "one\n", time.time() + 1)
    with running(session, config(folder, settle_ms="1000")) as task:
        assert task.poll() is None
        assert values(polled(task, 2)) == ["one", "two"]
        assert time.time() >= (folder / "a").stat().st_mtime + 1


def test_nothing_new_starts_no_job_and_many_files_are_few(session: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(100):
        put(folder, f"{number:03} é%20", f"{number}\n" * (1 + number % 3))
    tracker = session.sparkContext.statusTracker()
    session.sparkContext.setJobGroup("folder", "folder")
    with running(session, config(folder)) as task:
        expected = [str(number) for number in range(100) for _ in range(1 + number % 3)]
        assert values(polled(task, len(expected))) == expected
        jobs = len(tracker.getJobIdsForGroup("folder"))
        assert jobs <= 8
        assert [task.poll() for _ in range(5)] == [None] * 5
        assert len(tracker.getJobIdsForGroup("folder")) == jobs


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_file_that_cannot_be_read_is_named_and_those_before_it_are_given(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder, "a.json", '{"id": 1}\n')
    put(folder, "b.json", '{"id": 2}\n')
    put(folder, "c.json", '{"id": 3}\n{"id": oops}\n')
    with running(session, config(folder, "json", schema="id INT")) as task:
        assert values(polled(task, 2)) == [{"id": 1}, {"id": 2}]
        with pytest.raises(ConnectError) as raised:
            polled(task, 1)
    assert f"File {folder}/c.json could not be read: " in str(raised.value)
    assert "oops" in str(raised.value)


def test_records_that_cannot_be_read_are_left_out_if_the_user_says_so(session: SparkSession, folder: Path) -> None:
    put(folder, "a.json", '{"id": 1}\n{"id": oops}\n{"id": 3}\n')
    given = config(folder, "json", schema="id INT", options_mode="DROPMALFORMED", batch_size="1")
    offsets = MemoryOffsets()
    with running(session, given, offsets) as task:
        assert values(polled(task, 1, offsets)) == [{"id": 1}]
    with running(session, given, offsets) as task:
        assert values(polled(task, 1, offsets)) == [{"id": 3}]


def test_what_is_no_parquet_is_named(session: SparkSession, folder: Path) -> None:
    put(folder, "a.parquet", "not parquet at all")
    with (
        running(session, config(folder, "parquet")) as task,
        pytest.raises(ConnectError, match=r"a\.parquet could not"),
    ):
        task.poll()


def test_each_file_is_asked_for_by_where_it_leads(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "link").symlink_to("/etc/hostname")

    def refuse(_: Any, reach: Reach) -> None:
        if not os.path.realpath(reach.what).startswith(os.path.realpath(folder)):
            raise ConfigError.invalid(reach.key, reach.what, "elsewhere")

    monkeypatch.setattr(MemorySourceTaskContext, "require", refuse)
    with running(session, config(folder)) as task, pytest.raises(ConfigError, match="elsewhere"):
        task.poll()


def test_an_offset_of_the_other_order_is_refused_with_what_to_do(session: SparkSession, folder: Path) -> None:
    offsets = MemoryOffsets([({"path": str(folder)}, {"file": "a", "records": 1, "done": True})])
    with (
        pytest.raises(ConnectError, match=r"With order\.by=time, an offset has file, modified"),
        running(session, config(folder, order_by="time"), offsets),
    ):
        pass


def test_a_stop_breaks_off_a_long_read_and_is_no_failure(
    session: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(64):
        put(folder, f"{number:03}", "x\n" * 100_000)
    given: list[SourceTable | SourceFrame | None] = []
    tracker = session.sparkContext.statusTracker()
    with running(session, config(folder)) as task:

        def work() -> None:
            session.sparkContext.setJobGroup("stopped folder", "", interruptOnCancel=True)
            given.append(task.poll())

        thread = threading.Thread(target=work)
        thread.start()
        await_(lambda: tracker.getJobIdsForGroup("stopped folder"), "the job")
        task.stop_requested()
        thread.join(20)
        assert not thread.is_alive()
    assert given == [None]
