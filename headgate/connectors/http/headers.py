"""Headers of requests, of which some are secrets: logins, and whatever is written below `secret.headers.`."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import ConfigDef, ConfigError, ConfigValue, Key, one_of
from headgate.api.config import MEDIUM, PASSWORD, STRING
from headgate.log import HIDDEN, is_secret_key

PLAIN: Final = "headers."
SECRET: Final = "secret.headers."  # noqa: S105 - the beginning of keys
TYPE: Final = "auth.type"
USER: Final = "auth.user"
AUTH_PASSWORD: Final = "auth.password"  # noqa: S105 - the name of a key
TOKEN: Final = "auth.token"  # noqa: S105 - the name of a key
HEADER: Final = "auth.header"

NONE: Final = "none"
BASIC: Final = "basic"
BEARER: Final = "bearer"
BY_HEADER: Final = "header"

_AUTHORIZATION: Final = "Authorization"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[!-~]([ \t!-~]*[!-~])?")
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
_SECRETS: Final = frozenset({"authorization", "proxy-authorization", "cookie"})
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    NONE: (),
    BASIC: (USER, AUTH_PASSWORD),
    BEARER: (TOKEN,),
    BY_HEADER: (HEADER, TOKEN),
}

KEYS: Final = ConfigDef(
    Key(
        TYPE,
        STRING,
        default=NONE,
        validator=one_of(*_NEEDED),
        importance=MEDIUM,
        doc="How to log in: none, basic (auth.user, auth.password), bearer (auth.token) or header (auth.token in the"
        " header auth.header).",
    ),
    Key(USER, STRING, default=None, importance=MEDIUM, doc="User of auth.type=basic."),
    Key(AUTH_PASSWORD, PASSWORD, default=None, importance=MEDIUM, doc="Password of auth.type=basic."),
    Key(TOKEN, PASSWORD, default=None, importance=MEDIUM, doc="Token of auth.type=bearer and header."),
    Key(HEADER, STRING, default="X-API-Key", importance=MEDIUM, doc="Header that auth.type=header sends the token in."),
)


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    plain: Mapping[str, str]
    secret: Mapping[str, str]
    """For the host of `url` alone."""
    hidden: tuple[str, ...]
    """What no text may show."""

    @classmethod
    def of(cls, config: Mapping[str, str], parsed: Mapping[str, Any], more: Iterable[str] = ()) -> RequestHeaders:
        """Of a configuration in which `problems` finds none; `more` is to be hidden, too."""
        given, login = _below(PLAIN, config), _login(parsed)
        named = {name: value for name, value in given.items() if is_secret_key(name)}
        secret = {**_below(SECRET, config), **named, **login}
        # Of "Bearer abc" the second word is the secret, and a server may repeat that alone.
        inside = [value.rpartition(" ")[2] for value in login.values()]
        hidden = (*secret.values(), *inside, *filter(None, (parsed[AUTH_PASSWORD], parsed[TOKEN])), *more)
        return cls({name: value for name, value in given.items() if name not in named}, secret, hidden)


def problems(config: Mapping[str, str], parsed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Keys, and what is wrong with them; not with their values, which may be secrets."""
    kind = parsed[TYPE]
    for key in _NEEDED[kind]:
        if not parsed[key]:
            yield key, f"auth.type={kind} needs it"
    for key in (USER, AUTH_PASSWORD, TOKEN):
        if parsed[key] and key not in _NEEDED[kind]:
            yield key, f"It has no effect with auth.type={kind}"
    if ":" in (parsed[USER] or ""):
        yield USER, "The user of basic authentication has no colon in it"
    if parsed[TOKEN] and not _VALUE.fullmatch(parsed[TOKEN]):
        yield TOKEN, "A token has only ASCII characters, and no line ends"
    if not is_header_name(parsed[HEADER] or "x"):
        yield HEADER, "It is no name of a header"
    yield from _header_problems(config, [name.lower() for name in _login_names(parsed)])


def is_header_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def header_values(config: Mapping[str, str]) -> list[ConfigValue]:
    """The keys that have no definitions, as validation tells of them."""
    given = [key for key in config if key.startswith((PLAIN, SECRET))]
    return [ConfigValue(key, HIDDEN if _is_secret(key) else config[key]) for key in given]


def invalid(key: str, value: object, reason: str) -> ConfigError:
    """As ConfigError.invalid, without the value where it may be a secret."""
    return ConfigError.invalid(key, HIDDEN if _is_secret(key) else value, reason)


def _is_secret(key: str) -> bool:
    return is_secret_key(key) or key.removeprefix(PLAIN).lower() in _SECRETS  # as all below `secret.headers.` are


def _header_problems(config: Mapping[str, str], taken: list[str]) -> Iterator[tuple[str, str]]:
    for key in config:
        prefix = next((each for each in (PLAIN, SECRET) if key.startswith(each)), None)
        if prefix is None:
            continue
        name = key.removeprefix(prefix)
        if not is_header_name(name):
            yield key, f"{name!r} is no name of a header"
        elif not _VALUE.fullmatch(config[key].strip()):
            yield key, "The value of a header has at least one character, only ASCII, and no line ends"
        elif name.lower() in _OURS:
            yield key, "The connector sets this header itself"
        elif prefix == PLAIN and name.lower() in _SECRETS:
            yield key, f"Everybody would see it: set {TYPE}, or {SECRET}{name}"
        elif name.lower() in taken:
            yield key, "This header is set twice"
        taken.append(name.lower())


def _below(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(prefix): value.strip() for key, value in config.items() if key.startswith(prefix)}


def _login_names(parsed: Mapping[str, Any]) -> list[str]:
    return {NONE: [], BY_HEADER: [parsed[HEADER] or ""]}.get(parsed[TYPE], [_AUTHORIZATION])


def _login(parsed: Mapping[str, Any]) -> dict[str, str]:
    kind = parsed[TYPE]
    if kind == BASIC:
        pair = f"{parsed[USER]}:{parsed[AUTH_PASSWORD]}".encode()
        return {_AUTHORIZATION: f"Basic {base64.b64encode(pair).decode()}"}
    if kind == BEARER:
        return {_AUTHORIZATION: f"Bearer {parsed[TOKEN]}"}
    return {parsed[HEADER]: parsed[TOKEN]} if kind == BY_HEADER else {}
