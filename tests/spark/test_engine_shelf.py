"""Shelves of the engine: only where the executors are on this machine, and only for as long as they are used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.spark.engine import SparkEngine


def engine(master: str, folder: Path) -> SparkEngine:
    return SparkEngine({"spark.master": master, "spark.local.dir": str(folder)}, list, lambda: Path("java"))


def shelves(folder: Path) -> list[Path]:
    return [shelf for worker in folder.iterdir() for shelf in worker.iterdir()]


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]"])
def test_a_shelf_where_the_executors_are_here(master: str, tmp_path: Path) -> None:
    made = engine(master, tmp_path)
    with made.shelf() as shelf:
        assert shelf is not None
        assert [str(path) for path in shelves(tmp_path)] == [shelf.folder]
        assert shelf.put(lambda file: file.write(b"left behind")) is not None
    assert shelves(tmp_path) == []
    made.stop()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("master", ["spark://there:7077", "yarn", "k8s://there", "local-cluster[2,1,1024]"])
def test_no_shelf_where_they_are_elsewhere(master: str, tmp_path: Path) -> None:
    with engine(master, tmp_path).shelf() as shelf:
        assert shelf is None
    assert list(tmp_path.iterdir()) == []


def test_each_has_its_own(tmp_path: Path) -> None:
    made = engine("local", tmp_path)
    with made.shelf() as one, made.shelf() as two:
        assert one != two


def test_a_shelf_goes_when_its_user_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), engine("local", tmp_path).shelf():
        raise ZeroDivisionError
    assert shelves(tmp_path) == []


def test_no_shelf_where_there_is_no_room(tmp_path: Path) -> None:
    made = engine("local", tmp_path)
    next(tmp_path.iterdir()).rmdir()
    with made.shelf() as shelf:
        assert shelf is None


def test_what_a_worker_that_was_killed_left_is_removed_by_the_next(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f"headgate-{dead.pid}-abc" / "shelf"
    left.mkdir(parents=True)
    (left / "payload").write_bytes(b"left behind")
    lives, other = tmp_path / f"headgate-{os.getppid()}-abc", tmp_path / f"headgate-{dead.pid}"
    lives.mkdir()
    other.mkdir()
    made = engine("local", tmp_path)
    assert not left.parent.exists()
    assert lives.exists(), "its worker lives"
    assert other.exists(), "it is none of ours"
    made.stop()
