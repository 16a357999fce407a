"""Headgate takes a cluster of Apache Kafka Connect over, with its topics and its worker file, and gives it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from apache_worker import ApacheWorker, fetched
from cluster_harness import Worker, await_, lines, sink_config, source_config
from topic_reader import read_topic

from headgate.dev.broker import Broker

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not fetched(), reason="the jars of Apache Kafka Connect are not in the cache: make bench"),
]


class Files:
    """Numbers as lines, from a file to a topic to a file, and from another one to a topic."""

    def __init__(self, folder: Path, unique: Callable[[str], str]) -> None:
        self.inputs = {name: folder / f"{name}-in.txt" for name in ("flow", "paused", "stopped")}
        self.topics = {name: unique(f"{name}-lines") for name in self.inputs}
        self.out = folder / "out.txt"
        self.written = dict.fromkeys(self.inputs, 0)

    def configs(self) -> dict[str, dict[str, str]]:
        sources = {f"{name}-source": source_config(self.inputs[name], topic) for name, topic in self.topics.items()}
        return {**sources, "flow-sink": sink_config(self.out, self.topics["flow"])}

    def write(self, count: int = 20) -> None:
        for name, path in self.inputs.items():
            with path.open("a") as file:
                file.writelines(f"{self.written[name] + number}\n" for number in range(count))
            self.written[name] += count

    def await_out(self) -> None:
        """All lines, each of them once and in order: whoever stops as it should leaves nothing to be done again."""
        wanted = [str(number) for number in range(self.written["flow"])]
        await_(lambda: len(lines(self.out)) >= len(wanted), f"{len(wanted)} lines", 90)
        assert lines(self.out) == wanted

    def await_in_topic(self, bootstrap: str, name: str, count: int) -> None:
        def found() -> list[Any]:
            return [record.value for record in read_topic(bootstrap, self.topics[name])]

        await_(lambda: len(found()) >= count, f"{count} lines of {name}", 90)
        assert found() == list(range(count))


@pytest.fixture
def files(tmp_path: Path, unique: Callable[[str], str]) -> Files:
    return Files(tmp_path, unique)


class Cluster:
    """One group, whoever runs its worker."""

    def __init__(self, broker: Broker, group: str, folder: Path) -> None:
        self._broker = broker
        self._group = group
        self._folder = folder

    @contextmanager
    def of_apaches(self) -> Iterator[httpx2.Client]:
        with (
            ApacheWorker(self._broker.bootstrap, self._group, self._folder) as worker,
            httpx2.Client(base_url=worker.url, timeout=60) as http,
        ):
            yield http

    @contextmanager
    def of_ours(self) -> Iterator[httpx2.Client]:
        """By the worker file that Apache's worker had; only where Spark runs is ours to say."""
        text = (self._folder / "apache.properties").read_text()
        settings = dict(line.split("=", 1) for line in text.splitlines())
        worker = Worker(self._folder, "ours", {**settings, "spark.master": "local[1,4]"}).start()
        try:
            yield worker.await_ready(200).http
            assert worker.stop() == 0
        finally:
            worker.close()


def states(http: httpx2.Client) -> dict[str, list[str]]:
    """Of each connector and its tasks, as far as they run on the worker that is asked."""
    found = http.get("/connectors?expand=status")
    if found.status_code != 200:
        return {}
    here = f"{http.base_url.host}:{http.base_url.port}"
    return {
        name: [part["state"] for part in (each["status"]["connector"], *each["status"]["tasks"])]
        for name, each in found.json().items()
        if all(part["worker_id"] == here for part in (each["status"]["connector"], *each["status"]["tasks"]))
    }


def put(http: httpx2.Client, connector: str, what: str, body: Any = None) -> None:
    def done() -> bool:
        answer = http.put(f"/connectors/{connector}/{what}", json=body)
        assert answer.status_code in (200, 201, 202, 204, 409), answer.text
        return answer.status_code != 409

    await_(done, f"{what} of {connector}")


def await_states(http: httpx2.Client, **expected: list[str]) -> None:
    wanted = {name.replace("_", "-"): found for name, found in expected.items()}
    try:
        await_(lambda: states(http) == wanted, "the expected states", 90)
    except AssertionError as error:
        raise AssertionError(f"not {wanted} but {http.get('/connectors?expand=status').text}") from error


def configs(http: httpx2.Client) -> dict[str, Any]:
    return {name: each["info"]["config"] for name, each in http.get("/connectors?expand=info").json().items()}


def positions(http: httpx2.Client, connector: str) -> list[dict[str, Any]]:
    return [each["offset"] for each in http.get(f"/connectors/{connector}/offsets").json()["offsets"]]


RUNS, PAUSED, STOPPED = ["RUNNING", "RUNNING"], ["PAUSED", "PAUSED"], ["STOPPED"]


def test_there_and_back(broker: Broker, unique: Callable[[str], str], tmp_path: Path, files: Files) -> None:
    cluster = Cluster(broker, unique("take-over"), tmp_path)
    files.write()
    with cluster.of_apaches() as apache:
        for name, config in files.configs().items():
            put(apache, name, "config", config)
        files.await_out()
        for name in ("paused", "stopped"):
            files.await_in_topic(broker.bootstrap, name, 20)
        put(apache, "paused-source", "pause")
        put(apache, "stopped-source", "stop")
        await_states(apache, flow_source=RUNS, flow_sink=RUNS, paused_source=PAUSED, stopped_source=STOPPED)
        stored = configs(apache)

    before = {name: path.stat().st_size for name, path in files.inputs.items()}
    files.write()
    with cluster.of_ours() as ours:
        await_states(ours, flow_source=RUNS, flow_sink=RUNS, paused_source=PAUSED, stopped_source=STOPPED)
        assert configs(ours) == stored
        files.await_out()
        for name in ("paused", "stopped"):
            assert positions(ours, f"{name}-source") == [{"position": before[name]}]
            put(ours, f"{name}-source", "resume")
        for name in ("paused", "stopped"):
            files.await_in_topic(broker.bootstrap, name, 40)
        put(ours, "paused-source", "stop")
        put(ours, "flow-source", "pause")
        put(ours, "later-sink", "config", sink_config(tmp_path / "later.txt", files.topics["stopped"]))
        changed = {"flow_source": PAUSED, "paused_source": STOPPED, "stopped_source": RUNS, "later_sink": RUNS}
        await_states(ours, flow_sink=RUNS, **changed)
        await_(lambda: lines(tmp_path / "later.txt") == [str(number) for number in range(40)], "the new sink's lines")
        stored = configs(ours)

    files.write()
    with cluster.of_apaches() as apache:
        await_states(apache, flow_sink=RUNS, **changed)
        assert configs(apache) == stored
        files.await_in_topic(broker.bootstrap, "stopped", 60)
        put(apache, "flow-source", "resume")
        files.await_out()
        await_(lambda: lines(tmp_path / "later.txt") == [str(number) for number in range(60)], "the new sink's lines")
        put(apache, "paused-source", "resume")
        files.await_in_topic(broker.bootstrap, "paused", 60)
