"""The same on a real Spark cluster that encrypts its network: a few keys in the worker's configuration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from harness import await_, lines, sink_config, source_config, worker_settings

from headgate.dev.broker import Broker
from headgate.dev.ports import pick_free

HOME = Path(pyspark.__file__).parent
SECRET = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "known to all of the cluster",
    "spark.network.crypto.enabled": "true",
}
pytestmark = pytest.mark.spark


@contextmanager
def ended(process: subprocess.Popen[bytes], seconds: float) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        process.terminate()
        process.wait(seconds)


@dataclass(frozen=True)
class SparkCluster:
    url: str
    workers: list[subprocess.Popen[bytes]]

    def executors(self) -> list[int]:
        """Processes that the Spark workers have started."""
        found = []
        for worker in self.workers:
            listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(worker.pid)], capture_output=True, text=True)
            found += [int(pid) for pid in listed.stdout.split()]
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A standalone master and two workers, processes of their own."""
    folder = tmp_path_factory.mktemp("spark")
    options = " ".join(f"'-D{key}={value}'" for key, value in SECRET.items())
    environment = {
        **os.environ,
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_OPTS": options,
        "SPARK_WORKER_OPTS": options,
    }
    (port,) = pick_free(1)
    url = f"spark://127.0.0.1:{port}"
    place = ["--host", "127.0.0.1", "--webui-port", "0"]

    def start(name: str, ready: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = folder / f"{name}.log"
        with log.open("wb") as output:
            command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{arguments[0]}", *arguments[1:]]
            process = subprocess.Popen(command, env=environment, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        opened.enter_context(ended(process, 20))
        await_(lambda: ready in log.read_text(), f"{name} ready", 60)
        return process

    with ExitStack() as opened:
        start("master", "New state: ALIVE", "master.Master", *place, "--port", str(port))
        size = ["--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work")]
        workers = [
            start(f"worker-{each}", "Successfully registered", "worker.Worker", *place, *size, url) for each in (1, 2)
        ]
        yield SparkCluster(url, workers)


@pytest.fixture
def running(
    cluster: SparkCluster, broker: Broker, tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[tuple[Path, Path]]:
    """A worker on that cluster, with connectors from a file to a file: these, with the first line gone through."""
    topic = unique("topic")
    settings = worker_settings(broker, tmp_path)
    settings |= {"spark.master": cluster.url, "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
    settings |= SECRET
    file = tmp_path / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("0\n")
    # A transform from plugin.path, so that the executors have to import it too.
    step = {"transforms": "f", "transforms.f.type": "FailingTransform"}
    for name, config in (("in", source_config(source, topic, **step)), ("out", sink_config(out, topic))):
        text = "".join(f"{key}={value}\n" for key, value in {"name": f"{topic}-{name}", **config}.items())
        (tmp_path / name).write_text(text)
    with (tmp_path / "log").open("wb") as log:
        command = [str(Path(sys.executable).parent / "headgate"), "standalone", str(file), "in", "out"]
        worker = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
    with ended(worker, 30):
        await_(lambda: lines(out) == ["0"], "the first line", 90)
        assert f"is ready on {cluster.url}" in (tmp_path / "log").read_text()
        yield source, out


def test_executors_that_are_killed_under_load_cost_no_record(cluster: SparkCluster, running: tuple[Path, Path]) -> None:
    """Residents of both executors die with them, one after the other."""
    source, out = running
    count = 40_000
    killed: set[int] = set()
    with source.open("a") as file:
        for number in range(1, count):
            file.write(f"{number}\n")
            if number % 10_000 == 0:
                file.flush()
                await_(lambda at=number: len(lines(out)) > at // 2, "lines so far", 90)  # type: ignore[misc]
                victim = min(await_(lambda: set(cluster.executors()) - killed, "an executor", 60))
                os.kill(victim, signal.SIGKILL)
                killed.add(victim)
    await_(lambda: len(lines(out)) >= count, "all lines", 120)
    assert lines(out) == [str(number) for number in range(count)]
    assert len(killed) == 3
