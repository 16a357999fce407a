"""The keys of a connection, which source and sink share, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from zoneinfo import ZoneInfo

from headgate.api import ConfigDef, ConfigError, Key, all_of, at_least, non_empty
from headgate.api.config import HIGH, INT, LOW, MEDIUM, PASSWORD, STRING
from headgate.connectors.jdbc import url as urls
from headgate.connectors.jdbc.url import JdbcUrl, driver_properties

DIALECT: Final = "dialect.name"
TIME_ZONE: Final = "db.timezone"


def valid_url(name: str, value: Any) -> None:
    if value is not None:
        try:
            JdbcUrl.parse(value)
        except ValueError as error:
            raise ConfigError(f"Invalid value of configuration {name}: {error}") from None


def valid_zone(name: str, value: Any) -> None:
    try:
        ZoneInfo(value or "")
    except (KeyError, ValueError, OSError):
        raise ConfigError.invalid(name, value, "It is no time zone, such as UTC or Europe/Berlin") from None


CONNECTION_KEYS: Final = ConfigDef(
    Key(
        urls.URL,
        STRING,
        validator=all_of(non_empty, valid_url),
        importance=HIGH,
        doc="JDBC URL of the database: jdbc:postgresql:, jdbc:sqlite: or jdbc:mysql:.",
    ),
    Key(urls.USER, STRING, default=None, importance=HIGH, doc="User of the database."),
    Key(urls.PASSWORD, PASSWORD, default=None, importance=HIGH, doc="Password of that user."),
    Key(
        urls.ATTEMPTS,
        INT,
        default=3,
        validator=at_least(1),
        importance=LOW,
        doc="How often a first connection is tried.",
    ),
    Key(
        urls.BACKOFF,
        INT,
        default=10_000,
        validator=at_least(1),
        importance=LOW,
        doc="Milliseconds between two of these attempts.",
    ),
    Key(DIALECT, STRING, default="", importance=LOW, doc="Accepted; the URL says which database it is."),
    Key(
        TIME_ZONE,
        STRING,
        default="UTC",
        validator=valid_zone,
        importance=MEDIUM,
        doc="Time zone of timestamps that say none.",
    ),
)


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    url: JdbcUrl
    properties: Mapping[str, str] = field(repr=False)
    """For the driver: user, password and what else stands below `connection.`."""
    attempts: int
    backoff_s: float
    time_zone: str

    @classmethod
    def of(cls, parsed: Mapping[str, Any], config: Mapping[str, str]) -> ConnectionConfig:
        login = {"user": parsed[urls.USER], "password": parsed[urls.PASSWORD]}
        properties = {**driver_properties(config), **{name: value for name, value in login.items() if value}}
        return cls(
            url=JdbcUrl.parse(parsed[urls.URL]),
            properties=properties,
            attempts=parsed[urls.ATTEMPTS],
            backoff_s=parsed[urls.BACKOFF] / 1000,
            time_zone=parsed[TIME_ZONE],
        )

    def hidden(self, text: str) -> str:
        """Without what nobody is to see."""
        secrets = [value for name, value in (*self.properties.items(), *self.url.parameters) if "pass" in name.lower()]
        for secret in secrets:
            if len(secret) > 2:
                text = text.replace(secret, "[hidden]")
        return text.replace(self.url.text, self.url.shown)
