"""The part of a record that a transform works on: its key or its value."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from headgate.api import Record, Schema, Transform


class PartTransform(Transform[Record]):
    """A transform that exists twice: `Cast$Key` and `Cast$Value` are `Cast` with OfKey and with OfValue."""

    @abstractmethod
    def take(self, record: Record) -> tuple[Schema | None, Any]:
        """The schema and the value of the part."""

    @abstractmethod
    def put(self, record: Record, schema: Schema | None, value: Any) -> Record:
        """The record with this part instead."""


class OfKey:
    uses = frozenset({"key"})

    def take(self, record: Record) -> tuple[Schema | None, Any]:
        return record.key_schema, record.key

    def put(self, record: Record, schema: Schema | None, value: Any) -> Record:
        return record.with_key(value, schema)


class OfValue:
    uses = frozenset({"value"})

    def take(self, record: Record) -> tuple[Schema | None, Any]:
        return record.value_schema, record.value

    def put(self, record: Record, schema: Schema | None, value: Any) -> Record:
        return record.with_value(value, schema)
