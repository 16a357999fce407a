"""A lock between processes, held through an open file."""

import fcntl
import os
from pathlib import Path


class FileLock:
    """An exclusive lock on `path`; two `FileLock` objects exclude each other even in one process.

    The system drops it when the last process that holds the open file is gone, so it cannot go stale. The file itself
    stays: removing it would let a third process lock a new file of the same name beside the second one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def acquire(self, wait: bool) -> bool:
        """Take the lock; when another holds it, wait for it or return False."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        except BaseException:
            os.close(file)
            raise
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        self._file = file
        return True

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._file is not None:
            # Unlock by name as well: a process forked from this one has a copy of the file, closing ours is not enough.
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = None

    def fileno(self) -> int:
        """For `pass_fds`: a child that gets it keeps the lock for as long as it lives."""
        if self._file is None:
            raise ValueError(f"the lock {self.path} is not held")
        return self._file

    def owner(self) -> str:
        """The process that took the lock last, for messages."""
        try:
            return self.path.read_text().strip() or "unknown"
        except OSError:
            return "unknown"
