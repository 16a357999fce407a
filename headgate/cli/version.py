"""Which Headgate this is."""

from __future__ import annotations

from pathlib import Path

import headgate


def commit() -> str:
    """The commit of the source tree that this process runs from; `unknown` for an installed package."""
    git = Path(headgate.__file__).resolve().parent.parent / ".git"
    try:
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head[:16]
        ref = head.removeprefix("ref: ")
        loose = git / ref
        if loose.is_file():
            return loose.read_text().strip()[:16]
        for line in (git / "packed-refs").read_text().splitlines():
            if line.endswith(f" {ref}"):
                return line[:16]
    except OSError:
        pass
    return "unknown"
