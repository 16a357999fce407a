"""Who works on what: the decisions of a pool of residents, pure. Times are given; threads and lines are elsewhere."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headgate.backoff import Backoff
from headgate.model import TaskId
from headgate.spark.settings import ResidentSettings

SLOW_S: Final = 0.5
"""A chain that has worked longer than this on one blob is slow, until it is quick again."""
GROW_S: Final = 0.05
"""A blob that has waited for so long wants one resident more."""
WITNESS_S: Final = 0.2
"""Who lives so long after a resident's death did not die with it."""
KILLED_S: Final = 10.0
"""Who had no work and died was killed by somebody: for so long no blob is blamed."""
DEATHS: Final = 3
"""A blob that has ended so many residents is the culprit."""
STARTS: Final = 3
"""So many starts that came to nothing in a row, and nobody waits any longer."""
HOPE_S: Final = 600.0
"""So long after one has called, starts that come to nothing are bad luck."""
RETRY: Final = Backoff(1.0, 2.0, 30.0)


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
    """Residents that died of it alone, while all others lived."""


@dataclass(eq=False, slots=True)
class Resident:
    number: int
    since: float
    """It was given its blob, or has been idle, from then on."""
    there: bool = False
    """It has called, and lives."""
    calls: int = 0
    """How often it has called: Spark repeats a task that failed."""
    blob: Blob | None = None
    knows: set[TaskId] = field(default_factory=set)
    """Whose chains it has built."""
    condemned: bool = False
    """What it works on is not wanted any more: its job was cancelled."""

    @property
    def idle(self) -> bool:
        return self.there and self.blob is None and not self.condemned


class Pool:
    def __init__(self, settings: ResidentSettings) -> None:
        self.settings = settings
        self.residents: dict[int, Resident] = {}
        """By number: one for each job that Spark has of us."""
        self._waiting: list[Blob] = []
        """In the order in which they came."""
        self._slow: set[TaskId] = set()
        """Whose last blob took long, or takes long."""
        self._judgements: list[tuple[float, Blob, frozenset[tuple[int, int]]]] = []
        """Blobs whose resident died: when to judge them, and who lived then; nobody, if another died just before."""
        self._numbers = 0
        self._last_death = self._killed = self._called = -math.inf
        """When somebody died last, died without work, and called."""
        self._failures = 0
        self._not_before = 0.0

    # --- work ---------------------------------------------------------------------------------------------------------

    def add(self, blobs: Sequence[Blob], now: float) -> list[Resident]:
        """Residents that were given one of them, or another that waited, just now."""
        self._waiting += blobs
        return self.share(now)

    def share(self, now: float) -> list[Resident]:
        """Residents that were idle, and were given what waits, just now."""
        if not self._waiting:
            return []
        # Those that know the chain first, then those that were busy last: the others may become superfluous.
        newest = self._waiting[-1].task
        idle = [each for each in self.residents.values() if each.idle]
        idle.sort(key=lambda each: (newest not in each.knows, -each.since))
        return [each for each in idle if self._give(each, now)]

    @property
    def waits(self) -> bool:
        return bool(self._waiting)

    def done(self, resident: Resident, now: float) -> tuple[Blob | None, list[Resident]]:
        """Its blob has a result: which, and who was given something now: it, as a rule, and others if the chain turned
        out to be quick."""
        blob, resident.blob = resident.blob, None
        if blob is not None:
            (self._slow.add if now >= resident.since + SLOW_S else self._slow.discard)(blob.task)
        resident.since = now
        stays = self.residents.get(resident.number) is resident and not resident.condemned
        given = [resident] if stays and self._give(resident, now) else []
        return blob, [*given, *self.share(now)]

    def drop(self, task: TaskId) -> list[Blob]:
        """What the task waits for and nobody works on."""
        dropped = [blob for blob in self._waiting if blob.task == task]
        dropped += [blob for _, blob, _ in self._judgements if blob.task == task]
        self._waiting = [blob for blob in self._waiting if blob.task != task]
        self._judgements = [each for each in self._judgements if each[1].task != task]
        return dropped

    def cancel(self, task: TaskId) -> tuple[list[Blob], list[Resident]]:
        """What the task waits for, and the residents that work on it and are condemned."""
        dropped = self.drop(task)
        condemned = [each for each in self.residents.values() if each.blob is not None and each.blob.task == task]
        for each in condemned:
            each.condemned = True
        return [*dropped, *(each.blob for each in condemned if each.blob is not None)], condemned

    def trouble(self, task: TaskId) -> str | None:
        """What has gone wrong with this task's blobs, or with all."""
        blobs = [*self._waiting, *(blob for _, blob in self._working()), *(blob for _, blob, _ in self._judgements)]
        if any(blob.task == task and blob.suspect for blob in blobs):
            deaths = max(blob.deaths for blob in blobs if blob.task == task)
            return f"the Python worker of Spark that ran its chain has died; {DEATHS - deaths} more and the task fails"
        if self._failures and not self._live():
            return f"no Python worker of Spark comes up; {self._failures} tries failed"
        return None

    def forget(self, task: TaskId) -> None:
        self._slow.discard(task)
        for resident in self.residents.values():
            resident.knows.discard(task)

    def clear(self) -> None:
        """Nobody works any more on what waits."""
        self._waiting, self._judgements = [], []

    def _give(self, resident: Resident, now: float) -> bool:
        """Gives it the next blob that it may have; whether there was one."""
        index = self._next(now)
        if index is None:
            return False
        resident.blob, resident.since = self._waiting.pop(index), now
        resident.knows.add(resident.blob.task)
        return True

    def _next(self, now: float) -> int | None:
        """The oldest of the task that has the fewest under way, so that a large batch does not keep small ones waiting.
        Slow chains leave one resident to the others. Suspects come one by one: several that end their
        residents at once would look like bad luck, again and again."""
        if not self._waiting:
            return None
        self._see_slow(now)
        under_way = Counter(blob.task for _, blob in self._working())
        slow_may = self._slowly() < max(1, self.settings.most - 1)
        suspects_may = len(self._live()) >= self._witnesses and not self._judgements and not self._suspected(now)
        may = [
            (under_way[blob.task], index)
            for index, blob in enumerate(self._waiting)
            if (slow_may or blob.task not in self._slow) and (suspects_may or not blob.suspect)
        ]
        return min(may)[1] if may else None

    def _see_slow(self, now: float) -> None:
        """Also while they are at it: a chain whose first blob never ends is slow."""
        self._slow.update(blob.task for since, blob in self._working() if now >= since + SLOW_S)

    def evict(self, now: float) -> Resident | None:
        """When slow chains hold all residents that there may be, before it was known that they are slow, the one that
        came last goes, and its blob waits again: others shall have their turn."""
        self._see_slow(now)
        if self.settings.most < 2 or self._slowly() < self.settings.most:
            return None
        if all(blob.task in self._slow for blob in self._waiting):
            return None
        last = max((each for each in self.residents.values() if each.blob), key=lambda each: each.since)
        assert last.blob is not None
        self._waiting.append(last.blob)
        last.blob, last.condemned = None, True
        return last

    def _working(self) -> Iterable[tuple[float, Blob]]:
        return ((each.since, each.blob) for each in self.residents.values() if each.blob is not None)

    def _slowly(self) -> int:
        """How many residents slow chains hold."""
        return sum(blob.task in self._slow for _, blob in self._working())

    def _suspected(self, now: float) -> list[float]:
        """When suspects were given to residents, not long ago: what takes longer shall not keep others from their
        turn."""
        return [since for since, blob in self._working() if blob.suspect and now < since + SLOW_S]

    def _live(self) -> frozenset[tuple[int, int]]:
        """Which residents live, and which of their lives."""
        return frozenset((each.number, each.calls) for each in self.residents.values() if each.there)

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
        if resident is None or resident.there or resident.condemned:
            return None, False
        resident.there = True
        resident.calls += 1
        resident.since = self._called = now
        self._failures = 0
        return resident, self._give(resident, now)

    def die(self, resident: Resident, now: float) -> Blob | None:
        """It is gone: what it worked on, if somebody still wants it, is judged in a moment. Its job may go on: Spark
        tries a task four times."""
        if resident.idle and self.residents.get(resident.number) is resident:
            self._killed = now
        blob, resident.blob, resident.there = resident.blob, None, False
        resident.knows.clear()
        alone, self._last_death = now >= self._last_death + WITNESS_S, now
        if blob is None or resident.condemned:
            return None
        self._judgements.append((now + WITNESS_S, blob, self._live() if alone else frozenset()))
        return blob

    def judge(self, now: float) -> list[Blob]:
        """The culprits. A blob whose resident died while all others lived on is to blame; else it was bad luck. It
        comes again."""
        due = [each for each in self._judgements if each[0] <= now]
        self._judgements = [each for each in self._judgements if each[0] > now]
        for _, blob, others in due:
            blob.suspect = True
            alone = bool(others) and others <= self._live()
            blob.deaths += (alone or self.settings.most == 1) and now >= self._killed + KILLED_S
        self._waiting = [blob for _, blob, _ in due if blob.deaths < DEATHS] + self._waiting
        return [blob for _, blob, _ in due if blob.deaths >= DEATHS]

    def end(self, resident: Resident) -> bool:
        """Its job has ended; whether that was wanted."""
        return self.residents.pop(resident.number, None) is None or resident.condemned

    def fail(self, now: float, hopeless: bool) -> tuple[float, list[Blob]]:
        """A start came to nothing: after how many seconds it is tried again, and who has waited long enough."""
        self._failures += 1
        delay = RETRY.after(self._failures)
        self._not_before = now + delay
        in_vain = self._failures >= STARTS and now >= self._called + HOPE_S
        if self._live() or not (hopeless or in_vain):
            return delay, []
        given_up, self._waiting = self._waiting, []
        return delay, given_up

    # --- how many -----------------------------------------------------------------------------------------------------

    def wants_more(self, now: float) -> bool:
        self._see_slow(now)
        if now < self._not_before:
            return False
        if len(self.residents) < self.settings.least:
            return True
        return self._may_grow() and now >= self._waiting[0].since + GROW_S

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
        idle = [each for each in self.residents.values() if each.idle and now >= each.since + self.settings.idle_s]
        gone = sorted(idle, key=lambda each: each.since)[:spare]
        for each in gone:
            del self.residents[each.number]
        return gone

    def patience(self, now: float) -> float | None:
        """Seconds until there may be something to do, if nothing happens before; None: for ever."""
        due = list(self._due(now))
        return max(min(due) - now, 0.0) if due else None

    def _due(self, now: float) -> Iterable[float]:
        yield from (at for at, _, _ in self._judgements)
        if any(blob.suspect for blob in self._waiting):
            yield from (since + SLOW_S for since in self._suspected(now))
        if len(self.residents) < self.settings.least:
            yield self._not_before
        if self._may_grow():
            yield max(self._waiting[0].since + GROW_S, self._not_before)
        elif self._waiting:  # who works on something slow has one more come for the others
            yield from (since + SLOW_S for since, blob in self._working() if blob.task not in self._slow)
        if len(self.residents) > self.settings.least:
            # Who works now may be idle a moment later, and nobody says so.
            yield from ((each.since if each.idle else now) + self.settings.idle_s for each in self.residents.values())
