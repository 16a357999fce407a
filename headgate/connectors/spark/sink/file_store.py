"""FileStore: what a ledger needs of the store that its folder is in; and that of this machine."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from headgate.connectors.durable import sync, take_name


class FileStore(Protocol):
    """Paths are texts, with / between names. Raises OSError."""

    def names(self, folder: str) -> list[str]:
        """Of what is in it; none if there is no such folder."""

    def files(self, folder: str) -> Iterator[str]:
        """All that are in it and below it, by their paths from there."""

    def exists(self, path: str) -> bool: ...

    def read(self, path: str) -> bytes: ...

    def write(self, path: str, data: bytes) -> None:
        """A new file, with the folders above it. It outlives a loss of power."""

    def rename(self, old: str, new: str) -> None:
        """At once, to a place whose folders are made. A folder that holds something is never replaced: of two who want
        the same name one gets it, the other FileExistsError. FileNotFoundError: there is no such thing any more."""

    def remove(self, folder: str) -> None:
        """With all in it."""

    def sync(self, folder: str) -> None:
        """What is below it, and its name, outlive a loss of power."""


class LocalStore:
    """Fits FileStore."""

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder) if os.path.isdir(folder) else []

    def files(self, folder: str) -> Iterator[str]:
        for path, _, names in os.walk(folder):
            yield from (os.path.relpath(os.path.join(path, name), folder) for name in names)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, old: str, new: str) -> None:
        os.makedirs(os.path.dirname(new), exist_ok=True)
        if not take_name(Path(old), Path(new)):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)

    def remove(self, folder: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    def sync(self, folder: str) -> None:
        for path, _, names in os.walk(folder):
            for each in (path, *(os.path.join(path, name) for name in names)):
                sync(each)
