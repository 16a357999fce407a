"""How a source task wants its transactions to end: asked for by the task, taken with what it polls."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from headgate.api.errors import ConnectError
from headgate.api.record import SourceRecord
from headgate.api.task import SourceTable
from headgate.tasks.source.polled import End, Polled


class TransactionRequests:
    """Fits `headgate.api.TransactionContext`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._batch: set[End] = set()
        self._records: dict[int, tuple[SourceRecord, set[End]]] = {}
        """By identity: records need not be hashable, and two may be equal."""

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask(End.COMMIT, record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        self._ask(End.ABORT, record)

    def _ask(self, end: End, record: SourceRecord | None) -> None:
        with self._lock:
            if record is None:
                self._batch.add(end)
            else:
                self._records.setdefault(id(record), (record, set()))[1].add(end)

    def cut(self, found: Sequence[SourceRecord] | SourceTable) -> list[Polled]:
        """What was polled, cut where transactions end. Raises ConnectError when a task wants two things at once; it
        need not have let that be raised to itself, so it is not."""
        with self._lock:
            wanted, self._batch = self._batch, set()
            last = _one(wanted, "transaction")
            if isinstance(found, SourceTable):
                return [Polled.of(found, last)]
            pieces: list[Polled] = []
            start = 0
            for index, record in enumerate(found if self._records else (), 1):
                if id(record) in self._records:
                    asked = self._records.pop(id(record))[1]
                    where = f"record against topic/partition {record.topic}/{record.partition}"
                    pieces.append(Polled.of(found[start:index], _one(asked, where)))
                    start = index
        if start < len(found) or last is not None:
            pieces.append(Polled.of(found[start:], last))
        return pieces


def _one(ends: set[End], what: str) -> End | None:
    if len(ends) > 1:
        raise ConnectError(f"Connector requested both commit and abort of same {what}")
    return next(iter(ends), None)
