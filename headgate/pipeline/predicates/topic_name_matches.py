"""TopicNameMatches: whether a regular expression matches the whole name of a record's topic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pyarrow as pa

from headgate.api import STRING, ConfigDef, Key, Predicate, Record, all_of, java_regex, non_empty
from headgate.api.frame import Frame
from headgate.java.regex import compiled
from headgate.pipeline.columns.distinct import by_distinct

_TOPICS: Final = 1000


class TopicNameMatches(Predicate[Record]):
    aliases = ("org.apache.kafka.connect.transforms.predicates.TopicNameMatches",)
    config = ConfigDef(
        Key(
            "pattern",
            STRING,
            validator=all_of(non_empty, java_regex),
            doc="Regular expression for the whole topic name.",
        )
    )

    uses = frozenset({"topic"})

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        regex = compiled(self.settings["pattern"])
        self._matches = lru_cache(_TOPICS)(lambda topic: regex.fullmatch(topic) is not None)

    def test(self, record: Record) -> bool:
        return record.topic is not None and self._matches(record.topic)

    def test_columns(self, frame: Frame) -> pa.Array:
        return by_distinct(frame.topic, self._matches, pa.bool_()).fill_null(False)
