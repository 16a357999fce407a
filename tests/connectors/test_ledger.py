"""Ledger: who writes the next entry, what a reader sees, and where to go on."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.ledger import Draft, Ledger, Place, Taken

WHERE = TopicPartition("orders", 3)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "out", WHERE)


def draft(ledger: Ledger, text: bytes, following: int) -> Draft:
    made = ledger.draft()
    made.add(text, following)
    return made


def content(root: Path) -> dict[str, str]:
    """By their paths, in the order in which a reader finds them."""
    return {str(file.relative_to(root)): file.read_text() for file in sorted(root.glob("*/*/*")) if file.is_file()}


def test_entries_follow_each_other_and_sorted_paths_are_their_order(ledger: Ledger, tmp_path: Path) -> None:
    place = ledger.end()
    assert place == Place()
    for until in (7, 9, 120):
        place = ledger.add(draft(ledger, f"before {until}\n".encode(), until), place, until)
        assert place == ledger.end() == Place(0, until, fresh=False)
    assert content(tmp_path / "out") == {
        "orders-3/000000-00000000000000000000/until-00000000000000000007.txt": "before 7\n",
        "orders-3/000000-00000000000000000007/until-00000000000000000009.txt": "before 9\n",
        "orders-3/000000-00000000000000000009/until-00000000000000000120.txt": "before 120\n",
    }


def test_an_entry_may_have_no_lines(ledger: Ledger, tmp_path: Path) -> None:
    """All records were dropped by transforms: they need not be read again."""
    ledger.add(ledger.draft(), Place(), 5)
    assert ledger.end().offset == 5
    assert list(content(tmp_path / "out").values()) == [""]


def test_what_does_not_stand_before_the_offset_is_left_out(ledger: Ledger, tmp_path: Path) -> None:
    made = ledger.draft()
    for following in (2, 4, 6):
        made.add(f"before {following}\n".encode(), following)
    ledger.add(made, Place(), 4)
    assert list(content(tmp_path / "out").values()) == ["before 2\nbefore 4\n"]


def test_a_part_that_was_written_halfway_is_no_part(ledger: Ledger, tmp_path: Path) -> None:
    made = draft(ledger, b"one\n", 1)
    with open(made.folder / "lines", "ab") as file:
        file.write(b"tw")  # and then the disk was full
    made.add(b"two\n", 2)
    with open(made.folder / "lines", "ab") as file:
        file.write(b"thr")
    ledger.add(made, Place(), 3)
    assert list(content(tmp_path / "out").values()) == ["one\ntwo\n"]


@pytest.mark.parametrize("text", [b"mine\n", b""])
def test_a_place_is_taken_once(ledger: Ledger, tmp_path: Path, text: bytes) -> None:
    ledger.add(draft(ledger, b"first\n", 5), Place(), 5)
    late = draft(ledger, text, 8)
    with pytest.raises(Taken, match=rf"^Another task writes orders-3 to folder {tmp_path}/out, so this one may not\."):
        ledger.add(late, Place(), 8)
    assert list(content(tmp_path / "out").values()) == ["first\n"]
    assert ledger.end().offset == 5


def test_of_many_who_want_a_place_at_once_one_gets_it(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)
    winners: list[int] = []

    def write(number: int) -> None:
        mine = Ledger(tmp_path, WHERE)
        made = draft(mine, f"{number}\n".encode(), 1)
        barrier.wait()
        try:
            mine.add(made, Place(), 1)
        except Taken:
            return
        winners.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(winners) == 1
    assert [text for path, text in content(tmp_path).items() if path.startswith("orders")] == [f"{winners[0]}\n"]


def test_who_opens_a_partition_throws_away_what_others_began(ledger: Ledger, tmp_path: Path) -> None:
    old = draft(ledger, b"old\n", 1)
    Ledger(tmp_path / "out", TopicPartition("orders", 30)).draft().add(b"another's\n", 1)
    ledger.discard_drafts()
    with pytest.raises(Taken), ledger.writing():
        old.add(b"more\n", 2)
    with pytest.raises(Taken):
        ledger.add(old, Place(), 2)
    assert content(tmp_path / "out") == {}
    assert len(list((tmp_path / "out" / ".staged" / "orders-30").iterdir())) == 1


# --- altered offsets --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 2, 7, 90, None])
def test_another_offset_begins_a_new_epoch_and_keeps_what_is_there(
    ledger: Ledger, tmp_path: Path, offset: int | None
) -> None:
    ledger.add(draft(ledger, b"first\n", 7), Place(), 7)
    ledger.move(offset)
    place = ledger.end()
    assert place == Place(1, offset)
    ledger.add(draft(ledger, b"second\n", 100), place, 100)
    assert ledger.end() == Place(1, 100, fresh=False)
    assert list(content(tmp_path / "out").values()) == ["first\n", "", "second\n"]
    assert [text for path, text in content(tmp_path / "out").items() if path.endswith(".txt")] == [
        "first\n",
        "second\n",
    ]


def test_asking_for_the_same_again_changes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    ledger.move(None)
    assert content(tmp_path / "out") == {}
    for offset in (5, 5, None, None, 5):
        ledger.move(offset)
    assert list(content(tmp_path / "out")) == [
        "orders-3/000000-00000000000000000000/altered-to-00000000000000000005",
        "orders-3/000001-00000000000000000005/reset",
        "orders-3/000002-00000000000000000000/altered-to-00000000000000000005",
    ]


def test_who_was_writing_before_has_no_place_any_more(ledger: Ledger) -> None:
    place = ledger.add(draft(ledger, b"first\n", 7), Place(), 7)
    late = draft(ledger, b"late\n", 9)
    ledger.move(2)
    with pytest.raises(Taken):
        ledger.add(late, place, 9)
    assert ledger.end() == Place(1, 2)


# --- names and damage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["..", ".staged", "a-1", "a/b", "../../x", "größe", "a b%2F", "x" * 249])
def test_any_topic_has_a_folder_of_its_own(tmp_path: Path, topic: str) -> None:
    root = tmp_path / "out"
    for number in (0, 10):
        ledger = Ledger(root, TopicPartition(topic, number))
        ledger.add(draft(ledger, b"x\n", 1), Place(), 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    assert len(list(root.glob("*/*/until-*.txt"))) == 2
    assert [each._where for each in Ledger.all_in(root)] == [TopicPartition(topic, 0), TopicPartition(topic, 10)]


def test_a_folder_that_is_not_there_has_no_ledgers(tmp_path: Path) -> None:
    assert Ledger.all_in(tmp_path / "nowhere") == []
    (tmp_path / "notes").mkdir()
    (tmp_path / "file-1").touch()
    assert Ledger.all_in(tmp_path) == []


def test_other_things_in_the_folder_do_not_matter(ledger: Ledger, tmp_path: Path) -> None:
    ledger.add(draft(ledger, b"x\n", 1), Place(), 1)
    folder = tmp_path / "out" / "orders-3"
    (folder / "999999-backup").mkdir()
    (folder / "000000-00000000000000000000" / "notes").touch()
    assert ledger.end().offset == 1


def test_an_entry_that_does_not_say_where_to_go_on_is_an_error(ledger: Ledger, tmp_path: Path) -> None:
    ledger.add(draft(ledger, b"x\n", 1), Place(), 1)
    (file,) = tmp_path.rglob("until-*")
    file.unlink()
    with pytest.raises(ConnectError) as raised:
        ledger.end()
    assert str(raised.value) == f"{file.parent} must have one file whose name says where to go on, and has 0"


def test_a_folder_that_cannot_be_made_or_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConnectError) as raised:
        Ledger(tmp_path / "file", WHERE)
    assert str(raised.value) == f"Cannot write to folder {tmp_path / 'file'}: File exists"
    ledger = Ledger(tmp_path, WHERE)
    (tmp_path / "orders-3").touch()
    with pytest.raises(ConnectError, match=r"^Cannot read folder .*/orders-3: Not a directory$"):
        ledger.end()


# --- power cuts -------------------------------------------------------------------------------------------------------


def test_lines_are_durable_before_the_entry_is_there_and_the_entry_before_anybody_hears_of_it(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.rename

    def name_of(handle: int) -> str:
        return os.readlink(f"/proc/self/fd/{handle}").rpartition("/")[2]

    def sync(handle: int) -> None:
        steps.append(f"sync {name_of(handle)}")
        fsync(handle)

    def move(source: Path, target: Path) -> None:
        steps.append(f"move {source.name} to {target.name}")
        rename(source, target)

    made = draft(ledger, b"x\n", 1)
    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "rename", move)
    ledger.add(made, Place(), 1)
    until, entry, own = f"until-{1:020}.txt", f"000000-{0:020}", made.folder.name
    assert steps == [
        "sync lines",
        f"move lines to {until}",
        f"sync {own}",
        "sync out",  # the partition's folder is new
        f"move {own} to {entry}",
        "sync orders-3",
    ]


def _error(code: int) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("call", ["fsync", "rename"])
def test_a_disk_that_fails_is_named(ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    made = draft(ledger, b"x\n", 1)
    monkeypatch.setattr(os, call, _error(errno.EIO))
    with pytest.raises(ConnectError) as raised:
        ledger.add(made, Place(), 1)
    assert str(raised.value) == f"Cannot write to folder {tmp_path / 'out'}: Input/output error"
    assert not isinstance(raised.value, Taken)


def test_a_file_system_that_cannot_sync_folders_is_good_enough(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def sync(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", sync)
    ledger.add(draft(ledger, b"x\n", 1), Place(), 1)
    assert ledger.end().offset == 1
