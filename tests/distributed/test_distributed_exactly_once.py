"""KIP-875 for sources with transactions: their offsets are changed when nothing of their tasks can count any more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_harness import Cluster, Worker, await_, cluster, lines, sink_config, source_config
from topic_reader import about, read_topic, transactions

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def exact(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    settings = {"exactly_once_source_support": "enabled", "spark_master": "local[1,4]"}
    with cluster(tmp_path_factory.mktemp("exact"), broker.bootstrap, "exact", 1, **settings) as made:
        yield made


def fencing(broker: Broker, name: str) -> list[tuple[str, int]]:
    """Commits of tasks, and counts of tasks that have been fenced, in their order."""
    records = about(read_topic(broker.bootstrap, "exact-configs"), name)
    return [
        (record.key.removesuffix(f"-{name}"), next(iter(record.value.values())))
        for record in records
        if record.key.startswith(("commit-", "tasks-fencing-"))
    ]


def change(worker: Worker, name: str, file: Path, position: int) -> None:
    body = {"offsets": [{"partition": {"filename": str(file)}, "offset": {"position": position}}]}
    worker.settle("PATCH", f"/connectors/{name}/offsets", 200, json=body)


@pytest.mark.kip(875, "exactly-once: fencing before offsets are changed, in one transaction")
def test_offsets_of_a_source_with_transactions(
    exact: Cluster, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    (worker,) = exact.workers
    source, file = f"{name}-in", tmp_path / "in.txt"
    file.write_text("one\ntwo\nthree\n")
    committed = {"consumer.override.isolation.level": "read_committed"}
    worker.create(source, source_config(file, topic))
    worker.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic, **committed))
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three"], "the lines")
    assert fencing(broker, source) == [("commit", 1), ("tasks-fencing", 1)]
    worker.put(source, "stop")
    worker.await_states(source, "STOPPED")
    assert f"exact-{source}" not in transactions(broker.bootstrap)
    change(worker, source, file, 8)
    assert fencing(broker, source)[2:] == [("commit", 0), ("tasks-fencing", 0)]
    assert transactions(broker.bootstrap)[f"exact-{source}"] == "CompleteCommit"
    assert [each["offset"] for each in worker.offsets(source)] == [{"position": 8}]
    worker.put(source, "resume")
    await_(lambda: lines(tmp_path / "out.txt") == ["one", "two", "three", "three"], "the third line again")
    worker.put(source, "stop")
    worker.await_states(source, "STOPPED")
    worker.settle("DELETE", f"/connectors/{source}/offsets", 200)
    assert worker.offsets(source) == []
