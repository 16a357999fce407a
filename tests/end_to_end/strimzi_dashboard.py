"""What the queries of Strimzi's dashboard for Kafka Connect ask for, and with which labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

DASHBOARD: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(labels.split())
    for name, labels in {
        "kafka_connect_worker_connector_count": "",
        "kafka_connect_worker_task_count": "",
        "kafka_consumer_connection_count": "clientid",
        "kafka_producer_connection_count": "clientid",
        "kafka_admin_client_connection_count": "clientid",
        "kafka_producer_outgoing_byte_total": "clientid",
        "kafka_consumer_incoming_byte_total": "clientid",
        "kafka_connect_coordinator_assigned_connectors": "",
        "kafka_connect_coordinator_assigned_tasks": "",
        "kafka_connect_worker_rebalance_rebalancing": "",
        "kafka_connect_worker_connector_paused_task_count": "connector",
        "kafka_connect_worker_connector_failed_task_count": "connector",
        "kafka_connect_worker_connector_unassigned_task_count": "connector",
        "kafka_connect_worker_connector_destroyed_task_count": "connector",
        "kafka_connect_worker_connector_running_task_count": "connector",
        "kafka_connect_connector_status": "connector status",
        "kafka_connect_connector_connector_class": "connector connector_class",
        "kafka_connect_connector_connector_version": "connector connector_version",
        "kafka_connect_connector_connector_type": "connector connector_type",
        "kafka_connect_task_error_total_record_failures": "connector task",
        "kafka_connect_connector_task_status": "connector task status",
        "jvm_memory_used_bytes": "area",
        "jvm_gc_collection_seconds_sum": "gc",
        "jvm_threads_current": "",
    }.items()
}
"""All but `container_cpu_usage_seconds_total`, which is the container's to tell."""

_SAMPLE: Final = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL: Final = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def samples(page: str) -> list[tuple[str, dict[str, str], float]]:
    """Of a page of metrics: name, labels, value."""
    return [(name, dict(_LABEL.findall(labels)), float(value)) for name, labels, value in _SAMPLE.findall(page)]


def missing(page: str) -> set[str]:
    """What of the dashboard the page does not have, or not with just these labels."""
    return DASHBOARD.keys() - {name for name, labels, _ in samples(page) if labels.keys() == DASHBOARD.get(name)}
