"""MirrorBatches: messages of a consumer as a source gives them: columns, or records where there are headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from headgate.api import Header, Schema, SourceRecord, SourceTable, TopicPartition, schema
from headgate.connectors.mirror.config import JSON, TEXT, MirrorConfig
from headgate.connectors.mirror.positions import offset_map, partition_map
from headgate.kafka.messages import timestamp_of

if TYPE_CHECKING:
    import pyarrow as pa

Given = SourceTable | Sequence[SourceRecord]


@dataclass(frozen=True, slots=True)
class MirrorBatches:
    config: MirrorConfig

    def of(self, messages: Sequence[Any]) -> Iterator[tuple[TopicPartition, Given]]:
        """Partition by partition, each in its order."""
        by_place: dict[tuple[str, int], list[Any]] = {}
        for message in messages:
            by_place.setdefault((message.topic(), message.partition()), []).append(message)
        for (topic, number), found in by_place.items():
            where = TopicPartition(topic, number)
            if any(map(methodcaller("headers"), found)):
                yield where, [self._record(where, message) for message in found]
            else:
                yield where, self._given(where, self._table(where, found), found[-1].offset() + 1)

    def mark(self, where: TopicPartition, at: int) -> SourceTable:
        """No record, but how far we are."""
        return self._given(where, self._table(where, []), at)

    def _given(self, where: TopicPartition, table: pa.Table, following: int) -> SourceTable:
        config = self.config
        return SourceTable(
            topic=config.naming.name(where.topic),
            table=table,
            source_partition=partition_map(config.naming.alias, where),
            source_offset=offset_map(following),
            key_schema=_schema(config.key_format),
            value_schema=_schema(config.value_format),
        )

    def _table(self, where: TopicPartition, messages: Sequence[Any]) -> pa.Table:
        import pyarrow as pa

        # Text stays bytes here: its schema says what it is, and executors have the time to look at it.
        columns = {
            "key": pa.array(list(map(methodcaller("key"), messages)), pa.binary()),
            "value": pa.array(list(map(methodcaller("value"), messages)), pa.binary()),
            "timestamp": pa.array(list(map(timestamp_of, messages)), pa.int64()),
        }
        if self.config.same_partition:
            columns["partition"] = pa.repeat(pa.scalar(where.partition, pa.int32()), len(messages))
        return pa.table(columns)

    def _record(self, where: TopicPartition, message: Any) -> SourceRecord:
        config = self.config
        return SourceRecord(
            topic=config.naming.name(where.topic),
            key=_shaped(config.key_format, message.key()),
            value=_shaped(config.value_format, message.value()),
            key_schema=_schema(config.key_format),
            value_schema=_schema(config.value_format),
            partition=where.partition if config.same_partition else None,
            timestamp=timestamp_of(message),
            headers=tuple(Header(key, data, schema.OPTIONAL_BYTES) for key, data in message.headers() or ()),
            source_partition=partition_map(config.naming.alias, where),
            source_offset=offset_map(message.offset() + 1),
        )


def _schema(shape: str) -> Schema | None:
    if shape == JSON:
        return None  # it is read on the executors, by FromJson
    return schema.OPTIONAL_STRING if shape == TEXT else schema.OPTIONAL_BYTES


def _shaped(shape: str, data: bytes | None) -> bytes | str | None:
    return data if data is None or shape != TEXT else data.decode(errors="replace")
