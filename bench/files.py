"""Lines per second, file to Kafka and Kafka to file, beside Apache Kafka Connect on the same broker in the same run.

`make bench` runs it; `make bench ARGS="--lines 500000"` is quicker. What counts is the ratio: figures of one
machine mean little. Each round makes its own topic; warm-up is part of the time for both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from peer import Peer

from headgate.dev.broker import Broker
from headgate.dev.ports import pick_free

STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
_TRANSFORMS: Final = "org.apache.kafka.connect.transforms"
JSON: Final = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "transforms": "drop,add,cast",
    "transforms.drop.type": f"{_TRANSFORMS}.ReplaceField$Value",
    "transforms.drop.exclude": "note",
    "transforms.add.type": f"{_TRANSFORMS}.InsertField$Value",
    "transforms.add.static.field": "origin",
    "transforms.add.static.value": "bench",
    "transforms.cast.type": f"{_TRANSFORMS}.Cast$Value",
    "transforms.cast.spec": "price:string",
}
"""Without schemas, and three transforms."""
WIDTH: Final = 107
"""Of every line, with its end."""


def call(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=120) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def until(condition: Callable[[], bool], what: str, seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)


@contextmanager
def headgate(bootstrap: str, folder: Path) -> Iterator[tuple[str, float]]:
    """A worker process of its own; its URL, and the seconds until it answered."""
    (port,) = pick_free(1)
    url = f"http://127.0.0.1:{port}"
    settings = {
        "bootstrap.servers": bootstrap,
        "key.converter": STRING,
        "value.converter": STRING,
        "offset.storage.file.filename": str(folder / "headgate.offsets"),
        "offset.flush.interval.ms": "1000",
        "listeners": url,
    }
    worker = folder / "headgate.properties"
    worker.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    began = time.monotonic()
    with (folder / "headgate.log").open("wb") as output:
        command = [str(Path(sys.executable).parent / "headgate"), "standalone", str(worker)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def answers() -> bool:
        try:
            return isinstance(call("GET", f"{url}/connectors"), list)
        except (urllib.error.URLError, ConnectionError):
            return False

    try:
        until(answers, "headgate answering", 60)
        started = time.monotonic() - began
        until(lambda: "is ready on" in (folder / "headgate.log").read_text(), "Spark", 120)
        yield url, started
    finally:
        process.terminate()
        process.wait(60)


class Round:
    """One worker's measurements, in its own topics."""

    def __init__(self, url: str, name: str, bootstrap: str, lines: int, folder: Path) -> None:
        from confluent_kafka import Consumer

        self.url, self.name, self.lines, self.folder, self._bootstrap = url, name, lines, folder, bootstrap
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "log_level": 0})

    def file_source(self, source: Path, topic: str) -> float:
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "file": str(source),
            "topic": topic,
        }
        self._make(topic)
        began = time.monotonic()
        self._create("source", config)
        until(lambda: self._end(topic) >= self.lines, "all lines in Kafka")
        return self._rate(began, "source")

    def file_sink(self, topic: str, **more: str) -> float:
        out = self.folder / f"{self.name}.out"
        config = {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "file": str(out),
            "topics": topic,
            **more,
        }
        began = time.monotonic()
        self._create("sink", config)
        until(lambda: self._count(out) >= self.lines, "all lines in the file")
        rate = self._rate(began, "sink")
        out.unlink()
        self._counted = (0, 0)
        return rate

    _counted = (0, 0)

    def _count(self, out: Path) -> int:
        """Lines so far, reading only what is new."""
        if not out.exists():
            return 0
        at, lines = self._counted
        with out.open("rb") as file:
            file.seek(at)
            while block := file.read(1 << 22):
                lines += block.count(b"\n")
                at += len(block)
        self._counted = (at, lines)
        return lines

    def _create(self, kind: str, config: dict[str, str]) -> None:
        call("POST", f"{self.url}/connectors", {"name": f"bench-{self.name}-{kind}", "config": config})

    def _rate(self, began: float, kind: str) -> float:
        seconds = time.monotonic() - began
        call("DELETE", f"{self.url}/connectors/bench-{self.name}-{kind}")
        return self.lines / seconds

    def _make(self, topic: str) -> None:
        """Before the clock starts."""
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        until(lambda: topic in self._consumer.list_topics(topic).topics, "the topic")

    def _end(self, topic: str) -> int:
        from confluent_kafka import TopicPartition

        return int(self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])

    def close(self) -> None:
        self._consumer.close()


def text_lines(path: Path, lines: int) -> None:
    with path.open("w") as file:
        file.writelines(f"{number:012d}{'x' * (WIDTH - 13)}\n" for number in range(lines))


def json_lines(path: Path, lines: int) -> None:
    with path.open("w") as file:
        for number in range(lines):
            start = f'{{"id":{number},"name":"user-{number:08d}","price":{number % 1000}.25,"active":true,"note":"'
            file.write(f'{start}{"x" * (WIDTH - 3 - len(start))}"}}\n')


def warm_up(bootstrap: str) -> None:
    """The first consumer group of a new broker waits seconds for the topic of the groups: not for one of us alone."""
    from confluent_kafka import Consumer, Producer

    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
    producer.produce("bench-warm-up", b"x")
    producer.flush()
    settings = {"bootstrap.servers": bootstrap, "group.id": "bench-warm-up", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "log_level": 0})
    consumer.subscribe(["bench-warm-up"])
    until(lambda: consumer.poll(0.5) is not None, "the first group", 60)
    consumer.close()


def measure(lines: int, folder: Path) -> dict[str, tuple[float, float]]:
    """Rates of Headgate and of the peer, by what was measured."""
    texts, objects = folder / "in.txt", folder / "in.json"
    text_lines(texts, lines)
    json_lines(objects, lines)
    found: dict[str, dict[str, float]] = {}
    with Broker(heap="1g") as broker:
        warm_up(broker.bootstrap)
        for name in ("headgate", "peer"):
            print(f"    measuring {name} ...", flush=True)
            with _worker(name, broker.bootstrap, folder) as (url, started):
                run = Round(url, name, broker.bootstrap, lines, folder)
                rates = found[name] = {"start to first REST answer (1/s)": 1 / started}
                rates["file source, String"] = run.file_source(texts, f"bench-{name}")
                rates["file sink, String"] = run.file_sink(f"bench-{name}")
                run.file_source(objects, f"bench-{name}-json")
                rates["file sink, JSON without schema, three transforms"] = run.file_sink(f"bench-{name}-json", **JSON)
                run.close()
    return {what: (found["headgate"][what], found["peer"][what]) for what in found["headgate"]}


@contextmanager
def _worker(name: str, bootstrap: str, folder: Path) -> Iterator[tuple[str, float]]:
    if name == "headgate":
        with headgate(bootstrap, folder) as running:
            yield running
    else:
        with Peer(bootstrap, folder) as peer:
            yield peer.url, peer.started_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=2_000_000)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        rows = measure(arguments.lines, folder)
    finally:
        shutil.rmtree(folder)
    print(f"\n{arguments.lines:,} lines of {WIDTH} bytes, {os.cpu_count()} cores\n")
    print("| Work | Headgate | Apache Kafka Connect 4.3.1 | ratio |\n|---|---|---|---|")
    for what, (ours, theirs) in rows.items():
        shown = (
            (f"{1 / ours:.2f} s", f"{1 / theirs:.2f} s") if "(1/s)" in what else (f"{ours:,.0f}/s", f"{theirs:,.0f}/s")
        )
        print(f"| {what.removesuffix(' (1/s)')} | {shown[0]} | {shown[1]} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
