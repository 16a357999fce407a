"""What validation of a connector configuration found, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.api.config import ConfigValue, Key


@dataclass(frozen=True, slots=True)
class ConfigInfo:
    """A key's definition (None when nobody declared it) and what was found for it (None: no value computed)."""

    key: Key | None
    value: ConfigValue | None


@dataclass(frozen=True, slots=True)
class UnknownKey:
    """A key that nobody declared, and what was probably meant."""

    name: str
    did_you_mean: str | None = None


@dataclass(frozen=True, slots=True)
class ConfigInfos:
    name: str
    error_count: int
    groups: Sequence[str]
    configs: Sequence[ConfigInfo]
    unknown_keys: Sequence[UnknownKey] = ()
    """No errors: a connector may read keys that it did not declare."""
