"""Asking a broker: which of its errors pass by themselves, and asking again until it has an answer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from headgate.backoff import Backoff
from headgate.log import Complaints

T = TypeVar("T")

log = logging.getLogger(__name__)

_EVERY_SECOND: Final = Backoff(1.0)

_MOMENT_S: Final = 0.1

PASSING: Final = frozenset(
    {
        # No broker can be reached, or none that answers in time.
        KafkaError._TIMED_OUT, KafkaError._MSG_TIMED_OUT, KafkaError._TRANSPORT, KafkaError._RESOLVE,
        KafkaError._ALL_BROKERS_DOWN, KafkaError.REQUEST_TIMED_OUT, KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        # Another one is to be asked, and it will be known which.
        KafkaError._WAIT_COORD, KafkaError.NOT_CONTROLLER, KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        # It cannot now.
        KafkaError._QUEUE_FULL, KafkaError.INVALID_MSG, KafkaError.KAFKA_STORAGE_ERROR, KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REASSIGNMENT_IN_PROGRESS, KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.THROTTLING_QUOTA_EXCEEDED,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    }
)  # fmt: skip
"""Errors that go away by themselves. librdkafka itself calls hardly any of them retriable, as Java does."""

NOT_YET: Final = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART})
"""What is said of a topic, too, that was made a moment ago: they pass for whoever knows that it is there."""


def passes(error: KafkaError, also: Collection[int] = ()) -> bool:
    """Whether it goes away by itself; `also`: other codes that do, here."""
    return not error.fatal() and (error.retriable() or error.code() in PASSING or error.code() in also)


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks a broker again while it cannot answer, as long as `may_go_on` says so. What these raise is let out."""

    may_go_on: Callable[[], bool] = lambda: True
    pause: Callable[[float], object] = time.sleep
    """Waits that many seconds, or less."""
    backoff: Backoff = _EVERY_SECOND
    tries: int | None = None
    """The most; None: any number."""

    def ask(self, question: Callable[[], T], also: Collection[int] = ()) -> T:
        """The answer. Raises KafkaException: one that does not pass, or the last. `also`: see `passes`."""
        complaints = Complaints(log, "A broker cannot answer and is asked again")
        failures = 0
        while True:
            try:
                return question()
            except KafkaException as error:
                failures += 1
                if failures == self.tries or not passes(error.args[0], also) or not self.may_go_on():
                    raise
                complaints.say(error.args[0].str())
            self.pause(self.backoff.after(failures))


def ask_for(seconds: float, question: Callable[[float], T], backoff: Backoff) -> T:
    """As an Asker does, until the time is over. The question is told what is left of it, a moment at least."""
    end = time.monotonic() + seconds
    asker = Asker(lambda: time.monotonic() < end, backoff=backoff)
    return asker.ask(lambda: question(max(end - time.monotonic(), _MOMENT_S)))
