"""FileLedger: which files of a folder count, and the offsets behind them. Of one connector.

    _headgate/<connector>/<number>/entry.json    the offsets of all partitions, and the columns
    _headgate/<connector>/<number>/files/...     what is still to be moved to where readers look

An entry is written out of sight and comes into being whole, by one rename, which never replaces a folder that holds
something. That is the commit: of two writers who both think that the next number is theirs, one gets it. Moving the
files is only what follows, and whoever comes next does what is left of it. No reader of Spark looks into a folder whose
name begins like this one's.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from headgate.api import ConnectError, TopicPartition
from headgate.connectors.durable import unwritable
from headgate.connectors.ledger import Taken
from headgate.connectors.spark.sink.file_store import FileStore, LocalStore
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
    def __init__(self, root: str, connector: str, store: FileStore | None = None) -> None:
        self._root = root
        self._folder = f"{root}/{_FOLDER}/{quote(connector, safe='').replace('.', '%2E')}"
        self._store = store or LocalStore()
        self._settled = 0
        """All up to this number were."""

    def last(self) -> FileEntry:
        """The newest one; without any, number 0. Raises ConnectError."""
        with self._told():
            numbers = self._numbers()
            if not numbers:
                return FileEntry()
            path = f"{self._entry(numbers[-1])}/{_ENTRY}"
            try:
                content = json.loads(self._store.read(path))
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
        staged = StagedEntry(f"{self._folder}/{_STAGED}{uuid.uuid4().hex}", entry)
        with self._told():
            content = json.dumps({"offsets": offsets, "columns": entry.columns})
            self._store.write(f"{staged.folder}/{_ENTRY}", content.encode())
        return staged

    def commit(self, staged: StagedEntry) -> None:
        """Raises Taken; and ConnectError, after which only `last` knows whether it is there."""
        store, number = self._store, staged.entry.number
        with self._told():
            # Whoever opened the ledger meanwhile has moved it away, and Spark may have made the folder anew, in which
            # then not all files are.
            gone = not store.exists(f"{staged.folder}/{_ENTRY}")
            if gone or (number > 1 and not store.exists(self._entry(number - 1))):
                raise self._taken()
            store.sync(staged.folder)
            try:
                store.rename(staged.folder, self._entry(number))
            except (FileExistsError, FileNotFoundError):  # another has it; or it was moved away right now
                raise self._taken() from None

    def settle(self) -> None:
        """Moves all files to where readers look; several may do so at once. Raises ConnectError."""
        with self._told():
            numbers = self._numbers()
            for number in numbers:
                if number > self._settled:
                    self._move(f"{self._entry(number)}/{_FILES}")
            for number in numbers[:-_KEPT]:
                self._store.remove(self._entry(number))
            self._settled = numbers[-1] if numbers else 0

    def _move(self, files: str) -> None:
        store = self._store
        if not store.exists(files):
            return
        for path in store.files(files):
            if all(map(_counts, path.split("/"))):
                try:
                    store.rename(f"{files}/{path}", f"{self._root}/{path}")
                except FileNotFoundError:
                    if store.exists(f"{files}/{path}"):
                        raise
        store.remove(files)

    def discard_staged(self) -> None:
        """Of all writers: those that still live will find out that they are not alone. Raises ConnectError."""
        with self._told():
            for name in self._store.names(self._folder):
                gone = name if name.startswith(_GONE) else _GONE + uuid.uuid4().hex
                if name.startswith(_STAGED):
                    with suppress(FileNotFoundError):  # at once: a half of it must not become an entry
                        self._store.rename(f"{self._folder}/{name}", f"{self._folder}/{gone}")
                elif name != gone:
                    continue
                self._store.remove(f"{self._folder}/{gone}")

    def move(self, changes: Mapping[TopicPartition, int | None]) -> None:
        """To other offsets, or, where there is None, to what the group says; without any changes, that of all. Raises
        Taken, ConnectError."""
        last = self.last()
        offsets = altered(last.offsets, changes)
        if offsets != last.offsets:
            self.commit(self.stage(FileEntry(last.number + 1, offsets, last.columns)))

    def _numbers(self) -> list[int]:
        return sorted(int(name) for name in self._store.names(self._folder) if _NUMBER.fullmatch(name))

    def _entry(self, number: int) -> str:
        return f"{self._folder}/{number:020}"

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

    folder: str
    entry: FileEntry

    @property
    def files(self) -> str:
        return f"{self.folder}/{_FILES}"


def _counts(name: str) -> bool:
    """Whether Spark's readers would look at it."""
    return not name.startswith(".") and (not name.startswith("_") or "=" in name)
