"""FileStreamSink: what is in the file, and when."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import ConnectError, Form, TopicPartition
from headgate.api.testing import MemorySinkTaskContext, SinkConnectorSuite
from headgate.connectors.file_sink import FileStreamSinkConnector, FileStreamSinkTask


class TestAcceptance(SinkConnectorSuite):
    connector = FileStreamSinkConnector

    @pytest.fixture(autouse=True)
    def _given_a_file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "lines"
        self.config = {"file": str(self.file)}

    def written(self) -> list[str]:
        return self.file.read_text().splitlines()


Start = Callable[..., FileStreamSinkTask]


@pytest.fixture
def start() -> Iterator[Start]:
    tasks = []

    def start(file: Path | str | None) -> FileStreamSinkTask:
        config = {} if file is None else {"file": str(file)}
        task = FileStreamSinkTask()
        task.context = MemorySinkTaskContext(config)
        tasks.append(task)
        task.start(config)
        return task

    yield start
    for task in tasks:
        task.stop()


def table(*values: str | None) -> pa.Table:
    return pa.table({"value": pa.array(values, pa.string())})


def test_each_value_is_a_line_at_the_end_of_the_file(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"before\n")
    task = start(file)
    task.put(table("a", "größer", ""))
    task.put(table("b"))
    assert file.read_bytes() == "before\na\ngrößer\n\nb\n".encode()


def test_a_missing_file_is_created(tmp_path: Path, start: Start) -> None:
    start(tmp_path / "f").put(table("a"))
    assert (tmp_path / "f").read_bytes() == b"a\n"


@pytest.mark.parametrize(
    ("values", "content"),
    [
        (pa.array(["a", None]), b"a\nnull\n"),
        (pa.array([None]), b"null\n"),
        (pa.array([], pa.string()), b""),
        (pa.array(["a"], pa.large_string()), b"a\n"),
        (pa.array(["a", "b", "c", "d"])[1:3], b"b\nc\n"),
        (pa.chunked_array([["a"], [], [None, "b"]], pa.string()), b"a\nnull\nb\n"),
        (pa.chunked_array([], pa.string()), b""),
        (pa.array(["two\nlines"]), b"two\nlines\n"),
        (pa.array(["Struct{f=ok}", "{f=null}"]), b"Struct{f=ok}\n{f=null}\n"),
    ],
)
def test_any_column_of_text_is_written(values: Any, content: bytes, tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    start(file).put(pa.table({"value": values}))
    assert file.read_bytes() == content


def test_other_columns_are_not_asked_for() -> None:
    assert (FileStreamSinkTask.columns, FileStreamSinkTask.form) == (("value",), Form.TEXT)


@pytest.mark.parametrize("file", [None, ""])
def test_without_a_file_lines_go_to_standard_output_which_stays_open(
    start: Start, capsysbinary: pytest.CaptureFixture[bytes], file: str | None
) -> None:
    task = start(file)
    task.put(table("ä", None))
    task.flush({})
    task.stop()
    print("still open")
    assert capsysbinary.readouterr().out == "ä\nnull\nstill open\n".encode()


def test_a_worker_without_standard_output_says_so(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    with pytest.raises(ConnectError, match=r"^Cannot write to standard output: "):
        start(None)


def test_flush_makes_a_file_durable(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino))
    file = tmp_path / "f"
    task = start(file)
    task.put(table("a"))
    assert synced == []
    offsets = {TopicPartition("t", 0): 1}
    assert task.pre_commit(offsets) == offsets
    assert synced == [file.stat().st_ino]


def test_a_named_pipe_can_be_written_to_and_flushed(tmp_path: Path, start: Start) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    task = start(pipe)
    task.put(table("x" * 1_000_000, "b"))  # more than a pipe takes at once
    task.flush({})
    task.stop()
    reader.join(10)
    assert got == [b"x" * 1_000_000 + b"\nb\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_batch_is_one_write_so_that_tasks_do_not_mix_their_lines(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    threads = []
    for name in "ab":
        task = start(file)
        batch = table(*[name * 2000] * 500)
        threads.append(threading.Thread(target=lambda task=task, batch=batch: [task.put(batch) for _ in range(5)]))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = file.read_bytes().splitlines()
    assert len(lines) == 5000
    assert set(lines) == {b"a" * 2000, b"b" * 2000}


@pytest.mark.parametrize(
    ("path", "reason"),
    [(".", "Is a directory"), ("no/such/folder", "No such file or directory")],
)
def test_a_file_that_cannot_be_opened_fails_the_task_with_name_and_reason(
    tmp_path: Path, start: Start, path: str, reason: str
) -> None:
    file = tmp_path / path
    with pytest.raises(ConnectError) as raised:
        start(file)
    assert str(raised.value) == f"Cannot write to file {file}: {reason}"


def test_a_relative_file_is_shown_absolute(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConnectError, match=f"^Cannot write to file {tmp_path}/no/such: "):
        start("no/such")
    (tmp_path / "taken").touch()
    exactly_once = {"file": "taken", "exactly.once": "true"}
    with pytest.raises(ConnectError, match=f"^Cannot write to folder {tmp_path}/taken: "):
        FileStreamSinkConnector().alter_offsets(exactly_once, {TopicPartition("t", 0): 1})


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_fails_the_put_with_name_and_reason(start: Start) -> None:
    with pytest.raises(ConnectError) as raised:
        start("/dev/full").put(table("a"))
    assert str(raised.value) == f"Cannot write to file /dev/full: {os.strerror(errno.ENOSPC)}"


def test_a_failing_disk_fails_the_flush(tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    task = start(tmp_path / "f")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ConnectError, match="Input/output error"):
        task.flush({})


def test_lines_are_written_fast_enough(tmp_path: Path, start: Start) -> None:
    """Some 3M lines a second of processor time are usual; the limit only catches work per line in Python."""
    task, batch = start(tmp_path / "f"), table(*["x" * 106] * 50_000)
    begin = time.thread_time()
    for _ in range(4):
        task.put(batch)
    assert 200_000 / (time.thread_time() - begin) > 300_000


def test_each_task_gets_the_connector_s_configuration() -> None:
    connector = FileStreamSinkConnector()
    config = {"file": "f", "topics": "t"}
    connector.start(config)
    assert connector.task_configs(3) == [config] * 3
    assert FileStreamSinkConnector.aliases == ("org.apache.kafka.connect.file.FileStreamSinkConnector",)


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize("offsets", [{}, {TopicPartition("t", 0): 5}, {TopicPartition("t", 0): None}])
def test_any_offsets_are_fine(offsets: dict[TopicPartition, int | None]) -> None:
    assert FileStreamSinkConnector().alter_offsets({"file": "f"}, offsets) is True
