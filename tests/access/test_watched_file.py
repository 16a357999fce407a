"""A file that is read again when it changes: when, what holds while it is of no use, and who else may touch it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.access.watched_file import WatchedFile
from headgate.api import ConfigError

WRITTEN = 1_000_000.0


class Time:
    """Both clocks: seconds since `WRITTEN`."""

    def __init__(self) -> None:
        self.s = 100.0

    def wall(self) -> float:
        return WRITTEN + self.s

    def steady(self) -> float:
        return self.s


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "numbers"
    write(path, "1", 0)
    return path


def write(path: Path, text: str, at: float) -> None:
    path.write_text(text)
    path.chmod(0o600)
    os.utime(path, (WRITTEN + at, WRITTEN + at))


def number(text: str) -> int:
    if not text.strip().isdigit():
        raise ValueError("line 1: no number")
    return int(text)


def watched(path: Path, time: Time, secret: bool = False) -> WatchedFile[int]:
    return WatchedFile("some.key", str(path), number, secret=secret, clock=time.steady, now=time.wall)


def test_a_change_is_seen_when_it_is_a_second_old(path: Path, time: Time) -> None:
    file = watched(path, time)
    before = file.version
    write(path, "2", 105)
    time.s = 105.5
    assert file.read() == 1  # it may be half of it
    time.s = 106.2
    assert file.read() == 1  # looked at less than a second ago
    time.s = 106.6
    assert file.read() == 2
    assert file.version != before


@pytest.mark.parametrize("at", [-3600, 5000])
def test_a_file_may_be_dated_back_or_ahead(path: Path, time: Time, at: float) -> None:
    file = watched(path, time)
    write(path, "2", at)
    time.s += 2
    assert file.read() == 2


def test_nothing_changes_where_the_file_does_not(path: Path, time: Time) -> None:
    file = watched(path, time)
    before = file.version
    time.s += 3600
    assert (file.read(), file.version) == (1, before)


def test_a_file_that_is_moved_into_place_is_seen(path: Path, time: Time) -> None:
    file = watched(path, time)
    write(path.with_name("new"), "2", 0)  # as long and as old as the other
    path.with_name("new").rename(path)
    time.s += 2
    assert file.read() == 2


def test_what_was_read_before_holds_while_the_file_is_of_no_use(
    path: Path, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    file = watched(path, time)
    write(path, "x", 1)
    for _ in range(20):
        time.s += 2
        assert file.read() == 1
    assert [line.getMessage() for line in caplog.records] == [
        f"{path}, named by some.key: line 1: no number; what it said before still holds"
    ]
    write(path, "3", 2)
    time.s += 2
    assert file.read() == 3


def test_a_file_that_goes_away_may_come_back(path: Path, time: Time, caplog: pytest.LogCaptureFixture) -> None:
    file = watched(path, time)
    path.unlink()
    time.s += 2
    assert file.read() == 1
    assert "cannot be read: No such file or directory" in caplog.text
    write(path, "4", 3)
    time.s += 2
    assert file.read() == 4


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, "No such file"), (b"x", "line 1: no number"), (b"\xff", "invalid start byte")],
)
def test_a_worker_does_not_start_without_it(tmp_path: Path, time: Time, content: bytes | None, reason: str) -> None:
    path = tmp_path / "numbers"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=f"Invalid value {path} for configuration some.key: .*{reason}"):
        watched(path, time)


@pytest.mark.parametrize(
    ("mode", "secret", "told"),
    [
        (0o600, True, None),
        (0o644, False, None),
        (0o644, True, "read it; chmod go-r"),
        (0o640, True, "read it; chmod go-r"),
        (0o620, False, "change it; chmod go-w"),
        (0o602, True, "change it; chmod go-w"),
    ],
)
def test_that_others_may_touch_it_is_told_once(
    path: Path, time: Time, mode: int, secret: bool, told: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    path.chmod(mode)
    file = watched(path, time, secret)
    write(path, "2", 1)
    path.chmod(mode)
    time.s += 3600
    assert file.read() == 2
    assert [line.getMessage() for line in caplog.records if line.levelname == "WARNING"] == (
        [] if told is None else [f"{path}, named by some.key: others on this machine may {told} ends that"]
    )
