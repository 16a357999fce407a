"""Answers: what clients were told, and whether that is in the book."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from tests.soak.trouble import Trouble

_IN_TROUBLE: Final = (None, 409, 500, 503)
"""While something is broken, by the contract: no answer at all, who does what is about to change, what has to do it or
Kafka is out of reach, still starting."""


@dataclass
class Answers:
    """Of one client."""

    trouble: Trouble
    counts: Counter[str] = field(default_factory=Counter)
    """By status, `none` where there was none."""
    wrong: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return sum(self.counts.values())

    def take(
        self,
        what: str,
        status: int | None,
        expected: Collection[int | None],
        began: float,
        told: str,
        in_trouble: Collection[int] = (),
    ) -> bool:
        """Whether it was in the book."""
        self.counts["none" if status is None else str(status)] += 1
        good = status in expected or (status in (*_IN_TROUBLE, *in_trouble) and self.trouble.since(began))
        if not good:
            self.wrong.append(f"{what}: {status}, not {sorted(map(str, expected))}: {told[:300]}")
        return good
