from __future__ import annotations

import io
import json
import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_java_offsets import LIST, OFFSETS

from headgate.runtime.ports import OffsetStore
from headgate.storage.file import FileOffsetStore, OffsetFileError
from headgate.storage.offset_table import InvalidOffset

IN = {"filename": "/d/in.txt"}
MORE = {"filename": "/d/more.txt"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "connect.offsets"


def test_the_store_fits_the_port(path: Path) -> None:
    store: OffsetStore = FileOffsetStore(path)
    assert store.get("a", [IN]) == [None]


def test_offsets_outlive_the_process(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [(IN, {"position": 9}), (MORE, {"position": 2})])
        store.put("b", [({"table": "öl", "n": 1.5, "null": None}, {"done": True})])
        store.put("a", [(MORE, None)])
    with closing(FileOffsetStore(path)) as store:
        assert store.get("a", [IN, MORE]) == [{"position": 9}, None]
        assert store.all("a") == [(IN, {"position": 9})]
        assert store.all("b") == [({"table": "öl", "n": 1.5, "null": None}, {"done": True})]


def test_the_file_is_json_with_one_entry_a_line(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [(IN, {"position": 9}), (MORE, {"position": 2})])
    assert path.read_text() == (
        '{"format": "headgate-offsets", "version": 1, "offsets": [\n'
        '{"connector": "a", "partition": {"filename":"/d/in.txt"}, "offset": {"position":9}},\n'
        '{"connector": "a", "partition": {"filename":"/d/more.txt"}, "offset": {"position":2}}\n'
        "]}\n"
    )
    assert len(json.loads(path.read_text())["offsets"]) == 2


def test_without_offsets_the_file_is_still_json(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [(IN, {"position": 9})])
        store.put("a", [(IN, None)])
    assert json.loads(path.read_text())["offsets"] == []


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_an_empty_file_holds_no_offsets_and_that_is_said(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    FileOffsetStore(path).close()
    assert caplog.messages == [], "a file that is not there yet is as it should be"
    path.write_bytes(content)
    with closing(FileOffsetStore(path)) as store:
        assert store.all("a") == []
    assert caplog.messages == [f"The offset file {path} is empty: source connectors start from the beginning"]


def test_a_missing_file_is_made_by_the_first_offset_and_not_before(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [(IN, None)])
        assert not path.exists()
        store.put("a", [(IN, {"position": 1})])
        assert path.exists()


def test_nothing_is_written_when_nothing_changes(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [({"x": 1, "y": 2}, {"position": 9})])
        before = path.stat()
        store.put("a", [({"y": 2, "x": 1}, {"position": 9}), (MORE, None)])
        assert path.stat().st_ino == before.st_ino
        store.put("a", [({"x": 1, "y": 2}, {"position": 9.0})])
        assert path.stat().st_ino != before.st_ino


def test_an_offset_that_cannot_be_stored_changes_nothing(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [(IN, {"position": 9})])
        before = path.read_bytes()
        with pytest.raises(InvalidOffset):
            store.put("a", [(MORE, {"position": 1}), (IN, {"position": {}})])
        with pytest.raises(InvalidOffset):
            store.put("\ud800", [(IN, {"position": 1})])
        assert store.all("a") == [(IN, {"position": 9})]
        assert path.read_bytes() == before


def test_the_file_can_be_edited_by_hand(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [(IN, {"position": 9})])
    edited = path.read_text().replace('{"position":9}', '{ "position" : 12 }')
    path.write_bytes(b"\xef\xbb\xbf" + edited.replace("\n", "\r\n").encode())
    with closing(FileOffsetStore(path)) as store:
        assert store.get("a", [IN]) == [{"position": 12}]


ENTRY = '{"connector": "a", "partition": {"p": 1}, "offset": {"n": 1}}'


def of(entries: str, version: str = "1") -> str:
    return f'{{"format": "headgate-offsets", "version": {version}, "offsets": [\n{entries}\n]}}'


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x00" * 64, "line 1, column 1: Expecting value"),
        (of(ENTRY)[:-20].encode(), "line 2, column "),
        (of(ENTRY + ",").encode(), "line"),
        (b"\xff\xfe", "invalid start byte"),
        (b"[]", "it does not say"),
        (b"{}", "it does not say"),
        (of("", "2").encode(), "its version is 2, which a newer Headgate may read: this one reads 1"),
        (b'{"format": "headgate-offsets", "version": 1}', '"offsets" is not a list'),
        (of(ENTRY + "," + ENTRY).encode(), "entry 2 repeats the partition of an earlier one"),
        (of('{"connector": "a", "partition": {}}').encode(), "entry 1 does not have exactly"),
        (of(ENTRY.replace('"a"', "1")).encode(), "entry 1: connector must be text"),
        (of(ENTRY.replace('{"n": 1}', "null")).encode(), "entry 1: connector must be text"),
        (of(ENTRY.replace('{"n": 1}', '{"n": []}')).encode(), "entry 1: Offsets may only contain primitive types"),
        (of(ENTRY.replace('{"n": 1}', '{"n": NaN}')).encode(), "NaN is not a JSON value"),
        (b"[" * 100_000, "recursion"),
        (
            OFFSETS[:200],
            "it is a Java serialization stream, but not that of Kafka Connect's offsets: the file ends early",
        ),
        (LIST, "it is a Java serialization stream, but not that of Kafka Connect's offsets: byte 4"),
    ],
)
def test_a_damaged_file_is_refused_and_left_as_it_is(path: Path, content: bytes, why: str) -> None:
    path.write_bytes(content)
    with pytest.raises(OffsetFileError) as caught:
        FileOffsetStore(path)
    assert str(path) in str(caught.value)
    assert why in str(caught.value)
    assert "repair it, put back a copy, or move it away" in str(caught.value)
    assert path.read_bytes() == content
    path.unlink()
    FileOffsetStore(path).close()  # the refused one does not hold the lock


class TestPlace:
    def test_a_folder_that_does_not_exist_is_an_error_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(OffsetFileError, match=r"/missing is no folder\. Make it"):
            FileOffsetStore(tmp_path / "missing" / "offsets")

    def test_a_folder_is_no_offset_file(self, tmp_path: Path) -> None:
        with pytest.raises(OffsetFileError, match="is not a file"):
            FileOffsetStore(tmp_path)

    def test_a_folder_that_cannot_be_written_is_an_error_at_once(self) -> None:
        # Not by chmod: tests may run as root, which may write everywhere but there.
        with pytest.raises(OffsetFileError, match=r"could not be written later.*another folder"):
            FileOffsetStore("/proc/connect.offsets")

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_without_permission_is_an_error_at_once_even_with_a_lock_file_in_it(self, tmp_path: Path) -> None:
        FileOffsetStore(tmp_path / "offsets").close()
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(OffsetFileError, match="could not be written later"):
                FileOffsetStore(tmp_path / "offsets")
        finally:
            tmp_path.chmod(0o700)

    def test_a_name_that_no_file_can_have_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(OffsetFileError, match="check its name"):
            FileOffsetStore(f"{tmp_path}/a\0b")
        loop = tmp_path / "loop"
        loop.symlink_to(loop)
        with pytest.raises(OffsetFileError):
            FileOffsetStore(loop)

    def test_a_symbolic_link_stays_and_its_target_changes(self, tmp_path: Path) -> None:
        target, link = tmp_path / "target", tmp_path / "link"
        link.symlink_to(target)
        with closing(FileOffsetStore(link)) as store:
            store.put("a", [(IN, {"position": 9})])
            with pytest.raises(OffsetFileError, match="in use"):
                FileOffsetStore(target)
        assert link.is_symlink()
        assert "position" in target.read_text()

    def test_the_file_keeps_its_access_mode(self, path: Path) -> None:
        path.touch()
        path.chmod(0o640)
        with closing(FileOffsetStore(path)) as store:
            store.put("a", [(IN, {"position": 9})])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    def test_what_a_killed_worker_left_behind_does_not_matter(self, path: Path) -> None:
        temporary = path.with_name("connect.offsets.tmp")
        temporary.write_text("half a fi")
        with closing(FileOffsetStore(path)) as store:
            store.put("a", [(IN, {"position": 9})])
        assert not temporary.exists()

    def test_when_the_disk_is_full_the_last_content_stays_and_the_next_put_may_succeed(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with closing(FileOffsetStore(path)) as store:
            store.put("a", [(IN, {"position": 9})])
            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", _full)
                with pytest.raises(OffsetFileError, match="No space left on device"):
                    store.put("a", [(IN, {"position": 10})])
            assert store.get("a", [IN]) == [{"position": 9}]
            assert '{"position":9}' in path.read_text()
            assert not path.with_name("connect.offsets.tmp").exists()
            store.put("a", [(IN, {"position": 11})])
        with closing(FileOffsetStore(path)) as store:
            assert store.get("a", [IN]) == [{"position": 11}]


def _full(_: int) -> None:
    raise OSError(28, "No space left on device")


class TestLock:
    def test_a_second_process_is_refused_until_the_first_has_closed(self, path: Path) -> None:
        script = "import sys; from headgate.storage.file import FileOffsetStore; FileOffsetStore(sys.argv[1])"
        command = [sys.executable, "-c", script, str(path)]
        with closing(FileOffsetStore(path)):
            second = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert second.returncode == 1
        assert f"The offset file {path} is in use by another worker, process {os.getpid()}: stop" in second.stderr
        assert subprocess.run(command, timeout=30).returncode == 0

    def test_two_stores_of_one_process_exclude_each_other_too(self, path: Path) -> None:
        with closing(FileOffsetStore(path)), pytest.raises(OffsetFileError, match="in use"):
            FileOffsetStore(path)

    def test_a_closed_store_can_be_read_but_not_written(self, path: Path) -> None:
        store = FileOffsetStore(path)
        store.put("a", [(IN, {"position": 9})])
        store.close()
        store.close()
        assert store.get("a", [IN]) == [{"position": 9}]
        with pytest.raises(OffsetFileError, match="is closed"):
            store.put("a", [(IN, {"position": 10})])


class TestImport:
    def test_a_file_of_apaches_worker_is_read_and_stays_until_something_changes(self, path: Path) -> None:
        path.write_bytes(OFFSETS)
        with closing(FileOffsetStore(path)) as store:
            assert store.all("a") == [(IN, {"position": 9})]
            assert store.all("b") == [({"table": "öl", "db": 1}, {"id": 1e20, "done": True})]
            assert store.get("n", [None]) == [{"x": 1}]
            store.put("a", [(IN, {"position": 9})])
        assert path.read_bytes() == OFFSETS

    def test_it_is_kept_beside_ours_when_something_changes(self, path: Path) -> None:
        path.write_bytes(OFFSETS)
        with closing(FileOffsetStore(path)) as store:
            store.put("a", [(IN, {"position": 10})])
            store.put("a", [(IN, {"position": 11})])
        assert path.with_name("connect.offsets.java.bak").read_bytes() == OFFSETS
        with closing(FileOffsetStore(path)) as store:
            assert store.get("a", [IN]) == [{"position": 11}]
            assert store.get("n", [None]) == [{"x": 1}]
            assert len(store.all("b")) == 1

    def test_an_older_copy_is_not_overwritten(self, path: Path) -> None:
        path.with_name("connect.offsets.java.bak").write_text("mine")
        path.write_bytes(OFFSETS)
        with closing(FileOffsetStore(path)) as store:
            store.put("a", [(IN, {"position": 10})])
        assert path.with_name("connect.offsets.java.bak").read_text() == "mine"
        assert path.with_name("connect.offsets.java.bak.2").read_bytes() == OFFSETS

    def test_entries_that_apaches_worker_would_not_list_either_are_skipped(self, path: Path) -> None:
        path.write_bytes(OFFSETS.replace(b'["n",null]', b'{"n":null}').replace(b'{"position":9}', b'["position",1]'))
        with closing(FileOffsetStore(path)) as store:
            assert store.all("a") == store.all("n") == []
            assert len(store.all("b")) == 1


# Any sequence of changes, with the store opened anew at any point, gives what a dict gives.
KEYS = st.text(st.characters(codec="utf-8"), max_size=4)
VALUES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | KEYS
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=3)
FEW = st.sampled_from([{}, {"p": 1}, {"p": "1"}, {"q": 2, "p": 1}, {"p": 1, "q": 2}]) | MAPS
PUT = st.tuples(st.sampled_from("abö"), st.lists(st.tuples(FEW, st.none() | MAPS), max_size=4))


def content(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@settings(deadline=None, max_examples=3 * settings().max_examples // 5)
@given(st.lists(PUT | st.none(), max_size=12))
def test_any_changes_and_reopenings_give_what_a_dict_gives(steps: list[Any]) -> None:
    model: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = FileOffsetStore(Path(folder, "offsets"))
        for step in [*steps, None]:
            if step is None:
                store.close()
                store = FileOffsetStore(Path(folder, "offsets"))
            else:
                connector, offsets = step
                store.put(connector, offsets)
                known = model.setdefault(connector, {})
                for partition, offset in offsets:
                    if offset is None:
                        known.pop(content(partition), None)
                    else:
                        known[content(partition)] = offset
            for connector, known in model.items():
                found = store.all(connector)
                assert [content(partition) for partition, _ in found] == list(known)
                assert [content(offset) for _, offset in found] == [content(offset) for offset in known.values()]
        store.close()


def test_a_partition_removed_and_put_back_in_one_change_comes_last(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:
        store.put("a", [({"p": 1}, {"n": 1}), ({"p": 2}, {"n": 2})])
        store.put("a", [({"p": 1}, None), ({"p": 1}, {"n": 1})])
        assert [partition for partition, _ in store.all("a")] == [{"p": 2}, {"p": 1}]


def test_puts_from_many_threads_all_arrive(path: Path) -> None:
    with closing(FileOffsetStore(path)) as store:

        def work(thread: int) -> None:
            for number in range(20):
                store.put("a", [({"thread": thread, "n": number % 3}, {"at": number})])

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    with closing(FileOffsetStore(path)) as store:
        assert len(store.all("a")) == 12
        assert store.get("a", [{"thread": 3, "n": 1}]) == [{"at": 19}]


WRITER = """
import sys
from headgate.storage.file import FileOffsetStore
store = FileOffsetStore(sys.argv[1])
[start] = store.get("a", [{"p": 0}])
number = start["n"] if start else 0
print("ready", flush=True)
while True:
    number += 1
    # All partitions move together: a file that holds two numbers is a state that was never written.
    store.put("a", [({"p": p}, {"n": number, "padding": "x" * 500}) for p in range(40)])
    print(number, flush=True)
"""


@pytest.mark.process
def test_a_worker_killed_at_any_moment_leaves_a_state_that_it_wrote(path: Path) -> None:
    chance = random.Random(980)
    for _ in range(6):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0.02, 0.2))
        os.kill(writer.pid, signal.SIGKILL)
        returned = [int(line) for line in writer.stdout.read().splitlines() if line.strip()]
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        with closing(FileOffsetStore(path)) as store:
            offsets = store.all("a")
        numbers = {offset["n"] for _, offset in offsets}
        if returned:
            assert len(offsets) == 40
            assert len(numbers) == 1
            # The put that was under way may have come through; none that returned may be lost.
            assert numbers <= {returned[-1], returned[-1] + 1}


class Killed(BaseException):
    """Not an Exception: nothing may clean up after it, as nothing does after a kill."""


class Fuse:
    """Lets `steps` calls to the system through, then kills; a write that it kills has written half."""

    def __init__(self, steps: int, patch: pytest.MonkeyPatch) -> None:
        self._left = steps
        for owner, name in ((os, "open"), (os, "fchmod"), (os, "fsync"), (os, "replace"), (Path, "unlink")):
            patch.setattr(owner, name, self._guard(getattr(owner, name)))
        patch.setattr(os, "fdopen", self._guarded_file(os.fdopen))

    def _burn(self) -> bool:
        self._left -= 1
        return self._left < 0

    def _guard(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if self._burn():
                raise Killed
            return call(*args, **kwargs)

        return guarded

    def _guarded_file(self, fdopen: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(file: int, *args: Any) -> Any:
            fuse = self

            class Output(io.FileIO):
                def write(self, data: Any) -> int:
                    half = fuse._burn()
                    written = super().write(data[: len(data) // 2] if half else data)
                    if half:
                        raise Killed
                    return written

            return Output(file, "wb")

        return guarded


@pytest.mark.parametrize("first", [OFFSETS, None], ids=["over a Java file", "over ours"])
def test_a_put_killed_before_any_step_leaves_the_old_state_or_the_new(
    tmp_path: Path, first: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []
    for steps in range(100):
        path = tmp_path / str(steps)
        if first is not None:
            path.write_bytes(first)
        else:
            with closing(FileOffsetStore(path)) as store:
                store.put("a", [(IN, {"position": 9})])
        store = FileOffsetStore(path)
        with monkeypatch.context() as patch:
            Fuse(steps, patch)
            try:
                store.put("a", [(IN, {"position": 10}), (MORE, {"position": 1})])
            except Killed:
                ended = False
            else:
                ended = True
        store.close()
        with closing(FileOffsetStore(path)) as store:
            outcomes.append(store.get("a", [IN, MORE]))
        if ended:
            break
    old: list[Any] = [{"position": 9}, None]
    new: list[Any] = [{"position": 10}, {"position": 1}]
    switched = outcomes.index(new)
    assert outcomes == [old] * switched + [new] * (len(outcomes) - switched)
    assert switched >= 5
    assert ended
