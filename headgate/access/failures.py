"""Failures: how long whoever failed to log in has to wait for the answer.

What counts is who tries for whom: a client with an old password behind a proxy slows down nobody else there. Who tries
many names, or many tokens, is slowed down by the address.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from headgate.backoff import Backoff

_PAUSES: Final = Backoff(0.2, 2.0, 5.0)
_ADDRESS_PAUSE_S: Final = 1.0
_FREE: Final = 10
"""Failures of an address before it is slowed down as such, and which are all told of."""
_FORGOTTEN_S: Final = 600.0
_LONGEST_S: Final = 20.0
"""So long a failed login may have to wait for those before it. While it would be longer, none is tried."""
_MOST: Final = 10_000
"""Whoever fails with ever other names, from ever other addresses, fills no more memory than that."""


@dataclass(frozen=True, slots=True)
class FailedLogin:
    wait_s: float
    """Before the answer."""
    count: int
    """Of that address, in the last minutes."""

    @property
    def worth_telling(self) -> bool:
        return self.count <= _FREE or self.count & (self.count - 1) == 0


@dataclass(slots=True)
class _Trace:
    count: int = 0
    last: float = 0.0
    until: float = 0.0
    """When the last of those who wait has its answer: they wait one after the other, also for those who gave up."""

    def add(self, pause: float, now: float) -> None:
        self.until = min(max(self.until, now), now + _LONGEST_S) + pause


class Failures:
    """To be used from one thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._traces: dict[Hashable, _Trace] = {}
        self._addresses: dict[Hashable, _Trace] = {}

    def failed(self, address: str, who: str, guessed: bool = True) -> FailedLogin:
        """`who`: the name, or the token, that was tried. `guessed`: whether more tries could find the right one."""
        now, place = self._clock(), _place(address)
        one, all_there = self._count(self._traces, hash((place, who))), self._count(self._addresses, place)
        one.add(_PAUSES.after(one.count), now)
        if guessed and all_there.count > _FREE:
            all_there.add(_ADDRESS_PAUSE_S, now)
        return FailedLogin(max(one.until, all_there.until if guessed else now) - now, all_there.count)

    def succeeded(self, address: str, who: str) -> None:
        """Forgives that one; the address may have many."""
        self._traces.pop(hash((_place(address), who)), None)

    def refused_s(self, address: str, who: str, guessed: bool = True) -> int:
        """After how many seconds it may be tried again; 0: now."""
        place = _place(address)
        found = [self._traces.get(hash((place, who))), self._addresses.get(place) if guessed else None]
        wait = max((each.until for each in found if each is not None), default=-math.inf) - self._clock()
        return math.ceil(wait) if wait > _LONGEST_S else 0

    def _count(self, traces: dict[Hashable, _Trace], key: Hashable) -> _Trace:
        found = traces.pop(key, None)
        now = self._clock()
        if found is None or now - found.last > _FORGOTTEN_S:
            found = _Trace()
        found.count, found.last = found.count + 1, now
        traces[key] = found  # the last: those that failed longest ago are the first to go
        if len(traces) > _MOST:
            del traces[next(iter(traces))]
        return found


def _place(address: str) -> Hashable:
    """Whoever has an address of IPv6 has all those that begin like it."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        return found.ipv4_mapped or found.packed[:8]
    return found
