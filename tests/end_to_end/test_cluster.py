"""The same on a real Spark cluster: one key in the worker's configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest
from harness import await_, lines, sink_config, source_config, worker_settings

from headgate.dev.broker import Broker
from headgate.dev.ports import pick_free

HOME = Path(pyspark.__file__).parent
pytestmark = pytest.mark.spark


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A Spark standalone cluster: a master and a worker, processes of their own."""
    environment = {**os.environ, "SPARK_SCALA_VERSION": "2.13", "SPARK_HOME": str(HOME), "SPARK_LOCAL_IP": "127.0.0.1"}
    (port,) = pick_free(1)
    url = f"spark://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = {
        "Master": ["org.apache.spark.deploy.master.Master", *place, "--port", str(port)],
        "Worker": ["org.apache.spark.deploy.worker.Worker", *place, "--cores", "2", "--memory", "1g", url],
    }
    started = []
    try:
        for name, command in commands.items():
            log = tmp_path / f"{name}.log"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [str(HOME / "bin" / "spark-class"), *command],
                    env=environment,
                    cwd=tmp_path,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            started.append(process)
            ready = {"Master": "New state: ALIVE", "Worker": "Successfully registered"}[name]
            await_(lambda at=log, text=ready: text in at.read_text(), f"{name} ready", 60)  # type: ignore[misc]
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(20)


def test_records_go_through_the_executors_of_a_cluster(
    master: str, broker: Broker, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    topic = unique("topic")
    settings = worker_settings(broker, tmp_path)
    settings |= {"spark.master": master, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    # A transform from plugin.path, so that the executors have to import it too.
    step = {"transforms": "f", "transforms.f.type": "FailingTransform"}
    for name, config in (
        ("in", source_config(tmp_path / "in.txt", topic, **step)),
        ("out", sink_config(tmp_path / "out.txt", topic)),
    ):
        text = "".join(f"{key}={value}\n" for key, value in {"name": f"{topic}-{name}", **config}.items())
        (tmp_path / name).write_text(text)
    with (tmp_path / "log").open("wb") as log:
        command = [str(Path(sys.executable).parent / "headgate"), "standalone", str(file), "in", "out"]
        worker = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
    try:
        await_(lambda: lines(tmp_path / "out.txt") == ["one", "two"], "the lines", 90)
        assert f"is ready on {master}" in (tmp_path / "log").read_text()
    finally:
        worker.terminate()
        worker.wait(30)
