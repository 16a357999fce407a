"""Work: connectors and tasks that a worker holds, is given, or gives up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from headgate.model import TaskId


@dataclass(frozen=True, slots=True)
class Work:
    connectors: frozenset[str] = frozenset()
    tasks: frozenset[TaskId] = frozenset()

    @classmethod
    def of(cls, connectors: Iterable[str] = (), tasks: Iterable[TaskId] = ()) -> Work:
        return cls(frozenset(connectors), frozenset(tasks))

    @classmethod
    def just(cls, *what: str | TaskId) -> Work:
        connectors = frozenset(each for each in what if isinstance(each, str))
        return cls(connectors, frozenset(each for each in what if isinstance(each, TaskId)))

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __iter__(self) -> Iterator[str | TaskId]:
        """Connectors first."""
        yield from sorted(self.connectors)
        yield from sorted(self.tasks)

    def __or__(self, other: Work) -> Work:
        return Work(self.connectors | other.connectors, self.tasks | other.tasks)

    def __sub__(self, other: Work) -> Work:
        return Work(self.connectors - other.connectors, self.tasks - other.tasks)

    def __and__(self, other: Work) -> Work:
        return Work(self.connectors & other.connectors, self.tasks & other.tasks)


NOTHING = Work()


def union(works: Iterable[Work]) -> Work:
    everything = NOTHING
    for work in works:
        everything |= work
    return everything
