"""When offsets may be read, altered, reset, and what their requests must look like (KIP-875). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from headgate.api.errors import ConnectError, UnsupportedOperation
from headgate.model import SINK_GROUP_PREFIX, Config, ConnectorType, Offset, Partition, TargetState, TopicPartition
from headgate.runtime.config.connector_config import TOPICS, TOPICS_REGEX
from headgate.runtime.errors import BadRequest, HerderError, NotStopped, OffsetsError
from headgate.runtime.view import ConnectorView

TOPIC_KEY: Final = "kafka_topic"
PARTITION_KEY: Final = "kafka_partition"
OFFSET_KEY: Final = "kafka_offset"

Change = tuple[Partition | None, Offset | None]


def require_stopped(connector: ConnectorView) -> None:
    """Offsets may change only while nothing of the connector runs that could write over them."""
    if connector.target is not TargetState.STOPPED or connector.tasks:
        raise NotStopped(connector.name)


def type_of(config: Config) -> ConnectorType:
    """Of a connector whose class is not installed: what has topics to read is a sink."""
    return ConnectorType.SINK if config.get(TOPICS) or config.get(TOPICS_REGEX) else ConnectorType.SOURCE


def group_of(name: str, config: Config, worker_consumer: Config) -> str:
    """The consumer group of a sink."""
    return config.get("consumer.override.group.id") or worker_consumer.get("group.id") or f"{SINK_GROUP_PREFIX}{name}"


# --- sinks ------------------------------------------------------------------------------------------------------------


def sink_entries(offsets: Mapping[TopicPartition, int]) -> list[tuple[Partition, Offset]]:
    return [
        ({PARTITION_KEY: where.partition, TOPIC_KEY: where.topic}, {OFFSET_KEY: offset})
        for where, offset in sorted(offsets.items())
    ]


def parse_sink_changes(changes: Sequence[Change]) -> dict[TopicPartition, int | None]:
    return {_parse_partition(partition): _parse_offset(offset) for partition, offset in changes}


def _parse_partition(partition: Partition | None) -> TopicPartition:
    if partition is None:
        raise BadRequest("The partition for a sink connector offset cannot be null or missing")
    if TOPIC_KEY not in partition or PARTITION_KEY not in partition:
        raise BadRequest(
            "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"
        )
    topic, number = partition[TOPIC_KEY], partition[PARTITION_KEY]
    if topic is None:
        raise BadRequest("Kafka topic names must be valid strings and may not be null")
    if number is None:
        raise BadRequest("Kafka partitions must be valid numbers and may not be null")
    parsed = _integer(number, bits=31)
    if parsed is None:
        raise BadRequest(
            f"Failed to parse the following Kafka partition value in the provided offsets: '{_shown(number)}'."
            " Partition values for sink connectors need to be integers."
        )
    return TopicPartition(_shown(topic), parsed)


def _parse_offset(offset: Offset | None) -> int | None:
    if offset is None:
        return None
    if OFFSET_KEY not in offset:
        raise BadRequest("The offset for a sink connector should either be null or contain the key 'kafka_offset'")
    parsed = _integer(offset[OFFSET_KEY], bits=63)
    if parsed is None:
        raise BadRequest(
            f"Failed to parse the following Kafka offset value in the provided offsets: '{_shown(offset[OFFSET_KEY])}'."
            " Offset values for sink connectors need to be integers."
        )
    return parsed


def _integer(value: object, bits: int) -> int | None:
    """Numbers may come as text, as Apache's API takes them."""
    text = _shown(value)
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?[0-9]{1,20}", text):
        return None
    number = int(text)
    return number if -(1 << bits) <= number < (1 << bits) else None


def _shown(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- sources ----------------------------------------------------------------------------------------------------------


def parse_source_changes(changes: Sequence[Change]) -> list[tuple[Partition, Offset | None]]:
    """The changes, the last one winning where a partition is named twice."""
    latest: dict[str, tuple[Partition, Offset | None]] = {}
    for partition, offset in changes:
        if partition is None:
            raise BadRequest("The partition for a source connector offset cannot be null or missing")
        _check_primitive(partition)
        _check_primitive(offset or {})
        latest[repr(sorted(partition.items()))] = (partition, offset)
    return list(latest.values())


def _check_primitive(values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        if isinstance(value, list | dict):
            kind = "ARRAY" if isinstance(value, list) else "MAP"
            raise BadRequest(f"Offsets may only contain primitive types as values, but field {key} contains {kind}")


# --- the connector's hook ---------------------------------------------------------------------------------------------


def hook_failure(error: BaseException, kind: str, name: str) -> HerderError:
    """How an exception from `alter_offsets` is told to the user: with its message, whatever it is."""
    said = str(error)
    if isinstance(error, UnsupportedOperation | NotImplementedError):
        problem = f"connector {name} because it doesn't support external modification of offsets"
    elif isinstance(error, ConnectError) and said:
        return OffsetsError(said)
    else:
        problem, said = f"{kind} connector {name}", f"{type(error).__name__}: {said}".removesuffix(": ")
    return OffsetsError(f"Failed to modify offsets for {problem}{said and f': {said}'}")


def success(verb: str, known: bool) -> str:
    """The message for the user; `known`: the connector itself said that all its offsets are changed."""
    if known:
        return f"The offsets for this connector have been {verb} successfully"
    return (
        f"The framework-managed offsets for this connector have been {verb} successfully. However, if this connector"
        f" manages offsets externally, they will need to be manually {verb} in the system that the connector uses."
    )


def group_not_empty(name: str, verb: str) -> OffsetsError:
    return OffsetsError(
        f"Failed to {verb} consumer group offsets for connector {name} either because its tasks haven't stopped"
        f" completely yet or the connector was resumed before the request to {verb} its offsets could be successfully"
        " completed. If the connector is in a stopped state, this operation can be safely retried. If it doesn't"
        " eventually succeed, the Connect cluster may need to be restarted to get rid of the zombie sink tasks."
    )
