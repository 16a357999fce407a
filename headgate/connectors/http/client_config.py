"""The keys that HttpSource and HttpSink have in common, and what they mean together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, at_least
from headgate.api.config import DOUBLE, INT, LOW, MEDIUM, PASSWORD, STRING
from headgate.api.reach import Reach, ReachKind
from headgate.backoff import Backoff
from headgate.connectors.http import headers
from headgate.connectors.http.address import Address
from headgate.connectors.http.headers import RequestHeaders

URL: Final = "url"
CA: Final = "ssl.ca.location"
CERTIFICATE: Final = "ssl.certificate.location"
CERTIFICATE_KEY: Final = "ssl.key.location"
KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 - the name of a key
CONNECT_TIMEOUT: Final = "connect.timeout.ms"
REQUEST_TIMEOUT: Final = "request.timeout.ms"
RATE: Final = "rate.limit.per.second"
BACKOFF: Final = "retry.backoff.ms"
BACKOFF_MAX: Final = "retry.backoff.max.ms"
RETRY_AFTER_MAX: Final = "retry.after.max.ms"
_FILES: Final = (CA, CERTIFICATE, CERTIFICATE_KEY)

Problems = Callable[[Mapping[str, str], Mapping[str, Any]], Iterator[tuple[str, str]]]
"""Given the configuration and its parsed keys: which keys are wrong, and why, once each is right by itself."""


def valid_url(name: str, value: Any) -> None:
    if value is not None:
        try:
            Address.parse(value)
        except ValueError as error:
            # Not the URL itself: what is wrong with it may be the password in it.
            raise ConfigError(f"Invalid value for configuration {name}: {error}") from None


def _rate(name: str, value: Any) -> None:
    if value is None or not 0 <= value < math.inf:
        raise ConfigError.invalid(name, value, "It must be a number of requests a second, or 0 for no limit")


CONFIG: Final = headers.KEYS + ConfigDef(
    Key(CA, STRING, default=None, doc="PEM file of whom to trust; whom the system trusts if absent."),
    Key(CERTIFICATE, STRING, default=None, doc="PEM file of the certificate that the server is shown."),
    Key(CERTIFICATE_KEY, STRING, default=None, doc="PEM file of its private key, if it is not in the same file."),
    Key(KEY_PASSWORD, PASSWORD, default=None, doc="Password of the private key."),
    Key(
        CONNECT_TIMEOUT,
        INT,
        default=5_000,
        validator=at_least(1),
        importance=LOW,
        doc="How long a connection may take to come about.",
    ),
    Key(
        REQUEST_TIMEOUT,
        INT,
        default=30_000,
        validator=at_least(1),
        importance=MEDIUM,
        doc="How long the whole answer to a request may take.",
    ),
    Key(
        RATE,
        DOUBLE,
        default=0.0,
        validator=_rate,
        importance=MEDIUM,
        doc="Most requests a second of each task, evenly; 0: no limit.",
    ),
    Key(
        BACKOFF,
        INT,
        default=500,
        validator=at_least(1),
        importance=LOW,
        doc="How long to wait after a first failure; after each other in a row twice as long.",
    ),
    Key(BACKOFF_MAX, INT, default=60_000, validator=at_least(1), importance=LOW, doc="How long to wait at most."),
    Key(
        RETRY_AFTER_MAX,
        INT,
        default=300_000,
        validator=at_least(0),
        importance=LOW,
        doc="How long to wait at most where the server says how long, with 429 or 503 and Retry-After.",
    ),
)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    address: Address
    headers: RequestHeaders
    ca: str | None
    certificate: str | None
    certificate_key: str | None
    key_password: str | None
    connect_timeout_s: float
    request_timeout_s: float
    requests_per_second: float
    backoff: Backoff
    retry_after_max_s: float

    @classmethod
    def of(cls, config: Mapping[str, str], parsed: Mapping[str, Any]) -> ClientConfig:
        """Of a configuration that is known to be right."""
        address = Address.parse(parsed[URL])
        return cls(
            address=address,
            headers=RequestHeaders.of(config, parsed, address.secrets),
            ca=parsed[CA] or None,
            certificate=parsed[CERTIFICATE] or None,
            certificate_key=parsed[CERTIFICATE_KEY] or None,
            key_password=parsed[KEY_PASSWORD] or None,
            connect_timeout_s=parsed[CONNECT_TIMEOUT] / 1000,
            request_timeout_s=parsed[REQUEST_TIMEOUT] / 1000,
            requests_per_second=parsed[RATE],
            backoff=Backoff(parsed[BACKOFF] / 1000, 2.0, max(parsed[BACKOFF], parsed[BACKOFF_MAX]) / 1000),
            retry_after_max_s=parsed[RETRY_AFTER_MAX] / 1000,
        )

    def delay_s(self, failures: int, retry_after_s: float | None) -> float:
        """How long to wait after so many failures in a row, the last of which may have said it."""
        if retry_after_s is None:
            return self.backoff.after(failures)
        return min(retry_after_s, self.retry_after_max_s)


def reaches(config: Mapping[str, str], *others: str) -> Iterable[Reach]:
    """Of a configuration that may be wrong; `others` are keys with lists of hosts."""
    for key, kind in ((URL, ReachKind.HOST), *((each, ReachKind.READ) for each in _FILES)):
        if named := config.get(key, "").strip():
            yield Reach(kind, named, key)
    for key in others:
        yield from (Reach(ReachKind.HOST, each.strip(), key) for each in config.get(key, "").split(",") if each.strip())


def checked(definition: ConfigDef, config: Mapping[str, str], problems: Problems) -> dict[str, Any]:
    """All keys with their typed values. Raises the first ConfigError."""
    parsed = definition.parse(config)
    for key, reason in _all(problems, config, parsed):
        raise headers.invalid(key, parsed.get(key, config.get(key)), reason)
    return parsed


def validated(definition: ConfigDef, config: Mapping[str, str], problems: Problems) -> list[ConfigValue]:
    """All that is wrong, key by key."""
    values = [*definition.validate(config), *headers.header_values(config)]
    if not any(value.errors for value in values):
        named = {value.name: value for value in values}
        for key, reason in _all(problems, config, {name: value.value for name, value in named.items()}):
            named[key].errors.append(str(headers.invalid(key, named[key].value, reason)))
    return values


def _all(problems: Problems, config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    return chain(headers.problems(config, parsed), _own_problems(parsed), problems(config, parsed))


def _own_problems(parsed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in (CERTIFICATE_KEY, KEY_PASSWORD):
        if parsed[key] and not parsed[CERTIFICATE]:
            yield key, f"It has no effect without {CERTIFICATE}"
