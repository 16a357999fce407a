"""Certificates that follow their files, without a restart, and whose end is told of before clients notice it."""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

from headgate.runtime.verdict import at

log = logging.getLogger(__name__)

T = TypeVar("T")

_LOOK_S: Final = 1.0
_DAY_S: Final = 24 * 3600
_SOON_DAYS: Final = 30


class FromFiles(Generic[T]):
    """What is made of files, and made anew when one of them changes. They are looked at when it is used, once a second
    at most. While they are of no use, what was made before goes on. May be used from any thread."""

    def __init__(self, files: Sequence[str], make: Callable[[], T]) -> None:
        """Raises what `make` raises."""
        self._files = files
        self._make = make
        self._lock = threading.Lock()
        self._looked = time.monotonic()
        self._seen = [_stamp(file) for file in files]  # before they are read: a change in between is one
        self._made = make()
        self.problem: str | None = None
        """Why what they are now is of no use."""

    def get(self) -> T:
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= _LOOK_S:
                self._looked = now
                self._look()
            return self._made

    def _look(self) -> None:
        found = [_stamp(file) for file in self._files]
        if found == self._seen and self.problem is None:
            return
        try:
            self._made = self._make()
        except Exception as error:
            if str(error) != self.problem:
                log.warning("%s; what was read before goes on", error)
            self.problem = str(error)
        else:
            log.info("Read again: %s", ", ".join(self._files))
            self._seen, self.problem = found, None


def _stamp(file: str) -> tuple[int, int, int] | None:
    """Of the file that a link leads to: Kubernetes renews secrets by another link."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class Certificate:
    """That of https listeners. When it nears its end, the log says so once a day, if anybody connects or asks."""

    def __init__(self, key: str, chain: str, files: Sequence[str], make: Callable[[], ssl.SSLContext]) -> None:
        """`key`: where its listeners stand; `chain`: its file, one of those that `make` reads. Raises what `make`
        raises."""
        self._key = key
        self._read = FromFiles(files, lambda: (make(), _not_after(chain)))
        self._told: int | None = None  # how many days were left

    def context(self) -> ssl.SSLContext:
        """For one more connection; those that are there keep what they have."""
        self._expiry()
        return self._read.get()[0]

    @property
    def not_after(self) -> float | None:
        """Seconds since 1970; None if that cannot be read."""
        return self._read.get()[1]

    def warnings(self) -> list[str]:
        """Fit to be shown to everybody: no names of files."""
        expiry = self._expiry()
        stale = (
            f"The new certificate for https in {self._key} cannot be used, and the old one goes on; the log says why"
        )
        return [*([] if expiry is None else [expiry]), *([] if self._read.problem is None else [stale])]

    def _expiry(self) -> str | None:
        end = self.not_after
        days = _SOON_DAYS if end is None else int((end - time.time()) // _DAY_S)
        if end is None or days >= _SOON_DAYS:
            self._told = None
            return None
        when = at(int(end * 1000))
        what = f"has expired at {when}: clients refuse it" if days < 0 else f"expires in {days} days, at {when}"
        text = f"The certificate for https in {self._key} {what}"
        if days != self._told:
            self._told = days
            log.log(logging.ERROR if days < 0 else logging.WARNING, "%s", text)
        return text


def _not_after(chain: str) -> float | None:
    """The server's own certificate is the first one."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(Path(chain).read_bytes())[0].not_valid_after_utc.timestamp()
    except ValueError:  # OpenSSL, which is not as strict, has taken it
        return None
