"""A standalone cluster of Spark that encrypts its network, in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
from harness import await_

from headgate.dev.ports import pick_free

HOME = Path(pyspark.__file__).parent
SECRET = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "known to all of the cluster",
    "spark.network.crypto.enabled": "true",
}


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

    @property
    def settings(self) -> Mapping[str, str]:
        """For the worker file."""
        small = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        return {"spark.master": self.url, **small, **SECRET}

    def executors(self) -> list[int]:
        """Processes that the Spark workers have started."""
        found = []
        for worker in self.workers:
            listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(worker.pid)], capture_output=True, text=True)
            found += [int(pid) for pid in listed.stdout.split()]
        return found

    def kill_executors(self) -> set[int]:
        """All that there are, with SIGKILL."""
        killed = set(self.executors())
        for each in killed:
            os.kill(each, signal.SIGKILL)
        return killed


@contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """A master and two workers."""
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
