"""The mark of a folder: no file twice, none lost, as long as files come as the documentation asks."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headgate.connectors.spark.source.folder.listing import FolderListing, local_files
from headgate.connectors.spark.source.folder.mark import FolderFile, FolderMark, pending

SETTLE = 10


class Reader:
    """Reads as FolderTask does, and is killed between any two steps; the offset alone remains."""

    def __init__(self, by_time: bool) -> None:
        self.by_time = by_time
        self.mark: FolderMark | None = None
        self.read: list[tuple[str, int]] = []
        """File and record."""

    def look(self, files: Sequence[FolderFile], now: int, steps: int) -> None:
        for _ in range(steps):
            found = pending(files, self.mark, self.by_time, now - SETTLE)
            if not found:
                return
            file = found[0]
            done = self.mark.records if self.mark and not self.mark.done and self.mark.name == file.name else 0
            if done < file.size:
                self.read.append((file.name, done))
            when = file.modified if self.by_time else None
            mark = FolderMark(file.name, when, done + 1, done + 1 >= file.size)
            self.mark = FolderMark.read(json.loads(json.dumps(mark.written())), self.by_time)


ARRIVALS = some.lists(
    some.tuples(some.integers(0, 60), some.text("abc", min_size=1, max_size=3), some.integers(0, 3)), max_size=12
)
"""When a file is written, what it is called, how many records it has."""


@given(ARRIVALS, some.lists(some.integers(0, 4), min_size=100, max_size=100), some.integers(0, SETTLE))
def test_by_time_every_file_that_shows_up_soon_after_it_was_written_is_read_once(
    arrivals: list[tuple[int, str, int]], steps: list[int], late: int
) -> None:
    """`late`: they turn up so long after they were written, as when they are moved there."""
    files = {name: FolderFile(name, when, size) for when, name, size in arrivals}
    reader = Reader(by_time=True)
    for now in range(100):
        reader.look([file for file in files.values() if file.modified + late <= now], now, steps[now])
    reader.look(list(files.values()), 1000, 1000)
    order = sorted(files.values(), key=lambda file: (file.modified, file.name))
    assert reader.read == [(file.name, record) for file in order for record in range(file.size)]


@given(ARRIVALS, some.lists(some.integers(0, 4), min_size=100, max_size=100))
def test_by_name_every_file_that_comes_before_a_later_name_has_settled_is_read_once(
    arrivals: list[tuple[int, str, int]], steps: list[int]
) -> None:
    files: dict[str, FolderFile] = {}
    for when, name, size in sorted(arrivals):
        if name not in files and all(other.modified + SETTLE > when for other in files.values() if other.name > name):
            files[name] = FolderFile(name, when, size)
    reader = Reader(by_time=False)
    for now in range(100):
        reader.look([file for file in files.values() if file.modified <= now], now, steps[now])
    reader.look(list(files.values()), 1000, 1000)
    order = sorted(files.values(), key=lambda file: file.name)
    assert reader.read == [(file.name, record) for file in order for record in range(file.size)]


@given(ARRIVALS, some.lists(some.integers(0, 4), min_size=100, max_size=100), some.booleans())
def test_nothing_is_read_twice_however_files_come(
    arrivals: list[tuple[int, str, int]], steps: list[int], by_time: bool
) -> None:
    """But a file that changes is a new one, by time."""
    files = {name: FolderFile(name, when, size) for when, name, size in arrivals}
    reader = Reader(by_time)
    for now in range(100):
        reader.look([file for file in files.values() if file.modified % 7 <= now % 13], now + SETTLE, steps[now])
    assert len(reader.read) == len(set(reader.read))


def listing(folder: Path, pattern: str = "*", by_time: bool = False) -> FolderListing:
    return FolderListing(str(folder), lambda: local_files(str(folder)), pattern, by_time)


def test_hidden_names_folders_and_other_patterns_are_left_out(tmp_path: Path) -> None:
    for name in ("a.csv", "b.txt", "_SUCCESS", ".a.csv.crc", "c.csv"):
        (tmp_path / name).touch()
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "e.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nothing")
    assert sorted(file.name for file in listing(tmp_path, "*.csv").files()) == ["a.csv", "c.csv", "e.csv"]


def test_times_are_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("abc")
    os.utime(tmp_path / "a", ns=(0, 1_234_567_890_123))
    assert listing(tmp_path).files() == [FolderFile("a", 1_234_567, 3)]


def test_a_folder_that_is_not_there_yet_is_empty_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    looking = listing(tmp_path / "later")
    assert [looking.files(), looking.files()] == [[], []]
    assert len(caplog.messages) == 1


def test_a_file_below_the_mark_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    looking = listing(tmp_path)
    mark = FolderMark("m", None, 1, True)
    old, late, new = FolderFile("a", 0, 1), FolderFile("b", 0, 1), FolderFile("n", 0, 1)
    looking.look_for_late([old, new], mark)
    looking.look_for_late([old, late, new], mark)
    looking.look_for_late([old, late, new], mark)
    looking.passed(["m", "n"])
    looking.look_for_late([old, late, new], FolderMark("o", None, 1, True))
    (told,) = caplog.messages
    assert told.startswith(f"{tmp_path}/b belongs before m, which has been read")


def test_a_file_that_was_read_is_not_late(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also the first one, whose place the mark was at when it was first looked."""
    looking = listing(tmp_path)
    files = [FolderFile(name, 0, 1) for name in "abc"]
    looking.passed(["a"])
    looking.look_for_late(files, FolderMark("a", None, 1, True))
    looking.passed(["b"])
    looking.look_for_late(files, FolderMark("b", None, 1, True))
    assert caplog.messages == []
