"""The worker's Spark session: started in the background while REST already answers, and anew when its JVM dies.

What waits for it goes on waiting meanwhile. Only when Spark never starts, or its JVM keeps dying, it is told so.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headgate.backoff import Backoff
from headgate.jars.archive import ClassArchive
from headgate.metrics import JvmFigures
from headgate.model import EngineUnavailable
from headgate.spark import jvm

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

_RETRY: Final = Backoff(1.0, 2.0, 60.0)
_SHORT_LIFE_S: Final = 60.0
_ARCHIVE_S: Final = 60.0
"""The first JVM writes its class data archive when it ends."""
_NOTICE_S: Final = 2.0
"""After so long it is known whether it was the JVM's end that broke a connection."""
_FIGURES_S: Final = 1.0
"""So long metrics wait for a JVM that is slow to say how it is."""
_TRIES: Final = 5
"""So many short lives or failed starts in a row, and whoever waits is told."""


@dataclass(eq=False, repr=False)
class Session:
    """`start` returns at once; `context` and `session` wait until there is one."""

    _settings: Mapping[str, str]
    _jars: Callable[[], Sequence[Path]]
    _require_java: Callable[[], Path]
    _folders: Sequence[str] = ()
    """Of plugins."""
    _cache: Path | None = None
    """Where a class data archive is kept, if one shall be."""
    _folder: Path | None = None
    """For what is temporary, sockets among it: nobody else may look into it."""
    _ui_host: str | None = None
    """Where Spark's UI listens, if there is one."""
    _archive: ClassArchive | None = None
    _condition: threading.Condition = field(default_factory=threading.Condition)
    _context: SparkContext | None = None
    _sql: SparkSession | None = None
    _sql_lock: threading.Lock = field(default_factory=threading.Lock)
    _problem: EngineUnavailable | None = None
    last_death: str | None = None
    _stopping: bool = False
    _asked: Future[JvmFigures] | None = None

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._keep, name="spark-session", daemon=True)
        self._asking = ThreadPoolExecutor(1, "jvm-figures")

    def start(self) -> None:
        self._thread.start()

    def context(self, cancelled: Callable[[], bool] = lambda: False) -> SparkContext:
        """Waits for it. Raises EngineUnavailable when there can be none, or `cancelled` says to give up."""
        with self._condition:
            while self._context is None:
                if self._problem is not None:
                    raise self._problem
                if self._stopping or cancelled():
                    raise EngineUnavailable("The worker is shutting down")
                self._condition.wait(0.2)
            return self._context

    @property
    def ready(self) -> bool:
        return self._context is not None

    def session(self) -> SparkSession:
        """For SQL and DataFrames, made when it is first asked for: records do without."""
        with self._sql_lock:
            context = self.context()
            # Only now: two threads that import pyspark at the same time find half of it.
            from pyspark.sql import SparkSession

            if self._sql is None or self._sql.sparkContext is not context:
                self._sql = SparkSession(context)
            return self._sql

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            context, self._context = self._context, None
            self._condition.notify_all()
        self._asking.shutdown(wait=False)
        if context is not None:
            self._end(context)

    def _end(self, context: SparkContext) -> None:
        try:
            context.stop()
        except Exception as error:  # its JVM went first, e.g. because the whole group of processes was told to end
            log.info("The Spark session was gone already: %s", error)
        jvm.forget(_ARCHIVE_S)
        if self._archive is not None:
            self._archive.keep()

    def explain(self, error: Exception) -> Exception:
        """What an exception out of a Spark call really means: the session's end, or what it says."""
        from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

        if isinstance(error, EngineUnavailable | Py4JJavaError):
            return error
        lost = isinstance(error, Py4JNetworkError)
        if not lost and isinstance(error, ConnectionError | EOFError | Py4JError):  # of this line, or the caller's own
            with self._condition:
                lost = self._condition.wait_for(lambda: self._context is None, _NOTICE_S)
        if lost or not self._lives():
            unavailable = EngineUnavailable(self.last_death or "The connection to the Spark driver JVM was lost")
            unavailable.__cause__ = error
            return unavailable
        return error

    def _lives(self) -> bool:
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        return self._context is not None and gateway is not None and gateway.proc.poll() is None

    def cancel(self, group: str) -> None:
        """Cancels the jobs of a group, if there is a session."""
        context = self._context
        if context is None:
            return
        try:
            context.cancelJobGroup(group)
        except Exception as error:
            log.warning("Could not cancel the Spark jobs of %s: %s", group, error)

    def pid(self) -> int | None:
        """Of the driver JVM."""
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        return gateway.proc.pid if gateway is not None else None

    def jvm_figures(self) -> JvmFigures | None:
        """What the driver JVM says of itself; None when there is none, or it does not say so at once."""
        context, waiting = self._context, self._asked
        if context is None or (waiting is not None and not waiting.done()):
            return None
        # On a thread of its own: each thread that asks has one in the JVM, too.
        asked = self._asked = self._asking.submit(jvm.figures, context)
        try:
            return asked.result(_FIGURES_S)
        except Exception as error:
            log.debug("The Spark driver JVM does not say how it is: %s", error)
            return None

    # --- the thread that keeps a session alive ------------------------------------------------------------------------

    def _keep(self) -> None:
        try:
            self._keep_one()
        except Exception as error:
            log.exception("There will be no Spark session any more")
            with self._condition:
                self._context, self._problem = None, EngineUnavailable(f"Spark cannot be kept running: {error}")
                self._condition.notify_all()

    def _keep_one(self) -> None:
        troubles = 0
        while not self._stopping:
            began = time.monotonic()
            try:
                context = self._create()
                version = context.version  # asks the JVM, which may be gone already
            except Exception as error:
                jvm.forget()
                if not self._stopping:
                    troubles += 1
                    never = self.last_death is None
                    self._wait_to_retry(f"Spark could not be started: {error}", troubles, never or troubles >= _TRIES)
                continue
            log.info("Spark %s is ready on %s after %.1f s", version, context.master, time.monotonic() - began)
            with self._condition:
                if not (late := self._stopping):
                    self._context = context
                self._condition.notify_all()
            if late:
                self._end(context)
                return
            reason = self._wait_for_death()
            if not self._stopping:
                troubles = troubles + 1 if time.monotonic() - began < _SHORT_LIFE_S else 0
                self._on_jvm_death(reason, troubles)

    def _wait_for_death(self) -> str:
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        if gateway is None:  # it was stopped and forgotten at once
            return "The Spark driver JVM was ended"
        code = gateway.proc.wait()
        return f"The Spark driver JVM (pid {gateway.proc.pid}) ended with exit code {code}"

    def _on_jvm_death(self, reason: str, troubles: int) -> None:
        self.last_death = reason
        with self._condition:
            self._context = None
            self._condition.notify_all()
        jvm.forget()
        if troubles:
            self._wait_to_retry(reason, troubles, troubles >= _TRIES)
        else:
            log.error("%s; a new one is started, and tasks wait for it", reason)

    def _wait_to_retry(self, reason: str, troubles: int, hopeless: bool) -> None:
        """`hopeless`: those who wait are told, and so are those who come meanwhile."""
        delay = _RETRY.after(troubles)
        log.error("%s; trying again in %.0f s", reason, delay)
        with self._condition:
            self._problem = EngineUnavailable(reason) if hopeless else None
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._stopping, delay)
            self._problem = None

    def _create(self) -> SparkContext:
        java = self._require_java()
        jars = self._jars()
        # The executors must import what this process imports.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        from pyspark import SparkConf, SparkContext
        from pyspark.find_spark_home import _find_spark_home as find_spark_home

        if self._cache is not None:
            jars_of_spark = sorted(map(str, Path(find_spark_home(), "jars").iterdir()))
            self._archive = ClassArchive.of(self._cache, "spark", java, jars_of_spark)
        conf = SparkConf(loadDefaults=False).setAll(list(self._all_settings(jars).items()))
        # Spark has no key for where its UI listens, only this.
        environment = {"SPARK_LOCAL_IP": self._ui_host} if self._ui_host else {}
        context = SparkContext(conf=conf, gateway=jvm.launch(conf, self._folder, **environment))
        # When the JVM dies, this server of PySpark's would print a traceback of its own.
        server: Any = context._accumulatorServer
        server.handle_error = lambda *_: None
        return context

    def _all_settings(self, jars: Sequence[Path]) -> dict[str, str]:
        settings = dict(self._settings)
        given = [jar for jar in settings.get("spark.jars", "").split(",") if jar]
        settings["spark.jars"] = ",".join([*given, *map(str, jars)])
        logging_config = resources.files("headgate.spark").joinpath("log4j2.properties")
        # Batches are large and short-lived, which suits the throughput collector; G1 was slower in the one trial made.
        options = settings.get("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
        shared = " ".join(self._archive.options()) if self._archive is not None else ""
        own = f'"-Djava.io.tmpdir={self._folder}"' if self._folder is not None else ""
        settings["spark.driver.extraJavaOptions"] = (
            f"{own} {options} {shared} -Dlog4j2.configurationFile=file:{logging_config}"
        )
        if self._folders:
            paths = [*self._folders, settings.get("spark.executorEnv.PYTHONPATH", "")]
            settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return settings


def label(context: SparkContext, group: str, pool: str) -> None:
    """Of the jobs of this thread: the group they can be cancelled by, and the pool that shares the cluster fairly."""
    context.setJobGroup(group, f"headgate {group}", interruptOnCancel=True)
    context.setLocalProperty("spark.scheduler.pool", pool)
