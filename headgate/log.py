"""Log lines that say which connector or task they are about, `[orders|task-0]`, tell no secrets, and repeat little."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from headgate.model import TaskId

_context: Final[ContextVar[str]] = ContextVar("headgate_log_context", default="")

_AGAIN_S: Final = 60.0
_DETAILS: Final = re.compile(r"\(after [^)]*\)|\d+ms")

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


@contextmanager
def only_logged(what: str) -> Iterator[None]:
    """For what is closed after a failure: what is raised inside may not take the place of what went wrong first."""
    try:
        yield
    except Exception as error:
        logging.getLogger(__name__).warning("%s: %s", what, cause_of(error), exc_info=error)


# --- secrets ----------------------------------------------------------------------------------------------------------

HIDDEN: Final = "[hidden]"
_SHORTEST: Final = 4
_SHORTEST_LINE: Final = 8
_MOST: Final = 2_000
"""Values that change often would fill the memory: the oldest are forgotten first."""

_SECRET_KEY: Final = re.compile(
    r"passw|passphrase|pwd|secret|credential|token|jaas|api[._-]?key|access[._-]?key|private[._-]?key|user\.info$"
    r"|keystore\.(key|certificate)",
    re.IGNORECASE,
)
_WITHIN: Final = re.compile(r'(?:passw\w*|secret|token)\s*=\s*"([^"]+)"', re.IGNORECASE)
"""In the text of a login module."""

_secrets: dict[str, None] = {}
_longest_first: tuple[str, ...] = ()
_lock: Final = threading.Lock()


def is_secret_key(key: str) -> bool:
    """Whether its name gives a key away as one of a secret, for keys that nobody has declared."""
    return _SECRET_KEY.search(key) is not None


def is_secret(value: str) -> bool:
    """Shorter texts, and words that are in every second line, would hide more than they protect."""
    return len(value.strip()) >= _SHORTEST and value.strip().lower() not in ("true", "false", "none", "null")


def hide(values: Iterable[str]) -> None:
    """From now on, `masked` and the log do not show these."""
    global _longest_first
    forms = [form for value in values if is_secret(value) for form in _forms(value)]
    with _lock:
        for form in forms:
            _secrets.pop(form, None)
            _secrets[form] = None
        for oldest in list(_secrets)[:-_MOST]:
            del _secrets[oldest]
        _longest_first = tuple(sorted(_secrets, key=len, reverse=True))


def _forms(value: str) -> Iterator[str]:
    """As it is, and as texts show it: without blanks around it, escaped, one of its lines, or the password in it."""
    for form in (value, value.strip()):
        yield form
        yield repr(form)[1:-1]
    if "\n" in value.strip():
        yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _SHORTEST_LINE)
    yield from filter(is_secret, _WITHIN.findall(value))


def masked(text: str, also: Iterable[str] = ()) -> str:
    """The text without what `hide` was told, and without these."""
    own = {form for value in also if is_secret(value) for form in _forms(value)}
    for secret in (*sorted(own, key=len, reverse=True), *_longest_first):
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


_TRACE: Final = "\nTraceback (most recent call last):\n"


class LineFormatter(logging.Formatter):
    """The last to touch a line: whatever was in a message or a traceback, a secret does not come out, and nothing looks
    like a line that it is not. What went wrong stands in the line itself: the traceback comes after it, indented."""

    def format(self, record: logging.LogRecord) -> str:
        line, *trace = masked(super().format(record)).split("\n")
        return "\n".join([_escaped(line), *(f"  {_escaped(each.expandtabs(4))}" for each in trace)])

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and _words(error, named=False) not in record.message:
            record.message = f"{record.message}: {cause_of(error)}"
        if "\n" in record.message:
            # Secrets first: escaped, those with line ends might not be known again. The lines of a trace stay lines.
            said, heading, trace = masked(record.message).partition(_TRACE)
            record.message = said.replace("\n", r"\n") + heading + trace
        return super().formatMessage(record)


def _escaped(text: str) -> str:
    """Whatever is no letter, mark or plain blank, as Python writes it: line ends of all kinds, colours, directions."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


# --- failures ---------------------------------------------------------------------------------------------------------

_LONGEST: Final = 500


def cause_of(error: BaseException) -> str:
    """What is wrong, in one line: the error's own `cause_line` if it has one, else its words, and those of what it came
    from where it does not repeat them."""
    own: str | None = getattr(error, "cause_line", None)
    if own is not None:
        return own
    root = error
    while root.__cause__ is not None and root.__cause__ is not error:
        root = root.__cause__
    said = _words(error)
    return said if root is error or _words(root, named=False) in said else f"{said} (from {_words(root)})"


def trace_of(error: BaseException) -> str:
    """As users see it: the cause in one line, then the traceback, which ends with the message."""
    trace = "".join(traceback.format_exception(error)).strip()
    return f"{cause_of(error)}\n{trace}" if "\n" in trace else trace


def _words(error: BaseException, named: bool = True) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "<its message cannot be shown>"
    name = type(error).__name__
    whole = (f"{name}: {text}" if named else text) if text else name
    return whole if len(whole) <= _LONGEST else f"{whole[:_LONGEST]}..."


# --- set-up -----------------------------------------------------------------------------------------------------------


class _Context(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.context = _escaped(_context.get())
        return True


def configure(level: str = "INFO") -> None:
    """Log to standard error, once per process."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Context())
    handler.setFormatter(LineFormatter(FORMAT))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    # Libraries speak up only when something is wrong.
    for noisy in ("py4j", "pyspark", "uvicorn.error", "asyncio", "httpx2", "httpcore2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


_LATELY_S: Final = 15.0


class Complaints:
    """A client whose broker is away repeats itself many times a second. Each complaint is logged when it is new, and
    then once a minute, with how often it came, for as long as it comes."""

    def __init__(self, log: logging.Logger, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._who = who
        self._clock = clock
        self._said: dict[str, tuple[float, int]] = {}
        self._last: tuple[str, float] | None = None

    def since(self, moment: float) -> str | None:
        """The last complaint, if it came after that moment of the clock; not the one that sums up others."""
        last = self._last
        return last[0] if last is not None and last[1] > moment else None

    def note(self, text: str) -> None:
        """For who asks, not for the log; a complaint that came lately says more."""
        now = self._clock()
        if self._last is None or now - self._last[1] > _LATELY_S:
            self._last = text, now

    def say(self, text: str, once: bool = False) -> None:
        """`once`: it will not pass by itself, and once is enough."""
        what = _DETAILS.sub("", text)
        now = self._clock()
        if self._last is None or not text.endswith("brokers are down"):
            self._last = what, now
        at, unsaid = self._said.get(what, (-_AGAIN_S, 0))
        if now - at < _AGAIN_S or (once and what in self._said):
            self._said[what] = at, unsaid + 1
            return
        self._said[what] = now, 0
        self._log.warning("%s: %s%s", self._who, text, f" (and {unsaid} times more)" if unsaid else "")
