"""Location: a folder that a configuration names, on this machine or elsewhere."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from headgate.api import Reach, ReachKind

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(.*)", re.DOTALL)
_ATOMIC: Final = ("file", "hdfs")
"""Stores that promise: of two who rename to the same name, one is refused."""


@dataclass(frozen=True, slots=True)
class Location:
    uri: str
    """As Spark is told it."""
    local: str | None
    """Absolute; None: it is elsewhere."""

    @classmethod
    def of(cls, path: str) -> Location:
        found = _SCHEME.fullmatch(path)
        if found is not None and found[1].lower() != "file":
            return cls(f"{found[1].lower()}:{found[2].rstrip('/') or '/'}", None)
        plain = re.sub(r"^//[^/]*", "", found[2]) if found else path
        # By its scheme: a path alone may be one of another file system, if the worker file says so.
        local = os.path.abspath(plain)
        return cls(f"file:{local}", local)

    @property
    def path(self) -> str:
        """For people, and in offsets."""
        return self.uri if self.local is None else self.local

    @property
    def atomic(self) -> bool:
        return self.uri.partition(":")[0] in _ATOMIC

    def reach(self, kind: ReachKind, key: str) -> Reach:
        """`kind`: what is done with files of this machine."""
        return Reach(ReachKind.HOST, self.uri, key) if self.local is None else Reach(kind, self.local, key)
