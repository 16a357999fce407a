"""WatchedFile: what stands in a file, read again when the file changes."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from headgate.api.errors import ConfigError
from headgate.log import Complaints

log = logging.getLogger(__name__)

T = TypeVar("T")

_LOOK_S: Final = 1.0
_SETTLED_S: Final = 1.0
"""Who writes a file in several pieces takes no longer between two of them."""


class WatchedFile(Generic[T]):
    """Looked at when it is used, once a second at most, and read again when nobody has written it for a second: half of
    it says something else. While what it says is of no use, what it said before holds. May be used from any thread."""

    def __init__(
        self,
        key: str,
        path: str,
        parse: Callable[[str], T],
        *,
        encoding: str = "utf-8",
        secret: bool = False,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`key`: the one that names the file. `parse` raises ValueError, which says where and what is wrong. `secret`:
        nobody else should read it. Raises ConfigError."""
        self.path = os.path.abspath(path)
        self._parse = parse
        self._encoding = encoding
        self._mode = 0o066 if secret else 0o022
        self._clock = clock
        self._now = now
        self._lock = threading.Lock()
        self._complaints = Complaints(log, f"{self.path}, named by {key}", clock)
        self._version = 0
        self._looked = clock()
        try:
            self._seen = _stamp(os.stat(path))  # before it is read: a change in between is one
            self._value = self._load()
        except (OSError, ValueError) as error:
            raise ConfigError.invalid(key, path, _why(error)) from None

    def read(self) -> T:
        with self._lock:
            self._look()
            return self._value

    @property
    def version(self) -> int:
        """Another one whenever the file was read again."""
        with self._lock:
            self._look()
            return self._version

    def _look(self) -> None:
        if self._clock() - self._looked < _LOOK_S:
            return
        self._looked = self._clock()
        try:
            found = os.stat(self.path)
            if _stamp(found) == self._seen or 0 <= self._now() - found.st_mtime < _SETTLED_S:
                return
            self._value = self._load()
            self._seen = _stamp(found)
            self._version += 1
            log.info("%s has changed and was read again", self.path)
        except (OSError, ValueError) as error:
            self._complaints.say(f"{_why(error)}; what it said before still holds")

    def _load(self) -> T:
        with open(self.path, encoding=self._encoding) as file:
            loose = os.fstat(file.fileno()).st_mode & self._mode
            text = file.read()
        if loose:
            verb, mode = ("change", "go-w") if loose & 0o022 else ("read", "go-r")
            self._complaints.say(f"others on this machine may {verb} it; chmod {mode} ends that", once=True)
        return self._parse(text)


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _why(error: Exception) -> str:
    return f"it cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
