"""The state of a sink task, as one value: where it stands in its partitions, what is under way, what it went through.

Pure. `SinkStep` says how far the batch in front is; `STEPS` has every way from one to the next.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from headgate.api.errors import ConnectError
from headgate.model import PartitionStart, TopicPartition

log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int]


class SinkStep(Enum):
    """Of the batch in front."""

    NONE = "none"
    """Nothing is under way."""
    WORKING = "working"
    """The engine has it."""
    PUTTING = "putting"
    """The task gets its records."""
    WAITING = "waiting"
    """The task, or a record of the batch, is to be tried again after a pause."""


class Happening(Enum):
    SUBMIT = "submit"
    """A batch was given to the engine; others may be before it."""
    TAKE = "take"
    """The engine's results are there."""
    RETRY = "retry"
    AGAIN = "again"
    PUT = "put"
    """All of it was put, and no other batch is behind it."""
    PUT_AND_MORE = "put and more"
    DROP = "drop"
    """What is under way comes again, or goes to whoever has its partitions next."""


STEPS: Final[Mapping[tuple[SinkStep, Happening], SinkStep]] = {
    (SinkStep.NONE, Happening.SUBMIT): SinkStep.WORKING,
    (SinkStep.WORKING, Happening.SUBMIT): SinkStep.WORKING,
    (SinkStep.WORKING, Happening.TAKE): SinkStep.PUTTING,
    (SinkStep.PUTTING, Happening.RETRY): SinkStep.WAITING,
    (SinkStep.WAITING, Happening.AGAIN): SinkStep.PUTTING,
    (SinkStep.PUTTING, Happening.PUT): SinkStep.NONE,
    (SinkStep.PUTTING, Happening.PUT_AND_MORE): SinkStep.WORKING,
    **{(step, Happening.DROP): SinkStep.NONE for step in SinkStep},
}


class IllegalStep(Exception):
    """A bug: this cannot happen now."""


@dataclass(frozen=True, slots=True)
class Flight:
    """A batch under way."""

    following: Offsets
    """Where to go on after it."""
    count: int


@dataclass(frozen=True, slots=True)
class SinkState:
    positions: Offsets = field(default_factory=dict)
    """Of every assigned partition: the offset after the last record that was put."""
    safe: Offsets = field(default_factory=dict)
    """Where to go back to: what the task let pass last, or where it began."""
    committed: Offsets = field(default_factory=dict)
    """What the group has; where it has nothing, where it begins."""
    flights: tuple[Flight, ...] = ()
    """What is under way, the one in front first."""
    step: SinkStep = SinkStep.NONE
    rebalanced: bool = False
    """Partitions went since the turn began."""
    half_put: bool = False
    """Records were put, or may have been, that come again."""

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        return frozenset(self.positions)

    # --- batches ------------------------------------------------------------------------------------------------------

    def submitted(self, flight: Flight) -> SinkState:
        return replace(self._stepped(Happening.SUBMIT), flights=(*self.flights, flight))

    def taken(self) -> SinkState:
        return self._stepped(Happening.TAKE)

    def waits(self) -> SinkState:
        return self._stepped(Happening.RETRY)

    def again(self) -> SinkState:
        return self._stepped(Happening.AGAIN)

    def put(self) -> SinkState:
        """The batch in front; partitions that went meanwhile are not this task's any more."""
        front, *behind = self.flights
        moved = self._stepped(Happening.PUT_AND_MORE if behind else Happening.PUT)
        return replace(moved, positions=_known(self.positions, front.following), flights=tuple(behind))

    def dropped(self) -> SinkState:
        """What was fetched and not put comes again: from `positions` on."""
        half = self.half_put or self.step in (SinkStep.PUTTING, SinkStep.WAITING)
        return replace(self._stepped(Happening.DROP), flights=(), half_put=half)

    def turned(self) -> SinkState:
        """A new turn of the loop: what went before is known."""
        return replace(self, rebalanced=False) if self.rebalanced else self

    def _stepped(self, happening: Happening) -> SinkState:
        try:
            return replace(self, step=STEPS[self.step, happening])
        except KeyError:
            raise IllegalStep(f"{happening.value} while {self.step.value}") from None

    # --- partitions that come and go ----------------------------------------------------------------------------------

    def assigned_with(self, starts: Mapping[TopicPartition, PartitionStart], own: Offsets) -> SinkState:
        """`own`: where the task wants to begin instead of where the group does. Raises ConnectError."""
        begin = {where: start.offset for where, start in starts.items()}
        begin |= {where: _checked(where, starts[where], offset) for where, offset in own.items() if where in starts}
        # An end of the topic where reading begins need not be committed; an offset that the task has is.
        known = {where: start.offset for where, start in starts.items() if start.known or where not in own}
        return replace(
            self,
            positions={**self.positions, **begin},
            safe={**self.safe, **begin},
            committed={**self.committed, **known},
        )

    def without(self, partitions: Iterable[TopicPartition]) -> SinkState:
        gone = frozenset(partitions)
        return replace(
            self,
            positions=_but(self.positions, gone),
            safe=_but(self.safe, gone),
            committed=_but(self.committed, gone),
            rebalanced=True,
        )

    def begun_anew(self, own: Offsets) -> SinkState:
        """The task gets the partitions that it has as if they had just come: from what it let pass last, or `own`."""
        mine = {where: offset for where, offset in own.items() if where in self.positions}
        back = {**self.safe, **mine}
        return replace(self, positions={**self.positions, **back}, safe=back, half_put=False)

    # --- offsets ------------------------------------------------------------------------------------------------------

    def rewound(self, offsets: Offsets) -> SinkState:
        """To where the task says that it is. There is no way back behind it."""
        return replace(self, positions=_known(self.positions, offsets), safe=_known(self.safe, offsets))

    def allowed(self, offsets: Offsets) -> SinkState:
        """The task has let these pass."""
        return replace(self, safe=_known(self.safe, offsets))

    def has_committed(self, offsets: Offsets) -> SinkState:
        return replace(self, committed={**self.committed, **offsets})

    def uncommitted(self, passed: Offsets) -> dict[TopicPartition, int]:
        return {where: offset for where, offset in passed.items() if self.committed.get(where) != offset}


def _checked(where: TopicPartition, start: PartitionStart, wanted: int) -> int:
    """An offset that the task has, as far as the topic has it too."""
    if wanted > start.high:
        raise ConnectError(
            f"The task wants to go on at offset {wanted} of {where}, but the topic ends at {start.high}: it was made"
            " anew, or has lost records. To begin elsewhere, stop the connector, alter or reset its offsets, and"
            " resume it"
        )
    if wanted < start.low:
        log.warning("Offsets %d to %d of %s are gone before the task saw them", wanted, start.low - 1, where)
    return max(wanted, start.low)


def _known(offsets: Offsets, newer: Offsets) -> dict[TopicPartition, int]:
    return {where: newer.get(where, offset) for where, offset in offsets.items()}


def _but(offsets: Offsets, gone: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    return {where: offset for where, offset in offsets.items() if where not in gone}
