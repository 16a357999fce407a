"""JdbcUrl: a JDBC URL taken apart, so that what a driver would do with it is known before the driver sees it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.api import Reach, ReachKind
from headgate.connectors.jdbc.dialect import DIALECTS, Dialect, Family

CONNECTION: Final = "connection."
URL: Final = "connection.url"
USER: Final = "connection.user"
PASSWORD: Final = "connection.password"  # noqa: S105 - the name of a key
ATTEMPTS: Final = "connection.attempts"
BACKOFF: Final = "connection.backoff.ms"
_OURS: Final = (URL, USER, PASSWORD, ATTEMPTS, BACKOFF)

_SERVER: Final = re.compile(r"(?://(?P<hosts>[^/?#]*)/?)?(?P<database>[^?/#]*)(?:\?(?P<query>[^#]*))?")
_HOST: Final = re.compile(r"([A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class JdbcUrl:
    dialect: Dialect
    text: str = field(repr=False)
    """For the driver."""
    shown: str
    """For people: without parameters, which may hold a password."""
    hosts: tuple[str, ...] = ()
    file: str | None = None
    parameters: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, text: str) -> JdbcUrl:
        """Raises ValueError with what is wrong; without the URL, which may hold a password."""
        head, colon, rest = text.strip().partition(":")
        name, more, rest = rest.partition(":")
        dialect = DIALECTS.get(name)
        if head != "jdbc" or not colon or not more or dialect is None:
            known = ", ".join(f"jdbc:{each}:" for each in DIALECTS)
            raise ValueError(f"It must begin with one of {known}")
        if dialect.family is Family.SQLITE:
            return cls._of_file(dialect, rest)
        return cls._of_server(dialect, rest)

    @classmethod
    def _of_file(cls, dialect: Dialect, rest: str) -> JdbcUrl:
        path, _, query = rest.partition("?")
        if not path or path.startswith((":", "file:")) or "\0" in path:
            raise ValueError("It must name a file: jdbc:sqlite:/path/to/database")
        file = os.path.abspath(path)  # the JVM may have been started elsewhere
        shown = f"jdbc:sqlite:{file}"
        return cls(dialect, f"{shown}?{query}" if query else shown, shown, (), file, tuple(_parameters(query)))

    @classmethod
    def _of_server(cls, dialect: Dialect, rest: str) -> JdbcUrl:
        found = _SERVER.fullmatch(rest)
        name = dialect.family.value
        if found is None or (dialect.family is Family.MYSQL and found["hosts"] is None):
            raise ValueError(f"It does not read jdbc:{name}://host:port/database?parameter=value&...")
        hosts = tuple((found["hosts"] or "localhost").split(","))
        for host in hosts:
            if not _HOST.fullmatch(host):
                raise ValueError(f"{host!r} is no host, with or without a port" if "@" not in host else _NO_LOGIN)
        shown = f"jdbc:{name}://{','.join(hosts)}/{found['database']}"
        parameters = tuple(_parameters(found["query"] or ""))
        return cls(dialect, f"jdbc:{name}:{rest}", shown, hosts, None, parameters)


_NO_LOGIN: Final = f"User and password do not belong there: set {USER} and {PASSWORD}"


def _parameters(query: str) -> Iterator[tuple[str, str]]:
    for each in query.split("&"):
        if each:
            name, _, value = each.partition("=")
            yield name, value


def driver_properties(config: Mapping[str, str]) -> dict[str, str]:
    """What else below `connection.` is for the driver, as Confluent's connector hands it on."""
    given = {key.removeprefix(CONNECTION): value for key, value in config.items() if key.startswith(CONNECTION)}
    return {name: value for name, value in given.items() if CONNECTION + name not in _OURS}


def jdbc_reaches(config: Mapping[str, str], file_kind: ReachKind) -> Iterator[Reach]:
    """What a connection with this configuration gets at; `file_kind` is what is done to a database that is a file."""
    try:
        url = JdbcUrl.parse(config.get(URL) or "")
    except ValueError:
        return  # validation says so
    yield from (Reach(ReachKind.HOST, host, URL) for host in url.hosts)
    if url.file is not None:
        yield Reach(file_kind, url.file, URL)
    named = [(URL, name, value) for name, value in url.parameters]
    named += [(CONNECTION + name, name, value) for name, value in driver_properties(config).items()]
    for key, name, value in named:
        if name in url.dialect.files:
            yield Reach(ReachKind.READ, value, key)
        elif name not in url.dialect.harmless:
            yield Reach(ReachKind.OPTION, name, key)
