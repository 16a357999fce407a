"""Folders that are not on this machine: files exactly once by SparkSink, new files by SparkSource, on a real HDFS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hdfs_support import hdfs
from pyspark.sql import SparkSession
from spark_sink_runtime import OTHER, WHERE, SinkTrial
from spark_source_support import polled, running, values

from headgate.api import ConnectError
from headgate.api.testing import MemoryConnectorContext, MemoryOffsets
from headgate.cli.assembly import StandaloneWorker
from headgate.connectors import SparkSink
from headgate.connectors.ledger import Taken
from headgate.connectors.spark import hadoop
from headgate.connectors.spark.hadoop import HadoopFiles, ListedFile
from headgate.connectors.spark.sink.file_ledger import FileLedger

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


@pytest.fixture
def session(worker: StandaloneWorker) -> SparkSession:
    return worker.engine.session()


@pytest.fixture
def folder(address: str, unique: Callable[[str], str]) -> str:
    return f"{address}/{unique('folder')}"


@pytest.fixture
def files(session: SparkSession, address: str) -> HadoopFiles:
    return HadoopFiles(session, address)


# --- the store --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["at once", "one by one"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "one by one":  # as where a file system shows its files to people in another way
        monkeypatch.setattr(hadoop, "_parsed", lambda text: [])


@pytest.mark.usefixtures("way")
def test_files_are_listed_with_what_is_known_of_them(files: HadoopFiles, folder: str) -> None:
    names = ["a b.csv", "ä; isDirectory=true; length=9;", "d", "_x"]
    for name in names[:2]:
        files.write(f"{folder}/{name}", b"12345")
    files.write(f"{folder}/d/below", b"")
    files.write(f"{folder}/_x", b"")
    listed = {each.name: each for each in files.listed(folder)}
    assert set(listed) == set(names)
    assert listed["a b.csv"] == ListedFile("a b.csv", False, 5, listed["a b.csv"].modified)
    assert listed["a b.csv"].modified > 1_700_000_000_000
    assert listed["d"].folder
    assert sorted(files.files(folder)) == sorted([*names[:2], "_x", "d/below"])


def test_of_two_who_want_a_name_one_gets_it(files: HadoopFiles, folder: str) -> None:
    for each in ("a", "b"):
        files.write(f"{folder}/{each}/x", each.encode())
    files.rename(f"{folder}/a", f"{folder}/c")
    with pytest.raises(FileExistsError):
        files.rename(f"{folder}/b", f"{folder}/c")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{folder}/a", f"{folder}/d")
    assert files.read(f"{folder}/c/x") == b"a"
    with pytest.raises(FileExistsError):
        files.write(f"{folder}/c/x", b"")
    files.remove(folder)
    assert (files.exists(folder), files.names(folder)) == (False, [])


def test_a_store_that_spark_does_not_know_is_told(session: SparkSession) -> None:
    with pytest.raises(OSError, match="nothing"):
        HadoopFiles(session, "nothing://a/b")


# --- the sink ---------------------------------------------------------------------------------------------------------

Make = Callable[..., SinkTrial]


@pytest.fixture
def make(session: SparkSession, folder: str) -> Iterator[Make]:
    made: list[SinkTrial] = []

    def begin(**config: str) -> SinkTrial:
        full = {"path": folder, "rotate.records": "1", "exactly.once": "true", "partition.by": "region", **config}
        one = SinkTrial(full, session=session)
        one.task.open([WHERE, OTHER])
        made.append(one)
        return one

    yield begin
    for each in made:
        each.task.stop()


@pytest.fixture
def ids(session: SparkSession, folder: str) -> Callable[..., list[int]]:
    def read(form: str = "parquet") -> list[int]:
        return sorted(row.id for row in session.read.format(form).schema("id BIGINT").load(folder).collect())

    return read


def orders(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number, "region": f"0{number % 2}"} for number in numbers]


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_files_go_on_where_they_end(make: Make, ids: Callable[..., list[int]], form: str) -> None:
    first = make(format=form)
    first.put(orders(0, 1, 2))
    first.commit(3, 0)
    second = make(format=form)
    assert second.context.rewound == {WHERE: 3, OTHER: 0}
    second.put(orders(1, 2, 3), first=1)
    second.commit(4, 0)
    assert ids(form) == [0, 1, 2, 3]


class Crash(Exception):
    """The process is gone."""


@pytest.mark.parametrize("step", ["commit", "settle"], ids=["before the commit", "after it"])
def test_a_crash_loses_and_doubles_nothing(
    make: Make, ids: Callable[..., list[int]], monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def crash(*_: object) -> None:
        raise Crash

    first = make()
    first.put(orders(0, 1))
    first.commit(2, 0)
    first.put(orders(2, 3), first=2)
    with monkeypatch.context() as patch:
        patch.setattr(FileLedger, step, crash)
        with pytest.raises(Crash):
            first.commit(4, 0)
    assert ids() == [0, 1]
    second = make()
    following = second.context.rewound[WHERE]
    assert following == (2 if step == "commit" else 4)
    second.put(orders(*range(following, 6)), first=following)
    second.commit(6, 0)
    assert ids() == [0, 1, 2, 3, 4, 5]


def test_a_zombie_changes_nothing(make: Make, ids: Callable[..., list[int]]) -> None:
    zombie = make()
    zombie.put(orders(0, 1, 2))
    second = make()
    second.put(orders(0, 1))
    second.commit(2, 0)
    with pytest.raises(Taken, match="Another task writes to folder"):
        zombie.commit(3, 0)
    assert ids() == [0, 1]


@pytest.mark.kip(875, "altering offsets")
def test_offsets_that_a_user_sets_are_the_folders(make: Make, session: SparkSession, folder: str) -> None:
    first = make()
    first.put(orders(0, 1))
    first.commit(2, 0)
    connector = SparkSink()
    connector.context = MemoryConnectorContext(session=session)
    assert connector.alter_offsets({"path": folder, "exactly.once": "true", "name": "sink"}, {WHERE: 1})
    assert make().context.rewound == {WHERE: 1, OTHER: 0}


# --- the source -------------------------------------------------------------------------------------------------------


def test_new_files_are_read_in_their_order_and_gone_on_from(
    session: SparkSession, files: HadoopFiles, folder: str
) -> None:
    config = {
        "path": f"{folder}/", "topic": "t", "settle.ms": "0", "poll.interval.ms": "10", "batch.size": "2",
        "file.pattern": "*.txt",
    }  # fmt: skip
    offsets = MemoryOffsets()
    with running(session, config, offsets) as task:
        assert task.poll() is None, "it is waited for"
        files.write(f"{folder}/b c.txt", b"4\n5\n6\n")
        files.write(f"{folder}/a.txt", b"1\n2\n3\n")
        files.write(f"{folder}/a.csv", b"no\n")
        first = polled(task, 4, offsets)
    assert (offsets.offset({"path": folder}) or {})["file"] == "b c.txt", "in the middle of it"
    with running(session, config, offsets) as task:
        files.write(f"{folder}/c.txt", b"7\n")
        rest = polled(task, 7 - len(values(first)), offsets)
    assert values([*first, *rest]) == list("1234567")
    assert offsets.offset({"path": folder}) == {"file": "c.txt", "records": 1, "done": True}


def test_a_store_that_cannot_be_reached_fails_the_task(session: SparkSession) -> None:
    config = {"path": "nothing://a/b", "topic": "t", "poll.interval.ms": "10"}
    with running(session, config) as task, pytest.raises(ConnectError, match="Folder nothing://a/b cannot be read: "):
        task.poll()
