"""KafkaGroupOffsets: the offsets of sinks' consumer groups, through Kafka's admin API."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

import confluent_kafka
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException

from headgate.backoff import Backoff
from headgate.kafka.admin_clients import AdminClients, wait
from headgate.kafka.asking import ask_for, passes
from headgate.kafka.groups import delete_offsets, read_offsets
from headgate.kafka.settings import ClientConfigError, ClientKind, translate
from headgate.model import Config, TopicPartition
from headgate.runtime.ports import GroupNotEmpty
from headgate.storage.reach import require_kafka

T = TypeVar("T")

_REACH_S, _SOON_S = 3.0, 1.5

# An admin client commits as nobody in particular: to a group with members, that is an unknown member.
_NOT_EMPTY: Final = frozenset(
    {
        KafkaError.NON_EMPTY_GROUP,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.GROUP_SUBSCRIBED_TO_TOPIC,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.STALE_MEMBER_EPOCH,
    }
)


class GroupOffsetsError(Exception):
    """Kafka did not do it; the message has Kafka's own words."""


class KafkaGroupOffsets:
    """May be used from any thread. Each call blocks, for `timeout` seconds and a moment at most."""

    def __init__(self, timeout: float = 30.0, idle: float = 60.0) -> None:
        self._timeout = timeout
        self._clients = AdminClients(idle)

    def read(self, admin: Config, group: str) -> Mapping[TopicPartition, int]:
        """Empty for a group that does not exist. Partitions without a committed offset are left out. A Kafka that is
        away is not waited for. Raises KafkaAway, GroupOffsetsError."""

        def attempt(left: float) -> Mapping[TopicPartition, int]:
            try:
                with suppress(ClientConfigError):  # for a login that only librdkafka can do
                    return read_offsets(translate(ClientKind.ADMIN, admin).config, group, left)
                return self._read_natively(admin, group, left)
            except KafkaException as error:
                if passes(error.args[0]):
                    require_kafka(self._clients.get(admin), admin["bootstrap.servers"], _SOON_S)
                raise

        with _in_kafkas_words(f"read the offsets of group {group}"), _no_group_is_fine():
            return self._repeat(attempt)
        return {}

    def _read_natively(self, admin: Config, group: str, left: float) -> Mapping[TopicPartition, int]:
        # librdkafka 2.16 follows a null pointer when a coordinator refuses this question, as one does that is still
        # loading: another question finds that out first.
        client, soon = self._clients.get(admin), min(left, _REACH_S)
        wait(client, client.describe_consumer_groups([group], request_timeout=soon)[group], soon + 1)
        request = [ConsumerGroupTopicPartitions(group)]
        answer = wait(client, client.list_consumer_group_offsets(request, request_timeout=left)[group], left + 1)
        found = answer.topic_partitions or []
        _raise_first({_ours(each): each.error for each in found})
        return {_ours(each): each.offset for each in found if each.offset >= 0}

    def alter(self, admin: Config, group: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        """None deletes a partition's offset. Raises GroupNotEmpty, GroupOffsetsError.

        Kafka takes or refuses each partition by itself: after an error, some may have changed."""
        changed = {partition: offset for partition, offset in offsets.items() if offset is not None}
        deleted = [partition for partition, offset in offsets.items() if offset is None]

        def change(left: float) -> None:
            client = self._clients.get(admin)
            request = [
                ConsumerGroupTopicPartitions(
                    group, [confluent_kafka.TopicPartition(at.topic, at.partition, to) for at, to in changed.items()]
                )
            ]
            answer = wait(client, client.alter_consumer_group_offsets(request, request_timeout=left)[group], left + 1)
            _raise_first({_ours(each): each.error for each in answer.topic_partitions or []})

        def delete(left: float) -> None:
            _raise_first(delete_offsets(translate(ClientKind.ADMIN, admin).config, group, deleted, left))

        deadline = time.monotonic() + self._timeout
        with _in_kafkas_words(f"alter the offsets of group {group}"):
            if changed:
                self._repeat(change, deadline)
            if deleted:
                with _no_group_is_fine():  # nothing to remove
                    self._repeat(delete, deadline)

    def delete(self, admin: Config, group: str) -> None:
        """A group that does not exist counts as deleted. Raises GroupNotEmpty, GroupOffsetsError."""

        def attempt(left: float) -> None:
            client = self._clients.get(admin)
            wait(client, client.delete_consumer_groups([group], request_timeout=left)[group], left + 1)

        with _in_kafkas_words(f"delete group {group}"), _no_group_is_fine():
            self._repeat(attempt)

    def close(self) -> None:
        self._clients.close()

    def _repeat(self, attempt: Callable[[float], T], deadline: float | None = None) -> T:
        """Until it succeeds, fails for good or takes too long: librdkafka does not repeat all that it could. Every
        attempt here may be made twice, for it says how things shall be and not how they shall change."""
        seconds = self._timeout if deadline is None else deadline - time.monotonic()
        return ask_for(seconds, attempt, Backoff(0.05, 2.0, most=1.0))


def _ours(partition: confluent_kafka.TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


def _code(error: KafkaException) -> int:
    code: int = error.args[0].code()
    return code


def _raise_first(errors: Mapping[TopicPartition, KafkaError | None]) -> None:
    """The error that decides what the caller can do: members first, then what will not pass, then what will."""
    found = [(partition, error) for partition, error in errors.items() if error is not None]
    if found:
        found.sort(key=lambda each: (each[1].code() not in _NOT_EMPTY, passes(each[1])))
        partition, error = found[0]
        raise KafkaException(KafkaError(error.code(), f"{error.str()} ({partition})"))


@contextmanager
def _no_group_is_fine() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        if _code(error) != KafkaError.GROUP_ID_NOT_FOUND:
            raise


@contextmanager
def _in_kafkas_words(task: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        code, name, text = _code(error), error.args[0].name(), error.args[0].str()
        kind = GroupNotEmpty if code in _NOT_EMPTY else GroupOffsetsError
        raise kind(f"Kafka did not {task}: {text} [{name}]") from error
    except ClientConfigError as error:
        raise GroupOffsetsError(str(error)) from error
    except (ValueError, TypeError) as error:  # confluent_kafka did not even send it: a negative offset
        raise GroupOffsetsError(f"Kafka's client did not {task}: {error}") from error
