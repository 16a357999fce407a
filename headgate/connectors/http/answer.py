"""HttpAnswer: what came back, and what it means for who asked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Final

from headgate.connectors.http.retry_after import retry_after_s

_PASSING: Final = frozenset({408, 425, 429})
"""What the client did too early, too slowly or too often it may do again."""


class Outcome(Enum):
    DONE = "done"
    LATER = "later"
    """The same request may be answered otherwise, later."""
    REFUSED = "refused"
    """It will not, unless somebody changes something."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    """By names in small letters."""
    body: bytes
    whole: bool = True
    """False: there was more of the body than was wanted."""

    @property
    def outcome(self) -> Outcome:
        if 200 <= self.status < 300:
            return Outcome.DONE
        return Outcome.LATER if self.status in _PASSING or self.status >= 500 else Outcome.REFUSED

    @property
    def retry_after_s(self) -> float | None:
        """How long the server wants to be left alone, if it says so."""
        return retry_after_s(self.headers.get("retry-after"), time.time()) if self.status in (429, 503) else None

    @property
    def status_line(self) -> str:
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:  # one of the server's own
            return str(self.status)
