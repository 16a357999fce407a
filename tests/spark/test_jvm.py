"""The start of the driver JVM: what others on the machine may see of it. There is no JVM here."""

from __future__ import annotations

import io
import os
import shlex
import stat
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import javaproperties
import pytest
from pyspark import SparkConf, java_gateway

from headgate.spark import jvm

SETTINGS = {"spark.hadoop.fs.s3a.secret.key": "s3:cr=t #\\ä\n", "spark.master": "local[1]"}


class Started:
    """Stands for PySpark's start of a JVM, and looks at what it was given."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.problem = problem
        self.conf: Any = None

    def __call__(self, conf: Any = None, popen_kwargs: Mapping[str, Any] | None = None) -> Any:
        self.conf = conf
        self.environment = dict(os.environ)
        self.arguments = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
        self.file = Path(self.arguments[1])
        self.mode = stat.S_IMODE(self.file.stat().st_mode)
        self.settings = javaproperties.loads(self.file.read_text())
        if self.problem is not None:
            raise self.problem
        return SimpleNamespace(proc=SimpleNamespace(stdout=io.BytesIO()))


def launch(monkeypatch: pytest.MonkeyPatch, folder: Path, started: Started, **environment: str) -> Started:
    monkeypatch.setattr(java_gateway, "launch_gateway", started)
    jvm.launch(SparkConf(loadDefaults=False).setAll(list(SETTINGS.items())), folder, **environment)
    return started


def test_settings_are_in_a_file_that_only_its_owner_may_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    started = launch(monkeypatch, tmp_path, Started())
    assert started.conf is None, "PySpark would put it into the command line"
    assert (started.arguments[0], started.arguments[2:]) == ("--properties-file", ["pyspark-shell"])
    assert (started.file.parent, started.mode, started.settings) == (tmp_path, 0o600, SETTINGS)
    assert not any("s3:cr" in value for value in started.environment.values())


def test_the_file_is_gone_when_the_jvm_has_started_or_has_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launch(monkeypatch, tmp_path, Started())
    with pytest.raises(OSError, match="no Java"):
        launch(monkeypatch, tmp_path, Started(OSError("no Java")))
    assert list(tmp_path.iterdir()) == []


def test_the_environment_of_the_worker_stays_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--verbose pyspark-shell")
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    before = dict(os.environ)
    started = launch(monkeypatch, tmp_path, Started(), SPARK_LOCAL_IP="127.0.0.1")
    assert started.arguments[2:] == ["--verbose", "pyspark-shell"]
    assert started.environment["SPARK_LOCAL_IP"] == "127.0.0.1"
    assert dict(os.environ) == before
