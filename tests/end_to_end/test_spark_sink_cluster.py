"""SparkSink on a cluster of Spark whose executors are killed while they write. Told by reading the targets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from dead_letters_support import committed
from delta_support import delta_settings
from harness import JSON, STRING, Client, await_, worker_settings
from spark_cluster_support import SparkCluster, ended, spark_cluster

from headgate.dev.broker import Broker
from headgate.dev.ports import pick_free

pytestmark = [pytest.mark.spark, pytest.mark.clusters]

COUNT = 200_000
WRITES = 2


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with spark_cluster(tmp_path_factory.mktemp("spark")) as started:
        yield started


@dataclass(frozen=True)
class Sinks:
    """A worker on that cluster, and a topic full of records."""

    cluster: SparkCluster
    client: Client
    topic: str
    folder: Path

    def create(self, name: str, **more: str) -> Path:
        """A sink, and the folder that it writes to."""
        folder = self.folder / name
        config = {
            "connector.class": "headgate.SparkSink",
            "topics": self.topic,
            "path": str(folder),
            "schema": "id BIGINT, text STRING",
            "rotate.records": str(COUNT // WRITES),
            "rotate.ms": "3000",
            "options.compression": "gzip",
            "key.converter": STRING,
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
            **more,
        }
        self.client.create(name, config)
        return folder

    def kill_while_writing(self, writing: Callable[[], bool]) -> None:
        while True:
            await_(writing, "a write", 120)
            assert self.cluster.kill_executors()
            if writing():  # else it was over too soon, and the next one shall be hit
                return

    def await_all(self, name: str) -> None:
        await_(lambda: committed(self.client, name) == COUNT, "the commit of all", 150)
        assert self.client.states(name) == ("RUNNING", ["RUNNING"])
        self.client.delete(name)  # the next one shall have all of the cluster


@pytest.fixture(scope="module")
def sinks(cluster: SparkCluster, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sinks]:
    folder = tmp_path_factory.mktemp("sinks")
    topic = folder.name
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 50})
    for number in range(COUNT):
        producer.produce(topic, f'{{"id": {number}, "text": "{os.urandom(80).hex()}"}}'.encode())
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(60) == 0
    (port,) = pick_free(1)
    settings = {**worker_settings(broker, folder), **delta_settings(), **cluster.settings}
    settings |= {"listeners": f"http://127.0.0.1:{port}"}
    file = folder / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    with (folder / "log").open("wb") as log:
        command = [str(Path(sys.executable).parent / "headgate"), "standalone", str(file)]
        worker = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    with ended(worker, 30):
        await_(lambda: f"is ready on {cluster.url}" in (folder / "log").read_text(), "the worker", 90)
        client = Client(f"http://127.0.0.1:{port}")
        yield Sinks(cluster, client, topic, folder)
        client.close()


def ids(files: list[Path]) -> list[int]:
    return sorted(number for file in files for number in pq.ParquetFile(file).read(["id"]).column("id").to_pylist())


def test_files_lose_no_record(sinks: Sinks) -> None:
    folder = sinks.create("files")
    sinks.kill_while_writing(lambda: any(folder.glob("_temporary/*/_temporary/*/*.parquet")))
    sinks.await_all("files")
    assert sorted(set(ids(list(folder.glob("*.parquet"))))) == list(range(COUNT))


def added(folder: Path) -> list[Path]:
    """What the log of a Delta table says that readers shall read."""
    actions = [
        json.loads(line) for file in (folder / "_delta_log").glob("*.json") for line in file.read_text().splitlines()
    ]
    assert not any("remove" in each for each in actions)
    return [folder / each["add"]["path"] for each in actions if "add" in each]


def test_delta_has_each_record_once(sinks: Sinks) -> None:
    folder = sinks.create("delta", format="delta", **{"exactly.once": "true"})
    sinks.kill_while_writing(lambda: len(list(folder.glob("*.parquet"))) > len(added(folder)))
    sinks.await_all("delta")
    assert ids(added(folder)) == list(range(COUNT))


def test_files_exactly_once_are_refused_for_executors_elsewhere(sinks: Sinks) -> None:
    folder = sinks.create("exact", **{"exactly.once": "true"})
    trace = sinks.client.await_states("exact", "RUNNING", "FAILED", seconds=90)["tasks"][0]["trace"]
    told = (
        f"by its own executors only, and spark.master is {sinks.cluster.url}. Use a path of hdfs://, or format=delta on"
    )
    assert told in trace
    assert not folder.exists()
