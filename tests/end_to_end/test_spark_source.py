"""SparkSource with broker and worker: restarts in the middle, offsets that are altered, exactly once, the sandbox."""

from __future__ import annotations

import gc
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from checks import read_committed
from exactly_once_support import Bench
from harness import JSON, STRING, Client, await_
from mirror_support import partitions, seen
from spark_source_support import CLASS

from headgate.cli.assembly import StandaloneWorker
from headgate.connectors import SparkSource
from headgate.dev.broker import Broker
from headgate.model import PluginRef, PluginSpec, TaskSpec

pytestmark = pytest.mark.spark

SCHEMALESS = {"value.converter": JSON, "value.converter.schemas.enable": "false", "key.converter": STRING}


def grow(file: Path, start: int, end: int) -> None:
    with file.open("a") as out:
        out.writelines(f"text {number}\n" for number in range(start, end))


def stream(file: Path, topic: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    base = {"provider": "streams.Lines", "options.file": str(file), "topic": topic, "poll.interval.ms": "50"}
    return {**CLASS, **base, **SCHEMALESS, **given}


def folder(path: Path, topic: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    base = {"path": str(path), "topic": topic, "settle.ms": "0", "poll.interval.ms": "50", "value.converter": STRING}
    return {**CLASS, **base, **given}


def numbers(broker: Broker, topic: str) -> list[int]:
    if not partitions(broker.bootstrap, topic):
        return []
    return [json.loads(each.value or b"")["number"] for each in seen(broker.bootstrap, topic)]


def texts(broker: Broker, topic: str) -> list[str]:
    return (
        [(each.value or b"").decode() for each in seen(broker.bootstrap, topic)]
        if partitions(broker.bootstrap, topic)
        else []
    )


def alter(client: Client, name: str, partition: Mapping[str, Any], offset: Any, expected: int = 200) -> Any:
    body = {"offsets": [{"partition": partition, "offset": offset}]}
    return client.call("PATCH", f"/connectors/{name}/offsets", expected, json=body)


def test_a_data_source_goes_on_after_a_restart_in_the_middle_of_a_batch(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    grow(file, 0, 20_000)
    client.create(name, stream(file, topic, batch_size="50", key_columns="text"))
    await_(lambda: partitions(broker.bootstrap, topic) and seen(broker.bootstrap, topic), "the first records", 60)
    client.call("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    grow(file, 20_000, 20_010)
    done = {"partition": {"source": "streams.Lines"}, "offset": {"line": 20_010}}
    await_(lambda: client.offsets(name) == [done], "the end", 90)
    found = numbers(broker, topic)
    assert sorted(set(found)) == list(range(20_010))
    assert seen(broker.bootstrap, topic)[7].key == b"text 7"


@pytest.mark.kip(875, "Can alter the offsets of a stopped source, they are returned and used when it is resumed")
def test_the_offset_of_a_data_source_is_altered_and_gone_on_from(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    file, where = tmp_path / "lines", {"source": "streams.Lines"}
    grow(file, 0, 10)
    client.create(name, stream(file, topic))
    await_(lambda: client.offsets(name) == [{"partition": where, "offset": {"line": 10}}], "the offset", 60)
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    refused = alter(client, name, where, {"offset": "{}", "until": 1, "partition": 0, "rows": 0}, 500)
    assert "place within a batch" in refused["message"]
    alter(client, name, where, {"line": 7})
    client.put(name, "resume")
    await_(lambda: numbers(broker, topic) == [*range(10), 7, 8, 9], "the last three again", 60)
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    begun = {"offset": '{"line":2}', "until": '{"line":6}', "partition": 1, "rows": 1}
    alter(client, name, where, begun)
    client.put(name, "resume")  # two partitions, 2 and 3, 4 and 5: of the second, the first row is done
    await_(lambda: numbers(broker, topic) == [*range(10), 7, 8, 9, *range(5, 10)], "the rest", 60)


def test_a_folder_goes_on_after_a_restart_in_the_middle_of_a_file(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    lines = [f"line {number}" for number in range(20_000)]
    path = tmp_path / "in"
    path.mkdir()
    (path / "a").write_text("\n".join(lines[:15_000]))
    (path / "b").write_text("\n".join(lines[15_000:]))
    client.create(name, folder(path, topic, batch_size="50"))
    await_(lambda: texts(broker, topic), "the first records", 60)
    client.call("POST", f"/connectors/{name}/restart?includeTasks=true", 202)
    where = {"path": str(path)}
    done = {"partition": where, "offset": {"file": "b", "records": 5000, "done": True}}
    await_(lambda: client.offsets(name) == [done], "the end", 90)
    assert sorted(set(texts(broker, topic))) == sorted(lines)
    client.put(name, "stop")
    client.await_states(name, "STOPPED")
    count = len(texts(broker, topic))
    alter(client, name, where, {"file": "b", "records": 4998, "done": False})
    client.put(name, "resume")
    await_(lambda: texts(broker, topic)[count:] == lines[-2:], "the last two again", 60)


# --- exactly once -----------------------------------------------------------------------------------------------------


def spec(bench: Bench, config: Mapping[str, str]) -> TaskSpec:
    made = bench.spec()
    plain = PluginSpec(PluginRef("headgate.pipeline.converters.json", "JsonConverter"), {"schemas.enable": "false"})
    task: Any = SparkSource.task_class_for(config)
    chain = replace(made.chain, value_converter=plain)
    # Without room for more than one poll each is a transaction of its own.
    return replace(made, task_class=task, config=dict(config), chain=chain, buffer_bytes=1)


def once(
    bench: Bench, config: Mapping[str, str], partition: Mapping[str, Any], is_within: Callable[[Any], bool]
) -> list[Any]:
    """What is in the topic when two tasks were cut off in the middle of it, and a third came to the end."""

    def offset() -> Any:
        (found,) = bench.log.get(bench.name, [dict(partition)])
        return found

    stored: list[Any] = []
    for _ in range(2):
        running = bench.start(spec(bench, config))
        await_(lambda: is_within(offset()) and offset() not in stored, "a place within it", 60)
        running.thread.cancel()
        await_(lambda: "stopped" in running.desk.events, "the end")  # noqa: B023
        stored.append(offset())
    assert is_within(stored[-1])
    running = bench.start(spec(bench, config))
    await_(lambda: not is_within(offset()), "the end", 120)
    running.stop()
    return [json.loads(value) for value in read_committed(bench.bootstrap, bench.target)]


def test_each_row_of_a_data_source_once_although_tasks_are_cut_off_within_a_batch(bench: Bench, tmp_path: Path) -> None:
    grow(tmp_path / "lines", 0, 10_000)
    config = stream(tmp_path / "lines", bench.target, batch_size="20")
    found = once(bench, config, {"source": "streams.Lines"}, lambda offset: "until" in (offset or {}))
    assert [each["number"] for each in found] == list(range(10_000))


def test_each_record_of_a_folder_once_although_tasks_are_cut_off_within_a_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for start in (0, 5000):
        grow(tmp_path / "in" / str(start), start, start + 5000)
    config = folder(tmp_path / "in", bench.target, batch_size="20")
    end = {"file": "5000", "records": 5000, "done": True}
    found = once(bench, config, {"path": str(tmp_path / "in")}, lambda offset: offset not in (None, end))
    assert found == [f"text {number}" for number in range(10_000)]


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"provider": "pyspark.sql.datasource.DataSource"},
            "Module pyspark.sql.datasource is not in a folder of plugin",
        ),
        ({"provider": "streams.Whole"}, "neither streamReader nor simpleStreamReader"),
        ({"format": "csv"}, "it has no meaning with provider"),
    ],
)
def test_what_cannot_be_is_refused(
    client: Client, name: str, topic: str, tmp_path: Path, more: dict[str, str], said: str
) -> None:
    refused = client.create(name, {**stream(tmp_path / "lines", topic), **more}, 400)
    assert said in refused["message"]


def test_a_task_that_fails_on_an_executor_says_why_and_goes_on_when_it_is_mended(
    client: Client, broker: Broker, name: str, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "lines"
    file.write_text("bad\n")
    client.create(name, stream(file, topic))
    trace = client.await_states(name, "RUNNING", "FAILED", seconds=60)["tasks"][0]["trace"]
    assert "streams.Lines could not be read: ValueError: line 0 is bad" in trace.splitlines()[0]
    file.write_text("good\n")
    client.call("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true", 202)
    await_(lambda: numbers(broker, topic) == [0], "the record", 60)


def test_a_stop_ends_a_read_that_takes_long_at_once(client: Client, name: str, topic: str, tmp_path: Path) -> None:
    file, slow = tmp_path / "lines", tmp_path / "slow"
    slow.touch()
    grow(file, 0, 5)
    client.create(name, stream(file, topic, options_slow=str(slow)))
    await_(Path(f"{slow}.reached").exists, "the executor", 60)
    client.put(name, "stop")
    client.await_states(name, "STOPPED", seconds=4)  # sooner than the worker would give up on it


@pytest.fixture
def kill_jvm(worker: StandaloneWorker) -> Iterator[Callable[[], None]]:
    def kill() -> None:
        pid = worker.engine.pid()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    yield kill
    with warnings.catch_warnings():
        # py4j leaves the sockets open with which it did not reach the JVM any more: collected here, they fail no other.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.mark.parametrize("sent_by_executors", ["never", "always"])
def test_what_was_being_read_when_the_jvm_died_is_read_by_the_next_one(
    client: Client,
    broker: Broker,
    name: str,
    topic: str,
    tmp_path: Path,
    kill_jvm: Callable[[], None],
    sent_by_executors: str,
) -> None:
    file, slow = tmp_path / "lines", tmp_path / "slow"
    slow.touch()
    grow(file, 0, 5)
    client.create(name, stream(file, topic, options_slow=str(slow), executors_produce=sent_by_executors))
    await_(Path(f"{slow}.reached").exists, "the executor", 60)
    slow.unlink()
    kill_jvm()
    await_(lambda: sorted(numbers(broker, topic)) == [0, 1, 2, 3, 4], "the rows", 90)
    assert client.states(name) == ("RUNNING", ["RUNNING"])
