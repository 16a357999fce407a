"""Jaas: the logins of Apache's BasicAuthSecurityRestExtension, as a JAAS file of Java names them.

KafkaConnect {
    org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
    file="/etc/kafka/users.properties";
};
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headgate.access.passwords import PropertyFile
from headgate.access.watched_file import WatchedFile
from headgate.api.errors import ConfigError

EXTENSION: Final = "org.apache.kafka.connect.rest.basic.auth.extension.BasicAuthSecurityRestExtension"
LOGIN_MODULE: Final = "org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule"
ENTRY: Final = "KafkaConnect"
_OTHER: Final = "other"
"""The entry that Java takes where there is none of that name."""
_PROPERTY: Final = "java.security.auth.login.config"
_OPTION: Final = f"-D{_PROPERTY}="
_NEEDED: Final = f'Set KAFKA_OPTS="{_OPTION}<file>" in the worker\'s environment'
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")

# A slash begins a comment up to the end of its line, where it does not begin another kind of comment.
_TOKEN: Final = re.compile(
    r"(?P<blank>\s+|/\*.*?\*/|/(?!\*)[^\n]*)"
    r'|"(?P<quoted>(?:[^"\\\n]|\\.)*)"'
    r"|(?P<sign>[{};=])|(?P<word>[\w$*.-]+)",
    re.DOTALL,
)
_ESCAPED: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_LETTERS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class LoginModule:
    name: str
    flag: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Jaas:
    """Fits `Passwords`. The JAAS file is read once, as Java does; files of passwords whenever they change."""

    file: str
    modules: tuple[tuple[str, PropertyFile], ...]
    """With their flags."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Jaas:
        """Raises ConfigError."""
        file = WatchedFile(f"{_PROPERTY} in KAFKA_OPTS", _file(environ), _modules)
        key = f"file in {file.path}"
        return cls(file.path, tuple((each.flag, PropertyFile(key, each.options["file"])) for each in file.read()))

    def problem(self, user: str, password: str) -> str | None:
        """By the flags, as JAAS defines them. Apache's module says of wrong passwords that it does not care, so that
        there any of several modules is enough, whatever the flags."""
        wrong: str | None = None
        right = False
        for flag, passwords in self.modules:
            problem = passwords.problem(user, password)
            right = right or problem is None
            if problem is None and flag == "sufficient" and wrong is None:
                return None
            if problem is not None and flag in ("required", "requisite"):
                wrong = wrong or problem
        return None if right and wrong is None else wrong or problem

    @property
    def version(self) -> object:
        return tuple(passwords.version for _, passwords in self.modules)

    @property
    def files(self) -> Sequence[str]:
        return [self.file, *(file for _, passwords in self.modules for file in passwords.files)]


def _file(environ: Mapping[str, str]) -> str:
    options = environ.get("KAFKA_OPTS", "")
    try:
        words = shlex.split(options)
    except ValueError:  # a quote that does not end
        words = options.split()
    named = [word.removeprefix(_OPTION) for word in words if word.startswith(_OPTION)]
    # The last one counts. A second equals sign tells Java to take no other file.
    file = named[-1].removeprefix("=").removeprefix("file:") if named else ""
    if not file:
        raise ConfigError.invalid("rest.extension.classes", EXTENSION, f"It needs a JAAS file. {_NEEDED}")
    return file


def _modules(text: str) -> Sequence[LoginModule]:
    entries = parse(text)
    modules = entries.get(ENTRY) or entries.get(_OTHER)
    if not modules:
        raise ValueError(f"it has no entry {ENTRY} with a login module")
    for each in modules:
        if each.name != LOGIN_MODULE:
            raise ValueError(
                f"{each.name} is a Java class, which cannot run here: use {LOGIN_MODULE}, or instead of the extension"
                " headgate.login.htpasswd, headgate.login.tokens, headgate.login.jwks or headgate.login.certificates"
            )
        if not each.options.get("file", "").strip():
            raise ValueError(f'the login module of the entry {ENTRY} needs file="<file of users and passwords>"')
        if "${" in each.options["file"]:
            raise ValueError(
                "there are no properties of Java here that could stand in the name of a file: write it out"
            )
    return modules


# --- the file ---------------------------------------------------------------------------------------------------------


def parse(text: str) -> Mapping[str, Sequence[LoginModule]]:
    """By entries. Raises ValueError, which names the line and repeats nothing of it: there may be passwords."""
    tokens = _Tokens(text)
    entries: dict[str, Sequence[LoginModule]] = {}
    while not tokens.at_end:
        name = tokens.word("the name of an entry")
        if name in entries:
            raise tokens.wrong(f"there is an entry {name} already")
        tokens.sign("{")
        modules = []
        while not tokens.take("}"):
            modules.append(_module(tokens))
        tokens.sign(";")
        entries[name] = modules
    return entries


def _module(tokens: _Tokens) -> LoginModule:
    name, flag = tokens.word("a login module"), tokens.word("a flag").lower()
    if flag not in _FLAGS:
        raise tokens.wrong(f"the flag must be one of {', '.join(_FLAGS)}")
    options: dict[str, str] = {}
    while not tokens.take(";"):
        option = tokens.word("an option, or ; after the last")
        tokens.sign("=")
        options[option] = tokens.word("the value of an option")
    return LoginModule(name, flag, options)


class _Tokens:
    def __init__(self, text: str) -> None:
        self._left = _tokens(text)
        self._next = next(self._left, None)
        self._line = 1

    @property
    def at_end(self) -> bool:
        return self._next is None

    def word(self, what: str) -> str:
        if self._next is None or self._next[1]:
            raise self.wrong(f"{what} is missing")
        word = self._next[0]
        self._advance()
        return word

    def sign(self, sign: str) -> None:
        if not self.take(sign):
            raise self.wrong(f"{sign} is missing")

    def take(self, sign: str) -> bool:
        """Whether it came."""
        if self._next is None or self._next[:2] != (sign, True):
            return False
        self._advance()
        return True

    def wrong(self, what: str) -> ValueError:
        return ValueError(f"line {self._next[2] if self._next else self._line}: {what}")

    def _advance(self) -> None:
        assert self._next is not None
        self._line = self._next[2]
        self._next = next(self._left, None)


def _tokens(text: str) -> Iterator[tuple[str, bool, int]]:
    """Each with whether it is a sign, and its line."""
    position = 0
    while position < len(text):
        line = text.count("\n", 0, position) + 1
        found = _TOKEN.match(text, position)
        if found is None:
            raise ValueError(f"line {line}: this is nothing that a JAAS file may have here, or a quote does not end")
        kind = found.lastgroup
        if kind == "quoted":
            yield _ESCAPED.sub(_unescaped, found["quoted"]), False, line
        elif kind != "blank":
            yield found[0], kind == "sign", line
        position = found.end()


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 8)) if found[1].isdigit() else _LETTERS.get(found[1], found[1])
