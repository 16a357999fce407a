"""What is really in Kafka, told by readers of their own: they know nothing of the producer under test."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

PATIENCE_S: Final = 20.0
_ANSWER_S: Final = 10.0
_GLANCE_S: Final = 1.0
_QUIET: Final = {"log_level": 0}
# Offsets of an open transaction; and a broker that was restarted a moment ago.
_PASSING: Final = {
    KafkaError._TIMED_OUT,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
}


def assert_output(bootstrap: str, topic: str, expected: Sequence[bytes]) -> None:
    """A read_committed reader gets the values each once and in order, and no open transaction hides others."""
    assert read_committed(bootstrap, topic) == list(expected)


def assert_position(bootstrap: str, group: str, source: str, expected: int) -> None:
    """The group's offset is the one that the last committed transaction carried; 0 when none did."""
    assert position(bootstrap, group, source) == expected


def read_committed(bootstrap: str, topic: str) -> list[bytes]:
    """The values of partition 0, once the last transaction in it has ended; fails when one stays open."""
    end = _settled(lambda: _stable_end(bootstrap, topic), f"a transaction stays open in {topic}")
    reader = _reader(bootstrap, "checks")
    values: list[bytes] = []
    try:
        reader.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + PATIENCE_S
        while True:
            message = reader.poll(1.0)
            assert time.monotonic() < deadline, f"{topic} was not read to its end, {end}"
            if message is None:
                continue
            error = message.error()
            if error is None:
                values.append(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:
                return values
            else:
                raise KafkaException(error)
    finally:
        reader.close()


def position(bootstrap: str, group: str, source: str) -> int:
    """The committed offset of partition 0, 0 when there is none; fails when one stays pending."""
    # Not the admin client, which could do the same: it dies of a coordinator that moves (librdkafka issue 5040).
    reader = _reader(bootstrap, group)
    try:
        found = _settled(lambda: _stable_offset(reader, source), f"offsets of {group} stay pending")
    finally:
        reader.close()
    return max(found, 0)


def _reader(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 5,
            **_QUIET,
        }
    )


@cache
def _admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, **_QUIET})


def _stable_end(bootstrap: str, topic: str) -> int | None:
    ends = []
    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED):
        where = TopicPartition(topic, 0)
        latest = {where: OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        asked = _admin(bootstrap).list_offsets(latest, isolation_level=level, request_timeout=_ANSWER_S)
        try:
            ends.append(int(asked[where].result().offset))
        except KafkaException as error:
            _not_yet(error.args[0])
            return None
    return ends[0] if ends[0] == ends[1] else None


def _stable_offset(reader: Consumer, source: str) -> int | None:
    try:
        (found,) = reader.committed([TopicPartition(source, 0)], timeout=_GLANCE_S)
    except KafkaException as error:
        _not_yet(error.args[0])
        return None
    if found.error is not None:
        _not_yet(found.error)
        return None
    return int(found.offset)


def _not_yet(error: KafkaError) -> None:
    if error.code() not in _PASSING:
        raise KafkaException(error)


def _settled(look: Callable[[], int | None], otherwise: str) -> int:
    # EndTxn is answered before the markers are written: a moment later everything is in its place.
    deadline = time.monotonic() + PATIENCE_S
    while (found := look()) is None:
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.02)
    return found
