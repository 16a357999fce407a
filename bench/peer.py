"""Apache Kafka Connect 4.3.1, standalone, as the peer to measure against."""

from __future__ import annotations

import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headgate.dev.ports import pick_free
from headgate.jars.find import find_java
from headgate.jars.jars import JarSet, fetch

CONNECT: Final = JarSet(
    "connect-4.3.1",
    (
        "org.apache.kafka:connect-runtime:4.3.1",
        "org.apache.kafka:connect-file:4.3.1",
        "org.apache.kafka:connect-json:4.3.1",
        "org.apache.kafka:connect-transforms:4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
    ),
    transitive=True,
    title="Apache Kafka Connect 4.3.1",
    expected=90,
)
_LOG: Final = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
"""


class Peer:
    """Runs from `with` to its end. The heap is that of Apache's own start script."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        (port,) = pick_free(1)
        self.url = f"http://127.0.0.1:{port}"
        self._folder = folder
        self._settings = {
            "bootstrap.servers": bootstrap,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "offset.storage.file.filename": str(folder / "peer.offsets"),
            "offset.flush.interval.ms": "1000",
            "listeners": self.url,
        }

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        worker, logging = self._folder / "peer.properties", self._folder / "peer-log4j2.properties"
        worker.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        logging.write_text(_LOG)
        jars = fetch(CONNECT)
        command = [str(find_java()), "-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        command += [f"-Dlog4j2.configurationFile={logging}", "-cp", f"{jars[0].parent}/*"]
        command += ["org.apache.kafka.connect.cli.ConnectStandalone", str(worker)]
        with (self._folder / "peer.log").open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        began = time.monotonic()
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() - began > 90:
                raise RuntimeError(f"The peer did not start:\n{(self._folder / 'peer.log').read_text()[-2000:]}")
            time.sleep(0.05)
        self.started_s = time.monotonic() - began
        return self

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/connectors", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(30)
