"""The statements of a source, by mode, as text with parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.connectors.jdbc.database import Instant, TableName
from headgate.connectors.jdbc.dialect import Dialect
from headgate.connectors.jdbc.offsets import Offset

BULK: Final = "bulk"
INCREMENTING: Final = "incrementing"
TIMESTAMP: Final = "timestamp"
BOTH: Final = "timestamp+incrementing"
MODES: Final = (BULK, TIMESTAMP, INCREMENTING, BOTH)

Parameters = list[int | Instant]


@dataclass(frozen=True, slots=True)
class Query:
    """What is read again and again: a table, or a query of the user's."""

    dialect: Dialect
    mode: str
    table: TableName | None = None
    text: str | None = None
    incrementing: str | None = None
    timestamps: Sequence[str] = ()
    suffix: str = ""
    quoting: bool = True

    def name(self, *parts: str | None) -> str:
        return self.dialect.quoted(*parts) if self.quoting else ".".join(filter(None, parts))

    @property
    def source(self) -> str:
        """What stands behind FROM."""
        if self.table is None:
            return f"({self.text}) AS q"
        # Without the catalog: a connection has one, and some databases take no other.
        catalog = None if self.table.schema else self.table.catalog
        return self.name(catalog, self.table.schema, self.table.name)

    @property
    def timestamp(self) -> str:
        names = [self.name(each) for each in self.timestamps]
        return names[0] if len(names) == 1 else f"COALESCE({', '.join(names)})"

    def shape(self) -> str:
        """Gives no rows, only columns."""
        return f"SELECT * FROM {self.source} WHERE 1 = 0"

    def after(self, offset: Offset, end: Instant | None) -> tuple[str, Parameters]:
        """All that comes after an offset, in the order of offsets; timestamps end before `end`."""
        if self.mode == BULK:
            return self._ended(self.text or f"SELECT * FROM {self.source}"), []
        conditions, parameters = self._conditions(offset, end)
        order = {
            INCREMENTING: [self.incrementing and self.name(self.incrementing)],
            TIMESTAMP: [self.timestamp if self.timestamps else None],
            BOTH: [self.timestamp if self.timestamps else None, self.incrementing and self.name(self.incrementing)],
        }[self.mode]
        sorting = ", ".join(f"{each} ASC" for each in order if each)
        return self._ended(f"SELECT * FROM {self.source} WHERE {conditions} ORDER BY {sorting}"), parameters

    def _ended(self, text: str) -> str:
        return f"{text} {self.suffix}" if self.suffix else text

    def _conditions(self, offset: Offset, end: Instant | None) -> tuple[str, Parameters]:
        number = self.name(self.incrementing) if self.incrementing else ""
        if self.mode == INCREMENTING:
            if offset.incrementing is None:
                return f"{number} IS NOT NULL", []
            return f"{number} > ?", [offset.incrementing]
        assert end is not None
        time = self.timestamp
        if offset.micros is None:
            known = f" AND {number} IS NOT NULL" if self.mode == BOTH else ""
            return f"{time} < ?{known}", [end]
        at = Instant(offset.micros)
        if self.mode == TIMESTAMP or offset.incrementing is None:
            known = f" AND {number} IS NOT NULL" if self.mode == BOTH else ""
            return f"{time} > ? AND {time} < ?{known}", [at, end]
        return (
            f"{time} < ? AND (({time} = ? AND {number} > ?) OR {time} > ?)",
            [end, at, offset.incrementing, at],
        )

    # --- much at once, in incrementing mode ---------------------------------------------------------------------------

    def bound(self, after: int | None, rows: int) -> tuple[str, Parameters]:
        """The last of the next `rows` numbers, and how many there are."""
        number = self.name(self.incrementing)
        condition, parameters = self._conditions(Offset(after), None)
        inner = f"SELECT {number} AS b FROM {self.source} WHERE {condition} ORDER BY {number} ASC LIMIT {rows}"
        return f"SELECT MAX(b), COUNT(b) FROM ({inner}) AS q", parameters

    def between(self, after: int | None, until: int) -> str:
        """A condition without parameters, for those who take none."""
        number = self.name(self.incrementing)
        return f"{number} <= {until}" if after is None else f"{number} > {after} AND {number} <= {until}"
