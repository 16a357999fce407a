"""What every case does: moves inputs to an output topic, in transactions that carry the group's offset too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import checks
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

if TYPE_CHECKING:
    from headgate.producer import TransactionalProducer

INPUTS: Final = tuple(b"input-%d" % number for number in range(6))
T: Final = 20.0
"""Seconds that a healthy broker may take for one call, on a busy machine."""
SHORT_MS: Final = 2000
"""A limit that a case waits out. What has to succeed with the same limit needs tens of milliseconds."""
IN_VAIN: Final = 3.0
"""Seconds for a call that must fail: enough for the broker to be asked, whatever it says then."""
START_S: Final = 180.0
"""Seconds that a broker may take to start: five when it is alone, most of a minute among many others."""


@dataclass
class Job:
    """`bootstrap` is the way of the checks, which no rule and no ACL spoils; `settings` are the producer's."""

    bootstrap: str
    source: str
    target: str
    group: str
    transactional_id: str
    settings: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[bytes, ...] = INPUTS
    open: ExitStack = field(default_factory=ExitStack)

    # A task and what it does

    def start(self, still_mine: Callable[[], bool] | None = None, /, **settings: Any) -> TransactionalProducer:
        """A task's producer, ready for its first transaction; dots in keys are written as underscores."""
        producer = self.make(still_mine, **settings)
        producer.init(T)
        return producer

    def make(self, still_mine: Callable[[], bool] | None = None, /, **settings: Any) -> TransactionalProducer:
        from headgate.producer import TransactionalProducer

        more = {key.replace("_", "."): value for key, value in settings.items()}
        config = {"bootstrap.servers": self.bootstrap, "transactional.id": self.transactional_id, "log_level": 0}
        producer = TransactionalProducer({**config, **self.settings, **more}, still_mine=still_mine)
        self.open.callback(producer.close, 5.0)
        return producer

    def send(self, producer: TransactionalProducer, start: int, end: int) -> None:
        for value in self.inputs[start:end]:
            producer.send(self.target, value)

    def offsets(self, producer: TransactionalProducer, end: int, timeout: float = T) -> None:
        producer.send_offsets([TopicPartition(self.source, 0, end)], self.metadata(), timeout)

    def fill(self, producer: TransactionalProducer, start: int, end: int) -> None:
        """A transaction with inputs and their offset, delivered but still open."""
        producer.begin()
        self.send(producer, start, end)
        self.offsets(producer, end)
        producer.flush(T)

    def move(self, producer: TransactionalProducer, start: int, end: int) -> None:
        self.fill(producer, start, end)
        producer.commit(T)

    def finish(self, producer: TransactionalProducer) -> None:
        """What a task does after a start or an abort: go on where the last committed transaction ended."""
        self.move(producer, self.position(), len(self.inputs))

    def metadata(self) -> Any:
        """Of a group without members, whose offsets anybody may commit."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group, "log_level": 0})
        try:
            return consumer.consumer_group_metadata()
        finally:
            consumer.close()

    # What came of it

    def position(self) -> int:
        return checks.position(self.bootstrap, self.group, self.source)

    def check(self, end: int | None = None) -> None:
        """The two checks: the first `end` inputs, or all of them, exactly once, and the offset behind them."""
        end = len(self.inputs) if end is None else end
        checks.assert_position(self.bootstrap, self.group, self.source, end)
        checks.assert_output(self.bootstrap, self.target, self.inputs[:end])


MakeJob = Callable[..., Job]


def make_job(bootstrap: str, named: Callable[[str], str], topic: dict[str, str] | None = None, **settings: Any) -> Job:
    """A job with topics of its own; `topic` is the configuration of its output."""
    source, target, group, task = map(named, ("source", "target", "group", "task"))
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(source, 1), NewTopic(target, 1, config=topic or {})]).values():
        made.result(20)
    more = {key.replace("_", "."): value for key, value in settings.items()}
    return Job(bootstrap, source, target, group, task, more)


def warm(bootstrap: str) -> None:
    """The first transaction of a broker. It takes seconds, since the coordinators make their topics only then, and no
    case with a short limit may be the one that waits for that."""
    job = make_job(bootstrap, lambda name: f"{name}-of-nobody")
    with job.open:
        job.move(job.start(), 0, 1)


def assert_finished(job: Job, producer: TransactionalProducer, why: type[Exception]) -> None:
    """A fatal error is stored: every call but close says it again, and none reaches Kafka."""
    calls: list[Callable[[], object]] = [
        lambda: producer.init(T),
        producer.begin,
        lambda: producer.send(job.target, b"too late"),
        lambda: job.offsets(producer, len(job.inputs)),
        lambda: producer.commit(T),
        lambda: producer.abort(T),
    ]
    for call in calls:
        with pytest.raises(why):
            call()
