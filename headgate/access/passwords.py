"""Passwords: files of users with theirs, hashed as `htpasswd -B` does it, or plain as Apache Kafka has them."""

from __future__ import annotations

import hmac
import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import javaproperties

from headgate.access.watched_file import WatchedFile

log = logging.getLogger(__name__)

UNKNOWN: Final = "unknown user"
WRONG: Final = "wrong password"

_BCRYPT: Final = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-7])\$[./A-Za-z0-9]{21}[.Oeu][./A-Za-z0-9]{31}")
"""With the costs that htpasswd takes: one more doubles the time, and 31 is days."""
_BCRYPT_BYTES: Final = 72
_ARGON2_KIB: Final = 1 << 20
_KEY: Final = secrets.token_bytes(32)


class Passwords(Protocol):
    def problem(self, user: str, password: str) -> str | None:
        """Why it is not the password of that user, for the log; None: it is. May take half a second, the same for users
        that there are not. Called from any thread."""

    @property
    def version(self) -> object:
        """Another one when passwords may have changed."""

    @property
    def files(self) -> Sequence[str]: ...


class _OfFile:
    _file: WatchedFile[Any]

    @property
    def version(self) -> int:
        return self._file.version

    @property
    def files(self) -> Sequence[str]:
        return [self._file.path]


class Htpasswd(_OfFile):
    """Lines `user:hash`, with hashes by bcrypt and argon2; `#` begins a comment line."""

    def __init__(self, key: str, path: str) -> None:
        """Raises ConfigError."""
        self._file = WatchedFile(key, path, _parse)

    def problem(self, user: str, password: str) -> str | None:
        hashes: Mapping[str, str] = self._file.read()
        if not hashes:
            return UNKNOWN
        # An unknown user costs as much as one of the known, always the same one.
        hashed = hashes.get(user) or list(hashes.values())[hash(user) % len(hashes)]
        right = _is_right(hashed, password)
        if user not in hashes:
            return UNKNOWN
        return None if right else WRONG


def _parse(text: str) -> Mapping[str, str]:
    hashes: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        user, _, hashed = line.strip().partition(":")
        if not user or not hashed:
            raise ValueError(f"line {number}: it must read <user>:<hash>, as htpasswd -B writes it")
        if user in hashes:
            raise ValueError(f"line {number}: this user is there twice")
        if not _is_known(hashed):
            raise ValueError(f"line {number}: hashes are by bcrypt or argon2 here; make this one with htpasswd -B")
        hashes[user] = hashed
    if not hashes:
        log.warning("A file of passwords has no users: nobody can log in with it")
    return hashes


# Workers without logins do without these packages, which take their time to be imported.


def _is_known(hashed: str) -> bool:
    import argon2

    if hashed.startswith("$2"):
        return _BCRYPT.fullmatch(hashed) is not None
    try:
        found = argon2.extract_parameters(hashed)
    except argon2.exceptions.InvalidHashError:
        return False
    return found.type in (argon2.Type.ID, argon2.Type.I) and found.memory_cost <= _ARGON2_KIB


def _is_right(hashed: str, password: str) -> bool:
    import argon2
    import bcrypt

    given = password.encode()
    if hashed.startswith("$2"):
        # bcrypt reads 72 bytes, and of NULs it makes what others read differently: then a password is not right, as
        # slowly as if it were wrong.
        fits = len(given) <= _BCRYPT_BYTES and b"\0" not in given
        return bcrypt.checkpw(given[:_BCRYPT_BYTES].replace(b"\0", b" "), hashed.encode()) and fits
    try:
        return argon2.PasswordHasher().verify(hashed, given)
    except (argon2.exceptions.Argon2Error, argon2.exceptions.InvalidHashError):
        return False


class PropertyFile(_OfFile):
    """Lines `user=password`, as Apache's PropertyFileLoginModule reads them. It lets everybody in when there is no line
    at all; here, that lets nobody in."""

    def __init__(self, key: str, path: str) -> None:
        """Raises ConfigError."""
        self._file = WatchedFile(key, path, _digests, encoding="latin-1", secret=True)

    def problem(self, user: str, password: str) -> str | None:
        digests: Mapping[str, bytes] = self._file.read()
        right = hmac.compare_digest(digests.get(user, b""), _digest(password))
        if user not in digests:
            return UNKNOWN
        return None if right else WRONG


def _digests(text: str) -> Mapping[str, bytes]:
    digests = {user: _digest(password) for user, password in javaproperties.loads(text).items()}
    if not digests:
        log.warning("A file of passwords is empty: nobody can log in with it, while Apache's worker lets everybody in")
    return digests


def _digest(password: str) -> bytes:
    """Of one length, so that nothing tells how long a password is; and no password stays in memory."""
    return hmac.digest(_KEY, password.encode("utf-8", "surrogatepass"), "sha256")
