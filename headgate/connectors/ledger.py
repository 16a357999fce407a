"""Ledger: the files of one partition in a folder, one entry after the other, each says where the next one begins.

An entry is a folder, `<epoch>-<offset where it begins>`, with one file whose name says what follows.
`until-<offset>.txt` has lines, and the next entry begins at that offset. `altered-to-<offset>` and `reset` have
nothing: a user changed the offsets, and the next entry begins a new epoch, there or wherever Kafka says.

An entry comes into being whole, by one rename, which never replaces a folder that holds something. So the name of the
next entry is a place that is taken once: of two writers who both think that the partition is theirs, one gets it.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.durable import make, sync, take_name, unwritable

_STAGED: Final = ".staged"
_LINES: Final = "lines"
_RESET: Final = "reset"
_PARTITION: Final = re.compile(r"(.+)-([0-9]+)")
_ENTRY: Final = re.compile(r"([0-9]{6})-([0-9]{20})")
_CONTENT: Final = re.compile(r"until-([0-9]{20})\.txt|altered-to-([0-9]{20})|reset")


class Taken(ConnectError):
    """Another writer was first. This one must not go on: what it has is that one's to write."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the next entry goes."""

    epoch: int = 0
    offset: int | None = None
    """None: nothing is known, the consumer group decides."""
    fresh: bool = True
    """Whether it begins its epoch."""

    @property
    def name(self) -> str:
        # One name for a beginning that nobody knows: two writers would guess two.
        return f"{self.epoch:06}-{self.offset or 0:020}"


class Draft:
    """An entry that is being written, where nobody looks for entries. Raises OSError."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines = folder / _LINES
        self._parts: list[tuple[int, int]] = []
        """After each part that was added: the offset that follows its records, the size of the file."""

    def add(self, data: Any, following: int) -> None:
        """Lines, and the offset after their last record."""
        size = self._parts[-1][1] if self._parts else 0
        left = memoryview(data)
        whole = size + len(left)
        if not self._parts:
            self.folder.mkdir(parents=True, exist_ok=True)
        with open(self._lines, "ab", buffering=0) as file:
            file.truncate(size)  # the last try may have ended halfway
            while left:
                left = left[file.write(left) :]
        self._parts.append((following, whole))

    def finish(self, name: str, until: int) -> None:
        """Makes it durable, without the parts whose records do not all stand before `until`."""
        while self._parts and self._parts[-1][0] > until:
            self._parts.pop()
        if not self._parts:
            self.folder.mkdir(parents=True, exist_ok=True)
        with open(self._lines, "r+b" if self._parts else "wb", buffering=0) as file:
            file.truncate(self._parts[-1][1] if self._parts else 0)
            os.fsync(file.fileno())
        os.rename(self._lines, self.folder / name)
        sync(self.folder)

    def discard(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._parts = []


class Ledger:
    """May be read by anybody while it is written."""

    def __init__(self, root: Path, where: TopicPartition) -> None:
        """Raises ConnectError when the folder cannot be made."""
        name = f"{quote(where.topic, safe='')}-{where.partition}"
        self._root = root
        self._where = where
        self._folder = root / name
        self._staged = root / _STAGED / name
        try:
            make(root)
        except OSError as error:
            raise self._unwritable(error) from error

    @staticmethod
    def all_in(root: Path) -> list[Ledger]:
        """Of all partitions that the folder has."""
        names = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
        found = [match for match in map(_PARTITION.fullmatch, names) if match]
        return [Ledger(root, TopicPartition(unquote(match[1]), int(match[2]))) for match in found]

    def end(self) -> Place:
        """Where to go on. Raises ConnectError."""
        try:
            found = [match for match in map(_ENTRY.fullmatch, os.listdir(self._folder)) if match]
            if not found:
                return Place()
            last = max(found, key=lambda match: match[0])
            return self._after(int(last[1]), os.listdir(self._folder / last[0]), last[0])
        except FileNotFoundError:
            return Place()
        except OSError as error:
            raise ConnectError(f"Cannot read folder {self._folder}: {error.strerror}") from error

    def _after(self, epoch: int, content: list[str], name: str) -> Place:
        found = [match for match in map(_CONTENT.fullmatch, content) if match]
        if len(found) != 1:
            raise ConnectError(
                f"{self._folder / name} must have one file whose name says where to go on, and has {len(found)}"
            )
        until, altered = found[0].groups()
        if until is not None:
            return Place(epoch, int(until), fresh=False)
        return Place(epoch + 1, None if altered is None else int(altered))

    def draft(self) -> Draft:
        return Draft(self._staged / uuid.uuid4().hex)

    def discard_drafts(self) -> None:
        """Of all writers: those that still live will find out that they are not alone."""
        shutil.rmtree(self._staged, ignore_errors=True)

    def add(self, draft: Draft, place: Place, until: int) -> Place:
        """The records of the draft that stand before `until`. Raises Taken, and ConnectError, after which only `end`
        knows whether it is there."""
        assert until > (place.offset or 0), "an entry without any offsets has the name of the next"
        self._enter(draft, place, f"until-{until:020}.txt", until)
        return Place(place.epoch, until, fresh=False)

    def move(self, offset: int | None) -> None:
        """To another offset, or to none, in a new epoch. Raises Taken, ConnectError."""
        place = self.end()
        if place.fresh and place.offset == offset:
            return
        draft = self.draft()
        try:
            self._enter(draft, place, _RESET if offset is None else f"altered-to-{offset:020}", 0)
        finally:
            draft.discard()

    def _enter(self, draft: Draft, place: Place, name: str, until: int) -> None:
        with self.writing():
            draft.finish(name, until)
            make(self._folder)
            if not take_name(draft.folder, self._folder / place.name):
                raise self._taken()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """What goes wrong with a draft meanwhile, said so that users understand it: as Taken or ConnectError."""
        try:
            yield
        except FileNotFoundError as error:  # who opens a partition throws away the drafts of others
            raise self._taken() from error
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ConnectError:
        return unwritable(f"folder {self._root}", str(error.strerror))

    def _taken(self) -> Taken:
        return Taken(
            f"Another task writes {self._where} to folder {self._root}, so this one may not. Nothing was lost, and"
            " nothing written twice. If no other connector writes there, restart the task"
        )
