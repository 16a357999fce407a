"""The residents of a worker: Spark tasks that stay, and the batches that wait for one.

A Spark job costs tens of milliseconds whatever it carries, a round trip to a resident a twentieth of one. So every
batch of every task goes to a resident. Each is a job of one task: the pool grows and shrinks by one, and an abort ends
one. Spark places, isolates, repeats and replaces them. The pipeline has no side effects, so what was given to a
resident that died is given to another.
"""

from __future__ import annotations

import logging
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from headgate.api.errors import ConnectError
from headgate.model import EngineUnavailable, TaskId
from headgate.pipeline.blob import Packed
from headgate.spark.line import Invitation, Line, NotOurs, greeted, own_certificate
from headgate.spark.resident import Reside
from headgate.spark.session import Session, label
from headgate.spark.settings import ResidentSettings

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

SLOW_S: Final = 0.5
"""A chain that took longer than this for one blob is slow, until it is quick again."""
_GROW_S: Final = 0.05
"""A blob that has waited for so long wants one resident more."""
_WITNESS_S: Final = 0.2
"""Who lives so long after a resident's death did not die with it."""
_DEATHS: Final = 3
"""A blob that has ended so many residents is the culprit."""
_STARTS: Final = 3
"""So many that came to nothing in a row, and nobody waits any longer."""
_RETRY_MOST_S: Final = 30.0
_END_S: Final = 2.0


class ResidentsKilled(ConnectError):
    """The task's batch has ended one resident after the other: a plugin crashes its process, or takes all memory."""


class _Blob:
    """One blob on its way, and where its result goes."""

    __slots__ = ("batch", "data", "deaths", "index", "suspect", "task")

    def __init__(self, task: TaskId, data: bytes, batch: _Batch, index: int) -> None:
        self.task, self.data, self.batch, self.index = task, data, batch, index
        self.suspect = False
        """A resident died of it, or with it."""
        self.deaths = 0
        """Residents that died of it, while others lived."""


class _Batch:
    """Blobs that were submitted together, done when all of them are."""

    def __init__(self, count: int) -> None:
        self.done: Future[list[Packed]] = Future()
        self._results: list[Packed] = [b""] * count
        self._missing = count
        self._lock = threading.Lock()

    def give(self, index: int, result: Packed) -> None:
        with self._lock:
            self._results[index] = result
            self._missing -= 1
            ready = not self._missing and not self.done.done()
        if ready:
            self.done.set_result(self._results)

    def fail(self, error: Exception) -> None:
        with self._lock:
            if not self.done.done():
                self.done.set_exception(error)


class _Resident:
    def __init__(self, number: int, born: float) -> None:
        self.number = number
        self.line: Line | None = None
        """None before it has called, and after it has died."""
        self.blob: _Blob | None = None
        self.since = born
        """It was given its blob, or has been idle, from then on."""
        self.knows: set[TaskId] = set()
        """Whose chains it has built."""
        self.called = False
        """It has been there."""
        self.condemned = False
        """What it works on is not wanted any more: its job was cancelled."""

    @property
    def idle(self) -> bool:
        return self.line is not None and self.blob is None

    @property
    def group(self) -> str:
        return f"resident-{self.number}"


class Residents:
    """Shared by all tasks of a worker; any thread may submit."""

    def __init__(self, session: Session, settings: ResidentSettings) -> None:
        self._session = session
        self._settings = settings
        self._secret = secrets.token_bytes(32)
        self._certificate: str | None = None
        self._tls: ssl.SSLContext | None = None
        if settings.encrypted:
            self._certificate, self._tls = own_certificate()
        self._condition = threading.Condition()
        self._waiting: list[tuple[float, _Blob]] = []
        """With the time since when, in the order in which they came."""
        self._residents: dict[int, _Resident] = {}
        """By number: one for each job that Spark has of us."""
        self._standby: dict[int, list[Line]] = {}
        """Speculative copies of residents, which get no work while the first one lives."""
        self._slow: set[TaskId] = set()
        self._judgements: list[tuple[float, _Blob, frozenset[int]]] = []
        """Blobs whose resident died: when to judge them, and who lived then."""
        self._jobs: list[threading.Thread] = []
        self._numbers = 0
        self._failures = 0
        self._not_before = 0.0
        self._stopping = False
        self._listener: socket.socket | None = None
        self._keeper = threading.Thread(target=self._keep, name="residents", daemon=True)

    def start(self) -> None:
        self._keeper.start()

    def stop(self) -> None:
        """What waits or is under way fails."""
        with self._condition:
            self._stopping = True
            lines = [each.line for each in self._residents.values() if each.line is not None]
            lines += [line for copies in self._standby.values() for line in copies]
            blobs = [blob for _, blob in self._waiting] + [blob for _, blob, _ in self._judgements]
            blobs += [each.blob for each in self._residents.values() if each.blob is not None]
            self._waiting, self._judgements = [], []
            self._condition.notify_all()
        if self._listener is not None:
            self._listener.close()
        for line in lines:
            line.close()
        self._fail(blobs, EngineUnavailable("The worker is shutting down"))
        for job in self._jobs:
            job.join(_END_S)

    def submit(self, task: TaskId, blobs: Sequence[bytes]) -> Future[list[Packed]]:
        """The results of `blobs`, in their order. They may run side by side."""
        batch = _Batch(len(blobs))
        if not blobs:
            batch.done.set_result([])
        now = time.monotonic()
        with self._condition:
            if self._stopping:
                batch.fail(EngineUnavailable("The worker is shutting down"))
                return batch.done
            self._waiting += [(now, _Blob(task, blob, batch, index)) for index, blob in enumerate(blobs)]
            given = [resident for resident in self._idle_for(task) if self._give(resident, now)]
            if self._waiting:
                self._condition.notify_all()
        for resident in given:
            self._send(resident)
        return batch.done

    def cancel(self, task: TaskId) -> None:
        """Nobody waits any more for what this task has submitted. A resident that works on it is ended: it may never be
        done."""
        with self._condition:
            dropped = [blob for _, blob in self._waiting if blob.task == task]
            self._waiting = [(since, blob) for since, blob in self._waiting if blob.task != task]
            condemned = [each for each in self._residents.values() if each.blob is not None and each.blob.task == task]
            for each in condemned:
                each.condemned = True
            dropped += [each.blob for each in condemned if each.blob is not None]
        self._fail(dropped, EngineUnavailable(f"What {task} had submitted was cancelled"))
        for each in condemned:
            self._session.cancel(each.group)

    def forget(self, task: TaskId) -> None:
        """The task has ended."""
        with self._condition:
            self._slow.discard(task)
            for resident in self._residents.values():
                resident.knows.discard(task)

    # --- who gets what; all with the lock held ------------------------------------------------------------------------

    def _idle_for(self, task: TaskId) -> list[_Resident]:
        """Those that know the task's chain first, then those that were busy last: the others may become superfluous."""
        idle = [each for each in self._residents.values() if each.idle]
        return sorted(idle, key=lambda each: (task not in each.knows, -each.since))

    def _give(self, resident: _Resident, now: float) -> bool:
        """Gives it the next blob that it may have; whether there was one."""
        index = self._next()
        if index is None:
            return False
        _, blob = self._waiting.pop(index)
        resident.blob, resident.since = blob, now
        resident.knows.add(blob.task)
        return True

    def _next(self) -> int | None:
        """The oldest of the task that has the fewest under way, so that a large batch does not keep small ones waiting.
        Slow chains leave one resident to the quick ones."""
        if not self._waiting:
            return None
        under_way = Counter(each.blob.task for each in self._residents.values() if each.blob is not None)
        live = sum(each.line is not None for each in self._residents.values())
        slow_may = self._slowly() < max(1, self._settings.most - 1)
        may = [
            (under_way[blob.task], index)
            for index, (_, blob) in enumerate(self._waiting)
            if (slow_may or blob.task not in self._slow) and (not blob.suspect or live >= self._witnesses)
        ]
        return min(may)[1] if may else None

    def _slowly(self) -> int:
        """How many residents slow chains hold."""
        return sum(each.blob is not None and each.blob.task in self._slow for each in self._residents.values())

    @property
    def _witnesses(self) -> int:
        """How many must live for a suspect to be given to one: somebody else shall be there who can outlive it."""
        return min(2, self._settings.most)

    # --- one resident's line ------------------------------------------------------------------------------------------

    def _send(self, resident: _Resident) -> None:
        blob, line = resident.blob, resident.line
        if blob is not None and line is not None:
            with suppress(OSError):  # it died: whoever listens to its line knows, too
                line.send(blob.data)

    def _listen(self, connection: socket.socket) -> None:
        """In a thread for each line, from the greeting to its end."""
        try:
            number, line = greeted(connection, self._secret, self._tls)
        except (OSError, NotOurs) as error:
            log.warning("A call from %s was refused: %s", _peer(connection), error)
            connection.close()
            return
        resident = self._seated(number, line)
        while resident is not None:
            try:
                result = line.receive()
            except OSError:
                result = None
            if result is None:
                line.close()
                self._on_death(resident)
                return
            resident = self._on_result(resident, result)

    def _seated(self, number: int, line: Line) -> _Resident | None:
        with self._condition:
            resident = self._residents.get(number)
            if resident is None or self._stopping:
                line.close()
                return None
            if resident.line is not None:  # Spark speculates: a copy must neither work nor end
                self._standby.setdefault(number, []).append(line)
                return None
            resident.line, resident.called, resident.since = line, True, time.monotonic()
            self._failures = 0
            given = self._give(resident, resident.since)
            self._condition.notify_all()
        if given:
            self._send(resident)
        return resident

    def _on_result(self, resident: _Resident, result: bytearray) -> _Resident:
        now = time.monotonic()
        with self._condition:
            blob, resident.blob = resident.blob, None
            if blob is not None:
                (self._slow.add if now - resident.since > SLOW_S else self._slow.discard)(blob.task)
            resident.since = now
            given = self._give(resident, now)
        if blob is not None:
            blob.batch.give(blob.index, result)
        if given:
            self._send(resident)
        return resident

    def _on_death(self, resident: _Resident) -> None:
        """Its job may go on: Spark tries a task four times. What it worked on is judged in a moment."""
        with self._condition:
            blob, resident.blob, resident.line = resident.blob, None, None
            resident.knows.clear()
            self._condition.notify_all()
            for copy in self._standby.pop(resident.number, []):
                copy.close()
            if self._stopping or blob is None or resident.condemned:
                return
            others = frozenset(each.number for each in self._residents.values() if each.line is not None)
            self._judgements.append((time.monotonic() + _WITNESS_S, blob, others))
        log.warning("A resident of Spark died while it worked for %s; another one gets its batch", blob.task)

    # --- the thread that keeps the pool -------------------------------------------------------------------------------

    def _keep(self) -> None:
        while True:
            with self._condition:
                self._condition.wait(self._patience())
                if self._stopping:
                    return
                culprits = self._judge(time.monotonic())
                superfluous = self._superfluous(time.monotonic())
                wanted = self._wants_more(time.monotonic())
            for blob in culprits:
                self._fail([blob], _culprit(blob))
            for line in superfluous:
                line.close()
            if wanted:
                self._begin()

    def _patience(self) -> float | None:
        """Until there may be something to do."""
        now = time.monotonic()
        due = [at - now for at, _, _ in self._judgements]
        if len(self._residents) < self._settings.least:
            due.append(self._not_before - now)
        if self._waiting:
            due.append(max(self._waiting[0][0] + _GROW_S, self._not_before) - now if self._may_grow() else 1.0)
        if len(self._residents) > self._settings.least:
            due += [each.since + self._settings.idle_s - now for each in self._residents.values() if each.idle]
        return max(min(due), 0.0) if due else None

    def _may_grow(self) -> bool:
        """One at a time. Quick chains get as many residents as there are cores; what slow ones hold comes on top."""
        starting = any(each.line is None for each in self._residents.values())
        most = min(self._settings.most, self._settings.quick + self._slowly())
        if any(blob.suspect for _, blob in self._waiting):
            most = max(most, self._witnesses)
        return len(self._residents) < most and not starting

    def _wants_more(self, now: float) -> bool:
        if now < self._not_before:
            return False
        if len(self._residents) < self._settings.least:
            return True
        return bool(self._waiting) and now - self._waiting[0][0] >= _GROW_S and self._may_grow()

    def _superfluous(self, now: float) -> list[Line]:
        """A closed line ends the Spark task and frees its slot, so that Spark's dynamic allocation works."""
        spare = len(self._residents) - self._settings.least
        idle = [each for each in self._residents.values() if each.idle and now - each.since >= self._settings.idle_s]
        lines = []
        for each in sorted(idle, key=lambda each: each.since)[: max(spare, 0)]:
            assert each.line is not None
            lines += [each.line, *self._standby.pop(each.number, ())]
            del self._residents[each.number]
        return lines

    def _judge(self, now: float) -> list[_Blob]:
        """Blobs whose residents died, and others did not, are to blame; the rest was bad luck, and comes again."""
        due = [each for each in self._judgements if each[0] <= now]
        self._judgements = [each for each in self._judgements if each[0] > now]
        live = {each.number for each in self._residents.values() if each.line is not None}
        culprits = []
        for _, blob, others in due:
            blob.suspect = True
            blob.deaths += bool(others & live) or self._settings.most == 1
            if blob.deaths >= _DEATHS:
                culprits.append(blob)
            else:
                self._waiting.insert(0, (now - _GROW_S, blob))
        return culprits

    def _begin(self) -> None:
        """Starts one more. Waits for Spark."""
        try:
            context = self._session.context(lambda: self._stopping)
            self._settings = self._settings.on(context.defaultParallelism)
            port = self._port(context)
        except (EngineUnavailable, OSError) as error:
            self._on_failed_start(error)
            return
        with self._condition:
            if self._stopping:
                return
            self._numbers += 1
            resident = self._residents[self._numbers] = _Resident(self._numbers, time.monotonic())
        host = self._settings.host or context.getConf().get("spark.driver.host") or "127.0.0.1"
        invitation = Invitation(host, port, resident.number, self._secret, self._certificate)
        job = threading.Thread(
            target=self._live, args=(context, resident, invitation), name=resident.group, daemon=True
        )
        self._jobs = [*(each for each in self._jobs if each.is_alive()), job]
        job.start()

    def _port(self, context: SparkContext) -> int:
        """Where residents call: listened at from the first one on."""
        if self._listener is None:
            conf = context.getConf()
            bind = self._settings.bind or conf.get("spark.driver.bindAddress") or conf.get("spark.driver.host")
            made = socket.create_server((bind or "127.0.0.1", self._settings.port), family=socket.AF_INET)
            self._listener = made
            threading.Thread(target=self._answer, args=(made,), name="resident-calls", daemon=True).start()
        port: int = self._listener.getsockname()[1]
        return port

    def _answer(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # it was closed
            threading.Thread(target=self._listen, args=(connection,), name="resident-line", daemon=True).start()

    def _live(self, context: SparkContext, resident: _Resident, invitation: Invitation) -> None:
        """The life of a resident, in a thread of its own: Spark ties jobs to threads."""
        error: Exception | None = None
        try:
            label(context, resident.group, "residents")
            context.parallelize([0], 1).mapPartitions(Reside(invitation)).collect()
        except Exception as problem:
            error = self._session.explain(problem)
        with self._condition:
            retired = self._residents.pop(resident.number, None) is None
            copies = self._standby.pop(resident.number, [])
            self._condition.notify_all()
        for line in copies:
            line.close()
        if error is not None and not (self._stopping or retired or resident.condemned):
            if resident.called or isinstance(error, EngineUnavailable):
                log.info("The Spark job of a resident ended: %s", _short(error))
            else:
                self._on_failed_start(error)

    def _on_failed_start(self, error: Exception) -> None:
        """Tried again, later and later; whoever waits meanwhile is told when it comes to nothing."""
        with self._condition:
            self._failures += 1
            delay = min(2.0 ** (self._failures - 1), _RETRY_MOST_S)
            self._not_before = time.monotonic() + delay
            hopeless = isinstance(error, EngineUnavailable) or self._failures >= _STARTS
            nobody = not any(each.line is not None for each in self._residents.values())
            given_up: list[_Blob] = []
            if hopeless and nobody:
                given_up = [blob for _, blob in self._waiting]
                self._waiting = []
        if self._stopping:
            return
        reason = (
            error
            if isinstance(error, EngineUnavailable)
            else EngineUnavailable(
                f"No Spark task could be started that stays, or it could not reach this worker: {_short(error)}"
            )
        )
        if not isinstance(error, EngineUnavailable):
            log.error("%s; trying again in %.0f s", reason, delay)
        self._fail(given_up, reason)

    def _fail(self, blobs: Sequence[_Blob], error: Exception) -> None:
        for blob in blobs:
            blob.batch.fail(error)


def _culprit(blob: _Blob) -> ResidentsKilled:
    return ResidentsKilled(
        f"A batch of {blob.task} has ended {blob.deaths} residents of Spark in a row, each alone, while others lived: a"
        " plugin of this connector crashes its process, or takes more memory than there is"
    )


def _short(error: Exception) -> str:
    """The first line of what Spark says: the rest is Java's stack."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _peer(connection: socket.socket) -> str:
    try:
        return str(connection.getpeername()[0])
    except OSError:
        return "somewhere"
