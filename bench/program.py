"""A peer that is no worker: a Python program that does the same work by itself, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, Self

from processes import Tree

from headgate.dev.ports import HOST

_FOLDER: Final = Path(__file__).resolve().parent
_READY, _DONE = "ready", "done"
_STOP_S: Final = 30.0


class Program:
    """Runs from `with`, which returns when it has warmed up, to its end, and then nothing that it started runs any
    more."""

    def __init__(self, name: str, folder: Path, settings: Mapping[str, Any]) -> None:
        self._name, self._folder, self._settings = name, folder, settings

    def __enter__(self) -> Self:
        self._log = self._folder / f"{self._name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(_FOLDER / f"{self._name}.py"), json.dumps(self._settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, "SPARK_LOCAL_IP": HOST},
                start_new_session=True,
            )
        try:
            self._await(_READY)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def tree(self) -> Tree:
        return Tree.of(self._process.pid)

    def work(self) -> None:
        """Returns when all of it is done."""
        _pipe(self._process.stdin).write(b"go\n")
        _pipe(self._process.stdin).flush()
        self._await(_DONE)

    def _await(self, word: str) -> None:
        for line in iter(_pipe(self._process.stdout).readline, b""):
            if line.decode().strip() == word:
                return
        raise RuntimeError(f"{self._name} ended before it was {word}:\n{self._log.read_text(errors='replace')[-3000:]}")

    def _stop(self) -> None:
        started = self.tree()
        _pipe(self._process.stdin).close()  # which ends it
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        started.end(5)


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    assert end is not None
    return end


def serve(warm_up: Callable[[], None], work: Callable[[], None]) -> None:
    """What such a program does: it is warm, says so, works when it is told, says so, and ends with its input."""
    warm_up()
    print(_READY, flush=True)
    for _ in sys.stdin:
        work()
        print(_DONE, flush=True)
