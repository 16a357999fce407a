from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.ledger import Taken
from headgate.connectors.spark.sink import file_ledger
from headgate.connectors.spark.sink.file_ledger import FileEntry, FileLedger, StagedEntry

ONE, TWO = TopicPartition("orders", 0), TopicPartition("or/ders", 12)


def staged(ledger: FileLedger, number: int, name: str, offset: int = 7) -> StagedEntry:
    made = ledger.stage(FileEntry(number, {ONE: offset, TWO: 1}, "id BIGINT"))
    folder = Path(made.files, "_day=1")
    folder.mkdir(parents=True)
    (folder / name).write_text(name)
    (folder.parent / "_SUCCESS").touch()
    (folder / f".{name}.crc").touch()
    return made


def seen(root: Path) -> list[str]:
    """By readers."""
    return sorted(
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and "_headgate" not in path.parts
    )


def test_an_entry_is_found_with_all_it_says(tmp_path: Path) -> None:
    ledger = FileLedger(f"{tmp_path}/a/b", "my sink/1")
    assert ledger.last() == FileEntry()
    ledger.commit(staged(ledger, 1, "a"))
    assert seen(tmp_path / "a" / "b") == []
    assert ledger.last() == FileEntry(1, {ONE: 7, TWO: 1}, "id BIGINT")
    ledger.settle()
    ledger.settle()
    assert seen(tmp_path / "a" / "b") == ["_day=1/a"]
    for other in ("other", "..", "."):
        assert FileLedger(f"{tmp_path}/a/b", other).last() == FileEntry()


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path), "c")
    staged(ledger, 1, "a")
    ledger.discard_staged()
    ledger.settle()
    assert (seen(tmp_path), ledger.last().number) == ([], 0)
    assert list((tmp_path / "_headgate" / "c").iterdir()) == []


def test_of_two_writers_one_gets_the_number(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path), "c")
    first, second = staged(ledger, 1, "a"), staged(ledger, 1, "b", offset=9)
    ledger.commit(first)
    with pytest.raises(Taken, match="Another task writes to folder"):
        ledger.commit(second)
    ledger.settle()
    ledger.discard_staged()
    assert (seen(tmp_path), ledger.last().offsets[ONE]) == (["_day=1/a"], 7)


def test_who_opens_shuts_out_who_is_not_done(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path), "c")
    old = staged(ledger, 1, "a")
    ledger.discard_staged()
    with pytest.raises(Taken):
        ledger.commit(old)
    # Spark goes on writing and makes the folder anew: what it has then is not all.
    Path(old.files).mkdir(parents=True)
    Path(old.files, "half").touch()
    with pytest.raises(Taken):
        ledger.commit(old)
    ledger.settle()
    assert (seen(tmp_path), ledger.last().number) == ([], 0)


def test_two_may_move_the_same_files(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path), "c")
    ledger.commit(staged(ledger, 1, "a"))
    entry = tmp_path / "_headgate" / "c" / f"{1:020}"
    (tmp_path / "_day=1").mkdir()
    (entry / "files" / "_day=1" / "a").rename(tmp_path / "_day=1" / "a")  # another, which is not done
    ledger.settle()
    assert (seen(tmp_path), (entry / "files").exists()) == (["_day=1/a"], False)


def test_old_entries_go_and_their_numbers_stay_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_ledger, "_KEPT", 3)
    ledger = FileLedger(str(tmp_path), "c")
    late = staged(ledger, 2, "late")
    for number in range(1, 8):
        ledger.commit(staged(ledger, number, f"f{number}"))
        ledger.settle()
    entries = sorted(path.name for path in (tmp_path / "_headgate" / "c").iterdir() if not path.name.startswith("."))
    assert entries == [f"{number:020}" for number in (5, 6, 7)]
    with pytest.raises(Taken):
        ledger.commit(late)
    assert len(seen(tmp_path)) == 7


def test_offsets_are_moved_one_by_one_or_all(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path), "c")
    ledger.move({})
    assert ledger.last().number == 0
    ledger.commit(staged(ledger, 1, "a"))
    ledger.move({ONE: 3, TWO: None})
    assert ledger.last() == FileEntry(2, {ONE: 3}, "id BIGINT")
    ledger.move({ONE: 3})
    assert ledger.last().number == 2
    ledger.move({})
    assert ledger.last() == FileEntry(3, {}, "id BIGINT")
    ledger.settle()
    assert seen(tmp_path) == ["_day=1/a"]


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConnectError, match=r"Cannot write to folder .*file: Not a directory"):
        FileLedger(f"{tmp_path}/file", "c").stage(FileEntry(1))
    (tmp_path / "file").unlink()
    ledger = FileLedger(str(tmp_path), "c")
    ledger.commit(staged(ledger, 1, "a"))
    (tmp_path / "_day=1").touch()
    with pytest.raises(ConnectError, match="Cannot write to folder"):
        ledger.settle()
    (tmp_path / "_day=1").unlink()
    ledger.settle()
    assert seen(tmp_path) == ["_day=1/a"]


def test_an_entry_that_somebody_has_spoilt_is_told(tmp_path: Path) -> None:
    ledger = FileLedger(str(tmp_path), "c")
    ledger.commit(staged(ledger, 1, "a"))
    (tmp_path / "_headgate" / "c" / f"{1:020}" / "entry.json").write_text("{}")
    with pytest.raises(ConnectError, match=r"entry.json is no entry of a ledger"):
        ledger.last()
    shutil.rmtree(tmp_path / "_headgate")
    assert ledger.last() == FileEntry()
