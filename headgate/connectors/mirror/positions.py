"""Positions: source partitions and offsets of Mirror, in the form of Apache's MirrorMaker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headgate.api import ConnectError, TopicPartition

CLUSTER: Final = "cluster"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
_KEYS: Final = {CLUSTER, TOPIC, PARTITION}
_LONG: Final = 1 << 63
_INT: Final = 1 << 31


def partition_map(alias: str, where: TopicPartition) -> dict[str, Any]:
    return {CLUSTER: alias, TOPIC: where.topic, PARTITION: where.partition}


def offset_map(following: int) -> dict[str, Any]:
    return {OFFSET: following}


def place(partition: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(partition[TOPIC], partition[PARTITION])


def position(where: TopicPartition, stored: Mapping[str, Any] | None) -> int | None:
    """Where to go on; None when nothing was ever stored. Raises ConnectError."""
    if stored is None:
        return None
    found = stored.get(OFFSET)
    if type(found) is not int or not 0 <= found < _LONG:
        raise ConnectError(f"The stored offset of {where} is none: {OFFSET} is {found!r}")
    return found


def check_change(alias: str, partition: Mapping[str, Any] | None, offset: Mapping[str, Any]) -> None:
    """What users want to set. Raises ConnectError."""
    if partition is None or partition.keys() != _KEYS:
        shown = "is null" if partition is None else f"has {', '.join(partition) or 'none'}"
        raise ConnectError(f"A partition has the keys cluster, topic and partition, and no others; this one {shown}")
    if partition[CLUSTER] != alias:
        raise ConnectError(f"This connector reads the cluster {alias!r} (source.alias), not {partition[CLUSTER]!r}")
    if not isinstance(partition[TOPIC], str) or not partition[TOPIC]:
        raise ConnectError(f"The topic of a partition is its name, not {partition[TOPIC]!r}")
    number = partition[PARTITION]
    if type(number) is not int or not 0 <= number < _INT:
        raise ConnectError(f"The number of a partition is 0 or more, not {number!r}")
    if offset.keys() != {OFFSET}:
        raise ConnectError(f"An offset has the key offset, and no other; this one has {', '.join(offset) or 'none'}")
    found = offset[OFFSET]
    if type(found) is not int or not 0 <= found < _LONG:
        raise ConnectError(f"An offset is a whole number, 0 or more, not {found!r}")


# --- partitions among tasks -------------------------------------------------------------------------------------------


def dealt(partitions: Iterable[TopicPartition], tasks: int) -> list[list[TopicPartition]]:
    """In turn, in the order of topics and numbers: the same partitions always go the same way, whoever deals. No task
    is without any."""
    ordered = sorted(set(partitions))
    count = min(tasks, len(ordered))
    return [ordered[number::count] for number in range(count)]


def written(partitions: Sequence[TopicPartition]) -> str:
    """For the configuration of a task."""
    by_topic: dict[str, list[int]] = {}
    for each in partitions:
        by_topic.setdefault(each.topic, []).append(each.partition)
    return json.dumps(by_topic, separators=(",", ":"))


def read(text: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, numbers in json.loads(text).items() for number in numbers]
