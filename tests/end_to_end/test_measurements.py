"""Metrics of running tasks, and the Spark session's settings that everything relies on."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from harness import Client, await_, lines, sink_config, source_config

from headgate.cli.assembly import StandaloneWorker

pytestmark = pytest.mark.spark


def _value(client: Client, metric: str, name: str) -> float | None:
    text = client.http.get("/metrics").text
    found = re.search(rf'^{metric}{{connector="{name}",task="0"}} ([0-9.e+-]+)$', text, re.MULTILINE)
    return float(found[1]) if found else None


def test_records_are_counted_on_their_way_and_forgotten_with_their_task(
    client: Client, name: str, topic: str, tmp_path: Path
) -> None:
    source, sink = f"{name}-in", f"{name}-out"
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    client.create(source, source_config(tmp_path / "in.txt", topic))
    client.create(sink, sink_config(tmp_path / "out.txt", topic))
    await_(lambda: len(lines(tmp_path / "out.txt")) == 3, "the lines")
    await_(lambda: client.offsets(source) and client.offsets(sink), "the commits")
    for metric, connector in {
        "kafka_connect_source_task_source_record_poll_total": source,
        "kafka_connect_source_task_source_record_write_total": source,
        "kafka_connect_sink_task_sink_record_read_total": sink,
        "kafka_connect_sink_task_sink_record_send_total": sink,
    }.items():
        assert _value(client, metric, connector) == 3, metric
    for metric, connector in {
        "kafka_connect_source_task_poll_batch_max_time_ms": source,
        "kafka_connect_sink_task_put_batch_max_time_ms": sink,
        "kafka_connect_connector_task_offset_commit_max_time_ms": sink,
        "kafka_connect_connector_task_batch_size_max": source,
        "kafka_connect_connector_task_running_ratio": sink,
    }.items():
        assert (_value(client, metric, connector) or 0) > 0, metric
    await_(lambda: _value(client, "kafka_connect_sink_task_sink_record_lag_max", sink) == 0, "no lag", 10)
    client.put(sink, "stop")
    assert _value(client, "kafka_connect_sink_task_sink_record_send_total", sink) is None


def test_the_session_is_what_the_design_says(client: Client, worker: StandaloneWorker) -> None:
    session = worker.engine.session()
    context = session.sparkContext
    cores = len(os.sched_getaffinity(0))
    assert context.master == f"local[{cores + 4 * cores},4]"  # for jobs, and on top for residents
    assert context.defaultParallelism == cores
    assert session.conf.get("spark.scheduler.mode") == "FAIR"
    assert session.conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert context.pythonExec == sys.executable


def test_loggers_can_be_listed_and_set(client: Client) -> None:
    changed = client.call("PUT", "/admin/loggers/headgate.runtime?scope=worker", 200, json={"level": "debug"})
    assert "headgate.runtime" in changed
    assert client.call("GET", "/admin/loggers/headgate.runtime", 200)["level"] == "DEBUG"
    client.call("PUT", "/admin/loggers/headgate.runtime", 200, json={"level": "INFO"})
    assert "root" in client.call("GET", "/admin/loggers", 200)


def test_many_connectors_share_the_residents(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    """Twenty connectors share one topic; each line arrives once."""
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text(f"from {number}\n")
        client.create(f"{name}-{number}", source_config(tmp_path / f"{number}.txt", topic))
    client.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: len(lines(tmp_path / "out.txt")) == 20, "all lines", 60)
    assert sorted(lines(tmp_path / "out.txt")) == sorted(f"from {number}" for number in range(20))
