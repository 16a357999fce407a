"""What KIP-875 and KIP-980 are for: connectors that move to another cluster, and offsets that outlive their topic."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_harness import Cluster, Worker, await_, cluster, lines, sink_config, source_config
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from topic_reader import create_topic, read_topic

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def new(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("new"), broker.bootstrap, "new", 1, spark_master="local[1,4]") as made:
        yield made


def stop(worker: Worker, name: str) -> None:
    worker.put(name, "stop")
    worker.await_states(name, "STOPPED")


@pytest.mark.kip(
    980, "One interesting use case would be to migrate connectors from one Kafka Connect cluster to another"
)
def test_connectors_move_to_another_cluster_and_go_on_where_they_were(
    two: Cluster, new: Cluster, name: str, topic: str, tmp_path: Path
) -> None:
    here, (there,) = two.workers[0], new.workers
    file, out = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_text("one\ntwo\nthree\n")
    here.create(f"{name}-in", source_config(file, topic))
    here.create(f"{name}-out", sink_config(out, topic))
    await_(lambda: lines(out) == ["one", "two", "three"], "the lines")
    for each in (f"{name}-in", f"{name}-out"):
        stop(here, each)
        offsets = here.call("GET", f"/connectors/{each}/offsets", 200)
        config = here.call("GET", f"/connectors/{each}/config", 200)
        if "topics" in config:
            config["consumer.override.group.id"] = f"{each}-moved"  # both clusters are on one Kafka
        there.create(each, config, "STOPPED")
        there.await_states(each, "STOPPED")
        assert there.offsets(each) == []
        there.settle("PATCH", f"/connectors/{each}/offsets", 200, json=offsets)
        assert there.offsets(each) == offsets["offsets"] != []
        there.put(each, "resume")
        here.settle("DELETE", f"/connectors/{each}", 204)
    with file.open("a") as more:
        more.write("four\nfive\n")
    await_(lambda: len(lines(out)) >= 5, "the lines after the move")
    for each in (f"{name}-in", f"{name}-out"):
        there.await_states(each, "RUNNING", "RUNNING")
        here.call("GET", f"/connectors/{each}", 404)
        stop(there, each)
    assert lines(out) == ["one", "two", "three", "four", "five"]


@pytest.mark.kip(875, "viewing the in-memory offsets to recover from accidental deletion of the offsets topic")
def test_offsets_outlive_their_topic(
    new: Cluster, broker: Broker, name: str, topic: str, tmp_path: Path, eventually: Callable[..., None]
) -> None:
    (worker,) = new.workers
    file, path = tmp_path / "in.txt", f"/connectors/{name}/offsets"
    file.write_text("1\n2\n")
    worker.create(name, source_config(file, topic))
    await_(lambda: worker.offsets(name), "the commit")
    stop(worker, name)
    before = worker.http.get(path)
    assert "Warning" not in before.headers
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    admin.delete_topics(["new-offsets"])["new-offsets"].result(20)
    answer = worker.http.get(path)
    assert (answer.status_code, answer.json()) == (200, before.json())
    assert answer.headers["Warning"].startswith('199 - "from memory: topic new-offsets ')
    assert answer.elapsed.total_seconds() < 5
    for method, body in (("PATCH", answer.json()), ("DELETE", None)):
        assert "Topic new-offsets " in worker.settle(method, path, 500, json=body)["message"]
    assert "new-offsets" not in admin.list_topics(timeout=10).topics, "it was made by somebody who only asked"
    create_topic(broker.bootstrap, "new-offsets", 5, cleanup_policy="compact")
    worker.settle("PATCH", path, 200, json=answer.json())
    restored = worker.http.get(path)
    assert (restored.json(), "Warning" in restored.headers) == (before.json(), False)
    assert [each.value for each in read_topic(broker.bootstrap, "new-offsets")] == [{"position": 4}]
    worker.put(name, "resume")
    with file.open("a") as more:
        more.write("3\n")
    eventually(lambda: worker.offsets(name)[0]["offset"] == {"position": 6})
    stop(worker, name)
    assert [each.value for each in read_topic(broker.bootstrap, topic)] == [1, 2, 3]


@pytest.mark.kip(875, "the request fails with 404 only if the connector does not exist")
def test_a_class_that_is_not_installed_any_more(new: Cluster, broker: Broker, name: str) -> None:
    (worker,) = new.workers
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    records: dict[str, Any] = {
        f"connector-{name}": {"properties": {"name": name, "connector.class": "com.acme.Lost", "topics": "t"}},
        f"target-state-{name}": {"state": "PAUSED", "state.v2": "STOPPED"},
    }
    for key, value in records.items():
        producer.produce("new-configs", json.dumps(value), key)
    assert producer.flush(20) == 0
    await_(lambda: name in worker.call("GET", "/connectors", 200), "the worker has read of it")
    assert worker.offsets(name) == []
    body = {"offsets": [{"partition": {"kafka_topic": "t", "kafka_partition": 0}, "offset": None}]}
    for method, content in (("PATCH", body), ("DELETE", None)):
        message = worker.settle(method, f"/connectors/{name}/offsets", 500, json=content)["message"]
        assert "com.acme.Lost" in message
    worker.settle("DELETE", f"/connectors/{name}", 204)
