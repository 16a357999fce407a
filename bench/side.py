"""One worker process to measure, Headgate's or Apache Kafka Connect's, with the same settings, asked over REST."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import peer
from processes import Tree

from headgate.dev.ports import pick_free

HEADGATE: Final = "Headgate"
APACHE: Final = "Apache"
KINDS: Final = (HEADGATE, APACHE)
SOURCE: Final = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK: Final = "org.apache.kafka.connect.file.FileStreamSinkConnector"
STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
_CHECKOUT: Final = Path(__file__).resolve().parent.parent
_LONGEST_S: Final = 600.0
_STOP_S: Final = 60.0
_AGAIN: Final = frozenset({0, 409})
"""Nobody answers yet, or a rebalance is under way."""


class Side:
    """Runs from `with` to its end, and then nothing that it started runs any more. With a `group` it is a worker of
    that cluster; without one it is alone, and `connectors` are files of those to begin with. It hears no Ctrl-C of the
    terminal: it is stopped in order."""

    def __init__(
        self,
        kind: str,
        bootstrap: str,
        folder: Path,
        *,
        group: str | None = None,
        more: Mapping[str, str] | None = None,
        connectors: Sequence[Path] = (),
    ) -> None:
        (port,) = pick_free(1)
        self.kind, self.url = kind, f"http://127.0.0.1:{port}"
        self.began = self.answered = 0.0
        self._mode = "distributed" if group else "standalone"
        self._folder = folder / f"{kind}-{port}"
        self._connectors = connectors
        self._settings = {
            "bootstrap.servers": bootstrap,
            "key.converter": STRING,
            "value.converter": STRING,
            "offset.flush.interval.ms": "10000",  # as in the worker files that Apache ships
            "listeners": self.url,
            **(_distributed(group) if group else {"offset.storage.file.filename": str(self._folder / "offsets")}),
            **(more or {}),
        }

    def __enter__(self) -> Self:
        """Returns when it answers."""
        self._folder.mkdir(parents=True)
        worker = self._folder / "worker.properties"
        write_properties(worker, self._settings)
        ours = [sys.executable, "-m", "headgate.cli.main", self._mode, "--log-level", "WARNING"]
        command = ours if self.kind == HEADGATE else peer.command(self._mode, self._folder)
        # The checkout that this file lies in is what is measured, whichever one is installed.
        paths = [str(_CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.began = time.monotonic()
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*command, str(worker), *map(str, self._connectors)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                start_new_session=True,
            )
        try:
            self.until(lambda: self.call("GET", "/connectors")[0] == 200, "it answers", 0.01)
        except BaseException:
            self.stop()
            raise
        self.answered = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        started = self.tree()
        try:
            self._process.terminate()
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            print(f"    {self.kind} did not stop within {_STOP_S:.0f} s: killed", file=sys.stderr)
            self._process.kill()
            self._process.wait()
        except BaseException:  # a second Ctrl-C
            self._process.kill()
            started.end(0)
            raise
        started.end(5)

    @property
    def pid(self) -> int:
        return self._process.pid

    def tree(self) -> Tree:
        return Tree.of(self.pid)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """Status and answer; 0 when there was none."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                content = answer.read()
                return answer.status, json.loads(content) if content else None
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return 0, None

    def create(self, name: str, config: Mapping[str, str]) -> None:
        self._insist("POST", "/connectors", 201, {"name": name, "config": config})

    def delete(self, name: str) -> None:
        self._insist("DELETE", f"/connectors/{name}", 204)

    def _insist(self, method: str, path: str, wanted: int, body: Mapping[str, Any] | None = None) -> None:
        def agreed() -> bool:
            status, answer = self.call(method, path, body)
            if status != wanted and status not in _AGAIN:
                raise RuntimeError(f"{self.kind} answers {status} to {method} {path}: {answer!r}")
            return status == wanted

        self.until(agreed, f"{method} {path} is answered with {wanted}")

    def until(self, condition: Callable[[], bool], what: str, pause: float = 0.02) -> None:
        """Looks until it is so; fails with the end of the log when the worker has ended, or after ten minutes."""
        deadline = time.monotonic() + _LONGEST_S
        while not condition():
            ended = self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                log = (self._folder / "log").read_text(errors="replace")
                raise RuntimeError(f"{self.kind} {'ended' if ended else 'took too long'} before {what}:\n{log[-3000:]}")
            time.sleep(pause)


def source(file: Path, topic: str, **more: str) -> dict[str, str]:
    return {"connector.class": SOURCE, "file": str(file), "topic": topic, **more}


def sink(topic: str, file: Path, **more: str) -> dict[str, str]:
    return {"connector.class": SINK, "topics": topic, "file": str(file), **more}


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def warm_up(sides: Iterable[Side], topic: str, folder: Path) -> None:
    """One record from a file to a file through each worker; then no connector is left."""
    outs = []
    sides = list(sides)
    for number, side in enumerate(sides):
        file, out = folder / f"warm-{number}.in", folder / f"warm-{number}.out"
        file.write_text("one line\n")
        side.create(f"warm-source-{number}", source(file, f"{topic}-{number}"))
        side.create(f"warm-sink-{number}", sink(f"{topic}-{number}", out))
        outs.append(out)
    sides[0].until(lambda: all(out.exists() and out.stat().st_size for out in outs), "the first record is in the sink")
    for number, side in enumerate(sides):
        side.delete(f"warm-source-{number}")
        side.delete(f"warm-sink-{number}")
    sides[0].until(lambda: sides[0].call("GET", "/connectors")[1] == [], "the first connectors are deleted")


def _distributed(group: str) -> dict[str, str]:
    kinds = ("config", "offset", "status")
    return {
        "group.id": group,
        **{f"{kind}.storage.topic": f"{group}-{kind}" for kind in kinds},
        **{f"{kind}.storage.replication.factor": "1" for kind in kinds},
        "scheduled.rebalance.max.delay.ms": "0",
    }
