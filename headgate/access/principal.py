"""Principal: who asks, as far as a login has shown it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Principal:
    name: str
    login: str
    """How it was shown: `basic`, `token`, `jwt`, `certificate`; `none` where the worker asks nobody."""
    groups: frozenset[str] = frozenset()
    """That the login says it is in."""


ANYBODY: Final = Principal("anybody", "none")
"""Whoever asks a worker that has no logins."""
