"""The driver JVM: started for a session, and forgotten when it is dead."""

from __future__ import annotations

import logging
import os
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import javaproperties

from headgate.metrics import JvmFigures

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext

log = logging.getLogger(__name__)

_ARGUMENTS: Final = "PYSPARK_SUBMIT_ARGS"
# What every start says, whatever the settings.
_BANNERS: Final = (
    "WARNING: Using incubator modules",
    "Picked up JAVA_TOOL_OPTIONS",
    "Setting default log level to",
    "To adjust logging level use",
    "Using Spark's default log4j profile",
)


def launch(conf: SparkConf, folder: Path | None = None, **environment: str) -> Any:
    """Starts the JVM, in a process group of its own: a Ctrl-C is for the worker, which ends the JVM last. It reads its
    settings from a file in `folder`, for nobody else's eyes and soon gone: everybody may read command lines."""
    from pyspark import java_gateway

    start: Any = java_gateway.launch_gateway
    apart = {"start_new_session": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with tempfile.NamedTemporaryFile("w", suffix=".properties", dir=folder) as file:  # 0600
        file.write(javaproperties.dumps(conf.getAll(), timestamp=False))
        file.flush()
        arguments = f"--properties-file {shlex.quote(file.name)} {os.environ.get(_ARGUMENTS, 'pyspark-shell')}"
        with _environment({**environment, _ARGUMENTS: arguments}):
            gateway = start(popen_kwargs=apart)
    threading.Thread(target=_relay, args=(gateway.proc,), name="spark-jvm-log", daemon=True).start()
    return gateway


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """What a process that is started meanwhile finds in its environment."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


def _relay(process: subprocess.Popen[bytes]) -> None:
    """What the JVM prints goes to the worker's log."""
    assert process.stdout is not None
    with process.stdout as output:
        for line in output:
            text = line.decode(errors="replace").rstrip()
            if text and not text.startswith(_BANNERS):
                log.warning("%s", text)


def figures(context: SparkContext) -> JvmFigures:
    """Asked through Spark's own gauges: Java's beans are of classes that reflection may not touch."""
    gauges: Any = context._jvm.com.codahale.metrics.jvm  # type: ignore[union-attr]
    memory = gauges.MemoryUsageGaugeSet().getMetrics()
    collectors = gauges.GarbageCollectorMetricSet().getMetrics()
    names = sorted({key.rpartition(".")[0] for key in collectors})
    return JvmFigures(
        {area: memory[f"{key}.used"].getValue() for area, key in (("heap", "heap"), ("nonheap", "non-heap"))},
        {
            name: (collectors[f"{name}.count"].getValue(), collectors[f"{name}.time"].getValue() / 1000)
            for name in names
        },
        gauges.ThreadStatesGaugeSet().getMetrics()["count"].getValue(),
    )


def forget(seconds: float = 10.0) -> None:
    """Lets go of the JVM, which ends by that, at the latest after so many seconds. PySpark keeps it in class attributes
    and cannot start a second one while they are set."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with SparkContext._lock:
        gateway: Any = SparkContext._gateway
        context: Any = SparkContext._active_spark_context
        if context is not None and getattr(context, "_accumulatorServer", None):
            context._accumulatorServer.shutdown()
        SparkContext._gateway = None
        SparkContext._jvm = None
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
    os.environ.pop("PYSPARK_GATEWAY_PORT", None)
    os.environ.pop("PYSPARK_GATEWAY_SECRET", None)
    if gateway is not None:
        try:
            gateway.shutdown()
        except Exception as error:  # it is dead already
            log.debug("Closing the gateway of a dead JVM: %s", error)
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(seconds)
        except subprocess.TimeoutExpired:
            log.warning("The Spark driver JVM did not end within %.0f s and is killed", seconds)
            gateway.proc.kill()
            gateway.proc.wait()
