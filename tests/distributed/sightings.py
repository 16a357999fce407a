"""What witnesses have told: the records of the plugin `witness`, read while more of them come."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

READ_S: Final = 20.0


@dataclass(frozen=True, slots=True, order=True)
class Sighting:
    at: float
    """On a clock that all processes of this machine share."""
    task: int
    instance: str
    """Of the task: each start is another."""
    pid: int
    label: str
    number: int


class Sightings:
    """In a topic of one partition. From `with` to its end."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._at = TopicPartition(topic, 0, OFFSET_BEGINNING)
        settings = {"bootstrap.servers": bootstrap, "group.id": f"reader-of-{topic}", "enable.auto.commit": False}
        self._consumer = Consumer({**settings, "log_level": 0, "reconnect.backoff.max.ms": 500})
        self._consumer.assign([self._at])
        self._found: list[Sighting] = []
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def all(self) -> list[Sighting]:
        """Up to now, in the order of time."""
        deadline = time.monotonic() + READ_S
        try:
            _, end = self._consumer.get_watermark_offsets(self._at, READ_S)
        except KafkaException:  # there is no topic before the first record
            return []
        while self._next < end:
            assert time.monotonic() < deadline, f"{self._at.topic} was not read up to {end} in {READ_S} s"
            message = self._consumer.poll(0.5)
            if message is not None and message.error() is None:
                self._found.append(Sighting(**json.loads(message.value() or b"")))
                self._next = (message.offset() or 0) + 1
        return sorted(self._found)

    def since(self, at: float) -> list[Sighting]:
        return [each for each in self.all() if each.at > at]

    def tasks_since(self, at: float) -> set[int]:
        return {each.task for each in self.since(at)}

    def instances(self) -> set[str]:
        return {each.instance for each in self.all()}

    def of(self, pid: int, since: float = 0.0) -> bool:
        """Whether this process has told anything since."""
        return any(each.pid == pid for each in self.since(since))

    def unbroken(self, tasks: int) -> bool:
        """Whether every task has told every number."""
        numbers = [{each.number for each in self.all() if each.task == task} for task in range(tasks)]
        return all(found and found == set(range(len(found))) for found in numbers)

    def side_by_side(self, since: float) -> dict[tuple[int, str, str], float]:
        """For how many seconds two instances of a task were at work, by task and instances."""
        spans = _spans(self.since(since))
        return {
            (task, one, other): seconds
            for (task, one), (other_task, other) in itertools.combinations(spans, 2)
            if task == other_task and (seconds := _common(spans[task, one], spans[task, other])) > 0
        }


def _spans(told: Iterable[Sighting]) -> dict[tuple[int, str], tuple[float, float]]:
    spans: dict[tuple[int, str], tuple[float, float]] = {}
    for each in told:
        first, _ = spans.get((each.task, each.instance), (each.at, each.at))
        spans[each.task, each.instance] = first, each.at
    return spans


def _common(one: tuple[float, float], other: tuple[float, float]) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])


def witness_config(topic: str, tasks: int, **more: str) -> dict[str, str]:
    return {
        "connector.class": "witness.Witness",
        "topic": topic,
        "tasks.max": str(tasks),
        **{key.replace("_", "."): value for key, value in more.items()},
    }
