"""The engine: Spark as tasks use it. Batches go to residents; SQL and DataFrames are jobs."""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headgate.kafka.settings import ClientConfigError
from headgate.metrics import JvmFigures
from headgate.model import TaskId, TaskSpec
from headgate.pipeline.blob import Packed
from headgate.pipeline.shelf import Shelf
from headgate.sandbox import Sandbox
from headgate.spark.frames import FrameSender
from headgate.spark.ranges import FramedRanges, RangeFrames, ResidentRanges
from headgate.spark.residents import Residents
from headgate.spark.session import Session, label
from headgate.spark.settings import on_this_machine, settings_of, ui_host
from headgate.spark.statements import SparkStatements, problems

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.pipeline.sink_chain import Output, SinkChain

log = logging.getLogger(__name__)

_FOLDER: Final = re.compile(r"headgate-(\d+)-\w+")
_LONGEST: Final = 60
"""Of a folder for sockets: the system takes names of 104 characters, and Spark has 44 of them."""


class SparkEngine:
    """Fits `tasks.ports.Engine`. `start` returns at once."""

    def __init__(
        self,
        raw: Mapping[str, str],
        jars: Callable[[], Sequence[Path]],
        require_java: Callable[[], Path],
        plugin_folders: Sequence[str] = (),
        cache: Path | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        """`raw` is the worker file; `cache` a folder for what makes later starts quicker. Raises ConfigError."""
        settings, residents = settings_of(raw)
        self._sandbox = sandbox or Sandbox()
        ui = ui_host(raw, settings)
        here = on_this_machine(settings["spark.master"])
        parents = (settings.get("spark.local.dir") if here else None) or tempfile.gettempdir()
        self._folders = [_private(parent.strip()) for parent in parents.split(",") if parent.strip()]
        self._shelves: Path | None = None
        if here:
            # Spark keeps what it cannot hold in memory there, for everybody to read if the folder lets them.
            settings["spark.local.dir"] = ",".join(map(str, self._folders))
            self._shelves = self._folders[0] / "shelves"
            self._shelves.mkdir(0o700)
        if len(str(self._folders[0])) > _LONGEST:
            settings["spark.python.unix.domain.socket.enabled"] = "false"  # TCP, with a token
        self._session = Session(settings, jars, require_java, plugin_folders, cache, self._folders[0], ui)
        self._residents = Residents(self._session, residents)

    def start(self) -> None:
        self._session.start()
        self._residents.start()

    def stop(self) -> None:
        self._residents.stop()
        self._session.stop()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def ready(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._session.context(cancelled)

    def submit(self, task: TaskId, blobs: Sequence[bytes]) -> Future[list[Packed]]:
        return self._residents.submit(task, blobs)

    def trouble(self, task: TaskId) -> str | None:
        return self._residents.trouble(task)

    def cancel(self, task: TaskId) -> None:
        self._residents.cancel(task)
        self._session.cancel(str(task))

    def forget(self, task: TaskId) -> None:
        self._residents.forget(task)

    @contextmanager
    def shelf(self) -> Iterator[Shelf | None]:
        """A new one, to the end of `with`; None where the executors are not on this machine."""
        made = None if self._shelves is None else Shelf.new(str(self._shelves))
        try:
            yield made
        finally:
            if made is not None:
                made.remove()

    def statements(self, spec: TaskSpec, output: Output | None) -> SparkStatements:
        """Of the task's chain. Raises StatementFailed."""
        return SparkStatements(spec, self._session, output, self._sandbox)

    def problems(self, cls: type, settings: Mapping[str, str]) -> Mapping[str, str]:
        """What is wrong with a transform, by key, as far as only Spark knows, and while there is one to ask."""
        return problems(self._session, cls, settings, self._sandbox)

    def ranges(
        self, spec: TaskSpec, chain: bytes, sink: SinkChain, frames: bool
    ) -> FramedRanges | ResidentRanges | None:
        """Reads ranges of offsets for a sink; `frames`: the task takes frames of Spark's Kafka source. None where only
        the task's consumer can read."""
        if frames:
            return FramedRanges(spec.id, self._session, RangeFrames(spec.consumer, chain, sink))
        try:
            return ResidentRanges(spec, chain, sink, self._residents)
        except ClientConfigError as error:
            log.info("A backlog will be read by the consumer alone: %s", error)
            return None

    def frame_sender(self, spec: TaskSpec, chain: bytes) -> FrameSender:
        """Has executors send the frames of a source."""
        return FrameSender(spec, chain, self._session)

    def frame(self, table: pa.Table) -> DataFrame:
        return self._session.session().createDataFrame(table)

    def session_for(self, task: TaskId) -> SparkSession:
        session = self._session.session()
        label(session.sparkContext, str(task), task.connector)
        return session

    def explain(self, error: Exception) -> Exception:
        return self._session.explain(error)

    def session(self) -> SparkSession:
        return self._session.session()

    def jvm_figures(self) -> JvmFigures | None:
        return self._session.jvm_figures()

    def pid(self) -> int | None:
        """Of the driver JVM."""
        return self._session.pid()


def _private(parent: str) -> Path:
    """A new folder that nobody else may look into. Those of workers that were killed go."""
    os.makedirs(parent, exist_ok=True)
    _remove_left_behind(Path(parent))
    return Path(tempfile.mkdtemp(prefix=f"headgate-{os.getpid()}-", dir=parent))


def _remove_left_behind(parent: Path) -> None:
    """What workers that were killed had there."""
    for folder in parent.glob("headgate-*"):
        found = _FOLDER.fullmatch(folder.name)
        if found and folder.is_dir() and folder.stat().st_uid == os.getuid() and not _lives(int(found[1])):
            shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
