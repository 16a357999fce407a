"""SparkPolling: what both kinds of tasks have: a poll that a stop ends, and no words about what the stop broke off."""

from __future__ import annotations

import logging
import threading
import time
from abc import abstractmethod
from collections.abc import Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from headgate.api import ConnectError, SourceFrame, SourceTable, SourceTask
from headgate.connectors.spark.source.config import NEVER, SparkSourceConfig
from headgate.log import cause_of

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from headgate.connectors.spark.source.blocks import ReadPiece

log = logging.getLogger(__name__)

_LONGEST_WAIT_S: Final = 1.0
_CANCEL_S: Final = 10.0
_SHOWN: Final = 1000


class SparkPolling(SourceTask):
    """`_next` is called again and again, and looks for new rows no oftener than `poll.interval.ms` says."""

    config: SparkSourceConfig
    """Set by `start`."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._next_look = 0.0
        self._jobs: tuple[SparkContext, str] | None = None
        self._cancelling: threading.Thread | None = None
        self._ended = False
        self._ending = threading.Lock()
        """Held to set either of the two above: after `stop`, no job is cancelled any more."""
        self._pieces: Generator[ReadPiece, None, None] | None = None
        """What executors have read and is not fetched yet. It ends with the JVM that it came from."""
        self._frame_failed = False

    def poll(self) -> SourceTable | SourceFrame | None:
        wait = self._next_look - time.monotonic()
        if self._pieces is None and wait > 0 and self._stopping.wait(min(wait, _LONGEST_WAIT_S)):
            return None
        if self._stopping.is_set() or (self._pieces is None and time.monotonic() < self._next_look):
            return None
        try:
            return self._next()
        except Exception as error:
            self._let_go()
            if self._stopping.is_set():
                log.debug("The stop broke off what was under way: %s", error)
                return None
            raise

    @abstractmethod
    def _next(self) -> SourceTable | SourceFrame | None: ...

    @property
    def _gives_frames(self) -> bool:
        """Whether executors may send what comes next; if it is not only little that shall have them."""
        return self.config.executors != NEVER and self.context.takes_frames and not self._frame_failed

    def frame_failed(self, frame: SourceFrame, error: Exception) -> None:
        """Piece by piece it is found out what cannot be read, and all before that is given."""
        told = cause_of(failure("Executors were to send what they cannot read", error))
        log.warning("%s; until the task ends, records go through the worker", told)
        self._frame_failed = True
        self._go_back()

    @abstractmethod
    def _go_back(self) -> None:
        """To where the last frame began."""

    def _let_go(self) -> None:
        """What was under way is begun anew, if it comes to that. May be called twice."""
        found, self._pieces = self._pieces, None
        if found is not None:
            found.close()

    def _look_later(self) -> None:
        self._next_look = time.monotonic() + self.config.interval_s

    def _session(self) -> SparkSession:
        session = self.context.spark()
        group = session.sparkContext.getLocalProperty("spark.jobGroup.id")
        self._jobs = (session.sparkContext, group) if group else None
        return session

    def stop_requested(self) -> None:
        self._stopping.set()
        with self._ending:
            under_way = self._cancelling is not None and self._cancelling.is_alive()
            if self._jobs is None or under_way or self._ended:
                return
            # A JVM that does not answer must not hold up those who ask.
            self._cancelling = threading.Thread(target=_cancel, args=self._jobs, daemon=True)
            self._cancelling.start()

    def stop(self) -> None:
        self._stopping.set()
        with self._ending:
            # Whoever comes next has the same group: its jobs must not be those that are cancelled.
            self._ended = True
        if self._cancelling is not None:
            self._cancelling.join(_CANCEL_S)
        with suppress(Exception):
            self._let_go()


def _cancel(context: SparkContext, group: str) -> None:
    with suppress(Exception):  # there is nothing to cancel where there is no JVM
        context.cancelJobGroup(group)


def failure(what: str, error: Exception) -> Exception:
    """What Spark raised, in a sentence. The loss of the JVM stays as it is: the runtime knows what to do about it."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    if not isinstance(error, Py4JJavaError | PySparkException):
        return error
    made = ConnectError(f"{what}: {_reason(error)}")
    made.__cause__ = error
    return made


def _reason(error: Exception) -> str:
    """The last line of what Python raised on an executor; else the innermost cause that Java names."""
    java = getattr(error, "java_exception", None)
    text = str(error)
    with suppress(Exception):
        while java is not None:
            text = java.getMessage() or java.toString()
            java = java.getCause()
    lines = [line for line in text.splitlines() if line.strip()]
    if "Traceback (most recent call last)" in text:
        whole = text[text.rindex("Traceback (most recent call last)") :].splitlines()
        lines = [line for line in whole[1:] if line and not line.startswith((" ", "\t"))]
    return (lines[0] if lines else type(error).__name__)[:_SHOWN]
