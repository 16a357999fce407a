"""The page of metrics, made of what a herder and its tasks know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from strimzi_dashboard import missing, samples

from headgate.connectors.file_sink import FileStreamSinkConnector
from headgate.connectors.file_source import FileStreamSourceConnector
from headgate.metrics import (
    AccessFigures,
    ClientFigures,
    GroupFigures,
    JvmFigures,
    RebalanceMetrics,
    SinkMetrics,
    SourceMetrics,
    TaskMetrics,
)
from headgate.model import (
    ConnectorInfo,
    ConnectorStatus,
    ConnectorType,
    Health,
    State,
    Status,
    TaskId,
    TaskStatus,
    Verdict,
)
from headgate.rest.exposition import exposition
from headgate.runtime.errors import ConnectorNotFound
from headgate.runtime.plugins import Plugins

HERE, ELSEWHERE = "here:8083", "elsewhere:8083"
CLASSES = {"in": "FileStreamSource", "out": "FileStreamSink"}
TYPES = {"in": ConnectorType.SOURCE, "out": ConnectorType.SINK}


class Herder:
    """Of a worker with a source and half of a sink: the other task is elsewhere."""

    def __init__(self, **owners: str) -> None:
        starts = SimpleNamespace(attempts=2, successes=1, failures=1)
        self.worker = SimpleNamespace(connectors=[], tasks=[], connector_starts=starts, task_starts=starts)
        self.board = SimpleNamespace(worker_id=HERE)
        self.watch = SimpleNamespace(here={})
        self.plugins = Plugins([FileStreamSourceConnector, FileStreamSinkConnector])
        self.owners = owners
        self.deleted: set[str] = set()

    def connector_names(self) -> list[str]:
        return list(self.owners)

    def connector_status(self, name: str) -> ConnectorStatus:
        tasks = [TaskStatus(0, Status(State.FAILED, HERE)), TaskStatus(1, Status(State.RUNNING, ELSEWHERE))]
        return ConnectorStatus(name, Status(State.RUNNING, self.owners[name]), tuple(tasks), TYPES[name])

    def connector_info(self, name: str) -> ConnectorInfo:
        if name in self.deleted:
            raise ConnectorNotFound(name)
        return ConnectorInfo(name, {"connector.class": CLASSES[name]}, (), TYPES[name])


def page(herder: Any, tasks: dict[TaskId, TaskMetrics] | None = None, *more: Any) -> str:
    return exposition(herder, tasks or {}, *more).decode()


def values(text: str, name: str) -> dict[tuple[str, ...], float]:
    return {tuple(labels.values()): value for found, labels, value in samples(text) if found == name}


@pytest.mark.parametrize("tasks", [{}, {TaskId("in", 0): SourceMetrics(), TaskId("out", 1): SinkMetrics()}])
def test_the_page_of_a_worker_can_be_asked_for_again(tasks: dict[TaskId, Any]) -> None:
    herder = Herder()
    herder.worker.tasks = list(tasks)
    text = page(herder, tasks)
    assert f"kafka_connect_worker_task_count {float(len(tasks))}" in text
    assert ('connector="out",task="1"' in text) == bool(tasks)
    assert samples(page(herder, tasks))[0] == samples(text)[0]


def test_strimzis_dashboard_finds_all_that_a_worker_can_know() -> None:
    herder = Herder(**{"in": HERE, "out": HERE})
    group = GroupFigures(2, 3, True, 7, "http://here:8083/", "sessioned", RebalanceMetrics())
    clients = [ClientFigures(kind, "c", 1, 2, 3) for kind in ("producer", "consumer", "admin_client")]
    jvm = JvmFigures({"heap": 5, "nonheap": 6}, {"PS-Scavenge": (3, 0.25)}, 40)
    text = page(herder, {TaskId("in", 0): SourceMetrics()}, clients, group, jvm)
    assert missing(text) == set()
    assert values(text, "kafka_connect_connector_connector_class")[
        "out", "org.apache.kafka.connect.file.FileStreamSinkConnector"
    ]
    assert values(text, "kafka_connect_connector_connector_type") == {("in", "source"): 1, ("out", "sink"): 1}
    assert values(text, "jvm_memory_used_bytes") == {("heap",): 5, ("nonheap",): 6}
    assert values(text, "jvm_gc_collection_seconds_sum") == {("PS-Scavenge",): 0.25}
    assert values(text, "kafka_connect_worker_rebalance_rebalancing") == {(): 1}
    assert values(text, "kafka_connect_coordinator_assigned_tasks") == {(): 3}
    assert values(text, "kafka_connect_worker_rebalance_leader_name") == {("http://here:8083/",): 1}
    assert values(text, "process_resident_memory_bytes")[()] > 1_000_000
    assert values(text, "process_threads")[()] >= 1


def test_who_has_a_connector_or_a_task_tells_of_it_and_nobody_else() -> None:
    """Dashboards join these over all workers, and alerts add them up."""
    text = page(Herder(**{"in": HERE, "out": ELSEWHERE}))
    assert values(text, "kafka_connect_connector_status") == {("in", "running"): 1}
    assert {labels[0] for labels in values(text, "kafka_connect_connector_connector_class")} == {"in"}
    assert values(text, "kafka_connect_connector_task_status") == {("in", "failed", "0"): 1, ("out", "failed", "0"): 1}
    assert values(text, "kafka_connect_worker_connector_failed_task_count") == {("in",): 1, ("out",): 1}


def test_how_a_task_here_fares_is_told() -> None:
    herder = Herder(**{"in": HERE})
    herder.watch.here = {TaskId("in", 0): Health(Verdict.STALLED, 0)}
    assert values(page(herder), "kafka_connect_connector_task_verdict") == {("in", "0", "stalled"): 1.0}


def test_a_connector_that_was_just_deleted_or_has_no_plugin_does_no_harm() -> None:
    herder = Herder(**{"in": HERE, "out": HERE})
    herder.deleted, herder.plugins = {"in"}, Plugins([])
    text = page(herder)
    assert values(text, "kafka_connect_connector_connector_class") == {("out", "FileStreamSink"): 1}
    assert values(text, "kafka_connect_connector_connector_version") == {("out", "undefined"): 1}


def test_when_certificates_expire_is_told() -> None:
    name = "kafka_connect_worker_tls_certificate_not_after_seconds"
    assert values(page(Herder()), name) == {}
    access = AccessFigures({"https://here:8443": 1_800_000_000.0})
    assert values(page(Herder(), {}, (), None, None, access), name) == {("https://here:8443",): 1_800_000_000}


def test_failed_logins_and_audits_are_counted() -> None:
    text = page(Herder(), {}, (), None, None, AccessFigures(failed_logins={"basic": 3, "jwt": 0}, failed_audits=2))
    assert values(text, "kafka_connect_worker_login_failures") == {("basic",): 3, ("jwt",): 0}
    assert values(text, "kafka_connect_worker_audit_failures") == {(): 2}


def test_clients_of_one_name_are_added_up() -> None:
    clients = [ClientFigures("producer", "c", 1, 10, 100), ClientFigures("producer", "c", 2, 5, 7)]
    text = page(Herder(), {}, [*clients, ClientFigures("producer", "d", 0, 0, 0)])
    assert values(text, "kafka_producer_connection_count") == {("c",): 3, ("d",): 0}
    assert values(text, "kafka_producer_outgoing_byte_total") == {("c",): 15, ("d",): 0}
    assert values(text, "kafka_producer_incoming_byte_total")["c",] == 107


def test_what_is_not_known_is_not_told() -> None:
    source, sink = SourceMetrics(), SinkMetrics()
    tasks: dict[TaskId, TaskMetrics] = {TaskId("in", 0): source, TaskId("out", 0): sink}
    unknown = (
        "kafka_connect_sink_task_sink_record_lag_max",
        "kafka_connect_source_task_time_since_last_write_ms",
        "kafka_connect_sink_task_time_since_last_put_ms",
        "kafka_connect_coordinator_assigned_tasks",
        "jvm_threads_current",
    )
    text = page(Herder(), tasks)
    assert [name for name in unknown if name in text] == []
    source.written.add(1)
    source.taken, source.passed, source.unacknowledged = 9, 5, 2
    sink.sent.add(1)
    sink.see_lag(0)
    text = page(Herder(), tasks)
    assert values(text, unknown[0]) == {("out", "0"): 0}
    assert 0 <= values(text, unknown[1])["in", "0"] < 60_000
    assert 0 <= values(text, unknown[2])["out", "0"] < 60_000
    assert values(text, "kafka_connect_source_task_source_record_active_count") == {("in", "0"): 6}
    sink.see_lag(None)
    assert values(page(Herder(), tasks), unknown[0]) == {}
