"""Residents on a real Spark: what ends one costs no record, and what keeps one busy holds up nobody else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from harness import Client, await_, lines, sink_config, source_config

from headgate.cli.assembly import StandaloneWorker

pytestmark = pytest.mark.spark


def python_workers(jvm: int) -> set[int]:
    """Processes that Spark has forked for Python code: children of its daemon, which is a child of the JVM."""
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                parents[int(each.name)] = int((each / "stat").read_text().rpartition(") ")[2].split()[1])
            except OSError:
                continue  # it has ended meanwhile
    return {pid for pid, parent in parents.items() if parents.get(parent) == jvm}


@pytest.fixture
def jvm(worker: StandaloneWorker) -> int:
    worker.engine.ready()
    pid = worker.engine.pid()
    assert pid is not None
    return pid


def flowing(client: Client, name: str, topic: str, folder: Path, **more: str) -> tuple[Path, Path]:
    """Connectors from a file through a topic to a file, with the first line gone through."""
    source, out = folder / f"{topic}.in", folder / f"{topic}.out"
    source.write_text("0\n")
    client.create(f"{name}-in", source_config(source, topic, **more))
    client.create(f"{name}-out", sink_config(out, topic))
    await_(lambda: lines(out) == ["0"], "the first line")
    return source, out


def test_residents_that_are_killed_every_half_second_cost_no_record_and_no_task(
    client: Client, name: str, topic: str, tmp_path: Path, jvm: int
) -> None:
    source, out = flowing(client, name, topic, tmp_path)
    count = kills = 0
    while kills < 18:  # so many that three starts in a row come to nothing: they take longer than half a second
        count += 1
        with source.open("a") as file:
            file.write(f"{count}\n")
        for pid in python_workers(jvm):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
        time.sleep(0.5)
    await_(lambda: len(lines(out)) > count, "all lines", 60)
    assert lines(out) == [str(number) for number in range(count + 1)]
    for each in ("in", "out"):
        assert client.states(f"{name}-{each}") == ("RUNNING", ["RUNNING"])


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """While this file exists, `WaitingTransform` waits; when the test ends, whatever happens, it does not."""
    made = tmp_path / "gate"
    made.touch()
    yield made
    made.unlink(missing_ok=True)


def test_a_slow_chain_holds_one_resident_and_nobody_else(
    client: Client, name: str, topic: str, tmp_path: Path, gate: Path
) -> None:
    source, out = flowing(client, f"{name}-quick", f"{topic}-quick", tmp_path)
    slow = {"transforms": "w", "transforms.w.type": "WaitingTransform", "transforms.w.while": str(gate)}
    stuck = tmp_path / "stuck.txt"
    stuck.write_text("waits\n" * 10)
    client.create(f"{name}-slow", source_config(stuck, f"{topic}-slow", **slow))
    await_(lambda: gate.with_suffix(".waits").exists(), "the slow chain at work")
    times = []
    for number in range(1, 20):
        began = time.monotonic()
        with source.open("a") as file:
            file.write(f"{number}\n")
        await_(lambda at=number: len(lines(out)) > at, "a line of the quick chain")  # type: ignore[misc]
        times.append(time.monotonic() - began)
    assert client.offsets(f"{name}-slow") == []
    # Each look of the file source takes 0.1 s; behind the slow chain it would be all of the test.
    assert sorted(times)[10] < 1.0, times
    gate.unlink()
    await_(lambda: client.offsets(f"{name}-slow"), "the slow chain's end")


def test_statements_get_their_slots_while_slow_chains_hold_residents(
    client: Client, name: str, topic: str, tmp_path: Path, gate: Path
) -> None:
    statement = {
        "transforms": "sql",
        "transforms.sql.type": "headgate.transforms.Sql",
        "transforms.sql.statement": "SELECT topic, key, upper(value) AS value FROM records",
    }
    source, out = tmp_path / "in", tmp_path / "out"
    source.write_text("before\n")
    client.create(f"{name}-in", source_config(source, topic, **statement))
    client.create(f"{name}-out", sink_config(out, topic))
    await_(lambda: lines(out) == ["BEFORE"], "a statement's line", 60)
    slow = {"transforms": "w", "transforms.w.type": "WaitingTransform", "transforms.w.while": str(gate)}
    for number in range(3):  # more than quick chains have residents
        stuck = tmp_path / f"{number}.txt"
        stuck.write_text("waits\n")
        client.create(f"{name}-{number}", source_config(stuck, f"{topic}-slow", **slow))
    await_(lambda: gate.with_suffix(".waits").exists(), "slow chains at work")
    with source.open("a") as file:
        file.write("meanwhile\n")
    await_(lambda: lines(out) == ["BEFORE", "MEANWHILE"], "the next line", 60)
    gate.unlink()
