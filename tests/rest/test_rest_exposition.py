"""The page of metrics, made of what a herder and its tasks know."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.metrics import SinkMetrics, SourceMetrics
from headgate.model import TaskId
from headgate.rest.exposition import exposition


@pytest.mark.parametrize("tasks", [{}, {TaskId("in", 0): SourceMetrics(), TaskId("out", 1): SinkMetrics()}])
def test_the_page_of_a_worker_can_be_asked_for_again(tasks: dict[TaskId, Any]) -> None:
    starts = SimpleNamespace(attempts=2, successes=1, failures=1)
    worker = SimpleNamespace(connectors=[], tasks=list(tasks), connector_starts=starts, task_starts=starts)
    herder: Any = SimpleNamespace(connector_names=list, worker=worker)
    page = exposition(herder, tasks).decode()
    assert f"kafka_connect_worker_task_count {float(len(tasks))}" in page
    assert ('connector="out",task="1"' in page) == bool(tasks)
    assert exposition(herder, tasks).decode() == page
