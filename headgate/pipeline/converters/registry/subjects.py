"""Subjects: under which name a schema stands in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from headgate.api import DataError

_PACKAGE: Final = "io.confluent.kafka.serializers.subject."
TOPIC: Final = f"{_PACKAGE}TopicNameStrategy"

SubjectName = Callable[[str, bool, str | None], str]
"""From the topic, whether it is the key's schema, and the record's full name."""


def _by_topic(topic: str, is_key: bool, record: str | None) -> str:
    return f"{topic}-{'key' if is_key else 'value'}"


def _by_record(topic: str, is_key: bool, record: str | None) -> str:
    if record is None:
        part = "key" if is_key else "value"
        raise DataError(
            f"The schema of the {part} for topic {topic} has no record name, which {part}.subject.name.strategy needs"
        )
    return record


def _by_topic_and_record(topic: str, is_key: bool, record: str | None) -> str:
    return f"{topic}-{_by_record(topic, is_key, record)}"


_BY_NAME: Final[Mapping[str, SubjectName]] = {
    "TopicNameStrategy": _by_topic,
    "RecordNameStrategy": _by_record,
    "TopicRecordNameStrategy": _by_topic_and_record,
}
STRATEGIES: Final = (*(_PACKAGE + name for name in _BY_NAME), *_BY_NAME)


class Subjects:
    """The subjects of one converter."""

    def __init__(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        self._is_key = is_key
        strategy = settings[f"{'key' if is_key else 'value'}.subject.name.strategy"]
        self._name = _BY_NAME[strategy.removeprefix(_PACKAGE)]

    def name(self, topic: str, record: str | None) -> str:
        """Raises DataError for a schema without the name that the strategy needs."""
        return self._name(topic, self._is_key, record)

    def of_topic(self, topic: str) -> str | None:
        """The subject, if the topic alone decides."""
        return self._name(topic, self._is_key, None) if self._name is _by_topic else None
