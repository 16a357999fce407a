"""Keys that several transforms have, and checks of values with Kafka's messages."""

from __future__ import annotations

from typing import Any, Final

from headgate.api import BOOLEAN, ConfigError, Key

REPLACE_NULL: Final = Key(
    "replace.null.with.default",
    BOOLEAN,
    default=True,
    doc="Whether a field that is null takes the default value of its schema, where there is one.",
)


def no_blanks(name: str, value: Any) -> None:
    """A list, maybe empty, without empty entries."""
    if value is None:
        raise ConfigError(f"Configuration '{name}' values must not be null.")
    if not all(value):
        raise ConfigError(f"Configuration '{name}' values must not be empty.")


def some_and_no_blanks(name: str, value: Any) -> None:
    """The same with at least one entry."""
    if value is not None and not value:
        raise ConfigError(f"Configuration '{name}' must not be empty. Valid values include: any non-empty value")
    no_blanks(name, value)


def some(name: str, value: Any) -> None:
    if not value:
        raise ConfigError.invalid(name, value, "Empty list")


def not_null(name: str, value: Any) -> None:
    if value is None:
        raise ConfigError.invalid(name, value, "entry must be non null")
