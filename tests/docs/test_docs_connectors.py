"""The connectors of docs/connectors.md run: through the suites, or by driving their tasks as the runtime does."""

from __future__ import annotations

import importlib
import json
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest
from docs_support import DOCS, blocks

from headgate.api import ConnectError, SinkRecord
from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext, SinkConnectorSuite
from headgate.model import TargetState, TaskId
from headgate.pipeline.blob import pack, pack_spec, run, source_columns_job, unpack
from headgate.pipeline.chain import Chain
from headgate.runtime import task_spec
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.plugins import Plugins

pytestmark = pytest.mark.process

PAGE = DOCS / "connectors.md"
FILES = {re.match(r"# (\w+\.py)\n", block)[1]: block for block in blocks(PAGE, "python")}  # type: ignore[index]
CONVERTERS = {f"{part}.converter": "org.apache.kafka.connect.json.JsonConverter" for part in ("key", "value")}
SCHEMALESS = {f"{key}.schemas.enable": "false" for key in CONVERTERS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A plugin.path folder with all examples; the test file stands beside it, as it would in a project."""
    made = tmp_path_factory.mktemp("plugins")
    before = list(sys.path)
    for name, text in FILES.items():
        if not name.startswith("test_"):
            (made / name).write_text(text)
    yield made
    sys.path[:] = before
    for name in FILES:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.fixture(scope="module")
def plugins(folder: Path) -> Plugins:
    return Plugins.discover([str(folder)])


def _module(plugins: Plugins, name: str) -> ModuleType:
    return importlib.import_module(name)


def test_all_examples_are_found_as_plugins(plugins: Plugins) -> None:
    assert not plugins.broken
    names = ["SqliteSource", "SqliteSink", "ExactSqliteSink", "Squares", "CsvSink", "ParquetSink"]
    assert [plugins.find_connector(name).name.rpartition(".")[2].removesuffix("Connector") for name in names] == names


def test_the_suites_of_the_page_pass(plugins: Plugins, folder: Path, pytester_folder: Path) -> None:
    """As an author runs them: `pytest test_sqlite.py`, with the plugin folder on the path."""
    file = pytester_folder / "test_sqlite.py"
    file.write_text(FILES["test_sqlite.py"])
    counter = _Counter()
    code = pytest.main(["-q", "-p", "no:cacheprovider", "--no-header", "-c", "/dev/null", str(file)], plugins=[counter])
    assert code == 0, counter.failed
    assert counter.passed > 30


@pytest.fixture
def pytester_folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    sys.modules.pop("test_sqlite", None)


class _Counter:
    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.passed += 1
        elif report.failed:
            self.failed.append(f"{report.nodeid}\n{report.longreprtext}")


class TestCsvSink(SinkConnectorSuite):
    @pytest.fixture(autouse=True)
    def given_a_file(self, plugins: Plugins, tmp_path: Path) -> None:
        type(self).connector = _module(plugins, "csv_sink").CsvSinkConnector
        self.config = {"file": str(tmp_path / "out.csv")}

    def written(self) -> list[str]:
        rows = Path(self.config["file"]).read_text().splitlines()
        return [row.split(",")[2].strip('"') for row in rows]


class TestExactSqliteSink(SinkConnectorSuite):
    @pytest.fixture(autouse=True)
    def given_a_database(self, plugins: Plugins, tmp_path: Path) -> None:
        type(self).connector = _module(plugins, "exact_sqlite_sink").ExactSqliteSinkConnector
        self.config = {"database": str(tmp_path / "db")}

    def written(self) -> list[str]:
        with closing(sqlite3.connect(self.config["database"])) as database:
            return [value for (value,) in database.execute("SELECT value FROM records ORDER BY rowid")]

    def next_of(self, task: Any) -> int | None:
        offset: int | None = task.context.rewound.get(self.partition)
        return offset

    def test_records_and_offsets_are_written_together(self) -> None:
        with self.running_task() as task:
            assert self.next_of(task) is None
            task.put(self.make_records(0, 4))
            task.pre_commit({self.partition: 3})  # the last one is of a batch that did not come to its end
            task.put(self.make_records(3, 2))
        with self.running_task() as task:
            assert self.next_of(task) == 3
            task.put(self.make_records(3, 2))
            assert task.pre_commit({self.partition: 5}) == {self.partition: 5}
        assert self.written() == [f"value-{number}" for number in range(5)]

    def test_of_two_tasks_one_fails_and_goes_on_from_the_other(self) -> None:
        with self.running_task() as old, self.running_task() as new:
            for task in (old, new):
                task.put(self.make_records(0, 2))
            new.pre_commit({self.partition: 2})
            with pytest.raises(ConnectError, match="Another task writes orders-0"):
                old.pre_commit({self.partition: 2})
            assert self.next_of(old) == 2
        assert self.written() == ["value-0", "value-1"]

    @pytest.mark.parametrize("offset", [1, None])
    def test_a_user_may_change_its_offsets(self, offset: int | None) -> None:
        with self.running_task() as task:
            task.put(self.make_records(0, 2))
            task.pre_commit({self.partition: 2})
        assert self.connector().alter_offsets(self.config, {self.partition: offset}) is True
        with self.running_task() as task:
            assert self.next_of(task) == offset


def test_the_frame_is_written_by_spark(plugins: Plugins, tmp_path: Path) -> None:
    module = _module(plugins, "parquet_sink")
    task = module.ParquetSinkTask()
    task.start({"path": str(tmp_path)})
    frame = MagicMock()
    task.put(frame)
    frame.write.mode.assert_called_once_with("append")
    frame.write.mode.return_value.parquet.assert_called_once_with(str(tmp_path))
    task.stop()


def _chain(plugins: Plugins, **config: str) -> Any:
    worker = WorkerConfig.parse(
        {"bootstrap.servers": "nowhere:9092", "offset.storage.file.filename": "unused", **CONVERTERS, **SCHEMALESS}
    )
    return task_spec.build(TaskId("docs", 0), config, {}, TargetState.STARTED, worker, plugins).chain


def test_columns_of_a_source_become_records_and_it_goes_on_where_it_was(plugins: Plugins) -> None:
    module = _module(plugins, "squares")
    config = {"topic": "squares", "limit": "1500"}
    first = module.SquaresTask()
    first.context = MemorySourceTaskContext(config)
    first.start(config)
    polled = first.poll()
    assert polled.table.num_rows == 1000
    result = unpack(run(pack(source_columns_job(pack_spec(_chain(plugins, **{"connector.class": "Squares"})), polled))))
    assert result.table().column("value").to_pylist()[:4] == [b"0", b"1", b"4", b"9"]

    second = module.SquaresTask()
    second.context = MemorySourceTaskContext(
        config, MemoryOffsets([(polled.source_partition, json.loads(json.dumps(polled.source_offset)))])
    )
    second.start(config)
    assert second.poll().table.num_rows == 500
    assert second.poll() is None


def test_the_transform_is_applied_where_its_predicate_holds(plugins: Plugins) -> None:
    (configured,) = [json.loads(block) for block in blocks(PAGE, "json")]
    chain = Chain.build(_chain(plugins, **{"connector.class": "SqliteSink", **configured}))
    record = SinkRecord(topic="t", value={"city": "Graz", "count": 1})
    changed = chain.steps.apply(record)
    assert changed is not None
    assert changed.value == {"city": "GRAZ", "count": 1}
    other = SinkRecord(topic="t", value={"count": 1})
    assert chain.steps.apply(other) == other
