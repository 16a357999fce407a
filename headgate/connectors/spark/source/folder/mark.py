"""FolderMark: how far a folder has been read. It does not grow with the number of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, NamedTuple

from headgate.api import ConnectError

PATH: Final = "path"
FILE: Final = "file"
MODIFIED: Final = "modified"
RECORDS: Final = "records"
DONE: Final = "done"

_LONG: Final = 1 << 63


class FolderFile(NamedTuple):
    name: str
    modified: int
    """Milliseconds since 1970."""
    size: int


@dataclass(frozen=True, slots=True)
class FolderMark:
    """All files before this one are done, and so many records of it."""

    name: str
    modified: int | None
    """With files in the order of time; None in the order of names."""
    records: int
    done: bool
    """All records of it are."""

    @property
    def place(self) -> tuple[int, str]:
        return self.modified or 0, self.name

    def written(self) -> dict[str, Any]:
        """As an offset."""
        when = {} if self.modified is None else {MODIFIED: self.modified}
        return {FILE: self.name, **when, RECORDS: self.records, DONE: self.done}

    @classmethod
    def read(cls, stored: Mapping[str, Any], by_time: bool) -> FolderMark:
        """Raises ConnectError."""
        needed = {FILE, RECORDS, DONE, *((MODIFIED,) if by_time else ())}
        numbers = [stored[key] for key in (RECORDS, MODIFIED) if key in needed & stored.keys()]
        fine = (
            stored.keys() == needed
            and isinstance(stored[FILE], str)
            and isinstance(stored[DONE], bool)
            and all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < _LONG for each in numbers)
        )
        if not fine:
            order = "time" if by_time else "name"
            raise ConnectError(
                f"With order.by={order}, an offset has {FILE}, {f'{MODIFIED} (ms), ' if by_time else ''}{RECORDS} and"
                f" {DONE} (true or false), not {dict(stored)}"
            )
        return cls(stored[FILE], stored.get(MODIFIED), stored[RECORDS], stored[DONE])


def place_of(file: FolderFile, by_time: bool) -> tuple[int, str]:
    """By which files are ordered."""
    return file.modified if by_time else 0, file.name


def pending(
    files: Iterable[FolderFile], mark: FolderMark | None, by_time: bool, settled_at: int | None
) -> list[FolderFile]:
    """Those to be read now, in their order; the first may be one that is half read.

    `settled_at`: a file that changed later than this may still be written; None: all are complete. Files behind such a
    one wait with it: else it would be below the mark when it is complete, and never be read."""
    left = [file for file in files if mark is None or not _is_done(file, mark, by_time)]
    left.sort(key=lambda file: place_of(file, by_time))
    return left if settled_at is None else list(takewhile(lambda file: file.modified <= settled_at, left))


def _is_done(file: FolderFile, mark: FolderMark, by_time: bool) -> bool:
    at = place_of(file, by_time)
    return at < mark.place or (at == mark.place and mark.done)
