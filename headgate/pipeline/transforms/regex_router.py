"""RegexRouter: gives another topic to records whose topic matches a regular expression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

from headgate.api import HIGH, STRING, ConfigDef, DataError, Key, Record, Transform, java_regex
from headgate.api.frame import Frame
from headgate.java.regex import RegexError, Replacement, compiled
from headgate.pipeline.columns.distinct import by_distinct
from headgate.pipeline.columns.refusing import refusing_errors

_TOPICS: Final = 1000


class RegexRouter(Transform[Record]):
    aliases = ("org.apache.kafka.connect.transforms.RegexRouter",)
    config = ConfigDef(
        Key("regex", STRING, validator=java_regex, importance=HIGH, doc="Regular expression for the whole topic name."),
        Key("replacement", STRING, importance=HIGH, doc="The new topic; $1 is what the first group matched."),
    )

    uses = frozenset({"topic"})

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._regex = compiled(self.settings["regex"])
        self._replacement: str = self.settings["replacement"]
        # Many records, few topics.
        self._route = lru_cache(_TOPICS)(self._new_topic)

    def apply(self, record: Record) -> Record:
        topic = self._route(record.topic)
        return record if topic == record.topic else record.replace(topic=topic)

    @refusing_errors
    def apply_to_columns(self, frame: Frame) -> Frame:
        return frame.with_topic(by_distinct(frame.topic, self._route, pa.string()))

    def _new_topic(self, topic: str) -> str:
        if self._regex.fullmatch(topic) is None:
            return topic
        # As in Java, a wrong reference is an error of the records that match, and the first match may be a shorter one.
        try:
            return self._regex.sub(Replacement(self._regex, self._replacement), topic, count=1)
        except RegexError as error:
            raise DataError(str(error)) from None
