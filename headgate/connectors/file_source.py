"""FileStreamSource: the lines of a growing file, or of standard input, one record each."""

from __future__ import annotations

import logging
import os
import select
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headgate.api import ConnectError, ExactlyOnceSupport, SourceConnector, SourceTable, SourceTask, schema
from headgate.api.config import HIGH, INT, LOW, STRING, ConfigDef, Key, at_least, non_empty
from headgate.api.reach import Reach, ReachKind

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Edges = np.ndarray[Any, np.dtype[np.int64]]

log = logging.getLogger(__name__)

FILE: Final = "file"
FILENAME: Final = "filename"
POSITION: Final = "position"

_BLOCK: Final = 1 << 20
_BLOCKS_PER_POLL: Final = 32
"""Lines may be long: a poll reads no more than this, however many lines `batch.size` allows."""
_LONGEST_LINE: Final = (1 << 31) - _BLOCK
"""What fits into one Arrow string."""
_IDLE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.1
_QUIET_SECONDS: Final = 5.0
"""A file that has given nothing for so long is looked at once a second: a hundred of them would keep a worker busy."""
_LONG: Final = 1 << 63

CONFIG: Final = ConfigDef(
    Key(FILE, STRING, default=None, importance=HIGH, doc="File to read; standard input when absent."),
    Key("topic", STRING, validator=non_empty, importance=HIGH, doc="Topic that the lines are written to."),
    Key("batch.size", INT, default=2000, validator=at_least(1), importance=LOW, doc="Most lines read in one poll."),
)


@dataclass(frozen=True, slots=True)
class FileSourceConfig:
    topic: str
    file: str | None
    batch_size: int

    @classmethod
    def of(cls, config: Mapping[str, str]) -> FileSourceConfig:
        parsed = CONFIG.parse(config)
        return cls(parsed["topic"], parsed[FILE] or None, parsed["batch.size"])


class FileStreamSourceTask(SourceTask):
    """Follows one file. The offset is the number of bytes from the start of the file to the end of the last line sent.

    A file that does not exist yet is waited for. A file that ends before the stored position (it was truncated, or
    another one took its place) is waited for too, until it grows past that position: nothing is sent twice, and the
    log says how to start over. A file that is replaced while it is open is followed to its end under its old handle,
    as Apache's connector does."""

    aliases = ("org.apache.kafka.connect.file.FileStreamSourceTask",)

    def __init__(self) -> None:
        self._stop = threading.Event()
        # `stop` may come from another thread than `poll`: a file is never closed while it is read.
        self._in_use = threading.Lock()
        self._stopped = False
        self._input: _File | _StandardInput | None = None
        self._missing = False
        self._complaint: str | None = None
        self._last_lines = time.monotonic()

    def start(self, config: Mapping[str, str]) -> None:
        self._config = FileSourceConfig.of(config)
        self._partition = {FILENAME: self._config.file} if self._config.file else None
        # Offsets have the name as it was given, as Apache's have; people are told which file that is.
        self._path = os.path.join(os.getcwd(), self._config.file) if self._config.file else None
        self._position = self._stored_position()
        self._lines = LineBuffer()

    def poll(self) -> SourceTable | None:
        with self._in_use:
            if self._stopped:
                return None
            if not self._opened():
                self._stop.wait(_IDLE_SECONDS)
                return None
            deadline = time.monotonic() + _IDLE_SECONDS
            while not self._read_lines():
                quiet = time.monotonic() - self._last_lines >= _QUIET_SECONDS
                if self._stop.wait(_IDLE_SECONDS if quiet else _LOOK_SECONDS) or time.monotonic() >= deadline:
                    self._complain()
                    return None
            self._last_lines = time.monotonic()
            return self._next_table()

    def stop_requested(self) -> None:
        self._stop.set()

    def stop(self) -> None:
        self._stop.set()
        with self._in_use:
            self._stopped = True
            if self._input is not None:
                self._input.close()
                self._input = None

    def _stored_position(self) -> int:
        if self._partition is None:
            return 0
        position = (self.context.offset_reader.offset(self._partition) or {}).get(POSITION)
        if position is None:
            return 0
        if type(position) is not int or not 0 <= position < _LONG:
            raise ConnectError(
                f"The stored offset of file {self._path} is no place in a file: {POSITION} is {position!r}"
            )
        return position

    def _opened(self) -> bool:
        """Whether there is something to read from; opens it if need be."""
        if self._input is not None:
            return True
        if self._path is None:
            self._input = _StandardInput()
            return True
        try:
            self.context.require(Reach(ReachKind.READ, self._path, FILE))
            self._input = _File(self._path, self._position)
        except FileNotFoundError:
            if not self._missing:
                log.warning("File %s does not exist: looking for it every second.", self._path)
            self._missing = True
            return False
        if self._missing:
            log.info("File %s is there now.", self._path)
        return True

    def _read_lines(self) -> bool:
        """Read on until a batch is full or nothing more is there; whether there are complete lines."""
        assert self._input is not None
        for _ in range(_BLOCKS_PER_POLL):
            if len(self._lines) >= self._config.batch_size:
                break
            block = self._input.read()
            if not block:
                break
            self._lines.feed(block)
            if self._lines.unfinished > _LONGEST_LINE:
                raise ConnectError(
                    f"{self._input} has a line longer than {_LONGEST_LINE} bytes at byte {self._position}"
                )
        return len(self._lines) > 0

    def _next_table(self) -> SourceTable:
        import pyarrow as pa

        lines, size = self._lines.take(self._config.batch_size)
        self._position += size
        return SourceTable(
            topic=self._config.topic,
            table=pa.table({"value": lines}),
            source_partition=self._partition,
            source_offset={POSITION: self._position} if self._partition else None,
            value_schema=schema.STRING,
        )

    def _complain(self) -> None:
        """Say, once, why nothing more may ever come."""
        assert self._input is not None
        complaint = self._input.complaint()
        if complaint is not None and complaint != self._complaint:
            log.warning("%s %s", self._input, complaint)
        self._complaint = complaint


class FileStreamSourceConnector(SourceConnector):
    """Reads one file, line by line, and goes on as it grows."""

    aliases = ("org.apache.kafka.connect.file.FileStreamSourceConnector",)
    config = CONFIG
    task_class: ClassVar[type[FileStreamSourceTask]] = FileStreamSourceTask

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> Sequence[Reach]:
        file = _file(config)
        return [Reach(ReachKind.READ, file, FILE)] if file else ()

    def start(self, config: Mapping[str, str]) -> None:
        FileSourceConfig.of(config)  # a wrong configuration fails here, not in every task
        self._task_config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._task_config]

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        if not _file(config):
            raise ConnectError(
                "Offsets cannot be modified if the 'file' configuration is unspecified. "
                "This is because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets:
            # Anything may be reset: garbage too must be possible to clean up.
            if offset is not None:
                _check_offset(offset)
                _check_partition(partition)
        return True

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED if _file(config) else ExactlyOnceSupport.UNSUPPORTED


def _file(config: Mapping[str, str]) -> str | None:
    return CONFIG[FILE].parse(config.get(FILE)) or None


def _check_offset(offset: Mapping[str, Any]) -> None:
    if POSITION not in offset:
        raise ConnectError("Offset objects should either be null or contain the key 'position'")
    position = offset[POSITION]
    if type(position) is not int or not -_LONG <= position < _LONG:
        raise ConnectError("The value for the 'position' key in the offset is expected to be a Long value")
    if position < 0:
        raise ConnectError("The value for the 'position' key in the offset should be a non-negative value")


def _check_partition(partition: Mapping[str, Any] | None) -> None:
    if partition is None:
        raise ConnectError("Partition objects cannot be null")
    if FILENAME not in partition:
        raise ConnectError("Partition objects should contain the key 'filename'")


class LineBuffer:
    r"""Takes blocks of bytes, gives complete lines; what follows the last line end waits for more.

    Lines end with `\n`, `\r\n` or `\r`. A `\r` at the very end of what was fed may yet become `\r\n`: it waits."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._chunks: deque[tuple[pa.StringArray, Edges]] = deque()
        """Lines without their ends, and where each began, ends included."""
        self._count = 0

    def __len__(self) -> int:
        """How many complete lines can be taken."""
        return self._count

    @property
    def unfinished(self) -> int:
        """Size of the line that has no end yet."""
        return len(self._rest)

    def feed(self, block: bytes) -> None:
        end = max(block.rfind(b"\n"), block.rfind(b"\r", 0, len(block) - 1)) + 1
        # Only now is it known what the \r before this block was: the end of a line, alone or with the \n that follows.
        if end or self._rest.endswith(b"\r"):
            lines, edges = _split(b"".join((self._rest, memoryview(block)[:end])))
            self._chunks.append((lines, edges))
            self._count += len(lines)
            self._rest = bytearray()
        self._rest += memoryview(block)[end:]

    def take(self, most: int) -> tuple[pa.ChunkedArray, int]:
        """The next lines as strings, without their ends, and their size in bytes, with their ends."""
        import pyarrow as pa

        taken: list[pa.StringArray] = []
        size, wanted = 0, min(most, self._count)
        self._count -= wanted
        while wanted:
            lines, edges = self._chunks.popleft()
            count = min(wanted, len(lines))
            taken.append(lines[:count])
            size += int(edges[count] - edges[0])
            if len(lines) > count:
                self._chunks.appendleft((lines[count:], edges[count:]))
            wanted -= count
        return pa.chunked_array(taken, pa.string()), size


def _split(data: bytes) -> tuple[pa.StringArray, Edges]:
    """Where there is no carriage return, Arrow need only be told where lines end."""
    import numpy as np
    import pyarrow as pa

    if b"\r" in data:
        # The three line ends of bytes.splitlines are ours; str.splitlines knows more of them.
        edges = np.cumsum([0, *map(len, data.splitlines(keepends=True))])
        return _decoded(pa.array(data.splitlines(), pa.binary())), edges
    edges = np.concatenate(([0], np.flatnonzero(np.frombuffer(data, np.uint8) == 0x0A) + 1))
    offsets = (edges - np.arange(len(edges))).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data.replace(b"\n", b""))]
    return _decoded(pa.Array.from_buffers(pa.binary(), len(edges) - 1, buffers)), edges


def _decoded(raw: pa.BinaryArray) -> pa.StringArray:
    import pyarrow as pa

    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8: U+FFFD instead of what cannot be read, as in Java
        return pa.array([line.decode(errors="replace") for line in raw.to_pylist()], pa.string())


class _File:
    """A file open for reading from `position` on. Raises FileNotFoundError; ConnectError if it cannot be read."""

    def __init__(self, path: str, position: int) -> None:
        self._path = path
        try:
            # A named pipe without a writer must not block us; for a file the flag means nothing.
            self._fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._unreadable(error) from error
        self._regular = stat.S_ISREG(os.fstat(self._fd).st_mode)
        try:
            if self._regular:
                os.lseek(self._fd, position, os.SEEK_SET)
        except OSError as error:  # further than this file system can count
            self.close()
            raise self._unreadable(error) from error

    def read(self) -> bytes:
        """What is there now, at most a block; nothing at the end."""
        try:
            return os.read(self._fd, _BLOCK)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._unreadable(error) from error

    def complaint(self) -> str | None:
        """What is odd about a file that gives nothing more."""
        if not self._regular:
            return None
        start_over = "To read it from its start, stop the connector, reset its offsets and resume it."
        opened = os.fstat(self._fd)
        position = os.lseek(self._fd, 0, os.SEEK_CUR)
        if opened.st_size < position:
            return (
                f"ends before byte {position}, where reading goes on: it was truncated or is another file. "
                f"Waiting until it grows past that byte. {start_over}"
            )
        try:
            same = os.path.samestat(opened, os.stat(self._path))
        except OSError:
            same = False
        moved = f"was moved or replaced; still following the old file. If there is a new one: {start_over}"
        return None if same else moved

    def close(self) -> None:
        os.close(self._fd)

    def _unreadable(self, error: OSError) -> ConnectError:
        return ConnectError(f"{self} cannot be read: {error.strerror}")

    def __str__(self) -> str:
        return f"File {self._path}"


class _StandardInput:
    """Standard input, read only when something is there, so that a stop need not wait for it. It is never closed."""

    def __init__(self) -> None:
        try:
            self._fd = sys.stdin.fileno()
        except (AttributeError, OSError, ValueError) as error:
            raise ConnectError("There is no standard input to read from: set 'file'.") from error

    def read(self) -> bytes:
        ready, _, _ = select.select([self._fd], [], [], 0)
        return os.read(self._fd, _BLOCK) if ready else b""

    def complaint(self) -> str | None:
        return None

    def close(self) -> None:
        pass

    def __str__(self) -> str:
        return "Standard input"
