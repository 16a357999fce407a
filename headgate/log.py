"""Log lines that say which connector or task they are about: `[orders|task-0]`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from headgate.model import TaskId

_context: Final[ContextVar[str]] = ContextVar("headgate_log_context", default="")

FORMAT: Final = "[%(asctime)s] %(levelname)s %(context)s%(message)s (%(name)s)"


def name_of(what: str | TaskId) -> str:
    return f"[{what.connector}|task-{what.task}] " if isinstance(what, TaskId) else f"[{what}|worker] "


@contextmanager
def about(what: str | TaskId) -> Iterator[None]:
    """Lines logged inside, by this thread or coroutine, name this connector or task."""
    token = _context.set(name_of(what))
    try:
        yield
    finally:
        _context.reset(token)


class _Context(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.context = _context.get()
        return True


def configure(level: str = "INFO") -> None:
    """Log to standard error, once per process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Context())
    handler.setFormatter(logging.Formatter(FORMAT))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Libraries speak up only when something is wrong.
    for noisy in ("py4j", "pyspark", "uvicorn.error", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
