"""Errors of the plugin API, named by what the caller can do.

ConnectError               something went wrong; the task or the call fails with this message
├─ RetriableError          try the same call again later; the runtime does
├─ ConfigError             change the configuration: names the key
├─ DataError               this record is bad, others may be fine
└─ UnsupportedOperation    never possible for this connector, e.g. altering its offsets
"""

from __future__ import annotations


def _shown(value: object) -> str:
    """As Kafka's messages show it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


class ConnectError(Exception):
    """Something went wrong that the runtime reports as it stands."""


class RetriableError(ConnectError):
    """The same call may succeed later: raised from `poll` or `put`, it is repeated after a pause."""


class DataError(ConnectError):
    """A record cannot be converted or transformed."""

    field: str | None = None
    """Where in the record, if it is not all of it: the names of fields on the way there, joined by dots."""

    def within(self, name: str) -> None:
        """It was the value of the field of this name. To be called on the way out, by whatever has the field."""
        self.field = name if self.field is None else f"{name}.{self.field}"

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.field is None else f"{message} (field {self.field})"


class UnsupportedOperation(ConnectError):
    """This connector can never do what was asked."""


class ConfigError(ConnectError):
    """A configuration is wrong; the message names the key and says why."""

    @classmethod
    def invalid(cls, key: str, value: object, reason: str) -> ConfigError:
        return cls(f"Invalid value {_shown(value)} for configuration {key}: {reason}")

    @classmethod
    def missing(cls, key: str) -> ConfigError:
        return cls(f'Missing required configuration "{key}" which has no default value.')
