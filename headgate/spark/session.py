"""The worker's SparkSession, from the worker file's `spark.*` keys.

It is started in the background, while REST already answers. When the driver JVM dies, everything that waits for it is
told so at once, with one reason, and a new session is started.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headgate.spark import jvm

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from headgate.pipeline.shelf import Shelf

log = logging.getLogger(__name__)

DEFAULTS: Final[Mapping[str, str]] = {
    "spark.app.name": "headgate",
    # Plain local[*] never repeats a failed Spark task.
    "spark.master": "local[*,4]",
    "spark.scheduler.mode": "FAIR",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    # A worker lives for months: keep no history of jobs that nobody looks at.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "20",
}
_RETRY_FIRST_S: Final = 1.0
_RETRY_MOST_S: Final = 60.0


class SparkUnavailable(Exception):
    """There is no Spark session: it did not start, or its JVM died. The message says which."""


class SparkEngine:
    """Holds the session. `start` returns at once; `context` and `session` wait until there is one."""

    def __init__(
        self,
        settings: Mapping[str, str],
        jars: Callable[[], Sequence[Path]],
        require_java: Callable[[], object],
        plugin_folders: Sequence[str] = (),
    ) -> None:
        self._settings = {**DEFAULTS, **settings}
        if "spark.driver.host" not in settings and not self.master.startswith("local"):
            del self._settings["spark.driver.host"]  # executors elsewhere must find the driver
        self._jars = jars
        self._require_java = require_java
        self._folders = plugin_folders
        self._condition = threading.Condition()
        self._session: SparkSession | None = None
        self._problem: SparkUnavailable | None = None
        self._last_death: str | None = None
        self._stopping = False
        self._death_listeners: dict[object, Callable[[SparkUnavailable], None]] = {}
        self._thread = threading.Thread(target=self._keep, name="spark-session", daemon=True)

    @property
    def master(self) -> str:
        return self._settings["spark.master"]

    def start(self) -> None:
        self._thread.start()

    def session(self, cancelled: Callable[[], bool] = lambda: False) -> SparkSession:
        """Waits for the session. Raises SparkUnavailable when it cannot be started, or `cancelled` says to give up."""
        with self._condition:
            while self._session is None:
                if self._problem is not None:
                    raise self._problem
                if self._stopping or cancelled():
                    raise SparkUnavailable("The worker is shutting down")
                self._condition.wait(0.2)
            return self._session

    def context(self) -> SparkContext:
        return self.session().sparkContext

    @contextmanager
    def shelf(self) -> Iterator[Shelf | None]:
        """A new one, to the end of `with`; None where the executors are not on this machine."""
        from headgate.pipeline.shelf import Shelf

        here = self.master.startswith("local") and not self.master.startswith("local-cluster")
        # Among Spark's own files: they go with the JVM, however the worker ends.
        made = Shelf.new(self.context()._temp_dir) if here else None
        try:
            yield made
        finally:
            if made is not None:
                made.remove()

    @property
    def alive(self) -> bool:
        return self._session is not None

    def on_death(self, key: object, listener: Callable[[SparkUnavailable], None] | None) -> None:
        """Calls `listener`, from another thread, when the JVM dies; None forgets the one of this key."""
        with self._condition:
            if listener is None:
                self._death_listeners.pop(key, None)
            else:
                self._death_listeners[key] = listener

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            session, self._session = self._session, None
            self._condition.notify_all()
        if session is not None:
            try:
                session.stop()
            except Exception as error:  # its JVM went first, e.g. because the whole group of processes was told to end
                log.info("The Spark session was gone already: %s", error)
            jvm.forget()

    def explain(self, error: Exception) -> Exception:
        """What an exception out of a Spark call really means: the session's end, or what it says."""
        from py4j.protocol import Py4JJavaError, Py4JNetworkError

        if isinstance(error, SparkUnavailable):
            return error
        lost = isinstance(error, Py4JNetworkError | ConnectionError | EOFError)
        if lost or (not isinstance(error, Py4JJavaError) and not self._lives()):
            return SparkUnavailable(self._last_death or "The connection to the Spark driver JVM was lost")
        return error

    def _lives(self) -> bool:
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        return self._session is not None and gateway is not None and gateway.proc.poll() is None

    def cancel(self, group: str) -> None:
        """Cancels the jobs of a group, if there is a session."""
        session = self._session
        if session is None:
            return
        try:
            session.sparkContext.cancelJobGroup(group)
        except Exception as error:
            log.warning("Could not cancel the Spark jobs of %s: %s", group, error)

    def pid(self) -> int | None:
        """Of the driver JVM."""
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        return gateway.proc.pid if gateway is not None else None

    # --- the thread that keeps a session alive ------------------------------------------------------------------------

    def _keep(self) -> None:
        delay = _RETRY_FIRST_S
        while not self._stopping:
            began = time.monotonic()
            try:
                session = self._create()
            except Exception as error:
                jvm.forget()
                if self._stopping:
                    return
                self._fail(SparkUnavailable(f"Spark could not be started: {error}"), delay)
                delay = min(delay * 2, _RETRY_MOST_S)
                continue
            log.info("Spark %s is ready on %s after %.1f s", session.version, self.master, time.monotonic() - began)
            with self._condition:
                if self._stopping:
                    session.stop()
                    return
                self._session, self._problem = session, None
                self._condition.notify_all()
            delay = _RETRY_FIRST_S
            reason = self._wait_for_death()
            if not self._stopping:
                self._mourn(SparkUnavailable(reason))

    def _fail(self, problem: SparkUnavailable, delay: float) -> None:
        log.error("%s; trying again in %.0f s", problem, delay)
        with self._condition:
            self._problem = problem
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._stopping, delay)
            self._problem = None

    def _wait_for_death(self) -> str:
        from pyspark import SparkContext

        gateway: Any = SparkContext._gateway
        code = gateway.proc.wait()
        return f"The Spark driver JVM (pid {gateway.proc.pid}) ended with exit code {code}"

    def _mourn(self, problem: SparkUnavailable) -> None:
        log.error("%s; its tasks fail, a new session is being started", problem)
        self._last_death = str(problem)
        with self._condition:
            self._session = None
            listeners = list(self._death_listeners.values())
        jvm.forget()
        for listener in listeners:
            listener(problem)

    def _create(self) -> SparkSession:
        self._require_java()
        jars = self._jars()
        # The executors must import what this process imports.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        from pyspark import SparkConf, SparkContext
        from pyspark.sql import SparkSession

        conf = SparkConf(loadDefaults=False).setAll(list(self._all_settings(jars).items()))
        session = SparkSession(SparkContext(conf=conf, gateway=jvm.launch(conf)))
        # When the JVM dies, this server of PySpark's would print a traceback of its own.
        server: Any = session.sparkContext._accumulatorServer
        server.handle_error = lambda *_: None
        jvm.warm_up(session.sparkContext)
        return session

    def _all_settings(self, jars: Sequence[Path]) -> dict[str, str]:
        settings = dict(self._settings)
        given = [jar for jar in settings.get("spark.jars", "").split(",") if jar]
        settings["spark.jars"] = ",".join([*given, *map(str, jars)])
        logging_config = resources.files("headgate.spark").joinpath("log4j2.properties")
        # Batches are large and short-lived, which suits the throughput collector; G1 was slower in the one trial made.
        options = settings.get("spark.driver.extraJavaOptions", "-XX:+UseParallelGC")
        settings["spark.driver.extraJavaOptions"] = f"{options} -Dlog4j2.configurationFile=file:{logging_config}"
        if self._folders:
            paths = [*self._folders, settings.get("spark.executorEnv.PYTHONPATH", "")]
            settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return settings
