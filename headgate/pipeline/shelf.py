"""A shelf: a folder where driver and executors of one machine hand each other large payloads.

Through Spark, a payload is copied from process to process about ten times. On a shelf it is written once and mapped by
whoever wants it; Spark carries its name. Where executors are elsewhere, there is no shelf and payloads travel.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa

SMALL: Final = 64 * 1024
"""What is not larger travels: a file costs more."""


@dataclass(frozen=True, slots=True)
class Shelved:
    path: str


Payload: TypeAlias = bytes | Shelved


@dataclass(frozen=True, slots=True)
class Shelf:
    """Plain, for it travels."""

    folder: str

    @classmethod
    def new(cls, parent: str) -> Shelf | None:
        """None when there is no room, or no such folder any more."""
        shelf = cls(os.path.join(parent, uuid.uuid4().hex))
        try:
            os.mkdir(shelf.folder, 0o700)
        except OSError:
            return None
        return shelf

    def put(self, write: Callable[[Any], None]) -> Shelved | None:
        """What `write` writes to the stream that it is given; None when there is no room or no shelf any more."""
        path = os.path.join(self.folder, uuid.uuid4().hex)
        try:
            with pa.OSFile(path, "wb") as file:
                write(file)
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            return None
        return Shelved(path)

    def clear(self) -> None:
        with suppress(OSError):
            for entry in os.scandir(self.folder):
                with suppress(OSError):
                    os.unlink(entry)

    def remove(self) -> None:
        # Moved first: whoever is late with a payload must not find the folder while it is being emptied.
        going = f"{self.folder}-going"
        with suppress(OSError):
            os.rename(self.folder, going)
        shutil.rmtree(going, ignore_errors=True)


def opened(payload: Payload) -> Any:
    """The bytes, or a buffer of them: mapped, not read."""
    if isinstance(payload, bytes):
        return payload
    with pa.memory_map(payload.path) as file:
        return file.read_buffer()


def drop(payload: Payload | None) -> None:
    """Takes it off the shelf. What is mapped stays readable."""
    if isinstance(payload, Shelved):
        with suppress(OSError):
            os.unlink(payload.path)
