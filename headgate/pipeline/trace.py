"""Traces: tracebacks as text, cheap enough for a batch in which every record fails."""

from __future__ import annotations

import traceback
from types import CodeType, TracebackType
from typing import Final

from headgate.pipeline.failure import class_name, message_of

_CAUSE: Final = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT: Final = "\nDuring handling of the above exception, another exception occurred:\n\n"


class Traces:
    """Failures of one batch mostly differ in their messages alone. The stack that they share is made once; and being
    one object in many failures, it also travels once."""

    def __init__(self) -> None:
        self._stacks: dict[tuple[tuple[CodeType, int], ...], str] = {}

    def of(self, error: BaseException) -> tuple[str, ...]:
        """In pieces, which joined are what Python prints."""
        pieces: tuple[str, ...] = ()
        seen: set[int] = set()
        current: BaseException | None = error
        while current is not None and id(current) not in seen:
            seen.add(id(current))
            pieces = (self._stack(current.__traceback__), _last_line(current), *pieces)
            if current.__cause__ is not None:
                current, link = current.__cause__, _CAUSE
            else:
                current, link = (None if current.__suppress_context__ else current.__context__), _CONTEXT
            if current is not None and id(current) not in seen:
                pieces = (link, *pieces)
        return pieces

    def _stack(self, tb: TracebackType | None) -> str:
        if tb is None:
            return ""
        key = tuple((frame.f_code, line) for frame, line in traceback.walk_tb(tb))
        found = self._stacks.get(key)
        if found is None:
            found = "Traceback (most recent call last):\n" + "".join(traceback.format_tb(tb))
            self._stacks[key] = found
        return found


def _last_line(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error))  # it has more to say, and takes its time
    name = class_name(type(error)).removeprefix("builtins.")
    message = message_of(error)
    notes = "".join(f"{note}\n" for note in getattr(error, "__notes__", ()))
    return f"{name}: {message}\n{notes}" if message else f"{name}\n{notes}"
