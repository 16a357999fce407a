"""Class data archives: written at the end of the first JVM of a kind, they make the others start sooner.

Spark loads twenty thousand classes, Kafka eight. From an archive they are mapped instead of parsed: it takes up to
140 MB in the cache folder, and seconds off every start. Without one nothing but time is lost.
"""

from __future__ import annotations

import hashlib
import logging
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

log = logging.getLogger(__name__)

_QUIET: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    file: Path
    _new: Path

    @classmethod
    def of(cls, cache: Path, name: str, java: Path, classes: Sequence[str]) -> ClassArchive:
        """Of this Java and this class path; any other has another file."""
        real = java.resolve()
        known = "\n".join([str(real), str(real.stat().st_mtime_ns), *classes])
        file = cache / "classes" / f"{name}-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"
        return cls(file, file.with_suffix(f".{uuid.uuid4().hex}"))

    def options(self) -> list[str]:
        """For the JVM's command line: to use it or, where there is none, to write one when it ends."""
        if self.file.exists():
            return [f"-XX:SharedArchiveFile={self.file}", *_QUIET]
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError:
            return []
        return [f"-XX:ArchiveClassesAtExit={self._new}", *_QUIET]

    def keep(self) -> None:
        """The JVM that was to write it has ended: what it wrote counts from now on."""
        with suppress(OSError):  # it wrote nothing, e.g. because it was killed
            self._new.rename(self.file)
            log.info("The next start will be quicker: classes are kept in %s", self.file)
