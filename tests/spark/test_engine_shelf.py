"""Shelves of the engine: only where the executors are on this machine, and only for as long as they are used."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headgate.spark.engine import SparkEngine


def engine(master: str, folder: Path) -> SparkEngine:
    return SparkEngine({"spark.master": master, "spark.local.dir": str(folder)}, list, lambda: Path("java"))


def shelves(folder: Path) -> list[Path]:
    return [shelf for worker in folder.iterdir() for shelf in (worker / "shelves").iterdir()]


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
    made = engine(master, tmp_path)
    with made.shelf() as shelf:
        assert shelf is None
    made.stop()
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
    (next(tmp_path.iterdir()) / "shelves").rmdir()
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


# --- who may look into what is temporary ------------------------------------------------------------------------------


def test_all_that_spark_keeps_on_disk_is_where_nobody_else_may_look(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    made = SparkEngine({"spark.local.dir": f"{one}, {two}"}, list, lambda: Path("java"))
    folders = [Path(each) for each in made._session._settings["spark.local.dir"].split(",")]
    assert [each.parent for each in folders] == [one, two]
    assert [stat.S_IMODE(each.stat().st_mode) for each in folders] == [0o700, 0o700]
    options = made._session._all_settings([])["spark.driver.extraJavaOptions"]
    assert f'"-Djava.io.tmpdir={folders[0]}"' in options
    made.stop()
    assert [*one.iterdir(), *two.iterdir()] == []


def test_on_a_cluster_the_drivers_is_private_and_the_executors_are_the_clusters(tmp_path: Path) -> None:
    made = engine("spark://there:7077", tmp_path)
    assert made._session._settings["spark.local.dir"] == str(tmp_path)
    (folder,) = made._folders
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert f"java.io.tmpdir={folder}" in made._session._all_settings([])["spark.driver.extraJavaOptions"]
    made.stop()
    assert not folder.exists()


@pytest.mark.parametrize(("name", "sockets"), [("s", "true"), ("s" * 60, "false")])
def test_without_room_for_the_name_of_a_socket_there_is_tcp_with_a_token(
    name: str, sockets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr(tempfile, "tempdir", f"{short}/{name}")
        made = SparkEngine({}, list, lambda: Path("java"))
        assert made._session._settings["spark.python.unix.domain.socket.enabled"] == sockets
        made.stop()
