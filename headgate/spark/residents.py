"""The residents of a worker: Spark tasks that stay, and the lines to them.

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
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from headgate.api.errors import ConnectError
from headgate.model import EngineUnavailable, TaskId
from headgate.pipeline.blob import Packed
from headgate.spark.line import Invitation, Line, NotOurs, greeted, own_certificate
from headgate.spark.pool import Blob, Pool, Resident
from headgate.spark.resident import Reside
from headgate.spark.session import Session, label
from headgate.spark.settings import ResidentSettings
from headgate.spark.submission import Submission

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_END_S: Final = 2.0
_PAUSE_S: Final = 1.0
"""After something went wrong that nobody has thought of."""
_MEASURE_S: Final = 5.0
"""How often a cluster is asked for its slots while work waits."""
_STOPPING: Final = "The worker is shutting down"


class ResidentsKilled(ConnectError):
    """The task's batch has ended one resident after the other: a plugin crashes its process, or takes all memory."""


class Residents:
    """Shared by all tasks of a worker; any thread may submit."""

    def __init__(self, session: Session, settings: ResidentSettings) -> None:
        self._session = session
        self._secret = secrets.token_bytes(32)
        self._certificate: str | None = None
        self._tls: ssl.SSLContext | None = None
        if settings.encrypted:
            self._certificate, self._tls = own_certificate()
        self._condition = threading.Condition()
        self._settings = settings
        self._pool = Pool(settings)
        self._measured = 0.0
        self._submissions: dict[Blob, Submission] = {}
        self._lines: dict[int, list[Line]] = {}
        """By number of the resident. Behind the first: copies that Spark has made by speculation. They get no work, but
        must not end either: then Spark would end the first."""
        self._jobs: list[threading.Thread] = []
        self._stopping = False
        self._listener: socket.socket | None = None
        self._keeper = threading.Thread(target=self._keep, name="residents", daemon=True)

    def start(self) -> None:
        self._keeper.start()

    def stop(self) -> None:
        """What waits or is under way fails."""
        with self._condition:
            self._stopping = True
            self._pool.clear()
            left = list(self._submissions)
            lines = [line for each in self._lines.values() for line in each]
            self._condition.notify_all()
        for line in lines:
            line.close()
        self._fail(left, EngineUnavailable(_STOPPING))
        until = time.monotonic() + _END_S
        if self._keeper.is_alive():
            self._keeper.join(_END_S)
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for calls; closing alone does not
            self._listener.close()
        for job in self._jobs:
            if job.is_alive():
                job.join(max(until - time.monotonic(), 0.0))

    def submit(self, task: TaskId, blobs: Sequence[bytes]) -> Future[list[Packed]]:
        """The results of `blobs`, in their order. They may run side by side."""
        submission, now = Submission(len(blobs)), time.monotonic()
        added = [Blob(task, data, index, now) for index, data in enumerate(blobs)]
        if not added:
            submission.done.set_result([])
        with self._condition:
            if self._stopping:
                submission.fail(EngineUnavailable(_STOPPING))
                return submission.done
            self._submissions |= dict.fromkeys(added, submission)
            frames = self._frames(self._pool.add(added, now))
            if self._pool.waits:
                self._condition.notify_all()
        _send(frames)
        return submission.done

    @property
    def wide(self) -> int:
        """How many may work on what is not slow at a time."""
        return max(self._pool.settings.quick, 1)

    def drop(self, task: TaskId) -> None:
        """What this task has submitted and nobody works on yet fails."""
        with self._condition:
            dropped = self._pool.drop(task)
        self._fail(dropped, _cancelled(task))

    def cancel(self, task: TaskId) -> None:
        """Nobody waits any more for what this task has submitted. A resident that works on it is ended: it may never be
        done."""
        with self._condition:
            dropped, condemned = self._pool.cancel(task)
            self._condition.notify_all()
        self._fail(dropped, _cancelled(task))
        for each in condemned:
            self._session.cancel(_group(each))

    def trouble(self, task: TaskId) -> str | None:
        """Why what the task has submitted is not done, if it is not only slow."""
        with self._condition:
            waits = any(blob.task == task for blob in self._submissions)
            if waits and not self._session.ready:
                return f"{self._session.last_death or 'the Spark session has ended'}; it is started again"
            return self._pool.trouble(task) if waits else None

    def forget(self, task: TaskId) -> None:
        """The task has ended."""
        with self._condition:
            self._pool.forget(task)

    # --- one resident's line ------------------------------------------------------------------------------------------

    def _frames(self, given: Iterable[Resident]) -> list[tuple[Line, bytes]]:
        """To be sent when the lock is free, on the line that a resident has now: if it dies meanwhile and calls again,
        it may have been given something else."""
        return [(self._lines[each.number][0], each.blob.data) for each in given if each.blob is not None]

    def _listen(self, connection: socket.socket, caller: str) -> None:
        """In a thread for each line, from the greeting to its end."""
        try:
            number, line = greeted(connection, self._secret, self._tls)
        except (OSError, NotOurs) as error:
            log.warning("A call from %s was refused: %s", caller, error)
            return
        resident = self._seated(number, line)
        if resident is None:
            return
        try:
            while (result := line.receive()) is not None:
                self._on_result(resident, result)
        except OSError as error:
            log.debug("The line of a resident broke: %s", error)
        except Exception:
            log.exception("What a resident said could not be taken; it is given up")
        self._on_death(resident)

    def _seated(self, number: int, line: Line) -> Resident | None:
        with self._condition:
            known = self._pool.residents.get(number)
            if self._stopping or known is None or known.condemned:
                line.close()
                return None
            self._lines.setdefault(number, []).append(line)
            resident, given = self._pool.seat(number, time.monotonic())
            frames = self._frames([known] if given else [])
            self._condition.notify_all()
        _send(frames)
        return resident

    def _on_result(self, resident: Resident, result: Packed) -> None:
        with self._condition:
            blob, given = self._pool.done(resident, time.monotonic())
            frames = self._frames(given)
            if resident.condemned:  # whether Spark ends its job in time or not: it gets no work any more
                self._hang_up(resident)
            submission = self._submissions.pop(blob, None) if blob is not None else None
        if blob is not None and submission is not None:
            submission.give(blob.index, result)
        _send(frames)

    def _on_death(self, resident: Resident) -> None:
        with self._condition:
            blob = self._pool.die(resident, time.monotonic())
            self._hang_up(resident)
            self._condition.notify_all()
        if blob is not None and not self._stopping:
            log.warning("A resident of Spark died while it worked for %s; another one gets its batch", blob.task)

    def _hang_up(self, resident: Resident) -> None:
        for line in self._lines.pop(resident.number, ()):
            line.close()

    # --- the thread that keeps the pool -------------------------------------------------------------------------------

    def _keep(self) -> None:
        while not self._stopping:
            try:
                self._look_after()
            except Exception:
                log.exception("The pool of residents could not be looked after; it is tried again")
                self._wait(_PAUSE_S)

    def _look_after(self) -> None:
        """Does what there is to do, or else waits until there is something."""
        with self._condition:
            now = time.monotonic()
            culprits = self._pool.judge(now)
            frames = self._frames(self._pool.share(now))
            evicted = self._pool.evict(now)
            superfluous = self._pool.superfluous(now)
            for resident in superfluous:
                # A closed line ends the Spark task and frees its slot: so Spark's dynamic allocation works.
                self._hang_up(resident)
            wanted = self._pool.wants_more(now)
            measure = self._pool.waits and not self._settings.most and now >= self._measured + _MEASURE_S
            if not (culprits or frames or evicted or superfluous or wanted or measure or self._stopping):
                self._condition.wait(self._patience(now))
        for blob in culprits:
            self._fail([blob], _culprit(blob))
        if evicted is not None:
            self._session.cancel(_group(evicted))
        if frames:
            _send_aside(frames)
        if wanted:
            self._begin()
        elif measure:
            self._measured = now
            with suppress(EngineUnavailable):  # then there will be another cluster to measure
                self._measure(self._session.context(lambda: True))

    def _patience(self, now: float) -> float | None:
        patience = self._pool.patience(now)
        if not self._pool.waits or self._settings.most:
            return patience
        return _MEASURE_S if patience is None else min(patience, _MEASURE_S)

    def _measure(self, context: SparkContext) -> None:
        """A cluster's executors come one by one, after their driver."""
        self._measured = time.monotonic()
        slots = context.defaultParallelism
        with self._condition:
            self._pool.settings = self._settings.on(slots)

    def _begin(self) -> None:
        """Starts one more. Waits for Spark."""
        try:
            context = self._session.context(lambda: self._stopping)
        except EngineUnavailable as error:
            self._on_failed_start(error, hopeless=True)
            return
        try:
            self._begin_on(context)
        except Exception as problem:
            self._on_failed_start(self._session.explain(problem))

    def _begin_on(self, context: SparkContext) -> None:
        conf = context.getConf()
        port = self._port(conf.get("spark.driver.bindAddress") or conf.get("spark.driver.host"))
        host = self._settings.host or conf.get("spark.driver.host") or "127.0.0.1"
        self._measure(context)
        with self._condition:
            if self._stopping:
                return
            resident = self._pool.begin(time.monotonic())
        invitation = Invitation(host, port, resident.number, self._secret, self._certificate)
        job = threading.Thread(target=self._live, args=(context, resident, invitation), name=_group(resident))
        job.daemon = True
        self._jobs = [*(each for each in self._jobs if each.is_alive()), job]
        try:
            job.start()
        except RuntimeError:  # no thread could be had
            with self._condition:
                self._pool.end(resident)
            raise

    def _port(self, driver: str | None) -> int:
        """Where residents call: listened at from the first one on."""
        if self._listener is None:
            settings = self._pool.settings
            made = socket.create_server((settings.bind or driver or "127.0.0.1", settings.port))
            threading.Thread(target=self._answer, args=(made,), name="resident-calls", daemon=True).start()
            self._listener = made
        port: int = self._listener.getsockname()[1]
        return port

    def _answer(self, listener: socket.socket) -> None:
        while not self._stopping:
            try:
                connection, (caller, *_) = listener.accept()
                thread = threading.Thread(target=self._listen, args=(connection, caller), name="resident-line")
                thread.daemon = True
                thread.start()
            except (OSError, RuntimeError) as error:  # it was closed, or no file or thread could be had
                if not self._stopping:
                    log.error("A call of a resident could not be answered: %s", error)
                    self._wait(_PAUSE_S)

    def _wait(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._stopping, seconds)

    def _live(self, context: SparkContext, resident: Resident, invitation: Invitation) -> None:
        """The life of a resident, in a thread of its own: Spark ties jobs to threads."""
        error: Exception | None = None
        try:
            label(context, _group(resident), "residents")
            context.parallelize([0], 1).mapPartitions(Reside(invitation)).collect()
        except Exception as problem:
            error = self._session.explain(problem)
        with self._condition:
            wanted = self._pool.end(resident)
            self._hang_up(resident)  # its machine may be lost without a word
            self._condition.notify_all()
        if error is None or wanted or self._stopping:
            return
        if resident.calls:
            log.info("The Spark job of a resident ended: %s", _short(error))
        else:
            self._on_failed_start(error)

    def _on_failed_start(self, error: Exception, hopeless: bool = False) -> None:
        """Tried again, later and later; whoever waits meanwhile is told when it comes to nothing, or is `hopeless`."""
        with self._condition:
            delay, given_up = self._pool.fail(time.monotonic(), hopeless)
            self._condition.notify_all()
        if self._stopping:
            return
        if not isinstance(error, EngineUnavailable):
            error = EngineUnavailable(
                f"No Spark task could be started that stays, or it could not reach this worker: {_short(error)}"
            )
            log.error("%s; trying again in %.0f s", error, delay)
        self._fail(given_up, error)

    def _fail(self, blobs: Iterable[Blob], error: Exception) -> None:
        with self._condition:
            submissions = {self._submissions.pop(blob, None) for blob in blobs}
        for each in submissions - {None}:
            assert each is not None
            each.fail(error)


def _send(frames: Iterable[tuple[Line, bytes]]) -> None:
    for line, data in frames:
        try:
            line.send(data)
        except Exception as error:  # whoever listens to this line sees its end
            log.debug("A resident could not be given a blob: %s", error)
            line.close()


def _send_aside(frames: list[tuple[Line, bytes]]) -> None:
    """For who must not wait for a slow line."""
    try:
        threading.Thread(target=_send, args=(frames,), name="resident-frames", daemon=True).start()
    except RuntimeError:  # no thread could be had
        _send(frames)


def _cancelled(task: TaskId) -> EngineUnavailable:
    return EngineUnavailable(f"What {task} had submitted was cancelled")


def _group(resident: Resident) -> str:
    return f"resident-{resident.number}"


def _culprit(blob: Blob) -> ResidentsKilled:
    return ResidentsKilled(
        f"A batch of {blob.task} has ended {blob.deaths} residents of Spark in a row, each alone, while others lived: a"
        " plugin of this connector crashes its process, or takes more memory than there is"
    )


def _short(error: Exception) -> str:
    """The first line of what Spark says: the rest is Java's stack."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
