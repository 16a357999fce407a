"""`converter.type`: which part of a record a converter is for. The runtime sets it; users do not."""

from __future__ import annotations

from typing import Any, Final

from headgate.api import LOW, STRING, ConfigError, Key

_TYPES: Final = ("key", "value", "header")


def _check(name: str, value: Any) -> None:
    if value is not None and value not in _TYPES:
        raise ConfigError.invalid(name, value, f"String must be one of: {', '.join(_TYPES)}")


CONVERTER_TYPE: Final = Key(
    "converter.type", STRING, default=None, validator=_check, importance=LOW, doc="How this converter will be used."
)
