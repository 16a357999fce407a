"""Shelves of the engine: only where the executors are on this machine, and only for as long as they are used."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.spark.session import SparkEngine, SparkUnavailable


def engine(master: str, folder: Path) -> SparkEngine:
    made = SparkEngine({"spark.master": master}, list, lambda: None)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_temp_dir=str(folder)))
    made._session = session
    return made


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2,4]"])
def test_a_shelf_where_the_executors_are_here(master: str, tmp_path: Path) -> None:
    with engine(master, tmp_path).shelf() as shelf:
        assert shelf is not None
        assert [str(path) for path in tmp_path.iterdir()] == [shelf.folder]
        assert shelf.put(lambda file: file.write(b"left behind")) is not None
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
    assert list(tmp_path.iterdir()) == []


def test_no_shelf_where_there_is_no_room(tmp_path: Path) -> None:
    with engine("local", tmp_path / "gone").shelf() as shelf:
        assert shelf is None


def test_without_spark_there_is_nothing_to_share(tmp_path: Path) -> None:
    made = engine("local", tmp_path)
    made._session = None
    made._problem = SparkUnavailable("it did not start")
    with pytest.raises(SparkUnavailable), made.shelf():
        pass


KILLED = """
import os, signal
from headgate.spark.session import SparkEngine
engine = SparkEngine({"spark.master": "local[1]"}, list, lambda: None)
engine.start()
with engine.shelf() as shelf:
    shelf.put(lambda file: file.write(b"left behind"))
    print(shelf.folder, os.listdir(shelf.folder), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.spark
def test_nothing_stays_of_a_worker_that_was_killed(eventually: Callable[..., None]) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    folder, _, names = done.stdout.strip().partition(" ")
    assert (done.returncode, len(names) > len("[]")) == (-signal.SIGKILL, True)
    eventually(lambda: not Path(folder).exists())
