"""FileLedger: which files of a folder count, and the offsets behind them. Of one connector, on this machine.

    _headgate/<connector>/<number>/entry.json    the offsets of all partitions, and the columns
    _headgate/<connector>/<number>/files/...     what is still to be moved to where readers look

An entry is written out of sight and comes into being whole, by one rename, which never replaces a folder that holds
something. That is the commit: of two writers who both think that the next number is theirs, one gets it. Moving the
files is only what follows, and whoever comes next does what is left of it. No reader of Spark looks into a folder whose
name begins like this one's.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.durable import sync, take_name, unwritable
from headgate.connectors.ledger import Taken
from headgate.connectors.spark.sink.target import altered

_FOLDER: Final = "_headgate"
_ENTRY: Final = "entry.json"
_FILES: Final = "files"
_STAGED: Final = ".staged-"
_GONE: Final = ".gone-"
_NUMBER: Final = re.compile(r"[0-9]{20}")
_KEPT: Final = 1000
"""So many entries stay. One that is older is known by its absence: who would write next to it is far too late."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    number: int = 0
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    columns: str | None = None
    """As DDL."""


class FileLedger:
    def __init__(self, root: Path, connector: str) -> None:
        self._root = root
        self._folder = root / _FOLDER / quote(connector, safe="").replace(".", "%2E")

    def last(self) -> FileEntry:
        """The newest one; without any, number 0. Raises ConnectError."""
        with self._told():
            numbers = self._numbers()
            if not numbers:
                return FileEntry()
            path = self._entry(numbers[-1]) / _ENTRY
            try:
                content = json.loads(path.read_text())
                offsets = {
                    TopicPartition(topic, int(partition)): int(offset)
                    for topic, known in content["offsets"].items()
                    for partition, offset in known.items()
                }
                return FileEntry(numbers[-1], offsets, content["columns"])
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ConnectError(f"{path} is no entry of a ledger: {error}") from error

    def stage(self, entry: FileEntry) -> StagedEntry:
        """A place for its files. Raises ConnectError."""
        offsets: dict[str, dict[str, int]] = {}
        for where, offset in sorted(entry.offsets.items()):
            offsets.setdefault(where.topic, {})[str(where.partition)] = offset
        staged = StagedEntry(self._folder / f"{_STAGED}{uuid.uuid4().hex}", entry)
        with self._told():
            staged.folder.mkdir(parents=True)
            _write(staged.folder / _ENTRY, json.dumps({"offsets": offsets, "columns": entry.columns}))
        return staged

    def commit(self, staged: StagedEntry) -> None:
        """Raises Taken; and ConnectError, after which only `last` knows whether it is there."""
        number = staged.entry.number
        with self._told():
            # Whoever opened the ledger meanwhile has moved it away, and Spark may have made the folder anew, in which
            # then not all files are.
            if not (staged.folder / _ENTRY).exists() or (number > 1 and not self._entry(number - 1).is_dir()):
                raise self._taken()
            for path, _, names in os.walk(staged.folder):
                for each in (path, *(os.path.join(path, name) for name in names)):
                    sync(each)
            try:
                taken = not take_name(staged.folder, self._entry(number))
            except FileNotFoundError:  # it was moved away right now
                taken = True
            if taken:
                raise self._taken()

    def settle(self) -> None:
        """Moves all files to where readers look; several may do so at once. Raises ConnectError."""
        with self._told():
            numbers = self._numbers()
            for number in numbers:
                self._move(self._entry(number) / _FILES)
            for number in numbers[:-_KEPT]:
                shutil.rmtree(self._entry(number))

    def _move(self, files: Path) -> None:
        if not files.is_dir():
            return
        touched = set()
        for path, folders, names in os.walk(files):
            folders[:] = [name for name in folders if _counts(name)]
            for name in filter(_counts, names):
                source = Path(path, name)
                target = self._root / source.relative_to(files)
                target.parent.mkdir(parents=True, exist_ok=True)
                try:
                    os.rename(source, target)
                except FileNotFoundError:
                    if source.exists():
                        raise
                touched.add(target.parent)
        for folder in touched:
            sync(folder)
        shutil.rmtree(files, ignore_errors=True)

    def discard_staged(self) -> None:
        """Of all writers: those that still live will find out that they are not alone. Raises ConnectError."""
        with self._told():
            found = self._folder.iterdir() if self._folder.is_dir() else ()
            for path in found:
                if path.name.startswith(_STAGED):
                    gone = path.with_name(_GONE + uuid.uuid4().hex)
                    with suppress(FileNotFoundError):
                        os.rename(path, gone)  # at once: a half of it must not become an entry
                elif path.name.startswith(_GONE):
                    gone = path
                else:
                    continue
                shutil.rmtree(gone, ignore_errors=True)

    def move(self, changes: Mapping[TopicPartition, int | None]) -> None:
        """To other offsets, or, where there is None, to what the group says; without any changes, that of all. Raises
        Taken, ConnectError."""
        last = self.last()
        offsets = altered(last.offsets, changes)
        if offsets != last.offsets:
            self.commit(self.stage(FileEntry(last.number + 1, offsets, last.columns)))

    def _numbers(self) -> list[int]:
        names = os.listdir(self._folder) if self._folder.is_dir() else []
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def _entry(self, number: int) -> Path:
        return self._folder / f"{number:020}"

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            raise unwritable(f"folder {self._root}", f"{error.strerror}{where}") from error

    def _taken(self) -> Taken:
        return Taken(
            f"Another task writes to folder {self._root} under the name of this connector. Nothing was lost, and"
            " nothing written twice: this one goes on after what the other has written"
        )


@dataclass(frozen=True, slots=True)
class StagedEntry:
    """Out of sight, until it is committed."""

    folder: Path
    entry: FileEntry

    @property
    def files(self) -> Path:
        return self.folder / _FILES


def _counts(name: str) -> bool:
    """Whether Spark's readers would look at it."""
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)


def _write(path: Path, text: str) -> None:
    with open(path, "x") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
