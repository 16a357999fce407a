"""How many files this process may have open: as many as its user may, and a warning where that is little."""

from __future__ import annotations

import logging
import resource
from contextlib import suppress
from typing import Final

log = logging.getLogger(__name__)

_ENOUGH: Final = 4096
_MOST: Final = 1 << 20
"""More is taken for a mistake by programs that make a table of them."""


def raise_limit() -> None:
    """Shells and service managers commonly begin with 1024, for programs of another time."""
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST if most == resource.RLIM_INFINITY else min(most, _MOST)
    if files != resource.RLIM_INFINITY and files < wanted:
        with suppress(OSError, ValueError):  # then it stays as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            files = wanted
    if files != resource.RLIM_INFINITY and files < _ENOUGH:
        log.warning(
            "Only %d files may be open at once, connections among them: many connectors need more. Raise the hard limit"
            " (ulimit -Hn, LimitNOFILE of systemd, --ulimit of docker) to %d or more", files, _ENOUGH,
        )  # fmt: skip
