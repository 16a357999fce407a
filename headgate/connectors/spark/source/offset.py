"""Where the stream of a data source stands, as a Connect source offset and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConnectError

SOURCE: Final = "source"
OFFSET: Final = "offset"
UNTIL: Final = "until"
PARTITION: Final = "partition"
ROWS: Final = "rows"

_WITHIN: Final = {OFFSET, UNTIL, PARTITION, ROWS}
_LONG: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """Behind all that the data source has before `start`; within a batch, behind some of what it has up to `until`."""

    start: Mapping[str, Any]
    until: Mapping[str, Any] | None = None
    partition: int = 0
    """Of those of the batch: all before it are done."""
    rows: int = 0
    """So many of its rows are done."""

    @property
    def begun(self) -> bool:
        """Some of the batch is done."""
        return self.partition > 0 or self.rows > 0

    def written(self) -> dict[str, Any]:
        """As it is stored: primitive values as they are, all else as JSON text."""
        if self.until is not None and self.begun:
            return {OFFSET: _text(self.start), UNTIL: _text(self.until), PARTITION: self.partition, ROWS: self.rows}
        plain = dict(self.start)
        return plain if _is_flat(plain) and not _is_ours(plain) else {OFFSET: _text(plain)}

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> StreamPosition:
        """Raises ConnectError for what cannot be an offset of any data source."""
        if not _is_ours(stored):
            return cls(plain(stored, "The offset"))
        start = _object(stored[OFFSET])
        if UNTIL not in stored:
            return cls(start or {})
        counts = stored[PARTITION], stored[ROWS]
        until = _object(stored[UNTIL])
        if start is None or until is None or not all(_is_count(each) for each in counts):
            raise ConnectError(
                f"The offset of a place within a batch has {OFFSET} and {UNTIL}, which are JSON objects as text, and"
                f" {PARTITION} and {ROWS}, which are numbers from 0 on; not {dict(stored)}"
            )
        return cls(start, until, *counts)


def plain(offset: object, what: str) -> dict[str, Any]:
    """As Spark keeps it: what a data source says goes through JSON, so that it is the same after a restart. Raises
    ConnectError."""
    try:
        told = json.loads(json.dumps(offset, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConnectError(f"{what} cannot be written as JSON: {error}") from error
    if not isinstance(told, dict):
        raise ConnectError(f"{what} is no dictionary but {offset!r}")
    return told


def _is_ours(stored: Mapping[str, Any]) -> bool:
    """Whether it is written in one of the two forms that hold JSON."""
    return set(stored) == _WITHIN or (set(stored) == {OFFSET} and _object(stored[OFFSET]) is not None)


def _is_flat(offset: Mapping[str, Any]) -> bool:
    return bool(offset) and all(
        value is None
        or isinstance(value, str | bool)
        or (isinstance(value, int) and -_LONG <= value < _LONG)
        or (isinstance(value, float) and math.isfinite(value))
        for value in offset.values()
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _text(offset: Mapping[str, Any]) -> str:
    return json.dumps(offset, separators=(",", ":"))


def _object(text: object) -> dict[str, Any] | None:
    """The JSON object that a text is; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
