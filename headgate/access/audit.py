"""Audit: every command, and every request that was refused, is written down: who, from where, what, what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from headgate.access.principal import Principal
from headgate.log import Complaints, cause_of, masked

log = logging.getLogger(__name__)

_ONLY_OURS: Final = 0o600

Send = Callable[[bytes, bytes], Future[Any]]
"""Key and value of a record, to the topic; the future fails when Kafka does not take it."""


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request, and what came of it."""

    principal: Principal | None
    """None: it did not get so far."""
    address: str
    method: str
    path: str
    """As it was sent, with its query."""
    request_id: str
    status: int
    ms: int
    connector: str | None = None
    change: Mapping[str, Any] | None = None
    """What it asked to change, without secrets."""
    error: str | None = None
    time: float = field(default_factory=time.time)

    def line(self) -> bytes:
        """One line of JSON."""
        who = self.principal
        told = {
            "time": datetime.fromtimestamp(self.time, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "request_id": self.request_id,
            "principal": who and who.name,
            "login": who and who.login,
            "address": self.address,
            "method": self.method,
            "path": self.path,
            "connector": self.connector,
            "change": self.change,
            "outcome": "refused" if self.status in (401, 403, 421, 429) else "failed" if self.status >= 400 else "done",
            "status": self.status,
            "error": self.error,
            "ms": self.ms,
        }
        # Names, paths and values are whatever somebody sent: JSON has no line ends in it, but may have secrets.
        return masked(orjson.dumps(told, default=str).decode()).encode()


class Audit:
    """From any event loop. A line that cannot be written is complained of, counted in `failed`, and `trouble` says why
    until one is written again; the command was carried out by then."""

    def __init__(self, file: str | None = None, send: Send | None = None) -> None:
        self._file = None if file is None else Path(file)
        self._send = send
        self._complaints = Complaints(log, "An audit record was not written")
        self._troubles: dict[str, str] = {}
        self._writing = threading.Lock()
        self.failed = 0

    @property
    def trouble(self) -> str | None:
        return "; ".join(self._troubles.values()) or None

    def check(self) -> None:
        """Whether the file can be written. Raises OSError."""
        if self._file is not None:
            self._append(self._file, b"")

    async def write(self, record: AuditRecord) -> None:
        """Returns when the file has it; what becomes of it in the topic is told later."""
        line = record.line()
        if self._file is not None:
            try:
                await asyncio.to_thread(self._append, self._file, line + b"\n")
            except OSError as error:
                self._fails("file", f"{self._file}: {cause_of(error)}")
            else:
                self._troubles.pop("file", None)
        if self._send is not None:
            try:
                self._send((record.connector or "").encode(), line).add_done_callback(self._sent)
            except BufferError as error:
                self._fails("topic", f"the topic: {cause_of(error)}")

    def _sent(self, done: Future[Any]) -> None:
        error = done.exception()
        if error is None:
            self._troubles.pop("topic", None)
        else:
            self._fails("topic", f"the topic: {cause_of(error)}")

    def _fails(self, where: str, why: str) -> None:
        self.failed += 1
        self._troubles[where] = f"Audit records cannot be written to {why}"
        self._complaints.say(why)

    def _append(self, file: Path, data: bytes) -> None:
        # Opened each time: a file that was moved away, as logrotate does, is made anew.
        with self._writing:
            opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _ONLY_OURS)
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(opened, left) :]
            finally:
                os.close(opened)
