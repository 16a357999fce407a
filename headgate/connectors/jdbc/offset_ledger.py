"""OffsetLedger: a table beside the records with the next offset of each partition, and who may move it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.jdbc.database import Database
from headgate.connectors.jdbc.dialect import Family

NAME: Final = "headgate_offsets"
_WHERE: Final = "connector = ? AND topic = ? AND kafka_partition = ?"


class PartitionTaken(ConnectError):
    """Another task has opened the partition since: this one may not write it any more."""


class OffsetLedger:
    """Of one task. Every method belongs to a transaction, which its caller ends."""

    def __init__(self, connector: str, table: str = NAME) -> None:
        self._connector = connector
        self._table = table
        self._owner = str(uuid.uuid4())

    def make(self, database: Database) -> None:
        """Ends a transaction of its own."""
        database.execute(
            f"CREATE TABLE IF NOT EXISTS {self._name(database)} (connector VARCHAR(249) NOT NULL,"
            " topic VARCHAR(249) NOT NULL, kafka_partition INT NOT NULL, next_offset BIGINT,"
            " owner VARCHAR(36) NOT NULL, PRIMARY KEY (connector, topic, kafka_partition))"
        )
        database.commit()

    def take(self, database: Database, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Where to go on, None where nothing is known. Whoever had them before may not write them from the commit of
        this on; what they have under way is waited for."""
        found = {}
        for where in sorted(partitions):
            place = (self._connector, where.topic, where.partition)
            if not database.execute(
                f"UPDATE {self._name(database)} SET owner = ? WHERE {_WHERE}", (self._owner, *place)
            ):
                database.execute(
                    f"INSERT INTO {self._name(database)} (owner, connector, topic, kafka_partition)"
                    " VALUES (?, ?, ?, ?)",
                    (self._owner, *place),
                )
            found[where] = self._row(database, where)[0]
        return found

    def lock(self, database: Database, where: TopicPartition) -> int | None:
        """The next offset, which nobody else moves until the transaction ends. Raises PartitionTaken."""
        following, owner = self._row(database, where, " FOR UPDATE")
        if owner != self._owner:
            raise PartitionTaken(f"Another task writes {where}: this one has lost it")
        return following

    def move(self, database: Database, where: TopicPartition, following: int) -> None:
        place = (self._connector, where.topic, where.partition)
        database.execute(f"UPDATE {self._name(database)} SET next_offset = ? WHERE {_WHERE}", (following, *place))

    def alter(self, database: Database, changes: Mapping[TopicPartition, int | None]) -> None:
        """To what a user wants. None, and no changes at all, mean that the database shall not know: then the group says
        where to go on."""
        nothing = f"UPDATE {self._name(database)} SET owner = ?, next_offset = NULL WHERE "
        if not changes:
            database.execute(f"{nothing}connector = ?", (self._owner, self._connector))
        self.take(database, list(changes))
        for where, offset in changes.items():
            if offset is None:
                database.execute(nothing + _WHERE, (self._owner, self._connector, where.topic, where.partition))
            else:
                self.move(database, where, offset)

    def _row(self, database: Database, where: TopicPartition, lock: str = "") -> tuple[int | None, str | None]:
        lock = "" if database.dialect.family is Family.SQLITE else lock
        sql = f"SELECT next_offset, owner FROM {self._name(database)} WHERE {_WHERE}{lock}"
        found = database.rows(sql, (self._connector, where.topic, where.partition), width=2)
        return (None if found[0][0] is None else int(found[0][0]), found[0][1]) if found else (None, None)

    def _name(self, database: Database) -> str:
        return database.dialect.quoted(*self._table.split("."))
