"""The statements of a sink, by dialect, as text: what becomes of rows that `cells.py` has made parameters of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.connectors.jdbc.database import ColumnFact
from headgate.connectors.jdbc.dialect import Dialect, Family

INSERT: Final = "insert"
UPSERT: Final = "upsert"
UPDATE: Final = "update"
DELETE: Final = "delete"

_COUNTED: Final = {"smallserial": "int2", "serial": "int4", "bigserial": "int8"}
"""What the driver of PostgreSQL calls columns that count up, and what they are."""

_ARRAYS: Final = {
    *("bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar", "bytea", "uuid"),
    *("date", "time", "timetz", "timestamp", "timestamptz", "json", "jsonb"),
}
"""Types of PostgreSQL that values are sent as; those of other columns are text on the way."""


@dataclass(frozen=True, slots=True)
class Merge:
    """Of some columns of a table, those of the key among them."""

    dialect: Dialect
    table: str
    """Quoted."""
    columns: Sequence[str]
    keys: Sequence[str]
    facts: Mapping[str, ColumnFact]
    binary: frozenset[str] = frozenset()
    """Columns whose values are bytes."""

    def sql(self, how: str) -> str:
        """With the parameters that `cells.parameters_of` makes of the columns."""
        match how:
            case "insert":
                return self._insert()
            case "upsert":
                return self._insert() + self._conflict()
            case "update":
                return self._update()
            case _:
                keys = ", ".join(map(self._quoted, self.keys))
                picked = ", ".join(map(self._picked, self.keys))
                return f"DELETE FROM {self.table} WHERE ({keys}) IN (SELECT {picked} FROM {self._rows()})"

    @property
    def others(self) -> list[str]:
        return [name for name in self.columns if name not in self.keys]

    def _quoted(self, name: str) -> str:
        return self.dialect.quoted(name)

    def _rows(self) -> str:
        """The parameters as a relation `r` with the columns c0, c1, ..."""
        numbers = range(len(self.columns))
        match self.dialect.family:
            case Family.POSTGRESQL:
                arrays = ", ".join(f"CAST(? AS {self._sent(name)}[])" for name in self.columns)
                return f"unnest({arrays}) AS r({', '.join(f'c{number}' for number in numbers)})"
            case Family.SQLITE:
                picked = ", ".join(f"json_extract(value, '$[{number}]') AS c{number}" for number in numbers)
                return f"(SELECT {picked} FROM json_each(?)) AS r"
            case Family.MYSQL:
                shape = ", ".join(f"c{number} LONGTEXT PATH '$[{number}]'" for number in numbers)
                return f"JSON_TABLE(CAST(? AS JSON), '$[*]' COLUMNS ({shape})) AS r"

    def _type(self, name: str) -> str:
        kind = self.facts[name].type_name
        return _COUNTED.get(kind, kind)

    def _sent(self, name: str) -> str:
        kind = self._type(name)
        return kind if kind in _ARRAYS else "text"

    def _picked(self, name: str) -> str:
        """The value of a column out of a row."""
        cell = f"r.c{list(self.columns).index(name)}"
        if self.dialect.family is Family.POSTGRESQL:
            return cell if self._sent(name) == self._type(name) else f"CAST({cell} AS {self._type(name)})"
        return f"unhex({cell})" if name in self.binary else cell

    def _insert(self) -> str:
        names = ", ".join(map(self._quoted, self.columns))
        picked = ", ".join(map(self._picked, self.columns))
        # SQLite takes what follows a bare relation for a part of a join.
        return f"INSERT INTO {self.table} ({names}) SELECT {picked} FROM {self._rows()} WHERE 1 = 1"

    def _conflict(self) -> str:
        others = [self._quoted(name) for name in self.others]
        if self.dialect.family is Family.MYSQL:
            changed = others or [self._quoted(self.keys[0])]
            return f" ON DUPLICATE KEY UPDATE {', '.join(f'{name} = VALUES({name})' for name in changed)}"
        keys = ", ".join(map(self._quoted, self.keys))
        if not others:
            return f" ON CONFLICT ({keys}) DO NOTHING"
        return f" ON CONFLICT ({keys}) DO UPDATE SET {', '.join(f'{name} = EXCLUDED.{name}' for name in others)}"

    def _update(self) -> str:
        matched = " AND ".join(f"t.{self._quoted(name)} = {self._picked(name)}" for name in self.keys)
        if self.dialect.family is Family.MYSQL:
            changes = ", ".join(f"t.{self._quoted(name)} = {self._picked(name)}" for name in self.others)
            return f"UPDATE {self.table} AS t JOIN {self._rows()} ON {matched} SET {changes}"
        changes = ", ".join(f"{self._quoted(name)} = {self._picked(name)}" for name in self.others)
        return f"UPDATE {self.table} AS t SET {changes} FROM {self._rows()} WHERE {matched}"
