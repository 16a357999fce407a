"""FolderListing: which files a folder has, and which of them came too late to be read."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from headgate.api import ConnectError
from headgate.connectors.spark.source.folder.mark import FolderFile, FolderMark, place_of

log = logging.getLogger(__name__)

_HIDDEN: Final = ("_", ".")


@dataclass(eq=False)
class FolderListing:
    _path: str
    """For people."""
    _look: Callable[[], Iterable[FolderFile]]
    """Lists its files. Raises OSError."""
    _pattern: str
    _by_time: bool
    _below: set[str] | None = None
    """Names of files up to the mark when it was last looked."""
    _complained: set[str] = field(default_factory=set)

    def files(self) -> list[FolderFile]:
        """Those straight in the folder. None while there is no folder. Raises ConnectError."""
        try:
            return [each for each in self._look() if self._is_meant(each.name)]
        except FileNotFoundError:
            self._complain(f"{self._path} does not exist: it is waited for")
            return []
        except OSError as error:
            raise ConnectError(f"Folder {self._path} cannot be read: {error.strerror}") from error

    def _is_meant(self, name: str) -> bool:
        if name.startswith(_HIDDEN) or not fnmatchcase(name, self._pattern):
            return False
        try:
            name.encode()
        except UnicodeEncodeError:
            self._complain(f"{self._path} has a file whose name is not UTF-8, which is left out: {name!r}")
            return False
        return True

    def look_for_late(self, files: list[FolderFile], mark: FolderMark) -> None:
        """Says so once when a file turns up below the mark: it will not be read."""
        below = {each.name for each in files if place_of(each, self._by_time) < mark.place}
        if self._below is not None:
            for name in sorted(below - self._below):
                if name != mark.name:
                    log.warning(
                        "%s belongs before %s, which has been read: it came too late and is not read. To have it read,"
                        " give it a %s",
                        *(os.path.join(self._path, name), mark.name),
                        "later time, with touch" if self._by_time else "name that comes later",
                    )
        self._below = below | {mark.name}

    def passed(self, names: list[str]) -> None:
        """These were read: they are below the mark from now on, and not late."""
        if self._below is not None:
            self._below.update(names)

    def _complain(self, what: str) -> None:
        if what not in self._complained:
            self._complained.add(what)
            log.warning("%s", what)


def local_files(path: str) -> Iterator[FolderFile]:
    """Regular files, or links to such. Raises OSError."""
    with os.scandir(path) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # it went while we looked
                if entry.is_file():
                    told = entry.stat()
                    yield FolderFile(entry.name, told.st_mtime_ns // 1_000_000, told.st_size)
