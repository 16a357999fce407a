"""Targets: the tables that a sink writes, made and widened where that is wanted."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.api import ConnectError
from headgate.connectors.jdbc.database import ColumnFact, Database, StatementRefused
from headgate.connectors.jdbc.dialect import Family

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column as records have it."""

    name: str
    kind: str
    """As `cells.py` calls it."""
    optional: bool = True
    scale: int = 0

    def spec(self, database: Database, key: bool) -> str:
        dialect = database.dialect
        text_key = (
            key and self.kind == "string" and dialect.family is Family.MYSQL
        )  # which needs to know how long it is
        kind = "VARCHAR(256)" if text_key else dialect.types[self.kind].format(scale=min(self.scale, 30))
        return f"{dialect.quoted(self.name)} {kind}{'' if self.optional and not key else ' NOT NULL'}"


class Targets:
    """Of one connection's life: what it knows of tables is asked anew after that."""

    def __init__(self, database: Database, create: bool, evolve: bool) -> None:
        self._database = database
        self._create = create
        self._evolve = evolve
        self._known: dict[str, Mapping[str, ColumnFact]] = {}

    def quoted(self, table: str) -> str:
        return self._database.dialect.quoted(*table.split("."))

    def forget(self) -> None:
        self._known.clear()

    def there(self, table: str) -> bool:
        """Whether there is such a table, as far as `columns` or `look_for` have found out."""
        return table in self._known

    def look_for(self, table: str) -> None:
        """For those that are not to be made: nothing can be deleted from them. Outside of transactions, too."""
        if table not in self._known and (facts := self._look(table)) is not None:
            self._known[table] = facts

    def columns(self, table: str, wanted: Sequence[Wanted], keys: Sequence[str]) -> Mapping[str, ColumnFact]:
        """Of a table that has all that is wanted. To be called outside of transactions: some databases end them with
        such a statement. Raises ConnectError with what to do."""
        facts = self._known.get(table) or self._look(table)
        if facts is None:
            self._make(table, wanted, keys)
            facts = self._look(table)
            assert facts is not None, f"table {table} is not there after it was made"
        missing = [each for each in wanted if each.name not in facts]
        if missing:
            facts = self._look(table) or {}  # somebody else may have been quicker
            self._widen(table, [each for each in missing if each.name not in facts])
            facts = self._look(table) or {}
        self._known[table] = facts
        return facts

    def _look(self, table: str) -> Mapping[str, ColumnFact] | None:
        try:
            found = self._database.facts(f"SELECT * FROM {self.quoted(table)} WHERE 1 = 0")
        except StatementRefused as refused:
            self._database.rollback()
            if refused.no_table:
                return None
            raise
        self._database.rollback()
        return {fact.name: fact for fact in found}

    def _make(self, table: str, wanted: Sequence[Wanted], keys: Sequence[str]) -> None:
        if not self._create:
            raise ConnectError(
                f"The database has no table {table}: create it, or set auto.create=true, or check table.name.format"
            )
        specs = [each.spec(self._database, each.name in keys) for each in wanted]
        if keys:
            specs.append(f"PRIMARY KEY ({', '.join(map(self._database.dialect.quoted, keys))})")
        self._change(f"CREATE TABLE IF NOT EXISTS {self.quoted(table)} ({', '.join(specs)})")

    def _widen(self, table: str, missing: Sequence[Wanted]) -> None:
        names = ", ".join(each.name for each in missing)
        if missing and not self._evolve:
            raise ConnectError(
                f"Table {table} has no column {names}: add it, or set auto.evolve=true, or leave it out with"
                " fields.whitelist"
            )
        for each in missing:
            if not each.optional:
                raise ConnectError(
                    f"Column {each.name} cannot be added to table {table}: its field is neither optional nor has a"
                    " default, and rows that are there would have no value for it. Add it by hand"
                )
            self._change(f"ALTER TABLE {self.quoted(table)} ADD COLUMN {each.spec(self._database, key=False)}")

    def _change(self, sql: str) -> None:
        log.info("Changing the database: %s", sql)
        self._database.execute(sql)
        self._database.commit()
