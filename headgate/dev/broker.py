"""A one-node Apache Kafka in its own process, for examples, tests and benchmarks."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from headgate.dev import ports, server_config
from headgate.dev.data_folder import DataFolder
from headgate.dev.formatting import format_folder
from headgate.dev.guarded import GuardedProcess
from headgate.dev.server_config import BrokerListener
from headgate.dev.server_log import ServerLog
from headgate.jars.archive import ClassArchive
from headgate.jars.find import find_java
from headgate.jars.jars import KAFKA_BROKER, cache_folder, fetch

_NO_PROPERTIES: Final[Mapping[str, str]] = {}
_ATTEMPTS: Final = 5
_STOP_S: Final = 20.0


class BrokerFailed(RuntimeError):
    """The broker did not start or does not serve; says why, with lines of its log."""


class PortInUse(BrokerFailed):
    """Something else listens on the port that was asked for: choose another, or none."""


class DataInUse(BrokerFailed):
    """Another broker runs on the data folder: stop it, or choose another folder."""


class Broker:
    """One Kafka node, broker and controller in one JVM, reached at `bootstrap` while it runs.

    Without `data` it keeps its data in a temporary folder until `stop()`; with it the folder stays, and the next
    broker on it has the same topics and cluster id. Without `port`, or with 0, it takes a free one and keeps it for
    later starts. `properties` are Kafka's and win over `server_config.DEFAULTS`. `listeners` are further doors, each
    found by its `address`. The JVM ends with this process, however this process ends, and does not hear a Ctrl-C in
    the terminal. Not for use from several threads at once."""

    def __init__(
        self,
        data: Path | str | None = None,
        port: int | None = None,
        properties: Mapping[str, str] = _NO_PROPERTIES,
        *,
        listeners: Sequence[BrokerListener] = (),
        heap: str = "512m",
        start_seconds: float = 60.0,
        progress: bool = True,
    ) -> None:
        server_config.check_properties(properties)
        if not 0 <= (port or 0) <= 65535:
            raise ValueError(f"{port} is not a port: choose one from 1 to 65535, or 0 for a free one")
        if data is not None and "," in str(data):
            raise ValueError(f"the data folder {data} has a comma in its name, which Kafka cannot read: choose another")
        self._folder = DataFolder(data, "broker", DataInUse)
        self._port = port or 0
        self._properties = dict(properties)
        self._listeners = dict.fromkeys(listeners, 0)
        self._heap = heap
        self._start_seconds = start_seconds
        self._progress = progress
        self._log: ServerLog | None = None
        self._process: GuardedProcess | None = None
        self._archive: ClassArchive | None = None
        self._cluster_id = ""

    # What it is

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`; known from the first start on, with a given port from the beginning."""
        return f"{ports.HOST}:{self.port}"

    @property
    def port(self) -> int:
        if not self._port:
            raise RuntimeError("the broker has no port before its first start: call start()")
        return self._port

    def address(self, listener: str) -> str:
        """The address of one of `listeners`, by its name; known from the first start on, and kept like the port."""
        port = next((port for door, port in self._listeners.items() if door.name == listener), 0)
        if not port:
            raise RuntimeError(f"the broker has no listener {listener}, or was never started")
        return f"{ports.HOST}:{port}"

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        if self._process is None:
            raise RuntimeError("the broker is not running: call start()")
        return self._process.pid

    @property
    def data(self) -> Path:
        """The folder with data, logs and configuration."""
        return self._folder.path

    @property
    def kept(self) -> bool:
        """Whether the data outlives `stop()`."""
        return self._folder.kept

    @property
    def cluster_id(self) -> str:
        """The id of the cluster; empty before the first start."""
        return self._cluster_id

    # What it does

    def running(self) -> bool:
        """Whether the JVM is alive; it may have died without being asked to."""
        return self._process is not None and not self._process.ended()

    def start(self) -> None:
        """Fetch the jars if need be, format the folder if it is new, start the JVM and return once it serves.

        Raises `PortInUse`, `DataInUse`, another `BrokerFailed`, `JavaMissing` or `FetchFailed`, and then has left
        nothing running."""
        if self.running():
            raise RuntimeError("the broker runs already: call restart(), or stop() first")
        java = find_java()
        jars = fetch(KAFKA_BROKER, progress=self._progress)
        self._stop_process()  # what is left of one that died by itself
        try:
            self._folder.take()
            for name in ("kafka", "logs", "tmp"):
                (self.data / name).mkdir(exist_ok=True)
            classes = os.pathsep.join(map(str, jars))
            self._archive = ClassArchive.of(cache_folder(), "kafka", java, [classes])
            self._start([str(java), "-cp", classes])
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the JVM cleanly, by force after 20 s; remove a temporary folder. Harmless when stopped."""
        self._stop_process()
        self._folder.give_back()

    def kill(self) -> None:
        """SIGKILL, for tests of faults; returns when the JVM is gone. The data stays for `restart()`."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def restart(self) -> None:
        """Stop the JVM if it runs, then start it again on the same port and the same data, temporary or not."""
        self._stop_process()
        self.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the JVM has ended, for whatever reason; False when it still runs after `seconds`."""
        return self._process is None or self._process.wait(seconds)

    def log_excerpt(self) -> str:
        """From the log since the last start: the first error and what followed it, without one the last lines."""
        return self._log.excerpt() if self._log is not None else ""

    def __enter__(self) -> Self:
        if not self.running():
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # How it does it

    def _start(self, kafka: list[str]) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            if self._port and not ports.is_free(self._port):
                raise PortInUse(
                    f"Port {self._port} on {ports.HOST} is in use: stop what listens there or choose another port."
                )
            picked, controller_port, *more = ports.pick_free(2 + len(self._listeners), avoid=self._port)
            port = self._port or picked
            listeners = {door: kept or free for (door, kept), free in zip(self._listeners.items(), more, strict=True)}
            self._configure(port, controller_port, listeners)
            self._format(kafka)
            self._launch(kafka)
            try:
                self._await_serving(port)
            except BrokerFailed:
                # Someone took a port between our look and Kafka's bind: look again.
                if attempt == _ATTEMPTS or self._log is None or not self._log.says("Address already in use"):
                    raise
                self.kill()
            else:
                self._port, self._listeners = port, listeners
                return

    def _configure(self, port: int, controller_port: int, listeners: Mapping[BrokerListener, int]) -> None:
        server_config.write_log4j2_properties(self.data / "log4j2.properties")
        server_config.write_server_properties(
            self.data / "server.properties",
            log_dir=self.data / "kafka",
            port=port,
            controller_port=controller_port,
            properties=self._properties,
            listeners=listeners,
        )

    def _format(self, kafka: list[str]) -> None:
        log_dir = self.data / "kafka"
        if server_config.read_cluster_id(log_dir) is None:
            tool = [*kafka, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *self._logging()]
            problem = format_folder(tool, self.data, cache_folder(), {**server_config.DEFAULTS, **self._properties})
            if problem is not None:
                raise BrokerFailed(f"Kafka could not format {log_dir}:\n{problem}")
        self._cluster_id = server_config.read_cluster_id(log_dir) or ""

    def _launch(self, kafka: list[str]) -> None:
        self._log = ServerLog(self.data / "logs")
        assert self._archive is not None
        # A small heap is collected by one thread in milliseconds: those of G1 take a third of what a start costs.
        large = self._heap.lower().endswith("g")
        collector = ["-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"] if large else ["-XX:+UseSerialGC"]
        flags = [*self._archive.options(), f"-Xmx{self._heap}", *collector]
        flags += ["-XX:+ExitOnOutOfMemoryError", "-Djava.awt.headless=true"]
        # The native parts of zstd and snappy are unpacked there and outlive a SIGKILL: not in everybody's /tmp.
        flags += [f"-Djava.io.tmpdir={self.data / 'tmp'}", *self._logging()]
        self._process = GuardedProcess(
            [*kafka, *flags, "kafka.Kafka", str(self.data / "server.properties")],
            console=self._log.console,
            grace=_STOP_S,
            lock=self._folder.lock,  # so the folder stays locked until the JVM has gone, whatever becomes of us
            leftover=self._folder.leftover,
        )

    def _logging(self) -> list[str]:
        return [
            f"-Dlog4j2.configurationFile={self.data / 'log4j2.properties'}",
            f"-Dheadgate.logs={self.data / 'logs'}",
        ]

    def _await_serving(self, port: int) -> None:
        """Return once clients get metadata of this very cluster, in which the broker is registered and unfenced."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        quick = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 100, "log_level": 0}
        client = AdminClient({"bootstrap.servers": f"{ports.HOST}:{port}", **quick})
        deadline = time.monotonic() + self._start_seconds
        while time.monotonic() < deadline:
            if not self.running():
                raise BrokerFailed(f"The broker ended while starting; its log says:\n{self.log_excerpt()}")
            try:
                metadata = client.list_topics(timeout=0.5)
            except KafkaException:
                continue
            # On a port that someone else took first, someone else answers.
            if metadata.brokers and str(metadata.cluster_id) == self._cluster_id:
                return
            self.wait(0.05)
        raise BrokerFailed(
            f"The broker did not serve within {self._start_seconds:.0f} s; its log says:\n{self.log_excerpt()}"
        )

    def _stop_process(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None
            if self._archive is not None:
                self._archive.keep()
