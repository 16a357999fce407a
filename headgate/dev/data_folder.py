"""The folder of a server, kept or temporary, which one server at a time has."""

import shutil
import tempfile
from pathlib import Path

from headgate.jars.lock import FileLock


class DataFolder:
    """Taken by a server before it starts, and given back when it has ended. `server` is what messages call it."""

    def __init__(self, wanted: Path | str | None, server: str, in_use: type[Exception]) -> None:
        """Without `wanted` it is a temporary one."""
        self._wanted = Path(wanted).absolute() if wanted is not None else None
        self._server = server
        self._in_use = in_use
        self._path: Path | None = None
        self._lock: FileLock | None = None

    @property
    def path(self) -> Path:
        if self._path is None:
            raise RuntimeError(f"the {self._server} has no data folder while it is stopped: call start()")
        return self._path

    @property
    def kept(self) -> bool:
        """Whether it stays when it is given back."""
        return self._wanted is not None

    @property
    def leftover(self) -> Path | None:
        """What is to be removed if nobody gives it back."""
        return None if self.kept else self.path

    @property
    def lock(self) -> int:
        """An open file: whoever has it keeps others out of the folder."""
        assert self._lock is not None, "the folder was not taken"
        return self._lock.fileno()

    def take(self) -> None:
        """Harmless when it was taken. Raises `in_use` when another server has it."""
        if self._lock is not None:
            return
        # Resolved because macOS has the temporary folder behind a link, and Kafka compares paths.
        path = self._wanted or Path(tempfile.mkdtemp(prefix=f"headgate-{self._server}-")).resolve()
        path.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path / f"{self._server}.lock")
        if not lock.acquire(wait=False):
            raise self._in_use(
                f"The data folder {path} is in use by the {self._server} of process {lock.owner()}: "
                "stop that one or choose another folder."
            )
        self._path, self._lock = path, lock

    def give_back(self) -> None:
        """A temporary one is removed. Harmless when it was not taken."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
        if self._path is not None and not self.kept:
            shutil.rmtree(self._path, ignore_errors=True)
        self._path = None
