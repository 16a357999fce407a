"""All metrics as Prometheus text, by the names that Strimzi's rules give to Kafka Connect's.

Everything is read afresh for each scrape, from what lives: the metric of a thing that is gone is gone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from headgate import __version__
from headgate.metrics import Meter, SinkMetrics, SourceMetrics, TaskMetrics, Window
from headgate.model import State, TaskId
from headgate.runtime.errors import StatusNotFound
from headgate.runtime.herder import Herder
from headgate.runtime.worker import StartCounts

_TASK: Final = ("connector", "task")
_COUNTED: Final = ("running", "paused", "failed", "unassigned", "destroyed", "restarting")


def exposition(herder: Herder, tasks: Mapping[TaskId, TaskMetrics]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Snapshot(herder, dict(tasks)))
    return generate_latest(registry)


@dataclass(frozen=True, eq=False, slots=True)
class _Snapshot:
    _herder: Herder
    _tasks: Mapping[TaskId, TaskMetrics]

    def collect(self) -> Iterator[Metric]:
        info = GaugeMetricFamily("kafka_connect_app_info", "The version of this worker", labels=["version"])
        info.add_metric([__version__], 1)
        yield info
        yield from self._states()
        yield from self._worker()
        yield from self._of_tasks()

    def _states(self) -> Iterator[Metric]:
        status = GaugeMetricFamily(
            "kafka_connect_connector_status",
            "1 for the state that a connector (no task) or a task is in",
            labels=["connector", "task", "status"],
        )
        counts = {
            state: GaugeMetricFamily(
                f"kafka_connect_worker_connector_{state}_task_count",
                f"Tasks of the connector on this worker: {state}",
                labels=["connector"],
            )
            for state in ("total", *_COUNTED)
        }
        for name in self._herder.connector_names():
            try:
                found = self._herder.connector_status(name)
            except StatusNotFound:
                continue
            status.add_metric([name, "", _word(found.connector.state)], 1)
            for each in found.tasks:
                status.add_metric([name, str(each.id), _word(each.status.state)], 1)
            here = [each for each in found.tasks if each.status.worker_id == self._herder.board.worker_id]
            states = Counter(_word(each.status.state) for each in here)
            counts["total"].add_metric([name], len(here))
            for state in _COUNTED:
                counts[state].add_metric([name], states[state])
        yield status
        yield from counts.values()

    def _worker(self) -> Iterator[Metric]:
        worker = self._herder.worker
        yield _plain("connector_count", "Connectors on this worker", len(worker.connectors))
        yield _plain("task_count", "Tasks on this worker", len(worker.tasks))
        yield from _starts("connector", worker.connector_starts)
        yield from _starts("task", worker.task_starts)

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
    if metrics.transaction_size is not None:
        yield "source_task_transaction_size_min", _number(metrics.transaction_size.minimum)
        yield from _window("source_task_transaction_size_{}", metrics.transaction_size)


def _sink_values(metrics: SinkMetrics) -> Iterator[tuple[str, float]]:
    yield from _counted("sink_task_sink_record_read", metrics.read)
    yield from _counted("sink_task_sink_record_send", metrics.sent)
    yield from _window("sink_task_put_batch_{}_time_ms", metrics.put_ms)
    yield "sink_task_sink_record_active_count", metrics.active
    yield "sink_task_sink_record_lag_max", metrics.lag
    yield "sink_task_partition_count", metrics.partitions
    yield "sink_task_offset_commit_seq_no", metrics.commit_seq
    yield "sink_task_offset_commit_completion_total", metrics.commits
    yield "sink_task_offset_commit_skip_total", metrics.commit_skips


def _window(name: str, found: Window) -> Iterator[tuple[str, float]]:
    yield name.format("max"), _number(found.maximum)
    yield name.format("avg"), _number(found.average)


def _counted(name: str, found: Meter) -> Iterator[tuple[str, float]]:
    yield f"{name}_total", found.total
    yield f"{name}_rate", found.rate


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


def _word(state: State) -> str:
    return state.value.lower()


def _number(value: float) -> float:
    return 0.0 if math.isnan(value) else value
