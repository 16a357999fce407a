"""Rights: which role somebody has, for which connectors and for connectors of which classes.

They stand in one TOML file, as grants; whoever has none may do nothing:

    [[grant]]
    to = ["alice", "group:data"]        # names, groups of a login, or "*" for everybody who logged in
    role = "operator"                   # viewer, operator, editor, admin: each may do what those before it may
    connectors = ["orders-*"]           # patterns of names; all connectors unless told
    plugins = ["*FileStream*"]          # patterns of connector classes, by any of their names; all unless told
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from fnmatch import fnmatchcase
from typing import Any, Final

from headgate.access.principal import Principal

_GROUP: Final = "group:"
_ALL: Final = ("*",)


class Role(IntEnum):
    """Each has the rights of those before it."""

    VIEWER = 1
    """Reads configurations without secrets, states, offsets, topics."""
    OPERATOR = 2
    """Pauses, resumes, stops, restarts, and moves offsets."""
    EDITOR = 3
    """Creates, changes, validates and deletes."""
    ADMIN = 4
    """Reads secrets and changes the worker itself."""

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Grant:
    to: tuple[str, ...]
    role: Role
    connectors: tuple[str, ...] = _ALL
    plugins: tuple[str, ...] = _ALL

    def is_for(self, principal: Principal) -> bool:
        return any(
            each == "*"
            or (each.removeprefix(_GROUP) in principal.groups if each.startswith(_GROUP) else each == principal.name)
            for each in self.to
        )

    def covers(self, connector: str | None, classes: Collection[str] | None) -> bool:
        return (connector is None or _matches([connector], self.connectors)) and (
            classes is None or _matches(classes, self.plugins)
        )

    @property
    def of_everything(self) -> bool:
        return "*" in self.connectors and "*" in self.plugins


@dataclass(frozen=True, slots=True)
class Rights:
    grants: tuple[Grant, ...]

    @classmethod
    def parse(cls, text: str) -> Rights:
        """Raises ValueError, which says where and what is wrong."""
        found = tomllib.loads(text)
        grants = found.pop("grant", [])
        if found or not isinstance(grants, list):
            raise ValueError(f"only [[grant]] is known here, not {', '.join(found) or 'grant'}")
        return cls(tuple(_grant(number, each) for number, each in enumerate(grants, 1)))

    def role(
        self, principal: Principal, connector: str | None = None, classes: Collection[str] | None = None
    ) -> Role | None:
        """The highest for this connector, of a class with these names; None in place of either: for any."""
        return _highest(each for each in self.grants if each.is_for(principal) and each.covers(connector, classes))

    def role_everywhere(self, principal: Principal) -> Role | None:
        """The highest that is for all connectors of all classes: the worker itself is everybody's."""
        return _highest(each for each in self.grants if each.is_for(principal) and each.of_everything)


def _highest(grants: Iterable[Grant]) -> Role | None:
    return max((each.role for each in grants), default=None)


def _matches(names: Collection[str], patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _grant(number: int, table: Any) -> Grant:
    where = f"grant {number}"
    if not isinstance(table, dict):
        raise ValueError(f"{where} is no table: begin it with [[grant]]")
    if unknown := table.keys() - {"to", "role", "connectors", "plugins"}:
        raise ValueError(f"{where}: {', '.join(sorted(unknown))} is not known; there are to, role, connectors, plugins")
    if missing := {"to", "role"} - table.keys():
        raise ValueError(f"{where} has no {' and no '.join(sorted(missing))}")
    roles: Mapping[Any, Role] = {role.word: role for role in Role}
    if not isinstance(table["role"], str) or table["role"] not in roles:
        raise ValueError(f"{where}: role is {table['role']!r}, and must be one of {', '.join(roles)}")
    lists = {key: _texts(where, key, table[key]) for key in ("to", "connectors", "plugins") if key in table}
    return Grant(lists["to"], roles[table["role"]], lists.get("connectors", _ALL), lists.get("plugins", _ALL))


def _texts(where: str, key: str, value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each for each in texts):
        raise ValueError(f"{where}: {key} must be a text, or a list of some")
    return tuple(texts)
