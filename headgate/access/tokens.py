"""Tokens: bearer tokens that stand in a file, as their digests.

# name, SHA-256 of the token, and groups if there are any
ci sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 groups=deployers,data
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

from headgate.access.principal import Principal
from headgate.access.watched_file import WatchedFile

_LINE: Final = re.compile(r"(\S+)\s+sha256:([0-9a-fA-F]{64})(?:\s+groups=(\S+))?")


class TokenRefused(Exception):
    """The message says why, for the log; it shows nothing of the token but what its header says."""


class Tokens:
    """No salt and no slow hash: tokens are long and random, nobody finds one by trying."""

    def __init__(self, key: str, path: str) -> None:
        """Raises ConfigError."""
        self._file = WatchedFile(key, path, _parse)

    def principal(self, token: str) -> Principal | None:
        # Who asks chooses the token, but not where its digest is looked for: how long that takes tells nothing.
        return self._file.read().get(hashlib.sha256(token.encode()).digest())

    @property
    def files(self) -> Sequence[str]:
        return [self._file.path]


def _parse(text: str) -> Mapping[bytes, Principal]:
    principals: dict[bytes, Principal] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise ValueError(f"line {number}: it must read <name> sha256:<64 hexadecimal digits> [groups=<a>,<b>]")
        name, digest, groups = found[1], bytes.fromhex(found[2]), (found[3] or "").split(",")
        if digest in principals:
            raise ValueError(f"line {number}: this token is there twice")
        principals[digest] = Principal(name, "token", frozenset(filter(None, groups)))
    return principals
