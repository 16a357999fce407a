"""OffsetTable: source offsets of all connectors as one value that never changes.

A partition is known by its content: the same keys and values in another order are the same partition. Both maps go
through JSON, as they would through Kafka: bytes become base64 text, and what comes back are the caller's own copies.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headgate.model import Offset, Partition

Offsets = Sequence[tuple[Partition | None, Offset | None]]
"""New ones of a connector; None removes that of a partition."""


class InvalidOffset(ValueError):
    """A partition or an offset that cannot be stored: only string keys and primitive values can."""


class Entry(NamedTuple):
    partition: str | None
    """JSON text in the connector's own order of keys; None for the partition null."""
    offset: str


_Partitions = Mapping[str, Entry]
_NONE: Final[_Partitions] = {}


@dataclass(frozen=True, slots=True)
class OffsetTable:
    _connectors: Mapping[str, _Partitions] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Partition | None, Offset]]) -> OffsetTable:
        """Of what is said twice, the last counts. Raises InvalidOffset."""
        by_connector: dict[str, list[tuple[Partition | None, Offset]]] = {}
        for connector, partition, offset in rows:
            by_connector.setdefault(connector, []).append((partition, offset))
        table = cls()
        for connector, offsets in by_connector.items():
            table = table.changed(connector, offsets)
        return table

    def get(self, connector: str, partitions: Sequence[Partition | None]) -> list[Offset | None]:
        known = self._connectors.get(connector, _NONE)
        found = (known.get(identity(partition)) for partition in partitions)
        return [json.loads(entry.offset) if entry is not None else None for entry in found]

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        """In the order in which the partitions were first seen. The partition null has no place in a list."""
        entries = self._connectors.get(connector, _NONE).values()
        return [(json.loads(each.partition), json.loads(each.offset)) for each in entries if each.partition is not None]

    def changed(self, connector: str, offsets: Offsets) -> OffsetTable:
        """With these offsets, without those that are None; this very table if nothing changes. Raises InvalidOffset."""
        _check_text(connector)
        before = self._connectors.get(connector, _NONE)
        after = dict(before)
        for partition, offset in offsets:
            known_as = identity(partition)
            if offset is None:
                after.pop(known_as, None)
                continue
            known = after.get(known_as)
            first = known.partition if known else None if partition is None else encode(partition)
            after[known_as] = Entry(first, encode(offset))
        if list(after.items()) == list(before.items()):  # the order counts too
            return self
        rest = {name: entries for name, entries in self._connectors.items() if name != connector or after}
        return OffsetTable({**rest, connector: after} if after else rest)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        for connector, entries in self._connectors.items():
            for entry in entries.values():
                yield connector, entry


def encode(content: Mapping[str, Any] | None, sort: bool = False) -> str:
    """Compact JSON, in the order given unless sorted. Raises InvalidOffset."""
    plain = _plain(content)
    try:
        text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=sort)
    except ValueError as error:
        raise InvalidOffset(f"Offsets may only hold values that JSON has: {error}") from error
    _check_text(text)
    return text


def identity(partition: Partition | None) -> str:
    """The same text for the same content. Raises InvalidOffset."""
    return encode(partition, sort=True)


def _check_text(text: str) -> None:
    # Half a surrogate pair is a Python string, but cannot be written anywhere.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidOffset(f"Offsets may only hold valid Unicode text: {error}") from error


def _plain(content: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if content is None:
        return None
    plain: dict[str, Any] = {}
    for key, value in content.items():
        if not isinstance(key, str):
            raise InvalidOffset("Offsets may only use String keys")
        if isinstance(value, bytes | bytearray | memoryview):
            value = base64.b64encode(value).decode()
        elif value is not None and not isinstance(value, str | bool | int | float):
            raise InvalidOffset(
                "Offsets may only contain primitive types as values, but field"
                f" {key} contains {type(value).__module__}.{type(value).__qualname__}"
            )
        plain[key] = value
    return plain
