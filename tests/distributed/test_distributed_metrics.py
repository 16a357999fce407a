"""Metrics of a worker in a group, as the dashboards of others ask for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster_harness import await_, cluster, lines, sink_config, source_config
from strimzi_dashboard import missing, samples

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark


def test_strimzis_dashboard_finds_all_that_a_worker_can_know(
    broker: Broker, name: str, topic: str, group: str, folder: Path
) -> None:
    source, sink = f"{name}-in", f"{name}-out"
    (folder / "in.txt").write_text("one\ntwo\nthree\n")
    with cluster(folder, broker.bootstrap, group, 1, spark_master="local[1,4]") as made:
        (worker,) = made.workers
        worker.create(source, source_config(folder / "in.txt", topic))
        worker.create(sink, sink_config(folder / "out.txt", topic))
        await_(lambda: len(lines(folder / "out.txt")) == 3, "the lines")
        # librdkafka's clients tell of themselves every half minute.
        await_(lambda: not missing(worker.http.get("/metrics").text), "all that the dashboard asks for", 90, 1.0)
        page = samples(worker.http.get("/metrics").text)

        def values(wanted: str) -> list[float]:
            return [value for found, _, value in page if found == wanted]

        assert values("kafka_connect_coordinator_assigned_tasks") == [2]
        assert values("kafka_connect_coordinator_assigned_connectors") == [2]
        assert values("kafka_connect_worker_rebalance_rebalancing") == [0]
        assert values("kafka_connect_worker_rebalance_completed_rebalances_total")[0] >= 1
        assert {labels["status"] for found, labels, _ in page if found.endswith("_status")} == {"running"}
        assert values("kafka_connect_source_task_source_record_write_total") == [3]
        assert values("kafka_connect_source_task_source_record_active_count") == [0]
        assert values("kafka_connect_sink_task_sink_record_lag_max") == [0]
        assert sum(values("kafka_producer_outgoing_byte_total")) > 100
        assert sum(values("kafka_consumer_incoming_byte_total")) > 100
        assert sum(values("kafka_consumer_connection_count")) >= 1
        assert 1_000_000 < sum(values("jvm_memory_used_bytes")) < 10_000_000_000
        assert values("jvm_threads_current")[0] > 5
