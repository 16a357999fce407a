"""Torture: a cluster of three workers is broken in every way while sources grow; then Kafka is compared with the files.

`make torture` runs it for fifteen minutes: 0 lost, 0 doubled, in order. `--at-least-once` does the same without
exactly-once, and shows what that would have doubled. The same `--seed` makes the same choices.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

from cluster_harness import SOURCE, Cluster, Worker
from confluent_kafka import Consumer, KafkaException, TopicPartition
from faults import Torturer
from ledger import Source, Verdict, judge

from headgate.dev.broker import Broker
from headgate.dev.server_config import TO_BE_KILLED

TRANSACTION_MS = 10_000
SESSION_MS = 6_000


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


def worker_settings(exactly_once: bool) -> dict[str, str]:
    return {
        "exactly.once.source.support": "enabled" if exactly_once else "disabled",
        "producer.transaction.timeout.ms": str(TRANSACTION_MS),
        "producer.delivery.timeout.ms": "20000",
        "producer.request.timeout.ms": "5000",
        "offset.flush.interval.ms": "1000",
        "session.timeout.ms": str(SESSION_MS),
        "heartbeat.interval.ms": "1000",
        "scheduled.rebalance.max.delay.ms": "0",
        "spark.master": "local[1,4]",
    }


def grow(sources: list[Source], stop: threading.Event, lines: int) -> None:
    """Until it is told to stop."""
    while not stop.wait(0.1):
        for source in sources:
            source.grow(lines)


def create(worker: Worker, source: Source, number: int) -> None:
    boundary = ["poll", "interval"][number % 2]
    config = {
        "connector.class": SOURCE,
        "file": str(source.file),
        "topic": source.topic,
        "tasks.max": "1",
        "transaction.boundary": boundary,
        "transaction.boundary.interval.ms": "500",
    }
    worker.create(source.name, config)


def read_all(bootstrap: str, topic: str) -> list[str]:
    """What a read_committed consumer sees, from the beginning to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "torture-reader",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
            "log_level": 0,
        }
    )
    found: list[str] = []
    try:
        where = TopicPartition(topic, 0, 0)
        try:
            _, end = consumer.get_watermark_offsets(where, timeout=30)
        except KafkaException:
            return []  # nothing was ever written
        consumer.assign([where])
        quiet_since = time.monotonic()
        while time.monotonic() - quiet_since < 10:
            messages = consumer.consume(10_000, 0.5)
            for message in messages:
                assert message.error() is None, message.error()
                value = message.value()
                assert value is not None
                found.append(value.decode())
            if messages:
                quiet_since = time.monotonic()
            (position,) = consumer.position([where])
            if position.offset >= end:
                break
    finally:
        consumer.close()
    return found


def heal(torturer: Torturer, cluster: Cluster) -> None:
    for worker in cluster.workers:
        if not worker.running:
            worker.start()
    for worker in cluster.workers:
        worker.await_ready(180)
    for source in torturer.sources:
        torturer.call("PUT", f"/connectors/{source.name}/resume", 202)


def await_arrival(torturer: Torturer, bootstrap: str, seconds: float) -> dict[str, list[str]]:
    """Until the last line of every file has come; failed tasks are restarted meanwhile, as an operator would."""
    deadline = time.monotonic() + seconds
    found: dict[str, list[str]] = {}
    for source in torturer.sources:
        last = source.line(source.lines - 1)
        while True:
            found[source.name] = read_all(bootstrap, source.topic)
            if (found[source.name] and found[source.name][-1] == last) or time.monotonic() > deadline:
                break
            torturer.restart_failed()
            time.sleep(2)
    return found


def torture(folder: Path, seconds: float, faults: int, seed: int, exactly_once: bool, lines: int) -> list[Verdict]:
    chooser = random.Random(seed)
    stop = threading.Event()
    with Broker(data=folder / "broker", properties=TO_BE_KILLED) as broker:
        cluster = Cluster(folder, broker.bootstrap, "torture", worker_settings(exactly_once))
        sources = [Source(f"source-{n}", folder / f"{n}.txt", f"torture-{n}") for n in range(4)]
        try:
            for _ in range(3):
                cluster.add()
            cluster.await_ready()
            for number, source in enumerate(sources):
                source.grow(lines)
                create(cluster.workers[number % 3], source, number)
            growing = threading.Thread(target=grow, args=(sources, stop, lines), daemon=True)
            growing.start()
            for source in sources:
                cluster.workers[0].await_states(source.name, "RUNNING", "RUNNING", seconds=180)
            say(f"all run; seed {seed}, {'exactly once' if exactly_once else 'at least once'}")
            torturer = Torturer(cluster, broker, sources, chooser, max(TRANSACTION_MS, SESSION_MS) / 1000 + 3, log=say)
            began = time.monotonic()
            while time.monotonic() - began < seconds or sum(torturer.counts.values()) < faults:
                torturer.once()
                time.sleep(chooser.uniform(0, 2))
            stop.set()
            growing.join()
            say(f"{sum(torturer.counts.values())} faults in {time.monotonic() - began:.0f} s: {torturer.counts}")
            heal(torturer, cluster)
            found = await_arrival(torturer, broker.bootstrap, 240)
            return [judge(source, found[source.name]) for source in sources]
        finally:
            stop.set()
            cluster.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--faults", type=int, default=100, help="at least so many, however long it takes")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--lines", type=int, default=50, help="for each file, ten times a second")
    parser.add_argument("--at-least-once", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs and files")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-torture-"))
    say(f"logs in {folder}")
    exactly_once = not arguments.at_least_once
    verdicts = torture(folder, arguments.seconds, arguments.faults, arguments.seed, exactly_once, arguments.lines)
    for verdict in verdicts:
        say(
            f"{verdict.source}: expected {verdict.expected}, found {verdict.found}: {verdict.lost} lost,"
            f" {verdict.doubled} doubled, {verdict.disordered} out of order {verdict.first_difference}"
        )
    good = all(verdict.good for verdict in verdicts)
    if good and not arguments.keep:
        shutil.rmtree(folder)
    if not exactly_once:
        lost = sum(verdict.lost for verdict in verdicts)
        return 1 if lost else 0
    say("exactly once" if good else f"NOT exactly once; seed {arguments.seed}, logs in {folder}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
