"""The part of a record that a transform works on: its key or its value."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

from headgate.api import Record, Schema, Transform
from headgate.api.frame import Frame, Values


class PartTransform(Transform[Record]):
    """A transform that exists twice: `Cast$Key` and `Cast$Value` are `Cast` with OfKey and with OfValue."""

    @abstractmethod
    def take(self, record: Record) -> tuple[Schema | None, Any]:
        """The schema and the value of the part."""

    @abstractmethod
    def put(self, record: Record, schema: Schema | None, value: Any) -> Record:
        """The record with this part instead."""

    @abstractmethod
    def take_columns(self, frame: Frame) -> Values:
        """The part of all records of a frame."""

    @abstractmethod
    def put_columns(self, frame: Frame, values: Values) -> Frame:
        """The frame with this part instead."""

    def change_known(self, frame: Frame, change: Callable[[Values], Values]) -> list[Frame]:
        """For transforms that leave records alone whose part is null: the others have what the function makes of it,
        which leaves null where it is."""
        given = self.take_columns(frame)
        if given.data.null_count == len(given):
            return [frame]
        made = change(given)
        changed = self.put_columns(frame, made)
        if not given.data.null_count or made.schema == given.schema:
            return [changed]
        known = given.data.is_valid()
        return [changed.where(known), frame.where(pc.invert(known))]


class OfKey:
    uses = frozenset({"key"})

    def take(self, record: Record) -> tuple[Schema | None, Any]:
        return record.key_schema, record.key

    def put(self, record: Record, schema: Schema | None, value: Any) -> Record:
        return record.with_key(value, schema)

    def take_columns(self, frame: Frame) -> Values:
        return frame.key

    def put_columns(self, frame: Frame, values: Values) -> Frame:
        return frame.with_key(values)


class OfValue:
    uses = frozenset({"value"})

    def take(self, record: Record) -> tuple[Schema | None, Any]:
        return record.value_schema, record.value

    def put(self, record: Record, schema: Schema | None, value: Any) -> Record:
        return record.with_value(value, schema)

    def take_columns(self, frame: Frame) -> Values:
        return frame.value

    def put_columns(self, frame: Frame, values: Values) -> Frame:
        return frame.with_value(values)
