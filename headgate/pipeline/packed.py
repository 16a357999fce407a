"""Packed records: lists of records as bytes, on their way between a worker and its executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final, Generic, TypeVar

from headgate.api import Record, SinkRecord, SourceRecord
from headgate.java import nesting  # noqa: F401 - pickle goes as deep as what it packs
from headgate.pipeline.failure import InternalSinkRecord

PROTOCOL: Final = 5

R = TypeVar("R", bound=Record)


class Packer(Generic[R]):
    """For one class of records. Pickle takes twice as long for frozen objects as for the tuples of their fields."""

    def __init__(self, cls: type[R]) -> None:
        self._cls = cls
        self._names = tuple(field.name for field in fields(cls))
        self._values: Callable[[R], tuple[Any, ...]] = attrgetter(*self._names)

    def pack(self, records: Sequence[R]) -> bytes:
        return pickle.dumps((self._cls, list(map(self._values, records))), PROTOCOL)

    def unpack(self, data: bytes) -> list[R]:
        """Of this class, or of the more special one that was packed."""
        cls, rows = pickle.loads(data)  # noqa: S301 - of a job or a result, as in blob.py
        names = self._names if cls is self._cls else tuple(field.name for field in fields(cls))
        return [cls.unchecked(dict(zip(names, values, strict=True))) for values in rows]


SINK_RECORDS: Final = Packer(SinkRecord)
INTERNAL_SINK_RECORDS: Final = Packer(InternalSinkRecord)
SOURCE_RECORDS: Final = Packer(SourceRecord)
