"""Joins what the worker file says of access: logins, rights, audit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

from headgate.access.audit import Audit
from headgate.access.logins import Logins
from headgate.access.rights import Rights
from headgate.access.watched_file import WatchedFile
from headgate.api.config import ConfigDef
from headgate.api.errors import ConfigError
from headgate.kafka.sender import Sender
from headgate.model import Config
from headgate.rest.access import Access

_RIGHTS: Final = "headgate.rights.file"
_FILE: Final = "headgate.audit.file"
_TOPIC: Final = "headgate.audit.topic"
_ROOM_S: Final = 0.0
"""A request does not wait for a Kafka that takes nothing."""


class WorkerAccess:
    """Raises ConfigError. Nothing is sent anywhere before the first command."""

    def __init__(self, raw: Config, keys: ConfigDef, environ: Mapping[str, str] = os.environ) -> None:
        parsed = keys.parse(raw)
        self.logins = Logins.of(parsed, environ)
        if parsed[_RIGHTS] and self.logins is None:
            raise ConfigError.invalid(_RIGHTS, parsed[_RIGHTS], "Rights are for those who log in: set headgate.login.*")
        self._rights = WatchedFile(_RIGHTS, parsed[_RIGHTS], Rights.parse) if parsed[_RIGHTS] else None
        self._sender: Sender | None = None
        self._topic: str | None = parsed[_TOPIC]
        if self._topic:
            producer = {
                key.removeprefix("producer."): value for key, value in raw.items() if key.startswith("producer.")
            }
            self._sender = Sender({**raw, **producer, "acks": "all"}, "audit")
        self.audit = (
            Audit(parsed[_FILE], self._send if self._sender else None) if parsed[_FILE] or self._topic else None
        )
        if self.audit is not None:
            try:
                self.audit.check()
            except OSError as error:
                raise ConfigError.invalid(_FILE, parsed[_FILE], f"It cannot be written: {error.strerror}") from error
        named = (parsed[_RIGHTS], parsed[_FILE])
        self.files: tuple[str | Path, ...] = (*filter(None, named), *(self.logins.files if self.logins else ()))
        """That nobody else shall read or write."""

    @property
    def access(self) -> Access:
        rights = self._rights
        return Access(self.logins, None if rights is None else rights.read, self.audit)

    def warnings(self) -> list[str]:
        """What an operator should know, now."""
        trouble = self.audit.trouble if self.audit else None
        return [trouble] if trouble else []

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close(1.0)
        if self.logins is not None:
            self.logins.close()

    def _send(self, key: bytes, value: bytes) -> Future[Any]:
        assert self._sender is not None
        assert self._topic is not None
        return self._sender.send(self._topic, value, key or None, room_s=_ROOM_S)
