"""Who works on what: the decisions of a pool of residents, pure. Times are given; threads and lines are elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.model import TaskId
from headgate.spark.settings import ResidentSettings

SLOW_S: Final = 0.5
"""A chain that took longer than this for one blob is slow, until it is quick again."""
GROW_S: Final = 0.05
"""A blob that has waited for so long wants one resident more."""
WITNESS_S: Final = 0.2
"""Who lives so long after a resident's death did not die with it."""
DEATHS: Final = 3
"""A blob that has ended so many residents is the culprit."""
STARTS: Final = 3
"""So many starts that came to nothing in a row, and nobody waits any longer."""
RETRY_MOST_S: Final = 30.0


@dataclass(eq=False, slots=True)
class Blob:
    """One blob on its way."""

    task: TaskId
    data: bytes
    index: int = 0
    """Which one of those that were submitted together."""
    since: float = 0.0
    """It has waited from then on."""
    suspect: bool = False
    """A resident died of it, or with it."""
    deaths: int = 0
    """Residents that died of it, while others lived."""


@dataclass(eq=False, slots=True)
class Resident:
    number: int
    since: float
    """It was given its blob, or has been idle, from then on."""
    there: bool = False
    """It has called, and lives."""
    called: bool = False
    """It has been there."""
    blob: Blob | None = None
    knows: set[TaskId] = field(default_factory=set)
    """Whose chains it has built."""
    condemned: bool = False
    """What it works on is not wanted any more: its job was cancelled."""

    @property
    def idle(self) -> bool:
        return self.there and self.blob is None


class Pool:
    def __init__(self, settings: ResidentSettings) -> None:
        self.settings = settings
        self.residents: dict[int, Resident] = {}
        """By number: one for each job that Spark has of us."""
        self._waiting: list[Blob] = []
        """In the order in which they came."""
        self._slow: set[TaskId] = set()
        self._judgements: list[tuple[float, Blob, frozenset[int]]] = []
        """Blobs whose resident died: when to judge them, and who lived then."""
        self._numbers = 0
        self._failures = 0
        self._not_before = 0.0

    # --- work ---------------------------------------------------------------------------------------------------------

    def add(self, blobs: Sequence[Blob], now: float) -> list[Resident]:
        """Residents that were given one of them, or another that waited, just now."""
        self._waiting += blobs
        if not blobs:
            return []
        # Those that know the chain first, then those that were busy last: the others may become superfluous.
        idle = [each for each in self.residents.values() if each.idle]
        idle.sort(key=lambda each: (blobs[0].task not in each.knows, -each.since))
        return [each for each in idle if self._give(each, now)]

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def done(self, resident: Resident, now: float) -> tuple[Blob | None, bool]:
        """Its blob has a result: which, and whether it was given the next one."""
        blob, resident.blob = resident.blob, None
        if blob is not None:
            (self._slow.add if now - resident.since > SLOW_S else self._slow.discard)(blob.task)
        resident.since = now
        return blob, self._give(resident, now)

    def cancel(self, task: TaskId) -> tuple[list[Blob], list[Resident]]:
        """What the task waits for, and the residents that work on it and are condemned."""
        dropped = [blob for blob in self._waiting if blob.task == task]
        self._waiting = [blob for blob in self._waiting if blob.task != task]
        condemned = [each for each in self.residents.values() if each.blob is not None and each.blob.task == task]
        for each in condemned:
            each.condemned = True
        return [*dropped, *(each.blob for each in condemned if each.blob is not None)], condemned

    def forget(self, task: TaskId) -> None:
        self._slow.discard(task)
        for resident in self.residents.values():
            resident.knows.discard(task)

    def clear(self) -> list[Blob]:
        """All that waits or is under way: nobody works on it any more."""
        under_way = [each.blob for each in self.residents.values() if each.blob is not None]
        left = [*self._waiting, *under_way, *(blob for _, blob, _ in self._judgements)]
        self._waiting, self._judgements = [], []
        return left

    def _give(self, resident: Resident, now: float) -> bool:
        """Gives it the next blob that it may have; whether there was one."""
        index = self._next()
        if index is None:
            return False
        resident.blob, resident.since = self._waiting.pop(index), now
        resident.knows.add(resident.blob.task)
        return True

    def _next(self) -> int | None:
        """The oldest of the task that has the fewest under way, so that a large batch does not keep small ones waiting.
        Slow chains leave one resident to the quick ones."""
        if not self._waiting:
            return None
        under_way = Counter(each.blob.task for each in self.residents.values() if each.blob is not None)
        slow_may = self._slowly() < max(1, self.settings.most - 1)
        may = [
            (under_way[blob.task], index)
            for index, blob in enumerate(self._waiting)
            if (slow_may or blob.task not in self._slow) and (not blob.suspect or len(self._live()) >= self._witnesses)
        ]
        return min(may)[1] if may else None

    def _slowly(self) -> int:
        """How many residents slow chains hold."""
        return sum(each.blob is not None and each.blob.task in self._slow for each in self.residents.values())

    def _live(self) -> frozenset[int]:
        return frozenset(each.number for each in self.residents.values() if each.there)

    @property
    def _witnesses(self) -> int:
        """How many must live for a suspect to be given to one: somebody else shall be there who can outlive it."""
        return min(2, self.settings.most)

    # --- residents that come and go -----------------------------------------------------------------------------------

    def begin(self, now: float) -> Resident:
        """One whose job is being started."""
        self._numbers += 1
        resident = self.residents[self._numbers] = Resident(self._numbers, now)
        return resident

    def seat(self, number: int, now: float) -> tuple[Resident | None, bool]:
        """Somebody calls by this number: the resident that it is from now on, unless there is one already, or none any
        more; and whether it was given a blob."""
        resident = self.residents.get(number)
        if resident is None or resident.there:
            return None, False
        resident.there = resident.called = True
        resident.since = now
        self._failures = 0
        return resident, self._give(resident, now)

    def die(self, resident: Resident, now: float) -> Blob | None:
        """It is gone: what it worked on, if somebody still wants it, is judged in a moment. Its job may go on: Spark
        tries a task four times."""
        blob, resident.blob, resident.there = resident.blob, None, False
        resident.knows.clear()
        if blob is None or resident.condemned:
            return None
        self._judgements.append((now + WITNESS_S, blob, self._live()))
        return blob

    def judge(self, now: float) -> list[Blob]:
        """The culprits. A blob whose resident died while others lived on is to blame; else it was bad luck. It comes
        again."""
        due = [each for each in self._judgements if each[0] <= now]
        self._judgements = [each for each in self._judgements if each[0] > now]
        for _, blob, others in due:
            blob.suspect = True
            blob.deaths += bool(others & self._live()) or self.settings.most == 1
        self._waiting = [blob for _, blob, _ in due if blob.deaths < DEATHS] + self._waiting
        return [blob for _, blob, _ in due if blob.deaths >= DEATHS]

    def end(self, resident: Resident) -> bool:
        """Its job has ended; whether that was wanted."""
        return self.residents.pop(resident.number, None) is None or resident.condemned

    def fail(self, now: float, hopeless: bool) -> tuple[float, list[Blob]]:
        """A start came to nothing: after how many seconds it is tried again, and who has waited long enough."""
        self._failures += 1
        delay = min(2.0 ** (self._failures - 1), RETRY_MOST_S)
        self._not_before = now + delay
        if self._live() or not (hopeless or self._failures >= STARTS):
            return delay, []
        given_up, self._waiting = self._waiting, []
        return delay, given_up

    # --- how many -----------------------------------------------------------------------------------------------------

    def wants_more(self, now: float) -> bool:
        if now < self._not_before:
            return False
        if len(self.residents) < self.settings.least:
            return True
        return self._may_grow() and now - self._waiting[0].since >= GROW_S

    def _may_grow(self) -> bool:
        """One at a time. Quick chains get as many residents as there are cores; what slow ones hold comes on top."""
        if not self._waiting or any(not each.there for each in self.residents.values()):
            return False
        most = min(self.settings.most, self.settings.quick + self._slowly())
        if any(blob.suspect for blob in self._waiting):
            most = max(most, self._witnesses)
        return len(self.residents) < max(most, 1)

    def superfluous(self, now: float) -> list[Resident]:
        """Those that have been idle for so long that they may go; they are not of the pool any more."""
        spare = max(len(self.residents) - self.settings.least, 0)
        idle = [each for each in self.residents.values() if each.idle and now - each.since >= self.settings.idle_s]
        gone = sorted(idle, key=lambda each: each.since)[:spare]
        for each in gone:
            del self.residents[each.number]
        return gone

    def patience(self, now: float) -> float | None:
        """Seconds until there may be something to do, if nothing happens before; None: for ever."""
        due = list(self._due())
        return max(min(due) - now, 0.0) if due else None

    def _due(self) -> Iterable[float]:
        yield from (at for at, _, _ in self._judgements)
        if len(self.residents) < self.settings.least:
            yield self._not_before
        if self._may_grow():
            yield max(self._waiting[0].since + GROW_S, self._not_before)
        if len(self.residents) > self.settings.least:
            yield from (each.since + self.settings.idle_s for each in self.residents.values() if each.idle)
