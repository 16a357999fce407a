"""FileOffsetStore: source offsets of standalone mode in one file, `offset.storage.file.filename`.

The file is JSON with one entry a line, made to be read, compared and, while no worker runs, edited:

    {"format": "headgate-offsets", "version": 1, "offsets": [
    {"connector": "orders", "partition": {"filename": "/d/in.txt"}, "offset": {"position": 9}},
    {"connector": "orders", "partition": {"filename": "/d/more.txt"}, "offset": {"position": 2}}
    ]}

`version` grows when older readers would misread the file. Order of entries has no meaning but is kept.

Each change writes the whole content to `<file>.tmp`, forces it to the disk and puts it in the file's place, so that a
process killed at any moment leaves either the old content or the new. `<file>.lock` keeps a second worker out; it stays
when the worker ends, because removing it could let two workers lock two files of that name. A file of Apache's worker
is read too, and kept as `<file>.java.bak` when ours first takes its place.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

from headgate.java.json import strict_loads
from headgate.model import Offset, Partition
from headgate.storage.java_offsets import MAGIC, JavaStreamError, read_java_offsets
from headgate.storage.offset_table import InvalidOffset, Offsets, OffsetTable, encode, identity

_FORMAT: Final = "headgate-offsets"
_VERSION: Final = 1
_log: Final = logging.getLogger(__name__)


class OffsetFileError(Exception):
    """The offset file cannot be used; the message names it and says what to do."""


class FileOffsetStore:
    """May be used from any thread; a put is on the disk when it returns. Call `close()` to let another worker in."""

    def __init__(self, path: Path | str) -> None:
        """Raises OffsetFileError, also when the folder could not be written to later."""
        # Where a symbolic link leads: replacing the link would leave its target behind, and two links are one file.
        try:
            self.path = Path(path).absolute().resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise OffsetFileError(f"The offset file {path} cannot be found ({error}): check its name.") from error
        self._changing = threading.Lock()
        self._check_folder()
        self._lock: int | None = self._take_lock()
        try:
            self._mode = self._check_writable()
            data = self._read()
            self._imported = data if data.startswith(MAGIC) else None
            self._table = self._load_java(data) if self._imported else self._load(data)
        except BaseException:
            self.close()
            raise

    def get(self, connector: str, partitions: Sequence[Partition | None]) -> list[Offset | None]:
        return self._table.get(connector, partitions)

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        return self._table.all(connector)

    def put(self, connector: str, offsets: Offsets) -> None:
        """All of them or none; None removes an offset. Raises InvalidOffset, OffsetFileError."""
        with self._changing:
            if self._lock is None:
                raise OffsetFileError(f"The offset file {self.path} is closed: another worker may be using it.")
            table = self._table.changed(connector, offsets)
            if table is self._table:
                return
            try:
                self._keep_import()
                _replace(self.path, _render(table), self._mode)
            except OSError as error:
                raise OffsetFileError(
                    f"The offset file {self.path} could not be written ({error.strerror or error}): its last content is"
                    " still there; make room or give access, then restart the task."
                ) from error
            self._table = table

    def close(self) -> None:
        """Let another worker use the file; harmless when closed."""
        with self._changing:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    # Opening

    def _check_folder(self) -> None:
        folder = self.path.parent
        if not folder.is_dir():
            raise OffsetFileError(
                f"The offset file {self.path} cannot be made: {folder} is no folder. Make it, or set"
                " offset.storage.file.filename to another file."
            )
        if self.path.exists() and not self.path.is_file():
            raise OffsetFileError(
                f"The offset file {self.path} is not a file: set offset.storage.file.filename to another name."
            )

    def _take_lock(self) -> int:
        path = _beside(self.path, ".lock")
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        except OSError as error:
            self._unwritable(path, error)
        try:
            # flock and not lockf: that one would let the same process in twice.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.read(lock, 32).decode("ascii", "replace").strip() or "unknown"
            os.close(lock)
            if not isinstance(error, BlockingIOError):
                self._unwritable(path, error)
            raise OffsetFileError(
                f"The offset file {self.path} is in use by another worker, process {owner}: stop that one, or give this"
                " one a file of its own with offset.storage.file.filename."
            ) from None
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())
        return lock

    def _check_writable(self) -> int:
        """Try what every change will do; returns the access mode that the file has or shall have."""
        try:
            temporary = _beside(self.path, ".tmp")
            _write(temporary, b"", None)
            mode = (self.path if self.path.exists() else temporary).stat().st_mode & 0o777
            temporary.unlink()
        except OSError as error:
            self._unwritable(self.path.parent, error)
        return mode

    def _unwritable(self, what: Path, error: OSError) -> NoReturn:
        raise OffsetFileError(
            f"The offset file {self.path} could not be written later, for {what} cannot be ({error.strerror or error}):"
            " give this user access to it, or set offset.storage.file.filename to a file in another folder."
        ) from error

    # Loading

    def _read(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise OffsetFileError(
                f"The offset file {self.path} cannot be read ({error.strerror or error}): give this user access to it."
            ) from error

    def _load(self, data: bytes) -> OffsetTable:
        if not data.strip():
            if self.path.exists():  # a full disk, or a copy that was cut off, leaves such a file
                _log.warning("The offset file %s is empty: source connectors start from the beginning", self.path)
            return OffsetTable()
        try:
            # A byte order mark is what some editors leave behind.
            return _table(strict_loads(data.decode("utf-8-sig")))
        except json.JSONDecodeError as error:
            self._corrupt(f"line {error.lineno}, column {error.colno}: {error.msg}", error)
        except ValueError as error:  # InvalidOffset and UnicodeDecodeError among them
            self._corrupt(str(error), error)

    def _load_java(self, data: bytes) -> OffsetTable:
        try:
            pairs = read_java_offsets(data)
        except JavaStreamError as error:
            self._corrupt(f"it is a Java serialization stream, but not that of Kafka Connect's offsets: {error}", error)
        rows, skipped = [], 0
        for key, value in pairs:
            if value is None:
                continue
            try:
                rows.append(_java_row(key, value))
            except (ValueError, TypeError):
                skipped += 1  # Apache's worker does not list these either; the copy still has them
        table = OffsetTable.of(rows)
        count = sum(1 for _ in table.entries())
        _log.info("Read %d offsets from %s, a file of Apache's worker; skipped %d odd ones", count, self.path, skipped)
        return table

    def _corrupt(self, why: str, error: Exception) -> NoReturn:
        raise OffsetFileError(
            f"The offset file {self.path} is damaged ({why}). It was left as it is: repair it, put back a copy, or move"
            " it away to let all source connectors start from the beginning."
        ) from error

    # Changing

    def _keep_import(self) -> None:
        if self._imported is None:
            return
        kept, number = _beside(self.path, ".java.bak"), 1
        while kept.exists() and kept.read_bytes() != self._imported:
            number += 1
            kept = _beside(self.path, f".java.bak.{number}")
        if not kept.exists():
            _replace(kept, self._imported, self._mode)
        self._imported = None


def _table(content: Any) -> OffsetTable:
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f'it does not say "format": "{_FORMAT}"')
    if content.get("version") != _VERSION:
        raise ValueError(
            f"its version is {content.get('version')!r}, which a newer Headgate may read: this one reads {_VERSION}"
        )
    entries = content.get("offsets")
    if not isinstance(entries, list):
        raise ValueError('"offsets" is not a list')
    rows: list[_Row] = []
    seen: set[tuple[str, str]] = set()
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or set(entry) != {"connector", "partition", "offset"}:
            raise ValueError(f'entry {number} does not have exactly "connector", "partition" and "offset"')
        try:
            row = _row(entry["connector"], entry["partition"], entry["offset"])
        except InvalidOffset as error:
            raise ValueError(f"entry {number}: {error}") from error
        key = row[0], identity(row[1])
        if key in seen:
            raise ValueError(f"entry {number} repeats the partition of an earlier one")
        seen.add(key)
        rows.append(row)
    return OffsetTable.of(rows)


_Row = tuple[str, Partition | None, Offset]


def _row(connector: Any, partition: Any, offset: Any) -> _Row:
    if not isinstance(connector, str) or not isinstance(partition, dict | None) or not isinstance(offset, dict):
        raise InvalidOffset("connector must be text, partition and offset must be objects")
    encode({"connector": connector}), encode(partition), encode(offset)
    return connector, partition, offset


def _java_row(key: bytes | None, value: bytes) -> _Row:
    connector, partition = strict_loads(key or b"null")
    return _row(connector, partition, strict_loads(value))


def _render(table: OffsetTable) -> bytes:
    lines = [
        f'{{"connector": {json.dumps(connector, ensure_ascii=False)},'
        f' "partition": {entry.partition or "null"}, "offset": {entry.offset}}}'
        for connector, entry in table.entries()
    ]
    head = json.dumps({"format": _FORMAT, "version": _VERSION, "offsets": []})[:-2]
    return (head + "\n" + ",\n".join(lines) + "\n]}\n").encode()


def _replace(path: Path, data: bytes, mode: int) -> None:
    """Old content or new, whatever happens and whenever."""
    temporary = _beside(path, ".tmp")
    try:
        _write(temporary, data, mode)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)  # on a full disk, every byte counts
        raise
    # The new name is only in the folder, and a folder is a file that must reach the disk too.
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _write(path: Path, data: bytes, mode: int | None) -> None:
    path.unlink(missing_ok=True)  # from a worker that was killed; nobody else writes here, for we hold the lock
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    with os.fdopen(file, "wb") as output:
        if mode is not None:
            os.fchmod(file, mode)
        output.write(data)
        output.flush()
        os.fsync(file)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
