"""The class data archive of the driver JVM: written at the end of the first one, it makes the others start sooner.

Spark loads twenty thousand classes. From an archive they are mapped instead of parsed: it takes 140 MB in the cache
folder, and seconds off every start. Without one, or with one of another Java, nothing but time is lost.
"""

from __future__ import annotations

import hashlib
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


@dataclass(frozen=True, slots=True)
class ClassArchive:
    file: Path

    @classmethod
    def of(cls, cache: Path, java: Path, jars: Path) -> ClassArchive:
        """Of this Java and these jars; any other has another file."""
        real = java.resolve()
        names = sorted(entry.name for entry in jars.iterdir())
        known = hashlib.sha256("\n".join([str(real), str(real.stat().st_mtime_ns), str(jars), *names]).encode())
        return cls(cache / f"spark-{known.hexdigest()[:16]}.jsa")

    def options(self) -> str:
        """For the JVM's command line: to use it or, where there is none, to write one when it ends."""
        if self.file.exists():
            return f"-XX:SharedArchiveFile={self.file} {_QUIET}"
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ""
        return f"-XX:ArchiveClassesAtExit={self._new} {_QUIET}"

    def keep(self) -> None:
        """The JVM that was to write it has ended: what it wrote counts from now on."""
        with suppress(OSError):  # it wrote nothing, e.g. because it was killed
            self._new.rename(self.file)
            log.info("Spark will start sooner from now on: its classes are in %s", self.file)

    @property
    def _new(self) -> Path:
        return self.file.with_suffix(f".{os.getpid()}")
