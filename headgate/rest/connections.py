"""Connections of the REST API: so many in all, so many of one address. Whoever waits longest makes room for others."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Group:
    most: int
    members: set[Connection] = field(default_factory=set)
    waiting: dict[Connection, None] = field(default_factory=dict)
    """Those of them that have not said what they want, or have their answer: in the order in which that began."""


@dataclass(frozen=True, slots=True, eq=False)
class Connection:
    """From when it is taken until it is closed."""

    socket: socket.socket
    _groups: tuple[_Group, ...]

    def waits(self) -> None:
        """From now on nothing is lost with it but the patience of its client."""
        self.works()
        for group in self._groups:
            if self in group.members:
                group.waiting[self] = None

    def works(self) -> None:
        """It has a request that is to be answered."""
        for group in self._groups:
            group.waiting.pop(self, None)

    def leave(self) -> None:
        """May be repeated."""
        self.works()
        for group in self._groups:
            group.members.discard(self)


class Connections:
    """Of all listeners of a worker. Used by the server's thread alone."""

    def __init__(self, most: int, per_address: int) -> None:
        self._all = _Group(most)
        self._per_address = per_address
        self._addresses: dict[str, _Group] = {}

    def __len__(self) -> int:
        return len(self._all.members)

    def take(self, taken: socket.socket, address: str) -> Connection | None:
        """None when there is no room, and then it is closed."""
        if len(self._addresses) > 2 * self._all.most:
            self._addresses = {each: group for each, group in self._addresses.items() if group.members}
        groups = (self._addresses.setdefault(address, _Group(self._per_address)), self._all)
        if not all(len(group.members) < group.most or _make_room(group) for group in groups):
            taken.close()
            return None
        made = Connection(taken, groups)
        for group in groups:
            group.members.add(made)
        made.waits()
        return made

    def make_room(self) -> bool:
        """By the end of the one that waits longest; whether there is one."""
        return _make_room(self._all)


def _make_room(group: _Group) -> bool:
    longest = next(iter(group.waiting), None)
    if longest is None:
        return False
    longest.leave()
    with suppress(OSError):  # its client was quicker
        longest.socket.shutdown(socket.SHUT_RDWR)  # whoever reads from it sees its end, and closes it
    return True
