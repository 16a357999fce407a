"""Complaints: what a Kafka client keeps saying, said once."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Final

_AGAIN_S: Final = 60.0
_DETAILS: Final = re.compile(r"\(after [^)]*\)|\d+ms")


class Complaints:
    """A client whose broker is away repeats itself many times a second. Each complaint is logged when it is new, and
    then once a minute, with how often it came, for as long as it comes."""

    def __init__(self, log: logging.Logger, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._who = who
        self._clock = clock
        self._said: dict[str, tuple[float, int]] = {}

    def say(self, text: str) -> None:
        what = _DETAILS.sub("", text)
        now = self._clock()
        at, unsaid = self._said.get(what, (-_AGAIN_S, 0))
        if now - at < _AGAIN_S:
            self._said[what] = at, unsaid + 1
            return
        self._said[what] = now, 0
        self._log.warning("%s: %s%s", self._who, text, f" (and {unsaid} times more)" if unsaid else "")
