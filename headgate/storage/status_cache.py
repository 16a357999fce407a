"""StatusCache: what the status topic says, with this worker's own writes that it does not say yet. No Kafka here.

A worker must see its own writes at once, for the next state follows from the last. In the end the topic decides: an own
write is shown until it is read back, or has failed for good.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from headgate.model import State, Status, TaskId
from headgate.storage.status_records import StatusId, StatusValue, TopicId

SAFE: Final = frozenset({State.UNASSIGNED, State.FAILED})
"""States that a worker may have to tell when others already know better."""
_LASTING: Final = frozenset({State.RUNNING, State.PAUSED, State.STOPPED, State.FAILED})
"""States that are true until their worker says something else."""


@dataclass(slots=True)
class _Own:
    """The last write of this worker's."""

    value: StatusValue | None
    number: int
    offset: int | None = None
    """Where it stands in the topic, once that is known."""


@dataclass(slots=True)
class _Entry:
    read: StatusValue | None = None
    """What the topic says."""
    offset: int = -1
    timestamp: int = -1
    own: _Own | None = None
    said: StatusValue | None = None
    """The last write of this worker's, whatever became of it."""
    last: int = 0
    """The number of the last write that may still count: none after a deletion."""
    tombstones: int = 0
    """Own ones that are under way."""
    heard: float = field(default_factory=time.monotonic)
    """When it was last put or read here."""

    @property
    def shown(self) -> StatusValue | None:
        return self.read if self.own is None else self.own.value

    def settle(self) -> None:
        if self.own is not None and self.own.offset is not None and self.offset >= self.own.offset:
            self.own = None


@dataclass(slots=True)
class StatusCache:
    """Not for several threads at once."""

    generation: int = 0
    """That of the last write."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _entries: dict[StatusId, _Entry] = field(default_factory=dict)
    _parts: dict[str, dict[TaskId | TopicId, None]] = field(default_factory=dict)
    """By connector: its tasks and topics that have an entry."""

    # --- what is shown ------------------------------------------------------------------------------------------------

    def get(self, whose: StatusId) -> StatusValue | None:
        entry = self._entries.get(whose)
        return None if entry is None else entry.shown

    def status(self, whose: str | TaskId) -> Status | None:
        found = self.get(whose)
        return found if isinstance(found, Status) else None

    def tasks(self, connector: str) -> Mapping[int, Status]:
        found = ((task.task, self.status(task)) for task in sorted(self._tasks(connector)))
        return {number: status for number, status in found if status is not None}

    def _tasks(self, connector: str) -> list[TaskId]:
        return [part for part in self._parts.get(connector, ()) if isinstance(part, TaskId)]

    def topics(self, connector: str) -> Mapping[str, StatusValue]:
        found = ((part, self.get(part)) for part in self._parts.get(connector, ()) if isinstance(part, TopicId))
        return {part.topic: status for part, status in found if status is not None}

    def age(self, whose: StatusId) -> float:
        entry = self._entries.get(whose)
        return 0.0 if entry is None else time.monotonic() - entry.heard

    def connectors(self) -> Iterable[str]:
        """Those with a status, of their own or of a task."""
        own = (whose for whose, entry in self._entries.items() if isinstance(whose, str) and entry.shown is not None)
        return dict.fromkeys([*own, *(name for name in self._parts if self.tasks(name))])

    # --- what is written here -----------------------------------------------------------------------------------------

    def begin(self, whose: StatusId, value: StatusValue | None) -> int | None:
        """The number of this write; None if it must not be made, for another worker has said something newer."""
        entry = self._entry(whose)
        if isinstance(value, Status):
            if not value.again:
                self.generation = value.generation
            if not _may_write(entry, value) or (value.again and _telling(entry)):
                return None
        entry.heard, entry.last = time.monotonic(), next(self._numbers)
        entry.tombstones += value is None
        entry.own = _Own(value, entry.last)
        entry.said = value
        return entry.last

    def may_repeat(self, whose: StatusId, number: int, value: StatusValue | None, generation: int) -> bool:
        """Whether a write that failed is still worth making: nothing newer was written, the status was not deleted, the
        group has not moved on."""
        entry = self._entries.get(whose)
        if entry is None or number != entry.last:
            return False
        if isinstance(whose, TopicId):
            return True
        return generation == self.generation and (not isinstance(value, Status) or _may_write(entry, value))

    def written(self, whose: StatusId, number: int, offset: int) -> None:
        """Kafka has it."""
        entry = self._entries.get(whose)
        if entry is not None and entry.own is not None and entry.own.number == number:
            entry.own.offset = offset
            entry.settle()
            self._tidy(whose, entry)

    def failed(self, whose: StatusId, number: int, value: StatusValue | None) -> None:
        """Kafka will never have it."""
        entry = self._entries.get(whose)
        if entry is None:
            return
        if value is None:
            entry.tombstones = max(entry.tombstones - 1, 0)
        if entry.own is not None and entry.own.number == number:
            entry.own = None
        self._tidy(whose, entry)

    # --- what is read -------------------------------------------------------------------------------------------------

    def begin_again(self) -> list[tuple[StatusId, StatusValue]]:
        """Another topic is read from its beginning: what this worker has to say in it."""
        said: list[tuple[StatusId, StatusValue]] = []
        for whose, entry in self._entries.items():
            entry.offset = -1
            told = entry.own is None or entry.own.offset is not None  # else it is on its way still
            value = entry.said
            if value is not None and value == entry.shown and told:
                if isinstance(value, Status):
                    value = replace(value, generation=self.generation, again=False)
                said.append((whose, value))
        return said

    def read(self, whose: StatusId, value: StatusValue | None, offset: int, timestamp: int = -1) -> Status | None:
        """What this worker has to say again: it is true, and something older has come after it."""
        entry = self._entry(whose)
        entry.heard, entry.offset = time.monotonic(), offset
        again = self._overtaken(entry, value)
        if not (isinstance(whose, TaskId) and _stale(entry.read, value)):
            entry.read, entry.timestamp = value, timestamp
        if value is None:
            own = entry.tombstones > 0
            self._delete(entry, own)
            if isinstance(whose, str):
                self._delete_tasks(whose, timestamp, own)
        entry.settle()
        self._tidy(whose, entry)
        return again

    def _overtaken(self, entry: _Entry, status: StatusValue | None) -> Status | None:
        """A worker that Kafka could not hear may be heard when its work has long been another's: then the last word in
        the topic would be wrong, and stay so."""
        mine = entry.read
        if not isinstance(mine, Status) or mine != entry.said or not isinstance(status, Status):
            return None
        older = status.again or (status.state in SAFE and status.generation < mine.generation)
        if older and status.worker_id != mine.worker_id and mine.state in _LASTING:
            return replace(mine, generation=self.generation, again=False)
        return None

    def _delete(self, entry: _Entry, own: bool) -> None:
        if own:
            entry.tombstones -= 1
            return
        # Somebody else deleted it. What we wrote and Kafka has is still to come; what it has not is too late.
        entry.last = 0
        if entry.own is not None and entry.own.offset is None:
            entry.own = None

    def _delete_tasks(self, connector: str, timestamp: int, own: bool) -> None:
        """The statuses of its tasks go with a connector's; but a task's that was written later belongs to its successor
        of the same name, and was only read before, from another partition."""
        for task in self._tasks(connector):
            entry = self._entries[task]
            if entry.read is not None and not 0 <= timestamp < entry.timestamp:
                entry.read = None
                if not own:
                    self._delete(entry, own=False)
                self._tidy(task, entry)

    # --- entries ------------------------------------------------------------------------------------------------------

    def _entry(self, whose: StatusId) -> _Entry:
        entry = self._entries.get(whose)
        if entry is None:
            entry = self._entries[whose] = _Entry()
            if not isinstance(whose, str):
                self._parts.setdefault(whose.connector, {})[whose] = None
        return entry

    def _tidy(self, whose: StatusId, entry: _Entry) -> None:
        """What is deleted and has nothing under way is forgotten."""
        if entry.read is not None or entry.own is not None or entry.tombstones:
            return
        del self._entries[whose]
        if not isinstance(whose, str):
            del self._parts[whose.connector][whose]
            if not self._parts[whose.connector]:
                del self._parts[whose.connector]


def _telling(entry: _Entry) -> bool:
    """Whether a state is on its way to the topic."""
    return entry.own is not None and not (isinstance(entry.own.value, Status) and entry.own.value.again)


def _may_write(entry: _Entry, status: Status) -> bool:
    read = entry.read
    if status.again:
        return read == status
    return (
        status.state not in SAFE
        or not isinstance(read, Status)
        or read.worker_id == status.worker_id
        or read.generation <= status.generation
    )


def _stale(known: StatusValue | None, status: StatusValue | None) -> bool:
    """Whether a worker says that it stopped a task which another has started since, or how one fares that is
    another's."""
    if not isinstance(known, Status) or not isinstance(status, Status) or known.worker_id == status.worker_id:
        return False
    stopped = status.state is State.UNASSIGNED and known.state is State.RUNNING
    return status.again or (stopped and known.generation >= status.generation)
