"""TimestampRouter: puts the record's timestamp into the name of its topic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from headgate.api import HIGH, STRING, ConfigDef, ConfigError, DataError, Key, Record, Transform
from headgate.api.frame import Frame
from headgate.java.dates.format import DateFormat
from headgate.pipeline.columns.dates import spans
from headgate.pipeline.columns.distinct import by_distinct
from headgate.pipeline.columns.refusing import refuse, refusing_errors
from headgate.pipeline.columns.structs import nulls
from headgate.pipeline.text import text

_TOPICS: Final = 1000


class TimestampRouter(Transform[Record]):
    aliases = ("org.apache.kafka.connect.transforms.TimestampRouter",)
    config = ConfigDef(
        Key(
            "topic.format",
            STRING,
            default="${topic}-${timestamp}",
            importance=HIGH,
            doc="The new topic, where ${topic} stands for the old one and ${timestamp} for the record's timestamp.",
        ),
        Key(
            "timestamp.format",
            STRING,
            default="yyyyMMdd",
            importance=HIGH,
            doc="Pattern of java.text.SimpleDateFormat for the timestamp, in UTC.",
        ),
    )

    uses = frozenset({"topic", "partition", "timestamp", "key", "value"})  # all that its message shows

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._topic_format: str = self.settings["topic.format"]
        pattern = self.settings["timestamp.format"]
        try:
            self._dates = DateFormat(pattern)
        except ValueError as error:
            raise ConfigError.invalid("timestamp.format", pattern, str(error)) from None
        self._resolution = self._dates.resolution
        # Records of one topic and one day, if days are all that the pattern tells apart.
        self._route = lru_cache(_TOPICS)(self._new_topic)

    def apply(self, record: Record) -> Record:
        timestamp = record.timestamp
        if timestamp is None:
            raise DataError(f"Timestamp missing on record: {_shown(record)}")
        return record.replace(topic=self._route(record.topic, timestamp // self._resolution))

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        refuse("a timestamp that is missing", nulls(frame.timestamp))
        topics, times = frame.topic.dictionary_encode(), spans(frame.timestamp, self._resolution).dictionary_encode()
        names, moments = topics.dictionary.to_pylist(), times.dictionary.to_pylist()
        pairs = pc.add(pc.multiply(topics.indices.cast(pa.int64()), len(moments)), times.indices)

        def route(pair: int) -> str:
            name, moment = divmod(pair, len(moments))
            return self._route(names[name], moments[moment])

        return frame.with_topic(by_distinct(pairs, route, pa.string()))

    def _new_topic(self, topic: str, span: int) -> str:
        date = self._dates.format(span * self._resolution)
        return self._topic_format.replace("${topic}", topic).replace("${timestamp}", date)


def _shown(record: Record) -> str:
    key, value = text(record.key, record.key_schema), text(record.value, record.value_schema)
    partition = text(record.partition)
    return f"{{topic='{record.topic}', kafkaPartition={partition}, key={key}, value={value}, timestamp=null}}"
