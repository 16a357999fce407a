"""Source partitions and offsets, in the shapes of Confluent's connector: what it has stored is gone on from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConnectError
from headgate.connectors.jdbc.database import TableName

TABLE: Final = "table"
PROTOCOL: Final = "protocol"
QUERY: Final = "query"
QUERY_PARTITION: Final[Mapping[str, Any]] = {QUERY: QUERY}
_INCREMENTING: Final = "incrementing"
_TIMESTAMP: Final = "timestamp"
_NANOS: Final = "timestamp_nanos"


def partitions_of(table: TableName) -> Sequence[Mapping[str, Any]]:
    """All that may have been stored of a table, what is to be written first: drivers differ, over the years, in whether
    they name the catalog."""
    names = dict.fromkeys((table.full, table.qualified))
    return [*({PROTOCOL: "1", TABLE: name} for name in names), {TABLE: table.name}]


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a table or query has been read; None where its mode does not know."""

    incrementing: int | None = None
    micros: int | None = None
    """Of the timestamp, since 1970."""

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Offset:
        if stored is None:
            return cls()
        millis, nanos = stored.get(_TIMESTAMP), stored.get(_NANOS)
        micros = None
        if millis is not None:
            # The nanos are all of the second's fraction, of which the milliseconds are a part.
            micros = int(millis) * 1000 if nanos is None else int(millis) // 1000 * 1_000_000 + int(nanos) // 1000
        incrementing = stored.get(_INCREMENTING)
        return cls(None if incrementing is None else int(incrementing), micros)

    def stored(self) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if self.incrementing is not None:
            made[_INCREMENTING] = self.incrementing
        if self.micros is not None:
            made[_TIMESTAMP] = self.micros // 1000
            made[_NANOS] = self.micros % 1_000_000 * 1000
        return made


def check_change(partition: Mapping[str, Any], offset: Mapping[str, Any]) -> None:
    """Raises ConnectError for what could not be gone on from."""
    shapes = ({TABLE}, {TABLE, PROTOCOL}, {QUERY})
    if set(partition) not in shapes or not all(isinstance(value, str) for value in partition.values()):
        raise ConnectError(
            f"{dict(partition)} is no partition of a JDBC source: it reads"
            f' {{"{PROTOCOL}": "1", "{TABLE}": "schema.table"}}, {{"{TABLE}": "table"}} or {{"{QUERY}": "{QUERY}"}}'
        )
    known = {_INCREMENTING, _TIMESTAMP, _NANOS}
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in offset.values())
    if not offset or set(offset) - known or not whole or (_NANOS in offset and _TIMESTAMP not in offset):
        raise ConnectError(
            f"{dict(offset)} is no offset of a JDBC source: it has whole numbers as {_INCREMENTING}, {_TIMESTAMP}"
            f" (milliseconds) and {_NANOS}"
        )
