"""FileStreamSource: what it reads, where it goes on, what it says when it cannot."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import ConfigError, ConnectError, ExactlyOnceSupport, SourceTable, schema
from headgate.api.testing import MemoryOffsets, MemorySourceTaskContext, SourceConnectorSuite
from headgate.connectors.file_source import FileStreamSourceConnector, FileStreamSourceTask

pytestmark = pytest.mark.process

APACHE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SOON = 5.0


class TestAcceptance(SourceConnectorSuite):
    connector = FileStreamSourceConnector

    @pytest.fixture(autouse=True)
    def _given_a_file(self, tmp_path: Path) -> None:
        self.file = tmp_path / "lines"
        self.file.touch()
        self.lines = 0
        self.config = {"topic": "t", "file": str(self.file), "batch.size": "2"}

    def add_data(self, count: int) -> None:
        with self.file.open("a") as file:
            for _ in range(count):
                file.write(f"Zeile № {self.lines}\n")
                self.lines += 1


Start = Callable[..., FileStreamSourceTask]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a task on a file, and stops it at the end."""
    tasks = []

    def start(file: Path | str | None, *, position: Any = None, **settings: str) -> FileStreamSourceTask:
        config = {"topic": "t"} | ({} if file is None else {"file": str(file)})
        config |= {key.replace("_", "."): value for key, value in settings.items()}
        offsets = MemoryOffsets([] if position is None else [({"filename": str(file)}, {"position": position})])
        task = FileStreamSourceTask()
        task.context = MemorySourceTaskContext(config, offsets)
        tasks.append(task)
        task.start(config)
        return task

    yield start
    for task in tasks:
        task.stop()


def values(table: SourceTable | None) -> list[str]:
    return [] if table is None else table.table["value"].to_pylist()


def position(table: SourceTable | None) -> int:
    assert table is not None
    assert table.source_offset is not None
    position: int = table.source_offset["position"]
    return position


def at_once(task: FileStreamSourceTask) -> FileStreamSourceTask:
    """Polls of this task do not wait any more."""
    task.stop_requested()
    return task


def append(file: Path, data: bytes) -> None:
    with file.open("ab") as out:
        out.write(data)


def poll_until(task: FileStreamSourceTask, count: int) -> list[str]:
    found: list[str] = []
    deadline = time.monotonic() + SOON
    while len(found) < count and time.monotonic() < deadline:
        found += values(task.poll())
    return found


@contextmanager
def later(action: Callable[[], object]) -> Iterator[list[float]]:
    """Does `action` in another thread while the block runs; gives the time when it was done, once it was."""
    happened: list[float] = []

    def act() -> None:
        happened.append(time.monotonic())
        action()

    timer = threading.Timer(0.1, act)
    timer.start()
    yield happened
    timer.join()


# --- what a poll gives ------------------------------------------------------------------------------------------------


def test_a_line_is_a_record_with_a_string_value_and_the_time_at_which_it_is_sent(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one\ntwo\n")
    table = start(file).poll()
    assert table is not None
    assert table.topic == "t"
    assert table.table.schema.equals(pa.schema({"value": pa.string()}))
    assert values(table) == ["one", "two"]
    assert (table.value_schema, table.key_schema) == (schema.STRING, None)


def test_the_offset_is_the_number_of_bytes_up_to_the_end_of_the_last_line(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes("größe\r\n№\n".encode())
    table = start(file).poll()
    assert table is not None
    assert table.source_partition == {"filename": str(file)}
    assert table.source_offset == {"position": 7 + 2 + 3 + 1}


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\rc", ["a", "b"]),
        (b"a\n\nb\r\r\n\n", ["a", "", "b", "", ""]),
        (b"a\nunfinished", ["a"]),
        (b"a\nwaits\r", ["a"]),
        (b"unfinished", []),
        (b"\r", []),
        (b"", []),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f\n".encode(), ["a\x0bb\x0cc\x1cd\x85e\u2028f"]),
        (b"\x00\n", ["\x00"]),
        (b"  a b \t\n", ["  a b \t"]),
        (b"fine\nbad \xff\xc3(\n\xe2\x82\n", ["fine", "bad \ufffd\ufffd(", "\ufffd"]),
    ],
)
def test_lines_end_with_newline_or_carriage_return_or_both(
    content: bytes, lines: list[str], tmp_path: Path, start: Start
) -> None:
    file = tmp_path / "f"
    file.write_bytes(content)
    assert values(at_once(start(file)).poll()) == lines


def test_a_carriage_return_at_the_end_waits_for_the_next_byte(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\r")
    task = at_once(start(file))
    assert task.poll() is None
    append(file, b"\n")
    first = task.poll()
    assert (values(first), position(first)) == (["a"], 3)
    append(file, b"b\r")
    assert task.poll() is None
    append(file, b"c")
    second = task.poll()
    assert (values(second), position(second)) == (["b"], 5)


def test_the_last_line_is_given_when_its_end_comes(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes("a\n€".encode()[:-1])
    task = at_once(start(file))
    assert values(task.poll()) == ["a"]
    assert task.poll() is None
    append(file, "€".encode()[-1:] + b"!")
    assert task.poll() is None
    append(file, b"\n")
    assert values(task.poll()) == ["€!"]


def test_what_batch_size_cuts_off_comes_with_the_next_poll_at_once(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n22\n333\n4444\n55555\n")
    task = start(file, batch_size="2")
    polls = [task.poll() for _ in range(3)]
    assert [values(table) for table in polls] == [["1", "22"], ["333", "4444"], ["55555"]]
    assert [position(table) for table in polls] == [5, 14, 20]


def test_a_full_batch_is_put_together_from_many_blocks(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"".join(b"%06d %s\n" % (n, b"x" * 100) for n in range(40_000)))
    task = start(file, batch_size="30000")
    first, second = task.poll(), task.poll()
    assert (len(values(first)), len(values(second))) == (30_000, 10_000)
    assert [line[:6] for line in values(first) + values(second)] == [f"{n:06d}" for n in range(40_000)]
    assert position(second) == file.stat().st_size


def test_a_very_long_line_takes_time_and_memory_in_proportion(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    size = 64 << 20
    with file.open("wb") as out:
        out.truncate(size)
        out.seek(size)
        out.write(b"\nshort\n")
    task = start(file)
    table = task.poll() or task.poll() or task.poll()
    assert table is not None
    assert pa.compute.utf8_length(table.table["value"]).to_pylist() == [size, 5]
    assert position(table) == size + 7


def test_lines_are_read_fast_enough(tmp_path: Path, start: Start) -> None:
    """Some 3M lines a second of processor time are usual; the limit only catches work per line in Python."""
    file = tmp_path / "f"
    file.write_bytes((b"x" * 106 + b"\n") * 200_000)
    task, found = start(file), 0
    begin = time.thread_time()
    while found < 200_000:
        table = task.poll()
        assert table is not None
        found += table.table.num_rows
    assert found / (time.thread_time() - begin) > 300_000


# --- following --------------------------------------------------------------------------------------------------------


def test_a_growing_file_is_followed(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\n")
    task = start(file)
    assert values(task.poll()) == ["a"]
    with later(lambda: append(file, b"b\nc\n")) as happened:
        assert poll_until(task, 2) == ["b", "c"]
        assert time.monotonic() - happened[0] < 0.9, "woke up only at the end of the wait"


def test_an_idle_poll_waits_about_a_second(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.touch()
    begin, busy = time.monotonic(), time.thread_time()
    assert start(file).poll() is None
    assert 0.9 < time.monotonic() - begin < SOON
    assert time.thread_time() - busy < 0.5, "busy while waiting"


@pytest.mark.parametrize("exists", [True, False])
def test_a_stop_request_ends_the_wait(tmp_path: Path, start: Start, exists: bool) -> None:
    file = tmp_path / "f"
    if exists:
        file.touch()
    task = start(file)
    with later(task.stop_requested) as happened:
        assert task.poll() is None
        assert time.monotonic() - happened[0] < 0.5


def test_stop_from_another_thread_ends_the_poll_and_later_polls_give_nothing(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.touch()
    task = start(file)
    with later(task.stop):
        assert task.poll() is None
    append(file, b"late\n")
    assert task.poll() is None


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
def test_stop_closes_the_file(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\n")
    task = start(file)
    task.poll()
    assert str(file) in open_files()
    task.stop()
    assert str(file) not in open_files()


def open_files() -> set[str]:
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.add(os.readlink(f"/proc/self/fd/{fd}"))
        except FileNotFoundError:  # the one of listdir itself
            continue
    return found


def test_a_relative_file_is_shown_absolute_and_its_offsets_have_the_name_that_was_given(
    tmp_path: Path, start: Start, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = at_once(start("f"))
    assert task.poll() is None
    assert caplog.messages == [f"File {tmp_path / 'f'} does not exist: looking for it every second."]
    Path("f").write_bytes(b"a\n")
    found = task.poll()
    assert isinstance(found, SourceTable)
    assert found.source_partition == {"filename": "f"}


def test_a_missing_file_is_waited_for_and_mentioned_once(
    tmp_path: Path, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "f"
    task = at_once(start(file))
    for _ in range(3):
        assert task.poll() is None
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.WARNING, f"File {file} does not exist: looking for it every second.")
    ]
    file.write_bytes(b"a\n")
    assert values(task.poll()) == ["a"]


def test_a_missing_file_is_looked_for_every_second(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    task = start(file)
    begin = time.monotonic()
    assert task.poll() is None
    assert 0.9 < time.monotonic() - begin < SOON


def test_a_named_pipe_can_be_followed(tmp_path: Path, start: Start) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    task = at_once(start(pipe))
    assert task.poll() is None
    with pipe.open("wb", buffering=0) as writer:
        assert task.poll() is None
        writer.write(b"a\nb")
        assert values(task.poll()) == ["a"]
        writer.write(b"\n")
        assert values(task.poll()) == ["b"]
    assert task.poll() is None


# --- where it goes on -------------------------------------------------------------------------------------------------


def test_reading_goes_on_at_the_stored_byte(tmp_path: Path, start: Start) -> None:
    file = tmp_path / "f"
    file.write_bytes("ä\nö\nü\n".encode())
    table = start(file, position=3).poll()
    assert (values(table), position(table)) == (["ö", "ü"], 9)


def test_a_file_that_appears_later_is_read_from_the_stored_byte_or_else_from_the_start(
    tmp_path: Path, start: Start
) -> None:
    file = tmp_path / "f"
    fresh, known = at_once(start(file)), at_once(start(file, position=2))
    assert (fresh.poll(), known.poll()) == (None, None)
    file.write_bytes(b"a\nb\n")
    assert (values(fresh.poll()), values(known.poll())) == (["a", "b"], ["b"])


@pytest.mark.parametrize("bad", [-1, "3", 1.5, True, 1 << 63, {}])
def test_a_stored_position_that_is_none_fails_the_start(tmp_path: Path, start: Start, bad: object) -> None:
    with pytest.raises(ConnectError, match=r"The stored offset of file .* is no place in a file"):
        start(tmp_path / "f", position=bad)


def test_an_offset_without_a_position_means_the_start(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\n")
    for offset in ({}, {"position": None}):
        task = FileStreamSourceTask()
        config = {"topic": "t", "file": str(file)}
        task.context = MemorySourceTaskContext(config, MemoryOffsets([({"filename": str(file)}, offset)]))
        task.start(config)
        assert values(task.poll()) == ["a"]
        task.stop()


def test_a_position_the_file_system_cannot_reach_fails_the_task(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f"
    file.touch()

    def refuse(*_: object) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "lseek", refuse)
    with pytest.raises(ConnectError, match=f"^File {file} cannot be read: Invalid argument$"):
        start(file, position=(1 << 63) - 1).poll()


def test_a_file_shorter_than_the_stored_position_is_waited_for(
    tmp_path: Path, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"new\n")
    task = at_once(start(file, position=8))
    assert task.poll() is None
    assert task.poll() is None
    (warning,) = caplog.records
    assert f"File {file} ends before byte 8" in warning.getMessage()
    assert "reset its offsets" in warning.getMessage()
    append(file, b"abc\nd\n")
    table = task.poll()
    assert (values(table), position(table)) == (["d"], 10)


def test_a_file_truncated_while_it_is_read_is_waited_for(
    tmp_path: Path, start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"a\nb\n")
    task = at_once(start(file))
    assert values(task.poll()) == ["a", "b"]
    os.truncate(file, 0)
    assert task.poll() is None
    assert [f"File {file} ends before byte 4" in r.getMessage() for r in caplog.records] == [True]
    append(file, b"1\n2\n3\n")
    assert values(task.poll()) == ["3"]


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_moved_away_is_followed_under_its_old_handle(
    tmp_path: Path, start: Start, caplog: pytest.LogCaptureFixture, replaced: bool
) -> None:
    file, moved = tmp_path / "f", tmp_path / "f.1"
    file.write_bytes(b"a\n")
    task = at_once(start(file))
    assert values(task.poll()) == ["a"]
    file.rename(moved)
    if replaced:
        file.write_bytes(b"new\n")
    for _ in range(2):
        assert task.poll() is None
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == (
        f"File {file} was moved or replaced; still following the old file. If there is a new one: "
        "To read it from its start, stop the connector, reset its offsets and resume it."
    )
    append(moved, b"b\n")
    assert values(task.poll()) == ["b"]


def test_a_file_that_cannot_be_read_fails_the_task_with_its_name(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "f"
    file.touch()

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ConnectError, match=f"^File {file} cannot be read: Permission denied$"):
        start(file).poll()


def test_a_folder_cannot_be_read(tmp_path: Path, start: Start) -> None:
    with pytest.raises(ConnectError, match=f"^File {tmp_path} cannot be read: Is a directory$"):
        start(tmp_path).poll()


# --- standard input ---------------------------------------------------------------------------------------------------


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end of a pipe to write to what the task takes for standard input."""
    reader, writer = os.pipe()
    with os.fdopen(reader) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        yield writer
    os.close(writer)


@pytest.mark.parametrize("file", [None, ""])
def test_without_a_file_standard_input_is_read_and_has_no_offsets(stdin: int, start: Start, file: str | None) -> None:
    os.write(stdin, b"a\nb")
    task = start(file)
    table = task.poll()
    assert table is not None
    assert (values(table), table.source_partition, table.source_offset) == (["a"], None, None)
    os.write(stdin, b"\n")
    assert poll_until(task, 1) == ["b"]


def test_waiting_for_standard_input_does_not_hinder_a_stop(stdin: int, start: Start) -> None:
    task = start(None)
    with later(task.stop_requested) as happened:
        assert task.poll() is None
        task.stop()
        assert time.monotonic() - happened[0] < 0.5


def test_standard_input_is_left_open(stdin: int, start: Start) -> None:
    first = at_once(start(None))
    first.poll()
    first.stop()
    os.write(stdin, b"a\n")
    assert values(start(None).poll()) == ["a"]


def test_the_end_of_standard_input_is_an_idle_source(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a\nunfinished")
    os.close(writer)
    with os.fdopen(reader) as stream:
        monkeypatch.setattr("sys.stdin", stream)
        task = start(None)
        assert values(task.poll()) == ["a"]
        begin = time.monotonic()
        assert task.poll() is None
        assert time.monotonic() - begin > 0.9


def test_a_worker_without_standard_input_says_so(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(ConnectError, match="There is no standard input"):
        start(None).poll()


# --- the connector ----------------------------------------------------------------------------------------------------


def errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    return {found.name: found.errors for found in FileStreamSourceConnector().validate(config) if found.errors}


def test_the_keys_are_apache_s() -> None:
    described = {key.name: (key.type.value, key.default, key.required) for key in FileStreamSourceConnector.config}
    assert described["file"] == ("STRING", None, False)
    assert described["batch.size"] == ("INT", 2000, False)
    assert described["topic"][2]
    assert set(described) == {"file", "topic", "batch.size"}
    assert FileStreamSourceConnector.aliases == (APACHE,)


@pytest.mark.parametrize(
    ("config", "key", "error"),
    [
        ({}, "topic", 'Missing required configuration "topic" which has no default value.'),
        ({"topic": ""}, "topic", "Invalid value  for configuration topic: String must be non-empty"),
        (
            {"topic": "t", "batch.size": "0"},
            "batch.size",
            "Invalid value 0 for configuration batch.size: Value must be at least 1",
        ),
        (
            {"topic": "t", "batch.size": "x"},
            "batch.size",
            "Invalid value x for configuration batch.size: Not a number of type INT",
        ),
    ],
)
def test_a_wrong_configuration_is_found(config: dict[str, str], key: str, error: str) -> None:
    assert error in errors(config)[key]
    with pytest.raises(ConfigError):
        FileStreamSourceConnector().start(config)


@pytest.mark.parametrize("max_tasks", [1, 2, 10])
def test_there_is_always_one_task_with_the_connector_s_configuration(max_tasks: int) -> None:
    connector = FileStreamSourceConnector()
    config = {"topic": "t", "file": "f", "name": "n"}
    connector.start(config)
    assert connector.task_configs(max_tasks) == [config]


@pytest.mark.kip(618, "exactly-once support is stated per configuration")
@pytest.mark.parametrize(
    ("config", "support"),
    [
        ({"topic": "t", "file": "f"}, ExactlyOnceSupport.SUPPORTED),
        ({"topic": "t"}, ExactlyOnceSupport.UNSUPPORTED),
        ({"topic": "t", "file": ""}, ExactlyOnceSupport.UNSUPPORTED),
    ],
)
def test_exactly_once_holds_for_files_only(config: dict[str, str], support: ExactlyOnceSupport) -> None:
    connector = FileStreamSourceConnector()
    assert connector.exactly_once_support(config) is support
    assert connector.can_define_transaction_boundaries(config) is False


FILE = {"topic": "t", "file": "f"}
PARTITION = {"filename": "f"}


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize(
    ("offsets", "error"),
    [
        ([(PARTITION, {})], "Offset objects should either be null or contain the key 'position'"),
        ([(PARTITION, {"pos": 1})], "Offset objects should either be null or contain the key 'position'"),
        *(
            (
                [(PARTITION, {"position": bad})],
                "The value for the 'position' key in the offset is expected to be a Long value",
            )
            for bad in ("1", 1.0, True, None, [1], 1 << 63)
        ),
        (
            [(PARTITION, {"position": -1})],
            "The value for the 'position' key in the offset should be a non-negative value",
        ),
        ([(None, {"position": 1})], "Partition objects cannot be null"),
        ([({"file": "f"}, {"position": 1})], "Partition objects should contain the key 'filename'"),
        ([({}, {"position": -1})], "The value for the 'position' key in the offset should be a non-negative value"),
        (
            [(PARTITION, {"position": 1}), ({}, {"position": 1})],
            "Partition objects should contain the key 'filename'",
        ),
    ],
)
def test_offsets_that_make_no_sense_cannot_be_set(offsets: list[Any], error: str) -> None:
    with pytest.raises(ConnectError) as raised:
        FileStreamSourceConnector().alter_offsets(FILE, offsets)
    assert str(raised.value) == error


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize(
    "offsets",
    [
        [],
        [(PARTITION, {"position": 0})],
        [({"filename": "of an earlier configuration"}, {"position": 10**12})],
        [(PARTITION, None), ({"garbage": 1}, None), (None, None)],
    ],
)
def test_offsets_that_make_sense_can_be_set_and_anything_can_be_reset(offsets: list[Any]) -> None:
    assert FileStreamSourceConnector().alter_offsets(FILE, offsets) is True


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize("offsets", [[(PARTITION, {"position": 0})], [(PARTITION, None)]])
def test_standard_input_has_no_offsets_to_alter(offsets: list[Any]) -> None:
    with pytest.raises(ConnectError) as raised:
        FileStreamSourceConnector().alter_offsets({"topic": "t"}, offsets)
    assert str(raised.value) == (
        "Offsets cannot be modified if the 'file' configuration is unspecified. "
        "This is because stdin is used for input and offsets are not tracked."
    )


def test_importing_the_module_does_not_import_pyarrow() -> None:
    import subprocess
    import sys

    code = "import sys, headgate.connectors.file_source, headgate.connectors.file_sink, headgate.api.testing; "
    code += "sys.exit('pyarrow' in sys.modules or 'pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_file_that_has_been_quiet_is_looked_at_once_a_second_until_it_has_lines_again(
    tmp_path: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, waits = tmp_path / "lines", list[float]()
    file.touch()
    task = start(file)

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 3

    monkeypatch.setattr(task._stop, "wait", wait)
    assert task.poll() is None
    assert waits == [0.1, 0.1, 0.1]
    waits.clear()
    task._last_lines -= 5.0
    assert task.poll() is None
    assert waits[0] == 1.0
    append(file, b"one\n")
    assert values(task.poll()) == ["one"]
    waits.clear()
    assert task.poll() is None
    assert waits == [0.1, 0.1, 0.1]
