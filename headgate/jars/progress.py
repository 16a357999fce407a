"""Progress on standard error: a bar on a terminal, a line now and then in a log file."""

import sys
import time
from typing import Final, TextIO

WIDTH: Final = 20
LINE_SECONDS: Final = 5.0
LINE_STEPS: Final = 10


class Progress:
    """How far one piece of work is. Silent when `shown` is False."""

    def __init__(self, title: str, shown: bool = True, stream: TextIO | None = None) -> None:
        self._title = title
        self._shown = shown
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._began = time.monotonic()
        self._text = ""
        self._steps = 0
        self._line_at = self._began
        self._line_steps = 0

    def update(self, done: int, total: int, unit: str) -> None:
        """`done` of `total` units are there; `total` 0 when nobody knows it yet."""
        if total:
            full = WIDTH * min(done, total) // total
            self._text = f"{self._title} [{'#' * full}{'-' * (WIDTH - full)}] {done}/{total} {unit}"
        else:
            self._text = f"{self._title}: {done} {unit}"
        self._steps += 1
        if self._terminal:
            self._write(f"\r\x1b[K{self._text}")
        elif self._steps - self._line_steps >= LINE_STEPS:
            self._line()
        else:
            self.tick()

    def tick(self) -> None:
        """Nothing new; a log file still gets its line every few seconds, so that it shows life."""
        if not self._terminal and time.monotonic() - self._line_at >= LINE_SECONDS:
            self._line()

    def say(self, text: str) -> None:
        """One whole line, such as the result."""
        self._write(f"\r\x1b[K{text}\n" if self._terminal else f"{text}\n")

    def _line(self) -> None:
        seconds = time.monotonic() - self._began
        self._write(f"{self._text or self._title} ({seconds:.0f} s)\n")
        self._line_at = time.monotonic()
        self._line_steps = self._steps

    def _write(self, text: str) -> None:
        if self._shown:
            self._stream.write(text)
            self._stream.flush()
