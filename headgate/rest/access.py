"""Access: who is let in, who may do what, and where that is written down, as the worker file says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.access.audit import Audit
from headgate.access.logins import Logins
from headgate.access.rights import Rights
from headgate.rest.callers import Callers
from headgate.rest.guard import Guard
from headgate.runtime.herder import Herder


@dataclass(frozen=True, slots=True)
class Access:
    logins: Logins | None = None
    """None: nobody is asked."""
    rights: Callable[[], Rights] | None = None
    """None: everybody may do everything."""
    audit: Audit | None = None

    def guard(self, herder: Herder) -> Guard:
        return Guard(herder, Callers(herder, self.logins), self.rights)
