"""Data sources for PySpark as sources: what is read where, what is stored, where it goes on."""

from __future__ import annotations

import importlib
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from harness import await_
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from spark_source_support import polled, running, values

from headgate.api import ConfigError, ConnectError, Reach, ReachKind, SourceFrame, SourceTable, schema
from headgate.api.testing import MemoryOffsets, SourceConnectorSuite
from headgate.cli.assembly import StandaloneWorker
from headgate.connectors import SparkSource

pytestmark = pytest.mark.spark

DOCS_PAGE = Path(__file__).parents[2] / "docs" / "spark-source.md"

VALUE = schema.struct(
    {"number": schema.INT32, "text": schema.OPTIONAL_STRING, "half": schema.FLOAT64.as_optional()},
)


class Followed:
    """A file that grows, and a configuration that follows it."""

    def __init__(self, folder: Path) -> None:
        self.file, self.told = folder / "lines", folder / "told"
        self.count = 0
        self.file.touch()

    def add(self, *texts: str) -> None:
        with self.file.open("a") as out:
            out.writelines(f"{text}\n" for text in texts)
        self.count += len(texts)

    def grow(self, count: int) -> None:
        self.add(*(f"text {number}" for number in range(self.count, self.count + count)))

    def config(self, kind: str = "Lines", **more: str) -> dict[str, str]:
        given = {key.replace("_", "."): value for key, value in more.items()}
        return {
            "provider": f"streams.{kind}",
            "topic": "lines",
            "options.file": str(self.file),
            "options.told": str(self.told),
            "poll.interval.ms": "10",
            **given,
        }

    def notes(self, what: str) -> list[str]:
        found = self.told.read_text().splitlines() if self.told.exists() else []
        return [line for line in found if line.startswith(what)]


def expected(start: int, end: int) -> list[dict[str, Any]]:
    return [{"number": number, "text": f"text {number}", "half": number / 2} for number in range(start, end)]


@pytest.fixture
def session(worker: StandaloneWorker) -> SparkSession:
    return worker.engine.session()


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


@pytest.mark.parametrize("kind", ["Lines", "Nested", "Simple"])
class TestAcceptance(SourceConnectorSuite):
    connector = SparkSource
    patience = 60.0

    @pytest.fixture(autouse=True)
    def given_a_file(self, session: SparkSession, followed: Followed, kind: str) -> None:
        self.session, self.followed = session, followed
        self.config = followed.config(kind, batch_size="2")

    def add_data(self, count: int) -> None:
        self.followed.grow(count)


def test_a_data_source_that_others_have_published_is_a_source(session: SparkSession) -> None:
    """Of `pyspark-data-sources`: it invents rows, so many for each look."""
    config = {
        "provider": "pyspark_datasources.fake.FakeDataSource",
        "topic": "people",
        "schema": "name STRING, company STRING",
        "options.numRows": "4",
        "poll.interval.ms": "10",
    }
    with running(session, config) as task:
        begin, *found = polled(task, 8)
    assert begin.source_offset == {"offset": 0}
    assert found[-1].source_offset == {"offset": 8}
    assert found[-1].source_partition == {"source": "pyspark_datasources.fake.FakeDataSource"}
    assert all(row["name"] and row["company"] for row in values(found))


@pytest.mark.parametrize("form", ["tuple", "row", "arrow"])
def test_rows_of_any_form_become_typed_columns_in_their_order(
    session: SparkSession, followed: Followed, form: str
) -> None:
    followed.grow(25)
    with running(session, followed.config(options_form=form, options_parts="3")) as task:
        begin, *found = polled(task, 25)
    assert (begin.table.num_rows, begin.source_offset) == (0, {"line": 0})
    assert values(found) == expected(0, 25)
    given = found[-1]
    assert (given.topic, given.value_schema, given.key_schema) == ("lines", VALUE, None)
    assert (given.source_partition, given.source_offset) == ({"source": "streams.Lines"}, {"line": 25})


def test_partitions_are_read_by_the_executors_and_nothing_new_starts_no_job(
    session: SparkSession, followed: Followed
) -> None:
    followed.grow(4)
    tracker = session.sparkContext.statusTracker()
    with running(session, followed.config()) as task:
        session.sparkContext.setJobGroup("quiet", "quiet")
        polled(task, 4)
        assert followed.notes("read")
        assert f"read by {os.getpid()}" not in followed.notes("read")
        before = len(tracker.getJobIdsForGroup("quiet"))
        assert before > 0
        assert [task.poll() for _ in range(5)] == [None] * 5
        assert len(tracker.getJobIdsForGroup("quiet")) == before


def test_keys_and_timestamps_come_from_columns(session: SparkSession, followed: Followed) -> None:
    followed.grow(3)
    columns = "number BIGINT, text STRING, half DOUBLE"
    config = followed.config(schema=columns, key_columns="text,number", timestamp_column="number")
    with running(session, config) as task:
        _, found = polled(task, 3)
    assert found.table.column("timestamp").to_pylist() == [0, 1, 2]
    assert found.table.column("key").to_pylist()[1] == {"text": "text 1", "number": 1}
    key = schema.struct({"text": schema.OPTIONAL_STRING, "number": schema.INT64.as_optional()})
    assert found.key_schema == key
    with running(session, followed.config(key_columns="number")) as task:
        _, found = polled(task, 3)
    assert (found.table.column("key").to_pylist(), found.key_schema) == ([0, 1, 2], schema.INT32)


@pytest.mark.parametrize(
    ("more", "blamed", "said"),
    [
        ({"key_columns": "nobody"}, ConfigError, "key.columns: There is no such column, only number, text, half"),
        ({"timestamp_column": "text"}, ConfigError, "timestamp.column: It is string, and must be a timestamp"),
        ({"schema": "number INTT"}, ConfigError, "Invalid value number INTT for configuration schema"),
        ({"schema": "INT"}, ConfigError, "Invalid value INT for configuration schema"),
        ({"options_columns": "a VARIANT"}, ConnectError, "Column a is of Spark's type variant"),
        ({"options_columns": "a STRUCT<b: INTERVAL DAY>"}, ConnectError, "Column a.b is of Spark's type interval day"),
        ({"options_columns": "a INTT"}, ConnectError, "What streams.Lines says of its columns cannot be read"),
    ],
)
def test_columns_that_cannot_be_are_named(
    session: SparkSession, followed: Followed, more: dict[str, str], blamed: type[Exception], said: str
) -> None:
    with running(session, followed.config(**more)) as task, pytest.raises(blamed) as raised:
        task.poll()
    assert said in str(raised.value)


def test_the_module_is_asked_for_before_it_is_imported(session: SparkSession, followed: Followed) -> None:
    with running(session, followed.config()) as task:
        assert task.context.required == [Reach(ReachKind.CODE, "streams", "provider")]  # type: ignore[attr-defined]


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_nested_offsets_are_stored_as_json(session: SparkSession, followed: Followed) -> None:
    followed.grow(10)
    with running(session, followed.config("Nested")) as task:
        found = polled(task, 10)
    assert values(found) == expected(0, 10)
    assert [json.loads((each.source_offset or {})["offset"])["file"]["line"] for each in found] == [0, 7, 10]


@pytest.mark.parametrize("kind", ["Lines", "Simple"])
def test_a_large_batch_comes_in_pieces_and_goes_on_in_its_middle(
    session: SparkSession, followed: Followed, kind: str
) -> None:
    followed.grow(100)
    offsets = MemoryOffsets()
    config = followed.config(kind, batch_size="8")
    with running(session, config, offsets) as task:
        found = polled(task, 60, offsets)
        assert max(each.table.num_rows for each in found) == 8
    stored = offsets.offset({"source": f"streams.{kind}"})
    assert stored is not None
    assert stored.keys() == {"offset", "until", "partition", "rows"}
    assert (json.loads(stored["offset"]), json.loads(stored["until"])) == ({"line": 0}, {"line": 100})
    followed.grow(5)  # of the next batch
    done = sum(each.table.num_rows for each in found)
    with running(session, {**config, "batch.size": "7"}, offsets) as task:  # its pieces end elsewhere
        rest = polled(task, 105 - done, offsets)
    assert values([*found, *rest]) == expected(0, 105)
    assert offsets.offset({"source": f"streams.{kind}"}) == {"line": 105}


def test_a_batch_larger_than_what_is_fetched_at_once(session: SparkSession, followed: Followed) -> None:
    wide = "x" * 100_000
    followed.add(*(f"{number} {wide}" for number in range(400)))
    with running(session, followed.config(options_parts="3")) as task:
        _, *found = polled(task, 400)
    assert [value["number"] for value in values(found)] == list(range(400))
    assert max(each.table.nbytes for each in found) < 5_000_000


def test_a_simple_reader_that_cannot_read_again_says_so_in_the_middle_of_a_batch(
    session: SparkSession, followed: Followed
) -> None:
    followed.grow(4)
    offsets = MemoryOffsets()
    with running(session, followed.config("Forgetful", batch_size="3"), offsets) as task:
        polled(task, 3, offsets)
    with (
        running(session, followed.config("Forgetful", batch_size="3"), offsets) as task,
        pytest.raises(ConnectError, match="Forgetful has no readBetweenOffsets"),
    ):
        task.poll()


def test_the_data_source_is_told_what_is_stored_and_nothing_else(session: SparkSession, followed: Followed) -> None:
    followed.grow(10)
    offsets = MemoryOffsets()
    with running(session, followed.config(batch_size="100"), offsets) as task:
        *_, first = polled(task, 10)
        followed.grow(5)
        polled(task, 5)  # not stored
        assert followed.notes("commit") == []
        assert first.source_partition is not None
        offsets.commit(first.source_partition, first.source_offset)
        task.commit()
        await_(lambda: task.poll() or followed.notes("commit"), "the word")
    assert set(followed.notes("commit")) == {"commit 10"}
    assert followed.notes("stop") == ["stop"]


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_what_a_data_source_raises_on_an_executor_is_told_in_a_line(session: SparkSession, followed: Followed) -> None:
    followed.add("good", "bad")
    with running(session, followed.config()) as task:
        task.poll()
        with pytest.raises(ConnectError) as raised:
            task.poll()
    assert str(raised.value) == "streams.Lines could not be read: ValueError: line 1 is bad"


def test_a_stop_breaks_off_what_executors_read_and_is_no_failure(
    session: SparkSession, followed: Followed, tmp_path: Path
) -> None:
    slow = tmp_path / "slow"
    slow.touch()
    followed.grow(4)
    given: list[SourceTable | SourceFrame | None] = []
    with running(session, followed.config(options_slow=str(slow))) as task:

        def work() -> None:
            session.sparkContext.setJobGroup("stopped", "stopped", interruptOnCancel=True)
            task.poll()
            given.append(task.poll())

        thread = threading.Thread(target=work)
        thread.start()
        await_(Path(f"{slow}.reached").exists, "the executor")
        task.stop_requested()
        thread.join(20)
        assert not thread.is_alive()
    assert given == [None]


def test_the_data_source_of_the_documentation(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(
        r"^```python\n# squares_source.py\n(.*?)^```$", DOCS_PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    (tmp_path / "squares_source.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("squares_source")
    pickling: Any = cloudpickle
    pickling.register_pickle_by_value(module)  # this worker's executors have other folders of plugins
    config = {"provider": "squares_source:Squares", "options.limit": "2500", "topic": "t", "key.columns": "number"}
    try:
        with running(session, config) as task:
            found = polled(task, 2500)
    finally:
        pickling.unregister_pickle_by_value(module)
    assert [value["square"] for value in values(found)] == [number * number for number in range(2500)]
    assert found[-1].source_offset == {"next": 2500}
