"""What every worker of a cluster can say, whoever leads it and whoever has the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cluster_harness import Cluster, Faulty, Worker, await_, lines, sink_config, source_config

pytestmark = pytest.mark.spark


def test_all_workers_say_the_same(three: Cluster, faulty: Faulty, name: str, topic: str, tmp_path: Path) -> None:
    faulty.create(tasks=2)
    three.workers[1].create(f"{name}-out", sink_config(tmp_path / "out.txt", topic), "PAUSED")
    for worker in three.workers:
        worker.await_states(name, "RUNNING", "RUNNING", "RUNNING")
        worker.await_states(f"{name}-out", "PAUSED")
    paths = (
        "/connectors?expand=info&expand=status",
        f"/connectors/{name}",
        f"/connectors/{name}/config",
        f"/connectors/{name}/tasks",
        f"/connectors/{name}/status",
        f"/connectors/{name}/tasks/1/status",
        f"/connectors/{name}/offsets",
        "/connector-plugins?connectorsOnly=false",
        "/",
    )
    for path in paths:
        answers = [without_health(worker.call("GET", path, 200)) for worker in three.workers]
        assert answers[0] == answers[1] == answers[2], path
        assert answers[0]
    for worker in three.workers:
        assert sorted(worker.call("GET", "/connectors", 200)) == sorted([name, f"{name}-out"])


def without_health(answer: Any) -> Any:
    """Figures are of the moment."""
    if isinstance(answer, dict):
        return {key: without_health(value) for key, value in answer.items() if key != "health"}
    return [without_health(each) for each in answer] if isinstance(answer, list) else answer


def test_any_worker_tells_how_a_task_fares_with_the_figures_of_whoever_has_it(
    three: Cluster, faulty: Faulty, name: str
) -> None:
    faulty.create(tasks=2, count="5")
    for worker in three.workers:
        worker.await_states(name, "RUNNING", "RUNNING", "RUNNING")

        def fares(path: str, worker: Worker = worker) -> list[Any]:
            """Of both tasks; a rate is known to nobody but the worker that has the task."""
            answer = worker.call("GET", path, 200)
            found = answer[name]["health"] if name in answer else answer
            return [(each["health"]["verdict"] in ("ok", "idle"), each["health"]["rate"]) for each in found["tasks"]]

        for path in (f"/connectors/{name}/status", "/connectors?expand=health"):
            await_(
                lambda path=path: all(well and rate is not None for well, rate in fares(path)),  # type: ignore[misc]
                f"{path} of {worker.url}",
            )


def test_the_broker_tells_every_worker_its_cluster(three: Cluster) -> None:
    found = [await_(lambda at=each: at.call("GET", "/", 200)["kafka_cluster_id"], "an id") for each in three.workers]  # type: ignore[misc]
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "Connector nobody not found"),
        ("/config", "Connector nobody not found"),
        ("/tasks", "Connector nobody not found"),
        ("/offsets", "Connector nobody not found"),
        ("/status", "No status found for connector nobody"),
        ("/tasks/0/status", "No status found for task nobody-0"),
    ],
)
def test_nobody_is_unknown_to_every_worker(three: Cluster, path: str, message: str) -> None:
    for worker in three.workers:
        assert worker.call("GET", f"/connectors/nobody{path}", 404) == {"error_code": 404, "message": message}


def test_healthy_workers_say_so(three: Cluster) -> None:
    for worker in three.workers:
        found = worker.call("GET", "/health", 200)
        assert found.pop("kafka")["reached"] is True
        assert found == {
            "status": "healthy",
            "message": "Worker has completed startup and is ready to handle requests.",
            "warnings": [],
        }


def test_every_worker_validates(three: Cluster, tmp_path: Path) -> None:
    config = {**source_config(tmp_path / "in.txt", ""), "name": "x", "batch.size": "none"}
    path = "/connector-plugins/FileStreamSourceConnector/config/validate"
    answers = [worker.call("PUT", path, 200, json=config) for worker in three.workers]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["error_count"] > 0


# --- KIP-558 ----------------------------------------------------------------------------------------------------------


def test_topics_of_connectors_are_known_to_all_and_can_be_reset(
    three: Cluster, name: str, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    follower = three.followers()[0]
    follower.create(f"{name}-in", source_config(tmp_path / "in.txt", topic))
    follower.create(f"{name}-out", sink_config(tmp_path / "out.txt", topic))
    await_(lambda: lines(tmp_path / "out.txt") == ["one"], "the line")
    for each in (f"{name}-in", f"{name}-out"):
        for worker in three.workers:
            await_(lambda at=worker, of=each: _topics(at, of) == [topic], f"{worker.name} knows {each}")  # type: ignore[misc]
        follower.put(each, "pause")
        follower.await_states(each, "PAUSED", "PAUSED")
        follower.call("PUT", f"/connectors/{each}/topics/reset", 202)
        for worker in three.workers:
            await_(lambda at=worker, of=each: _topics(at, of) == [], f"{worker.name} forgets {each}")  # type: ignore[misc]
        assert follower.call("GET", "/connectors/nobody/topics", 200) == {"nobody": {"topics": []}}
    for each in (f"{name}-in", f"{name}-out"):
        follower.put(each, "resume")
    with (tmp_path / "in.txt").open("a") as file:
        file.write("two\n")
    for each in (f"{name}-in", f"{name}-out"):
        for worker in three.workers:
            await_(lambda at=worker, of=each: _topics(at, of) == [topic], f"{each} uses it again")  # type: ignore[misc]


def _topics(worker: Worker, name: str) -> list[str]:
    found: list[str] = worker.call("GET", f"/connectors/{name}/topics", 200)[name]["topics"]
    return found


# --- log levels -------------------------------------------------------------------------------------------------------


def test_log_levels_of_the_whole_cluster(three: Cluster) -> None:
    logger = "headgate.tasks.source.loop"
    try:
        for worker, level in zip(three.workers, ("DEBUG", "ERROR", "TRACE"), strict=True):
            worker.call("PUT", f"/admin/loggers/{logger}?scope=cluster", 204, json={"level": level.lower()})
            for each in three.workers:
                await_(
                    lambda at=each, wanted=level: (  # type: ignore[misc]
                        at.call("GET", f"/admin/loggers/{logger}", 200)["level"] == wanted
                    ),
                    f"{level} at {each.name}",
                )
                assert each.call("GET", f"/admin/loggers/{logger}", 200)["last_modified"] > 0
        one, *others = three.workers
        assert logger in one.call("PUT", f"/admin/loggers/{logger}?scope=worker", 200, json={"level": "WARN"})
        assert one.call("GET", f"/admin/loggers/{logger}", 200)["level"] == "WARN"
        assert [each.call("GET", f"/admin/loggers/{logger}", 200)["level"] for each in others] == ["TRACE", "TRACE"]
        answer = one.call("PUT", f"/admin/loggers/{logger}?scope=cluster", 404, json={"level": "LOUD"})
        assert answer["message"] == "invalid log level 'LOUD'."
    finally:
        three.workers[0].call("PUT", f"/admin/loggers/{logger}?scope=cluster", 204, json={"level": "INFO"})
