"""SparkSink on a disk without room: the task says so, and goes on when there is some. Told by reading the targets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from dead_letters_support import committed
from harness import JSON, STRING, Client, await_
from pyspark.sql import SparkSession
from spark_sink_runtime import OTHER, WHERE, SinkTrial

from headgate.api import ConnectError
from headgate.cli.assembly import StandaloneWorker

pytestmark = pytest.mark.spark

TARGETS = {
    "files": {"format": "parquet"},
    "exact": {"format": "parquet", "exactly.once": "true"},
    "delta": {"format": "delta", "exactly.once": "true"},
}
ADVICE = "No space left on device.*. Make room there, then restart the task"


@dataclass(frozen=True)
class SmallDisk:
    """Of a few megabytes."""

    root: Path

    @property
    def _ballast(self) -> Path:
        return self.root / "ballast"

    def fill(self, left: int = 0) -> None:
        """Up to so many bytes."""
        free = os.statvfs(self.root)
        with self._ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - left)

    def make_room(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    root = tmp_path / "disk"
    root.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", root], capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield SmallDisk(root)
    subprocess.run(["umount", "--lazy", root], check=True)  # Spark may look into it still


@pytest.fixture
def session(worker: StandaloneWorker) -> SparkSession:
    return worker.engine.session()


@pytest.fixture
def ids(session: SparkSession, disk: SmallDisk) -> Callable[[str], list[int]]:
    """What readers see."""

    def read(target: str) -> list[int]:
        frame = session.read.format(TARGETS[target]["format"]).load(str(disk.root / target))
        return sorted(row.id for row in frame.select("id").collect())

    return read


def noise(number: int) -> dict[str, Any]:
    """What no format makes smaller."""
    return {"id": number, "text": os.urandom(5000).hex()}


@pytest.mark.parametrize("target", TARGETS)
def test_where_there_is_no_room_at_all_nothing_is_lost_or_doubled(
    session: SparkSession, disk: SmallDisk, ids: Callable[[str], list[int]], target: str
) -> None:
    """Not even for what says that rows are there."""
    one = SinkTrial({"path": str(disk.root / target), "rotate.records": "1", **TARGETS[target]}, session=session)
    one.task.open([WHERE, OTHER])
    one.put([noise(0), noise(1)])
    one.commit(2, 0)
    disk.fill()
    one.put([noise(2), noise(3)], first=2)
    with pytest.raises(ConnectError, match=rf"^Cannot write to .*{disk.root / target}: .*{ADVICE}$"):
        one.commit(4, 0)
    assert ids(target) == [0, 1]
    disk.make_room()
    one.put([noise(2), noise(3)], first=2)
    one.commit(4, 0)
    assert ids(target) == [0, 1, 2, 3]
    one.task.stop()


def test_a_disk_that_fills_up_while_spark_writes_fails_the_tasks_until_there_is_room(
    client: Client, producer: Producer, name: str, topic: str, disk: SmallDisk, ids: Callable[[str], list[int]]
) -> None:
    """Three sinks at once, to three kinds of targets."""
    schema = "id BIGINT, text STRING"
    common = {"connector.class": "headgate.SparkSink", "topics": topic, "schema": schema, "rotate.ms": "300"}
    common |= {"key.converter": STRING, "value.converter": JSON, "value.converter.schemas.enable": "false"}
    names = {target: f"{name}-{target}" for target in TARGETS}

    def send(first: int, end: int) -> None:
        for number in range(first, end):
            row = noise(number)
            producer.produce(topic, f'{{"id": {number}, "text": "{row["text"]}"}}'.encode())
        assert producer.flush(30) == 0

    send(0, 20)
    for target, each in names.items():
        client.create(each, {**common, "path": str(disk.root / target), **TARGETS[target]})
    await_(lambda: all(committed(client, each) == 20 for each in names.values()), "the first rows", 120)
    disk.fill(left=300_000)
    send(20, 320)
    for target, each in names.items():
        trace = client.await_states(each, "RUNNING", "FAILED", seconds=120)["tasks"][0]["trace"].splitlines()[0]
        assert f"{disk.root / target}: " in trace
        assert "No space left on device. Make room there, then restart the task" in trace
        assert ids(target) == list(range(20))
    disk.make_room()
    for each in names.values():
        client.call("POST", f"/connectors/{each}/restart?includeTasks=true&onlyFailed=true", 202)
    await_(lambda: all(committed(client, each) == 320 for each in names.values()), "all rows", 120)
    assert sorted(set(ids("files"))) == list(range(320))
    assert ids("exact") == ids("delta") == list(range(320))
