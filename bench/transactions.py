"""Records per second in transactions: our producer beside a bare loop over confluent-kafka, on one broker, by turns.

`make bench-producer` runs it; `make bench-producer ARGS="--rounds 5"` is quicker. What counts is the ratio, the median
over the rounds: each round measures both, one right after the other, in alternating order.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headgate.dev.broker import Broker
from headgate.producer import TransactionalProducer

VALUE: Final = b"x" * 100
TOPIC: Final = "bench"
PARTITIONS: Final = 4
GOAL: Final = 0.8
SIZES: Final = (10_000, 100_000)
"""Records in one transaction."""
SETTINGS: Final[dict[str, Any]] = {
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 1_000_000,
    "log_level": 0,
}

Transact = Callable[[int], None]
"""Sends that many records in one transaction."""


def bare(bootstrap: str) -> Transact:
    """As little as one can write: no callbacks, no checks."""
    producer = Producer({**SETTINGS, "bootstrap.servers": bootstrap, "transactional.id": "bare"})
    producer.init_transactions(60)

    def transact(records: int) -> None:
        produce = producer.produce
        producer.begin_transaction()
        for _ in range(records):
            produce(TOPIC, VALUE)
        producer.commit_transaction(60)

    return transact


def ours(bootstrap: str) -> Transact:
    producer = TransactionalProducer({**SETTINGS, "bootstrap.servers": bootstrap, "transactional.id": "ours"})
    producer.init(60)

    def transact(records: int) -> None:
        send = producer.send
        producer.begin()
        for _ in range(records):
            send(TOPIC, VALUE)
        producer.commit(60)

    return transact


def rate(transact: Transact, size: int, records: int) -> float:
    began = time.perf_counter()
    for _ in range(records // size):
        transact(size)
    return records / (time.perf_counter() - began)


def measure(sides: dict[str, Transact], size: int, records: int, rounds: int) -> float:
    """The median ratio; says every round."""
    for transact in sides.values():
        transact(size)  # metadata, connections
    found: dict[str, list[float]] = {name: [] for name in sides}
    names = list(sides)
    for _ in range(rounds):
        for name in names:
            found[name].append(rate(sides[name], size, records))
        names.reverse()
    ratios = [mine / theirs for mine, theirs in zip(found["ours"], found["bare"], strict=True)]
    median = statistics.median(ratios)
    print(
        f"{size:>9,} {statistics.median(found['ours']):>12,.0f}/s {statistics.median(found['bare']):>12,.0f}/s"
        f" {median:>7.2f}  ({min(ratios):.2f} to {max(ratios):.2f})",
        flush=True,
    )
    return median


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--records", type=int, default=200_000, help="of each side in each round")
    chosen = parser.parse_args()
    with Broker(progress=False) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(30)
        sides = {"ours": ours(broker.bootstrap), "bare": bare(broker.bootstrap)}
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; records of {len(VALUE)} bytes")
        print(f"{'per txn':>9} {'headgate':>14} {'confluent-kafka':>14}   ratio")
        ratios = [measure(sides, size, max(chosen.records, size), chosen.rounds) for size in SIZES]
    if min(ratios) < GOAL:
        raise SystemExit(f"The ratio should be {GOAL} or more.")


if __name__ == "__main__":
    main()
