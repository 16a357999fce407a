"""All metrics as Prometheus text, by the names that Strimzi's rules give to Kafka Connect's.

Everything is read afresh for each scrape, from what lives: the metric of a thing that is gone is gone.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from headgate import __version__
from headgate.metrics import (
    AccessFigures,
    ClientFigures,
    GroupFigures,
    JvmFigures,
    Meter,
    SinkMetrics,
    SourceMetrics,
    TaskMetrics,
    Window,
)
from headgate.model import State, TaskId
from headgate.runtime.errors import ConnectorNotFound, StatusNotFound
from headgate.runtime.herder import Herder
from headgate.runtime.plugins import CONNECTORS
from headgate.runtime.worker import StartCounts

_TASK: Final = ("connector", "task")
_THREADS: Final = "/proc/self/task"
_COUNTED: Final = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")


def exposition(
    herder: Herder,
    tasks: Mapping[TaskId, TaskMetrics],
    clients: Iterable[ClientFigures] = (),
    group: GroupFigures | None = None,
    jvm: JvmFigures | None = None,
    access: AccessFigures | None = None,
) -> bytes:
    """`group`: of a worker that is in one; `jvm`: that of Spark's driver, if it is there."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(herder, dict(tasks), clients, group, jvm, access or AccessFigures()))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


@dataclass(frozen=True, eq=False, slots=True)
class _Snapshot:
    _herder: Herder
    _tasks: Mapping[TaskId, TaskMetrics]
    _clients: Iterable[ClientFigures]
    _group: GroupFigures | None
    _jvm: JvmFigures | None
    _access: AccessFigures

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily("kafka_connect_app_info", "The version of this worker", labels=["version"])
        info.add_metric([__version__], 1)
        yield info
        yield from self._states()
        yield from self._worker()
        yield from self._of_tasks()
        if self._group is not None:
            yield from _of_group(self._group)
        yield from _of_clients(self._clients)
        yield from _of_process(self._jvm)

    def _states(self) -> Iterator[Metric]:
        """Each is told by the worker that has the connector or the task, and by no other: so they can be joined, and
        added up."""
        about = {
            what: _labelled(f"connector_{what}", f"1 for the {what} of a connector here", "connector", what)
            for what in ("status", "connector_class", "connector_type", "connector_version")
        }
        task_status = _labelled("connector_task_status", "1 for the status of a task here", *_TASK, "status")
        verdicts = _labelled("connector_task_verdict", "1 for how a task here fares", *_TASK, "verdict")
        what = "Tasks of the connector on this worker"
        counts = {
            state: _labelled(f"worker_connector_{state}_task_count", f"{what}: {state}", "connector")
            for state in ("total", *_COUNTED)
        }
        for name in self._herder.connector_names():
            try:
                found = self._herder.connector_status(name)
            except StatusNotFound:
                continue
            mine = self._herder.board.worker_id
            if found.connector.worker_id == mine:
                for what, value in {"status": _word(found.connector.state), **self._described(name)}.items():
                    about[what].add_metric([name, value], 1)
            here = [each for each in found.tasks if each.status.worker_id == mine]
            for each in here:
                task_status.add_metric([name, str(each.id), _word(each.status.state)], 1)
                health = self._herder.watch.here.get(TaskId(name, each.id), each.status.health)
                if health is not None:
                    verdicts.add_metric([name, str(each.id), health.verdict.value], 1)
            states = Counter(_word(each.status.state) for each in here)
            counts["total"].add_metric([name], len(here))
            for state in _COUNTED:
                counts[state].add_metric([name], states[state])
        yield from (*about.values(), task_status, verdicts, *counts.values())

    def _described(self, name: str) -> dict[str, str]:
        """What a connector is; nothing of one that was just deleted."""
        try:
            info = self._herder.connector_info(name)
        except ConnectorNotFound:
            return {}
        named = info.config.get("connector.class", "")
        found = self._herder.plugins.get(named, *CONNECTORS)
        return {
            "connector_class": found.name if found else named,
            "connector_type": info.type.value,
            "connector_version": (found.version if found else None) or "undefined",
        }

    def _worker(self) -> Iterator[Metric]:
        worker = self._herder.worker
        yield _plain("connector_count", "Connectors on this worker", len(worker.connectors))
        yield _plain("task_count", "Tasks on this worker", len(worker.tasks))
        yield from _starts("connector", worker.connector_starts)
        yield from _starts("task", worker.task_starts)
        ends = _labelled(
            "worker_tls_certificate_not_after_seconds", "When a listener's certificate expires, Unix time", "listener"
        )
        for url, end in self._access.certificate_ends.items():
            ends.add_metric([url], end)
        yield ends
        failures = _labelled("worker_login_failures", "Logins that failed, by the way that was tried", "login")
        for login, count in self._access.failed_logins.items():
            failures.add_metric([login], count)
        yield failures
        yield _plain("audit_failures", "Audit records that were not written", self._access.failed_audits)

    def _of_tasks(self) -> Iterator[Metric]:
        families: dict[str, GaugeMetricFamily] = {}
        for task, metrics in sorted(self._tasks.items()):
            for name, value in _values(metrics):
                family = families.get(name)
                if family is None:
                    doc = f"Kafka Connect metric {name.replace('_', '-')}"
                    family = families[name] = GaugeMetricFamily(f"kafka_connect_{name}", doc, labels=_TASK)
                family.add_metric([task.connector, str(task.task)], value)
        yield from families.values()
        yield self._by_records()

    def _by_records(self) -> Metric:
        doc = "Records that went one by one where their chain takes columns, by the reason"
        family = CounterMetricFamily("headgate_task_records_by_record", doc, labels=[*_TASK, "reason"])
        for task, metrics in self._tasks.items():
            for reason, count in list(metrics.by_records.items()):
                family.add_metric([task.connector, str(task.task), reason], count)
        return family


def _values(metrics: TaskMetrics) -> Iterator[tuple[str, float]]:
    commits = metrics.commits + metrics.commit_failures
    yield "connector_task_running_ratio", 1 - metrics.pause_ratio
    yield "connector_task_pause_ratio", metrics.pause_ratio
    yield from _window("connector_task_batch_size_{}", metrics.batch_size)
    yield from _window("connector_task_offset_commit_{}_time_ms", metrics.commit_ms)
    yield "connector_task_offset_commit_success_percentage", metrics.commits / commits if commits else 0.0
    yield "connector_task_offset_commit_failure_percentage", metrics.commit_failures / commits if commits else 0.0
    errors = metrics.errors
    yield "task_error_total_record_failures", errors.failures
    yield "task_error_total_record_errors", errors.errors
    yield "task_error_total_records_skipped", errors.skipped
    yield "task_error_total_retries", errors.retries
    yield "task_error_total_errors_logged", errors.logged
    yield "task_error_deadletterqueue_produce_requests", errors.dead_letters
    yield "task_error_deadletterqueue_produce_failures", errors.dead_letter_failures
    yield "task_error_last_error_timestamp", errors.last_error_ms
    if isinstance(metrics, SourceMetrics):
        yield from _source_values(metrics)
    elif isinstance(metrics, SinkMetrics):
        yield from _sink_values(metrics)


def _source_values(metrics: SourceMetrics) -> Iterator[tuple[str, float]]:
    yield from _counted("source_task_source_record_poll", metrics.polled)
    yield from _counted("source_task_source_record_write", metrics.written)
    yield from _window("source_task_poll_batch_{}_time_ms", metrics.poll_ms)
    yield "source_task_source_record_active_count", metrics.active
    yield from _age("source_task_time_since_last_write_ms", metrics.written.last)
    if metrics.transaction_size is not None:
        yield "source_task_transaction_size_min", _number(metrics.transaction_size.minimum)
        yield from _window("source_task_transaction_size_{}", metrics.transaction_size)


def _sink_values(metrics: SinkMetrics) -> Iterator[tuple[str, float]]:
    yield from _counted("sink_task_sink_record_read", metrics.read)
    yield from _counted("sink_task_sink_record_send", metrics.sent)
    yield from _window("sink_task_put_batch_{}_time_ms", metrics.put_ms)
    yield "sink_task_sink_record_active_count", metrics.active
    if (lag := metrics.lag) is not None:
        yield "sink_task_sink_record_lag_max", lag
    yield from _age("sink_task_time_since_last_put_ms", metrics.sent.last)
    yield "sink_task_partition_count", metrics.partitions
    yield "sink_task_offset_commit_seq_no", metrics.commit_seq
    yield "sink_task_offset_commit_completion_total", metrics.commits
    yield "sink_task_offset_commit_skip_total", metrics.commit_skips


def _age(name: str, moment: float | None) -> Iterator[tuple[str, float]]:
    """Nothing of what has never happened."""
    if moment is not None:
        yield name, (time.monotonic() - moment) * 1000


def _window(name: str, found: Window) -> Iterator[tuple[str, float]]:
    yield name.format("max"), _number(found.maximum)
    yield name.format("avg"), _number(found.average)


def _counted(name: str, found: Meter) -> Iterator[tuple[str, float]]:
    yield f"{name}_total", found.total
    yield f"{name}_rate", found.rate


def _of_group(found: GroupFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "kafka_connect_coordinator_assigned_connectors", "Connectors given to this worker", found.connectors
    )
    yield GaugeMetricFamily("kafka_connect_coordinator_assigned_tasks", "Tasks given to this worker", found.tasks)
    rebalances = found.rebalances
    yield _plain("rebalance_rebalancing", "1 while this worker takes part in a rebalance", found.rebalancing)
    yield _plain("rebalance_epoch", "The group's generation", found.generation)
    yield _plain("rebalance_completed_rebalances_total", "Rebalances that this worker has seen", rebalances.completed)
    for name, value in _window("rebalance_rebalance_{}_time_ms", rebalances.ms):
        yield _plain(name, "Milliseconds that rebalances took here", value)
    for name, value in _age("rebalance_time_since_last_rebalance_ms", rebalances.last):
        yield _plain(name, "Milliseconds since the last rebalance was over", value)
    for what, text in {"leader_name": found.leader_url, "connect_protocol": found.protocol}.items():
        family = _labelled(f"worker_rebalance_{what}", f"1 for the {what} of the group", what)
        family.add_metric([text], 1)
        yield family


def _of_clients(clients: Iterable[ClientFigures]) -> Iterator[Metric]:
    """Added up where several have the same id."""
    sums: dict[str, Counter[tuple[str, str]]] = {}
    for each in clients:
        figures = {"connection_count": each.connections, "outgoing_byte_total": each.sent}
        for name, value in {**figures, "incoming_byte_total": each.received}.items():
            sums.setdefault(name, Counter())[each.kind, each.client_id] += value
    for name, found in sums.items():
        for kind in sorted({kind for kind, _ in found}):
            family = GaugeMetricFamily(f"kafka_{kind}_{name}", f"Of each Kafka {kind}", labels=["clientid"])
            for (_, client), value in sorted(item for item in found.items() if item[0][0] == kind):
                family.add_metric([client], value)
            yield family


def _of_process(jvm: JvmFigures | None) -> Iterator[Metric]:
    """Of this process, what `ProcessCollector` does not tell; and of Spark's driver."""
    if os.path.isdir(_THREADS):
        yield GaugeMetricFamily("process_threads", "Threads of the worker's process", len(os.listdir(_THREADS)))
    if jvm is None:
        return
    memory = GaugeMetricFamily("jvm_memory_used_bytes", "Memory of Spark's driver JVM", labels=["area"])
    for area, used in jvm.memory.items():
        memory.add_metric([area], used)
    yield memory
    seconds = GaugeMetricFamily("jvm_gc_collection_seconds_sum", "Time of garbage collections there", labels=["gc"])
    count = GaugeMetricFamily("jvm_gc_collection_seconds_count", "Garbage collections there", labels=["gc"])
    for collector, (times, took) in jvm.collections.items():
        count.add_metric([collector], times)
        seconds.add_metric([collector], took)
    yield from (seconds, count)
    yield GaugeMetricFamily("jvm_threads_current", "Threads of Spark's driver JVM", jvm.threads)


def _starts(kind: str, counts: StartCounts) -> Iterator[Metric]:
    succeeded = counts.attempts - counts.failures
    share = 1 / counts.attempts if counts.attempts else 0.0
    yield _plain(f"{kind}_startup_attempts_total", f"Starts of a {kind} tried", counts.attempts)
    yield _plain(f"{kind}_startup_success_total", f"Starts of a {kind} that succeeded", succeeded)
    yield _plain(f"{kind}_startup_failure_total", f"Starts of a {kind} that failed", counts.failures)
    yield _plain(f"{kind}_startup_success_percentage", f"Share of {kind} starts that succeeded", succeeded * share)
    yield _plain(f"{kind}_startup_failure_percentage", f"Share of {kind} starts that failed", counts.failures * share)


def _plain(name: str, doc: str, value: float) -> Metric:
    return GaugeMetricFamily(f"kafka_connect_worker_{name}", doc, value=value)


def _labelled(name: str, doc: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"kafka_connect_{name}", doc, labels=labels)


def _word(state: State) -> str:
    return state.value.lower()


def _number(value: float) -> float:
    return 0.0 if math.isnan(value) else value
