"""FileStreamSink with exactly.once=true: each record is in the folder once, whatever fails in between."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from exact_runtime import Group, Member, table, written
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.api import ConfigError, ConnectError, Form, TopicPartition
from headgate.api.testing import MemorySinkTaskContext, SinkConnectorSuite
from headgate.connectors import ledger as ledgers
from headgate.connectors.exact_file_sink import ExactFileSinkTask
from headgate.connectors.file_sink import FileStreamSinkConnector, FileStreamSinkTask
from headgate.connectors.ledger import Taken

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class TestAcceptance(SinkConnectorSuite):
    connector = FileStreamSinkConnector

    @pytest.fixture(autouse=True)
    def _given_a_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "out"
        self.config = {"file": str(self.folder), "exactly.once": "true"}

    def written(self) -> list[str]:
        return [line for lines in written(self.folder).values() for line in lines]


@pytest.fixture
def group(tmp_path: Path) -> Group:
    return Group(tmp_path / "out", {P0: 40, P1: 30})


Start = Callable[..., ExactFileSinkTask]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    tasks = []

    def start(*partitions: TopicPartition) -> ExactFileSinkTask:
        config = {"file": str(tmp_path / "out"), "exactly.once": "true"}
        task = ExactFileSinkTask()
        task.context = MemorySinkTaskContext(config, partitions)
        tasks.append(task)
        task.start(config)
        task.open(partitions)
        return task

    yield start
    for task in tasks:
        task.stop()


def wished(task: ExactFileSinkTask) -> dict[TopicPartition, int]:
    assert isinstance(task.context, MemorySinkTaskContext)
    return task.context.rewound


# --- what is written --------------------------------------------------------------------------------------------------


def test_lines_are_visible_once_their_offsets_are_to_be_committed(start: Start, tmp_path: Path) -> None:
    task = start(P0, P1)
    task.put(table([(P0, 4, "a"), (P1, 8, "größer"), (P0, 5, "")]))
    assert written(tmp_path / "out") == {}
    assert task.pre_commit({P0: 6, P1: 20}) == {P0: 6, P1: 20}
    assert written(tmp_path / "out") == {"t-0": ["a", ""], "t-1": ["größer"]}


def test_values_are_written_as_in_the_default_mode(start: Start, tmp_path: Path) -> None:
    rows = table([(P0, offset, "") for offset in range(4)])
    values = pa.array(["Struct{f=ok}", None, "two\nlines", "{f=null}"])
    start(P0).put(rows.set_column(0, "value", values))
    start(P1)  # another partition's task has nothing to do with it
    task = start(P0)
    task.put(rows.set_column(0, "value", values))
    task.pre_commit({P0: 4})
    (file,) = (tmp_path / "out").rglob("until-*.txt")
    plain = FileStreamSinkTask()
    plain.context = MemorySinkTaskContext({})
    plain.start({"file": str(tmp_path / "plain")})
    plain.put(pa.table({"value": values}))
    plain.stop()
    assert file.read_bytes() == (tmp_path / "plain").read_bytes()


def test_columns_say_which_record_of_kafka_it_was() -> None:
    assert ExactFileSinkTask.columns == ("value", "original_topic", "original_partition", "original_offset")
    assert ExactFileSinkTask.form is Form.TEXT


def test_the_topic_that_transforms_gave_does_not_matter(start: Start, tmp_path: Path) -> None:
    other = TopicPartition("a/b", 0)
    task = start(other)
    task.put(table([(other, 0, "x")]))
    task.pre_commit({other: 1})
    assert written(tmp_path / "out") == {"a%2Fb-0": ["x"]}


def test_a_record_that_a_transform_made_anew_is_refused(start: Start) -> None:
    rows = table([(P0, 0, "x")])
    lost = rows.set_column(1, "original_topic", pa.nulls(1, pa.string()))
    with pytest.raises(ConnectError, match="does not say which one of Kafka it was"):
        start(P0).put(lost)


def test_records_of_partitions_that_the_task_does_not_have_are_for_others(start: Start, tmp_path: Path) -> None:
    task = start(P0)
    task.put(table([(P1, 0, "x"), (P0, 0, "y")]))
    assert task.pre_commit({P0: 1}) == {P0: 1}
    assert written(tmp_path / "out") == {"t-0": ["y"]}


def test_nothing_is_written_where_nothing_has_moved(start: Start, tmp_path: Path) -> None:
    task = start(P0)
    for _ in range(2):
        assert task.pre_commit({P0: 0}) == {P0: 0}
    task.put(table([(P0, 0, "x")]))
    for _ in range(2):
        assert task.pre_commit({P0: 1}) == {P0: 1}
    assert len(list((tmp_path / "out" / "t-0").iterdir())) == 1


# --- where to go on ---------------------------------------------------------------------------------------------------


def test_a_partition_that_the_folder_does_not_know_is_the_groups_affair(start: Start) -> None:
    assert wished(start(P0)) == {}


def test_the_folder_knows_better_than_the_group(start: Start) -> None:
    task = start(P0)
    task.pre_commit({P0: 7})
    task.stop()
    assert wished(start(P0)) == {P0: 7}


def test_what_is_read_again_is_dropped(start: Start, tmp_path: Path) -> None:
    task = start(P0)
    task.put(table([(P0, 0, "a"), (P0, 1, "b")]))
    task.pre_commit({P0: 2})
    task.put(table([(P0, 0, "a")]))
    assert task.pre_commit({P0: 1}) == {}, "the group need not go back"
    task.put(table([(P0, 1, "b"), (P0, 2, "c")]))
    assert task.pre_commit({P0: 3}) == {P0: 3}
    assert written(tmp_path / "out") == {"t-0": ["a", "b", "c"]}


def test_what_was_not_committed_is_gone_with_the_task(start: Start, tmp_path: Path) -> None:
    old = start(P0)
    old.put(table([(P0, 0, "a")]))
    task = start(P0)
    assert list((tmp_path / "out").rglob("lines")) == []
    task.put(table([(P0, 0, "a")]))
    task.pre_commit({P0: 1})
    assert written(tmp_path / "out") == {"t-0": ["a"]}


@pytest.mark.parametrize("end", ["close", "stop"])
def test_a_task_that_ends_leaves_nothing_behind(start: Start, tmp_path: Path, end: str) -> None:
    task = start(P0)
    task.put(table([(P0, 0, "a")]))
    task.close([P0]) if end == "close" else task.stop()
    assert list((tmp_path / "out").rglob("lines")) == []


# --- failures ---------------------------------------------------------------------------------------------------------


class Disk:
    """Fails a call: the n-th from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        for module, name in ((os, "fsync"), (os, "rename"), (Path, "mkdir")):
            monkeypatch.setattr(module, name, self._failing(getattr(module, name)))

    def _failing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    self.left = None
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*args, **options)

        return called


def test_a_disk_that_fails_at_any_step_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    for step in itertools.count():
        group = Group(tmp_path / f"out-{step}", {P0: 40, P1: 30})
        group.member.put(10)
        disk.left = step
        committed = group.member.commit()
        assert committed is (disk.left is not None), "it fails if and only if the disk did"
        disk.left = None
        group.member.put(10)
        assert group.member.commit()
        group.finish()
        group.check()
        if committed:
            break
    assert step == 14, "seven steps for each partition"


def test_a_put_that_failed_halfway_leaves_what_was_put_before(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    member = group.member
    member.put(10)
    with monkeypatch.context() as patch:
        patch.setattr(ledgers, "memoryview", lambda data: memoryview(data)[:3] + _full(), raising=False)
        with pytest.raises(ConnectError, match="No space left on device"):
            member.put(10)
    assert member.commit(), "as the runtime does when a task fails"
    assert group.committed == {P0: 10, P1: 10}
    member.leave()
    group.crash()
    group.finish()
    group.check()


def _full() -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_records_of_a_batch_that_did_not_come_to_its_end_wait_for_the_rest(group: Group) -> None:
    member = group.member
    member.put(10)
    member.put(10, pieces=3, but=1)
    member.rebalance()
    assert member.positions == {P0: 10, P1: 10}
    group.finish()
    group.check()


def test_a_crash_at_any_step_loses_and_doubles_nothing(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after each step the folder is as a crash would leave it: a copy of it goes on with a new task."""
    states: list[tuple[Path, dict[TopicPartition, int]]] = []

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            snapshot()
            try:
                return call(*args, **options)
            finally:
                snapshot()

        return called

    def snapshot() -> None:
        copy = tmp_path / f"copy-{len(states)}"
        with monkeypatch.context() as plain:
            for module, name, call in real:
                plain.setattr(module, name, call)
            shutil.copytree(group.root, copy)
        states.append((copy, dict(group.committed)))

    real = [(module, name, getattr(module, name)) for module, name in ((os, "fsync"), (os, "rename"), (Path, "mkdir"))]
    real.append((shutil, "rmtree", shutil.rmtree))
    with monkeypatch.context() as patch:
        for module, name, call in real:
            patch.setattr(module, name, watched(call))
        for _ in range(2):
            group.member.put(8, pieces=2)
            group.member.commit()
            snapshot()
        group.member.put(8)
    assert len(states) > 40
    for root, committed in states:
        after = Group(root, group.ends)
        after.committed = committed
        after.crash()
        after.finish()
        after.check()


# --- two tasks for one partition --------------------------------------------------------------------------------------


def test_of_two_tasks_the_second_to_commit_fails_and_stays_failed(group: Group) -> None:
    old = group.member
    old.put(10)
    new = group.crash()
    assert new is old
    group.member.put(5)
    assert group.member.commit()
    with pytest.raises(Taken, match=r"^Another task writes t-0 to folder "):
        old.task.pre_commit(dict(old.positions))
    with pytest.raises(Taken):
        old.put(5)
    with pytest.raises(Taken):
        old.task.pre_commit(dict(old.positions))
    old.leave()
    group.finish()
    group.check()


def test_a_task_goes_on_when_it_hears_that_the_partition_is_not_its_own(group: Group) -> None:
    old = group.member
    old.put(10)
    old.commit()
    group.crash()
    group.member.put(5)
    group.member.commit()
    old.put(5)
    assert not old.commit()
    old.lose()
    assert old.positions == {P0: 15, P1: 15}
    old.put(5)
    assert old.commit()


def test_a_task_that_was_only_thought_to_be_dead_may_be_first_and_the_new_one_fails(group: Group) -> None:
    old = group.member
    group.crash()
    group.member.put(5)
    old.put(10)
    assert old.commit(heard=False)
    assert not group.member.commit()
    with pytest.raises(Taken):
        group.member.put(5)
    group.crash()
    assert group.member.positions == {P0: 10, P1: 10}
    group.finish()
    group.check()


# --- any sequence -----------------------------------------------------------------------------------------------------


def _step(group: Group, zombies: list[Member], name: str, number: int) -> None:
    member = group.member
    match name:
        case "put":
            member.put(number, pieces=1 + number % 3)
        case "commit" | "commit unheard":
            if not member.commit(heard=name == "commit"):
                raise Taken
        case "rebalance":
            member.rebalance()
        case "half a batch":
            member.put(number, pieces=3, but=1 + number % 2)
            member.rebalance()
        case "lose":
            member.lose()
        case "failing commit":
            with pytest.MonkeyPatch.context() as patch:
                Disk(patch).left = number
                member.commit()
        case "crash":
            zombies.append(group.crash())
        case "zombie":
            for old in zombies:  # the group does not hear it; the folder may
                with suppress(Taken):
                    old.put(number)
                    old.commit(heard=False)


STEPS = [
    "put", "put", "commit", "commit unheard", "rebalance", "half a batch", "lose", "failing commit", "crash", "zombie"
]  # fmt: skip


@settings(deadline=None, max_examples=3 * settings().max_examples // 2)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 12)), max_size=30))
def test_each_record_is_written_once_whatever_happens(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        group = Group(Path(folder) / "out", {P0: 60, P1: 45})
        zombies: list[Member] = []
        for name, number in steps:
            try:
                _step(group, zombies, name, number)
            except Taken:
                assert zombies, "only they can have been first"
                group.crash()
        group.crash()
        group.finish()
        group.check()


# --- altered offsets --------------------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    return {"file": str(tmp_path / "out"), "exactly.once": "true"}


def commit(task: ExactFileSinkTask, where: TopicPartition, first: int, until: int) -> None:
    task.put(table([(where, offset, str(offset)) for offset in range(first, until)]))
    task.pre_commit({where: until})


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize("offset", [0, 3, 9])
def test_altered_offsets_are_gone_on_from(start: Start, config: dict[str, str], tmp_path: Path, offset: int) -> None:
    first = start(P0, P1)
    commit(first, P0, 0, 5)
    commit(first, P1, 0, 5)
    first.stop()
    assert FileStreamSinkConnector().alter_offsets(config, {P0: offset}) is True
    task = start(P0, P1)
    assert wished(task) == {P0: offset, P1: 5}
    commit(task, P0, offset, 12)
    assert written(tmp_path / "out")["t-0"] == [str(each) for each in [*range(5), *range(offset, 12)]]


@pytest.mark.kip(875, "resetting offsets")
@pytest.mark.parametrize(
    ("offsets", "left"),
    [({P0: None}, {P1: 5}), ({P0: None, P1: None}, {}), ({}, {})],
    ids=["one", "all", "all, and the group knows none"],
)
def test_reset_offsets_are_the_groups_affair(
    start: Start, config: dict[str, str], offsets: dict[TopicPartition, None], left: dict[TopicPartition, int]
) -> None:
    first = start(P0, P1)
    commit(first, P0, 0, 5)
    commit(first, P1, 0, 5)
    first.stop()
    for _ in range(2):
        assert FileStreamSinkConnector().alter_offsets(config, offsets) is True
    assert wished(start(P0, P1)) == left


def test_a_task_from_before_the_change_fails(start: Start, config: dict[str, str]) -> None:
    zombie = start(P0)
    commit(zombie, P0, 0, 5)
    zombie.put(table([(P0, 5, "late")]))
    FileStreamSinkConnector().alter_offsets(config, {P0: 2})
    with pytest.raises(Taken):
        zombie.pre_commit({P0: 6})


def test_a_folder_that_was_never_written_to_can_be_reset(config: dict[str, str]) -> None:
    assert FileStreamSinkConnector().alter_offsets(config, {}) is True


# --- configuration ----------------------------------------------------------------------------------------------------


def test_the_mode_chooses_the_task() -> None:
    chosen = FileStreamSinkConnector.task_class_for
    assert chosen({"file": "f", "exactly.once": "TRUE"}) is ExactFileSinkTask
    assert chosen({"file": "f", "exactly.once": "false"}) is chosen({}) is FileStreamSinkTask


@pytest.mark.parametrize("file", [{}, {"file": ""}, {"file": " "}])
def test_standard_output_cannot_be_written_to_exactly_once(file: dict[str, str]) -> None:
    config = {**file, "exactly.once": "true"}
    errors = {value.name: value.errors for value in FileStreamSinkConnector().validate(config)}
    assert errors["exactly.once"] == []
    assert len(errors["file"]) == 1
    assert errors["file"][0].endswith("for configuration file: exactly.once needs a folder to write to")
    with pytest.raises(ConfigError, match="needs a folder"):
        FileStreamSinkConnector().start(config)


def test_a_file_is_no_folder(tmp_path: Path, start: Start) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(ConnectError, match=r"^Cannot write to folder .*/out: File exists$"):
        start(P0)
