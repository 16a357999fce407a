"""What a broker has written since it was started."""

import os
from pathlib import Path
from typing import Final

_LINES: Final = 30
_BYTES: Final = 1024 * 1024


class ServerLog:
    """The logs in `folder`: `server.log` by log4j2, which grows, and `console.log` by the JVM, new at each start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = folder / "server.log"
        self.console = folder / "console.log"
        self._start = self.server.stat().st_size if self.server.exists() else 0

    def excerpt(self) -> str:
        """The lines to show when something went wrong: from the first error on, without one the last ones."""
        lines = _read(self.server, self._start).splitlines()
        # After an error Kafka says at length how it shuts down, so the end of the log would not tell what happened.
        errors = (number for number, line in enumerate(lines) if "] ERROR " in line or "] FATAL " in line)
        first = next(errors, max(0, len(lines) - _LINES))
        return "\n".join([*_read(self.console, 0).splitlines()[-_LINES:], *lines[first : first + _LINES]])

    def says(self, text: str) -> bool:
        """Whether `text` was written since this object was made."""
        return text in _read(self.server, self._start) or text in _read(self.console, 0)


def _read(path: Path, start: int) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            begin = start if start <= size else 0  # shorter than it was: rolled over meanwhile
            file.seek(max(begin, size - _BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
