"""Large payloads lie in files between the worker and its executors, and none of them stays there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from harness import STRING, Client, await_, lines, sink_config, source_config

from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker
from headgate.pipeline import blob
from headgate.pipeline.shelf import Payload, Shelved, opened
from headgate.spark.ranges import ResidentRanges

pytestmark = pytest.mark.spark

COUNT = 250_000


@pytest.fixture(scope="module")
def behind(broker: Broker) -> str:
    """A topic that takes several pieces."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "queue.buffering.max.messages": 0, "linger.ms": 20})
    for number in range(COUNT):
        producer.produce("far-behind", b"line %d of many" % number, partition=0)
    assert producer.flush(60) == 0
    return "far-behind"


@pytest.fixture(autouse=True)
def small_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResidentRanges, "most", 60_000)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the worker took from a shelf."""
    found: list[str] = []

    def noted(payload: Payload) -> object:
        if isinstance(payload, Shelved):
            found.append(payload.path)
        return opened(payload)

    monkeypatch.setattr(blob, "opened", noted)
    return found


@pytest.fixture
def shelves(worker: StandaloneWorker) -> Callable[[], list[list[str]]]:
    """The names on each shelf, but for those of tasks that tests before have left hanging: they have theirs until they
    end."""
    beside = worker.engine._shelves
    assert beside is not None
    others = set(beside.iterdir())

    def look() -> list[list[str]]:
        return [[file.name for file in shelf.iterdir()] for shelf in set(beside.iterdir()) - others]

    return look


Shelves = Callable[[], list[list[str]]]


def test_a_sink_that_has_caught_up_left_nothing(
    client: Client, name: str, behind: str, tmp_path: Path, shelves: Shelves, taken: list[str]
) -> None:
    client.create(name, sink_config(tmp_path / "out.txt", behind))
    await_(lambda: len(lines(tmp_path / "out.txt")) >= COUNT, "all lines", 90)
    assert lines(tmp_path / "out.txt") == [f"line {number} of many" for number in range(COUNT)]
    assert taken
    await_(lambda: not any(shelves()), "empty shelves")
    client.delete(name)
    assert shelves() == []


def hanging(topic: str, tmp_path: Path, **more: str) -> dict[str, str]:
    """A sink whose put() waits while there is a file."""
    (tmp_path / "hang").touch()
    log = {"log": str(tmp_path / "calls"), "fail.in": "hang:task.put", "fail.while": str(tmp_path / "hang")}
    return {"connector.class": "FaultySink", "topics": topic, "value.converter": STRING, **log, **more}


@pytest.mark.parametrize(("verb", "states"), [("pause", ("PAUSED", "PAUSED")), ("stop", ("STOPPED",))])
def test_a_sink_that_is_ended_in_the_middle_left_nothing(
    client: Client, name: str, behind: str, tmp_path: Path, shelves: Shelves, verb: str, states: tuple[str, ...]
) -> None:
    client.create(name, hanging(behind, tmp_path))
    # The first batch comes without a shelf; let it through to where the executors read.
    await_(lambda: (tmp_path / "calls").exists() and "task.put" in lines(tmp_path / "calls"), "the first put", 60)
    (tmp_path / "hang").unlink()
    await_(lambda: any(shelves()), "something on a shelf", 60)
    client.put(name, verb)
    client.await_states(name, *states)
    await_(lambda: not any(shelves()), "empty shelves")
    put = len(lines(tmp_path / "calls.records"))
    assert 0 < put < COUNT
    client.put(name, "resume")
    await_(lambda: len(lines(tmp_path / "calls.records")) >= COUNT, "the rest", 90)
    offsets = [int(line.partition("@")[2].partition(" ")[0]) for line in lines(tmp_path / "calls.records")]
    assert offsets == list(range(COUNT))
    client.delete(name)
    assert shelves() == []


def test_a_sink_whose_put_fails_left_nothing(
    client: Client, name: str, behind: str, tmp_path: Path, shelves: Shelves, taken: list[str]
) -> None:
    config = hanging(behind, tmp_path, **{"fail.in": "task.put"})
    (tmp_path / "hang").unlink()
    client.create(name, config)
    await_(lambda: taken, "something taken from a shelf", 60)
    (tmp_path / "hang").touch()
    client.await_states(name, "RUNNING", "FAILED")
    assert len(lines(tmp_path / "calls.records")) < COUNT
    assert shelves() == []


@pytest.mark.parametrize("verb", ["pause", "stop"])
def test_a_source_left_nothing(
    client: Client, name: str, topic: str, tmp_path: Path, shelves: Shelves, taken: list[str], verb: str
) -> None:
    (tmp_path / "in.txt").write_text("".join(f"a line that is number {number}\n" for number in range(400_000)))
    client.create(name, source_config(tmp_path / "in.txt", topic))
    await_(lambda: taken, "something taken from a shelf", 60)
    client.put(name, verb)
    client.await_states(name, *(("PAUSED", "PAUSED") if verb == "pause" else ("STOPPED",)))
    assert not any(shelves())
    client.delete(name)
    await_(lambda: shelves() == [], "no shelf")


def test_a_source_that_does_not_start_left_nothing(client: Client, name: str, tmp_path: Path, shelves: Shelves) -> None:
    client.create(name, {"connector.class": "FaultySource", "fail.in": "task.start"})
    client.await_states(name, "RUNNING", "FAILED")
    assert shelves() == []
