"""The states of a producer: which call is allowed where, and what leads from one to the next. Two tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from headgate.producer.errors import Operation


class State(Enum):
    """In the order of the columns below."""

    UNINITIALISED = auto()
    INITIALISING = auto()
    """`init` ran out of time; it goes on in the background."""
    READY = auto()
    IN_TRANSACTION = auto()
    COMMITTING = auto()
    """In `commit`, or it ran out of time."""
    ABORTING = auto()
    """In `abort`, or it ran out of time."""
    ABORTABLE_ERROR = auto()
    FATAL_ERROR = auto()
    CLOSED = auto()
    WITHOUT_TRANSACTIONS = auto()
    """No transactional id: records are sent one by one, at least once."""


class Answer(Enum):
    ALLOWED = "ok"
    MISUSE = "ProducerStateError"
    """A bug of the caller; the state stays."""
    CLOSED = "ProducerClosedError"
    ABORTABLE = "the stored TransactionAbortableError"
    """As CommitFailedError in commit."""
    FATAL = "the stored FatalProducerError"


class Event(Enum):
    """What came of a call, or of what went on behind it."""

    INITIALISED = auto()
    INIT_TIMED_OUT = auto()
    BEGUN = auto()
    COMMIT_STARTED = auto()
    COMMITTED = auto()
    ABORT_STARTED = auto()
    ABORTED = auto()
    ABORTABLE_FAILURE = auto()
    FATAL_FAILURE = auto()
    RESET = auto()
    CLOSED = auto()


class IllegalTransition(RuntimeError):
    """The producer's own code asked for a step that is not in the table."""


_OK, _BUG, _GONE = Answer.ALLOWED, Answer.MISUSE, Answer.CLOSED
_LOST, _DEAD = Answer.ABORTABLE, Answer.FATAL

# fmt: off
_ROWS: Final[Mapping[Operation, tuple[Answer, ...]]] = {
    #                        uninit. init.. ready  in txn committ aborti abort. fatal  closed plain
    Operation.INIT:         (_OK,   _OK,   _BUG,  _BUG,  _BUG,  _BUG,  _BUG,  _DEAD, _GONE, _BUG),
    Operation.BEGIN:        (_BUG,  _BUG,  _OK,   _BUG,  _BUG,  _BUG,  _LOST, _DEAD, _GONE, _BUG),
    Operation.SEND:         (_BUG,  _BUG,  _BUG,  _OK,   _BUG,  _BUG,  _LOST, _DEAD, _GONE, _OK),
    Operation.SEND_OFFSETS: (_BUG,  _BUG,  _BUG,  _OK,   _BUG,  _BUG,  _LOST, _DEAD, _GONE, _BUG),
    Operation.FLUSH:        (_OK,   _OK,   _OK,   _OK,   _OK,   _OK,   _LOST, _DEAD, _GONE, _OK),
    Operation.COMMIT:       (_BUG,  _BUG,  _BUG,  _OK,   _OK,   _BUG,  _LOST, _DEAD, _GONE, _BUG),
    # Never after a commit: the broker may have committed.
    Operation.ABORT:        (_BUG,  _BUG,  _BUG,  _OK,   _BUG,  _OK,   _OK,   _DEAD, _GONE, _BUG),
    Operation.CLOSE:        (_OK,   _OK,   _OK,   _OK,   _OK,   _OK,   _OK,   _OK,   _OK,   _OK),
    # Of a fatal error it is allowed only for some; the producer knows which.
    Operation.RESET:        (_OK,   _BUG,  _BUG,  _BUG,  _BUG,  _BUG,  _BUG,  _OK,   _GONE, _BUG),
}
# fmt: on

CALLS: Final[Mapping[tuple[State, Operation], Answer]] = {
    (state, call): answer for call, answers in _ROWS.items() for state, answer in zip(State, answers, strict=True)
}

STEPS: Final[Mapping[tuple[State, Event], State]] = {
    (State.UNINITIALISED, Event.INITIALISED): State.READY,
    (State.UNINITIALISED, Event.INIT_TIMED_OUT): State.INITIALISING,
    (State.INITIALISING, Event.INITIALISED): State.READY,
    (State.INITIALISING, Event.INIT_TIMED_OUT): State.INITIALISING,
    (State.READY, Event.BEGUN): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.COMMIT_STARTED): State.COMMITTING,
    (State.COMMITTING, Event.COMMIT_STARTED): State.COMMITTING,
    (State.COMMITTING, Event.COMMITTED): State.READY,
    (State.IN_TRANSACTION, Event.ABORT_STARTED): State.ABORTING,
    (State.ABORTABLE_ERROR, Event.ABORT_STARTED): State.ABORTING,
    (State.ABORTING, Event.ABORT_STARTED): State.ABORTING,
    (State.ABORTING, Event.ABORTED): State.READY,
    (State.IN_TRANSACTION, Event.ABORTABLE_FAILURE): State.ABORTABLE_ERROR,
    (State.COMMITTING, Event.ABORTABLE_FAILURE): State.ABORTABLE_ERROR,
    # The first error stays; and what fails while all is being dropped is dropped, too (KIP-654).
    (State.ABORTABLE_ERROR, Event.ABORTABLE_FAILURE): State.ABORTABLE_ERROR,
    (State.ABORTING, Event.ABORTABLE_FAILURE): State.ABORTING,
    (State.UNINITIALISED, Event.RESET): State.UNINITIALISED,
    (State.FATAL_ERROR, Event.RESET): State.UNINITIALISED,
    **{(state, Event.FATAL_FAILURE): State.FATAL_ERROR for state in State if state is not State.CLOSED},
    **{(state, Event.CLOSED): State.CLOSED for state in State},
}


def step(state: State, event: Event) -> State:
    try:
        return STEPS[state, event]
    except KeyError:
        raise IllegalTransition(f"{event.name} in {state.name}") from None
