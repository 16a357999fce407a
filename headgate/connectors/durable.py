"""Durable: folders that outlive a loss of power, whose names are taken once; and what is said of a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from headgate.api import ConnectError

_NO_ROOM: Final = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
_TAKEN: Final = (errno.ENOTEMPTY, errno.EEXIST)


def make(folder: Path) -> None:
    """With all above it. Raises OSError."""
    if not folder.is_dir():
        make(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def take_name(made: Path, name: Path) -> bool:
    """Gives a folder that holds something its name, by one rename, which never replaces one that does. Of two who want
    the same name one gets it; False: it was the other. Raises OSError."""
    try:
        os.rename(made, name)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    sync(name.parent)
    return True


def sync(path: str | Path) -> None:
    """Of a file or a folder. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that have no such thing for folders
            raise
    finally:
        os.close(handle)


def unwritable(where: str, reason: str) -> ConnectError:
    """For users; with what to do about a disk that is full."""
    todo = ". Make room there, then restart the task" if any(each in reason for each in _NO_ROOM) else ""
    return ConnectError(f"Cannot write to {where}: {reason}{todo}")
