"""The same on a real Spark cluster that encrypts its network: a few keys in the worker's configuration."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness import STRING, await_, lines, sink_config, source_config, worker_settings
from mirror_support import partitions, seen
from spark_cluster_support import SparkCluster, ended, spark_cluster

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


@dataclass(frozen=True)
class Running:
    """A worker on that cluster, with connectors from a file to a file, and from a folder to a topic."""

    source: Path
    out: Path
    folder: Path
    waits: Path
    """While it exists, records of the folder that say "waiting" wait."""
    topic: str
    """Of the folder."""


@pytest.fixture(scope="module")
def running(cluster: SparkCluster, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """With the first line gone through."""
    home = tmp_path_factory.mktemp("cluster")
    topic = home.name
    made = Running(home / "in.txt", home / "out.txt", home / "files", home / "waits", f"{topic}-files")
    made.folder.mkdir()
    made.source.write_text("0\n")
    # Transforms from plugin.path, so that the executors have to import them too.
    fails = {"transforms": "f", "transforms.f.type": "FailingTransform"}
    waits = {"transforms": "w", "transforms.w.type": "GatedTransform", "transforms.w.while": str(made.waits)}
    files = {
        "connector.class": "headgate.SparkSource",
        "path": str(made.folder),
        "topic": made.topic,
        "settle.ms": "0",
        "executors.produce": "always",
        "value.converter": STRING,
        **waits,
    }
    connectors = {
        "in": source_config(made.source, topic, **fails),
        "out": sink_config(made.out, topic),
        "files": files,
    }
    write(home / "worker.properties", {**worker_settings(broker, home), **cluster.settings})
    for name, config in connectors.items():
        write(home / f"{name}.properties", {"name": f"{topic}-{name}", **config})
    with (home / "log").open("wb") as log:
        given = [f"{name}.properties" for name in ("worker", *connectors)]
        command = [str(Path(sys.executable).parent / "headgate"), "standalone", *given]
        worker = subprocess.Popen(command, cwd=home, stdout=log, stderr=subprocess.STDOUT)
    with ended(worker, 30):
        await_(lambda: lines(made.out) == ["0"], "the first line", 90)
        assert f"is ready on {cluster.url}" in (home / "log").read_text()
        yield made


def write(path: Path, settings: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def test_executors_that_are_killed_under_load_cost_no_record(cluster: SparkCluster, running: Running) -> None:
    """Residents of both executors die with them, one after the other."""
    source, out = running.source, running.out
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


def test_files_that_executors_send_lose_no_record_when_these_are_killed(
    cluster: SparkCluster, running: Running, broker: Broker
) -> None:
    def arrived() -> Counter[str]:
        known = partitions(broker.bootstrap, running.topic)
        return (
            Counter((each.value or b"").decode() for each in seen(broker.bootstrap, running.topic))
            if known
            else Counter()
        )

    def put(name: str, *texts: str) -> Counter[str]:
        """Eight files; what is in them."""
        for number in range(8):
            (running.folder / f".{name}{number}").write_text("".join(f"{text}\n" for text in texts))
            (running.folder / f".{name}{number}").rename(running.folder / f"{name}{number}")
        return Counter(texts * 8)

    first = put("a", *(f"a {number}" for number in range(1000)))
    await_(lambda: arrived() == first, "each record once", 90)
    running.waits.touch()
    more = put("b", *(f"b {number}" for number in range(1000))) + put("c", "waiting")
    await_(
        lambda: running.waits.with_suffix(".waits").exists() and "b 0" in arrived(), "a wait behind some records", 90
    )
    assert cluster.kill_executors()
    running.waits.unlink()
    await_(lambda: arrived() >= first + more, "all records", 120)
