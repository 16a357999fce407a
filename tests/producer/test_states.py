"""Every call in every state, and every event: against the table, and against a producer in that state."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from headgate.producer import (
    CommitFailedError,
    FailureType,
    FatalProducerError,
    GroupFencedError,
    KafkaErrorInfo,
    KafkaFault,
    Operation,
    ProducerClosedError,
    ProducerError,
    ProducerFencedError,
    ProducerStateError,
    State,
    TransactionAbortableError,
    TransactionalProducer,
    TransactionStateError,
    TransactionTimedOutError,
)
from headgate.producer.states import CALLS, STEPS, Answer, Event, IllegalTransition, step

pytestmark = pytest.mark.kip(691, "a commit that timed out is never followed by an abort")

OK, BUG, GONE, LOST, DEAD = Answer.ALLOWED, Answer.MISUSE, Answer.CLOSED, Answer.ABORTABLE, Answer.FATAL
PLAIN = State.WITHOUT_TRANSACTIONS
OPEN = [state for state in State if state is not State.CLOSED]

ALLOWED: dict[Operation, set[State]] = {
    Operation.INIT: {State.UNINITIALISED, State.INITIALISING},
    Operation.BEGIN: {State.READY},
    Operation.SEND: {State.IN_TRANSACTION, PLAIN},
    Operation.SEND_OFFSETS: {State.IN_TRANSACTION},
    Operation.FLUSH: set(State) - {State.ABORTABLE_ERROR, State.FATAL_ERROR, State.CLOSED},
    Operation.COMMIT: {State.IN_TRANSACTION, State.COMMITTING},
    Operation.ABORT: {State.IN_TRANSACTION, State.ABORTING, State.ABORTABLE_ERROR},
    Operation.CLOSE: set(State),
    Operation.RESET: {State.UNINITIALISED, State.FATAL_ERROR},
}
SAYS_AGAIN = {Operation.BEGIN, Operation.SEND, Operation.SEND_OFFSETS, Operation.FLUSH, Operation.COMMIT}
"""What a lost transaction answers with its stored error."""


def expected(state: State, call: Operation) -> Answer:
    if state in ALLOWED[call]:
        return OK
    if state is State.CLOSED:
        return GONE
    if state is State.FATAL_ERROR:
        return DEAD
    return LOST if state is State.ABORTABLE_ERROR and call in SAYS_AGAIN else BUG


def test_the_table_has_every_state_and_every_call() -> None:
    assert CALLS.keys() == {(state, call) for state in State for call in set(Operation) - {Operation.CREATE}}


@pytest.mark.parametrize("call", ALLOWED)
@pytest.mark.parametrize("state", State)
def test_every_call_in_every_state(state: State, call: Operation) -> None:
    assert CALLS[state, call] is expected(state, call)


# --- events -----------------------------------------------------------------------------------------------------------

LEADS: dict[Event, dict[State, State]] = {
    Event.INITIALISED: {State.UNINITIALISED: State.READY, State.INITIALISING: State.READY},
    Event.INIT_TIMED_OUT: {State.UNINITIALISED: State.INITIALISING, State.INITIALISING: State.INITIALISING},
    Event.BEGUN: {State.READY: State.IN_TRANSACTION},
    Event.COMMIT_STARTED: {State.IN_TRANSACTION: State.COMMITTING, State.COMMITTING: State.COMMITTING},
    Event.COMMITTED: {State.COMMITTING: State.READY},
    Event.ABORT_STARTED: dict.fromkeys((State.IN_TRANSACTION, State.ABORTABLE_ERROR, State.ABORTING), State.ABORTING),
    Event.ABORTED: {State.ABORTING: State.READY},
    Event.ABORTABLE_FAILURE: {
        **dict.fromkeys((State.IN_TRANSACTION, State.COMMITTING, State.ABORTABLE_ERROR), State.ABORTABLE_ERROR),
        State.ABORTING: State.ABORTING,
    },
    Event.FATAL_FAILURE: dict.fromkeys(OPEN, State.FATAL_ERROR),
    Event.RESET: dict.fromkeys((State.UNINITIALISED, State.FATAL_ERROR), State.UNINITIALISED),
    Event.CLOSED: dict.fromkeys(State, State.CLOSED),
}


@pytest.mark.parametrize("event", Event)
@pytest.mark.parametrize("state", State)
def test_every_event_in_every_state(state: State, event: Event) -> None:
    target = LEADS[event].get(state)
    if target is None:
        with pytest.raises(IllegalTransition):
            step(state, event)
    else:
        assert step(state, event) is target


def test_nothing_leaves_a_fatal_error_but_reset_and_close() -> None:
    away = {event for (state, event), to in STEPS.items() if state is State.FATAL_ERROR and to is not state}
    assert away == {Event.RESET, Event.CLOSED}


def test_abortable_errors_come_from_transactions_only() -> None:
    origins = {state for (state, _), to in STEPS.items() if to is State.ABORTABLE_ERROR}
    assert origins == {State.IN_TRANSACTION, State.COMMITTING, State.ABORTABLE_ERROR}


# --- a producer in that state -----------------------------------------------------------------------------------------

SETTINGS = {"bootstrap.servers": "127.0.0.1:1", "transactional.id": "task", "socket.timeout.ms": 1000}
DO: dict[Operation, Callable[[TransactionalProducer], Any]] = {
    Operation.INIT: lambda producer: producer.init(0.1),
    Operation.BEGIN: lambda producer: producer.begin(),
    Operation.SEND: lambda producer: producer.send("topic", b"value"),
    Operation.SEND_OFFSETS: lambda producer: producer.send_offsets([], b""),
    Operation.FLUSH: lambda producer: producer.flush(0.1),
    Operation.COMMIT: lambda producer: producer.commit(0.1),
    Operation.ABORT: lambda producer: producer.abort(0.1),
    Operation.CLOSE: lambda producer: producer.close(1.0),
    Operation.RESET: lambda producer: producer.reset(),
}
RAISED: dict[Answer, type[Exception]] = {
    BUG: ProducerStateError,
    GONE: ProducerClosedError,
    LOST: TransactionAbortableError,
    DEAD: FatalProducerError,
}


def stored(state: State) -> ProducerError | None:
    cause = KafkaFault(KafkaErrorInfo(10, "MESSAGE_TOO_LARGE", "too large"), FailureType.MESSAGE_REJECTED)
    if state is State.ABORTABLE_ERROR:
        return TransactionAbortableError("lost", cause=cause)
    return ProducerFencedError("fenced", cause=cause) if state is State.FATAL_ERROR else None


@pytest.fixture
def producer_in(request: pytest.FixtureRequest) -> Callable[..., TransactionalProducer]:
    """As if it had got into that state; no broker is there."""

    def make(state: State, error: ProducerError | None = None, **more: Any) -> TransactionalProducer:
        producer = TransactionalProducer(SETTINGS, **more)
        request.addfinalizer(lambda: producer.close(1.0))
        producer._state = state
        producer._error = error or stored(state)
        return producer

    return make


@pytest.mark.process
@pytest.mark.parametrize("state", [state for state in State if state is not PLAIN])
def test_calls_that_are_not_allowed_say_so_and_change_nothing(
    producer_in: Callable[..., TransactionalProducer], state: State
) -> None:
    producer = producer_in(state)
    for call in DO:
        answer = CALLS[state, call]
        if answer is OK:
            continue
        with pytest.raises(RAISED[answer]) as caught:
            DO[call](producer)
        assert producer.state is state
        if answer is BUG:
            assert not isinstance(caught.value, ProducerClosedError)
        if answer is DEAD:
            assert caught.value is producer._error
        if answer is LOST and call is Operation.COMMIT:
            assert type(caught.value) is CommitFailedError
            assert producer._error is not None
            assert caught.value.cause is producer._error.cause


@pytest.mark.process
def test_without_a_transactional_id_there_are_no_transactions() -> None:
    with TransactionalProducer({"bootstrap.servers": "127.0.0.1:1"}) as producer:
        assert producer.state is PLAIN
        for call in (
            Operation.INIT,
            Operation.BEGIN,
            Operation.SEND_OFFSETS,
            Operation.COMMIT,
            Operation.ABORT,
            Operation.RESET,
        ):
            with pytest.raises(ProducerStateError):
                DO[call](producer)
        assert producer.flush(0.1) == 0
    with pytest.raises(ProducerClosedError):
        producer.send("topic", b"value")


@pytest.mark.process
@pytest.mark.kip(691, "the same producer goes on after rejoining the group")
@pytest.mark.parametrize("kind", [GroupFencedError, TransactionTimedOutError, TransactionStateError])
def test_a_reset_needs_the_right_error_and_the_right_owner(
    producer_in: Callable[..., TransactionalProducer], kind: type[FatalProducerError]
) -> None:
    producer = producer_in(State.FATAL_ERROR, kind("what"), still_mine=lambda: True)
    producer.reset()
    assert producer.state is State.UNINITIALISED
    producer.reset()

    stranger = producer_in(State.FATAL_ERROR, kind("what"), still_mine=lambda: False)
    for call in (stranger.reset, stranger.init):
        with pytest.raises(ProducerFencedError):
            call()
    assert stranger.state is State.FATAL_ERROR

    fenced = producer_in(State.FATAL_ERROR, still_mine=lambda: True)
    with pytest.raises(ProducerFencedError):
        fenced.reset()


@pytest.mark.process
@pytest.mark.kip(691, "a producer that was late does not come back by itself")
@pytest.mark.parametrize(
    ("kind", "overdue", "goes_on"),
    [
        (TransactionTimedOutError, True, False),
        (TransactionTimedOutError, False, False),
        (TransactionStateError, True, False),
        (TransactionStateError, False, True),
        (GroupFencedError, True, True),  # its group has let it in again
    ],
)
def test_who_was_late_needs_somebody_to_say_that_the_id_is_still_its_own(
    producer_in: Callable[..., TransactionalProducer], kind: type[FatalProducerError], overdue: bool, goes_on: bool
) -> None:
    producer = producer_in(State.FATAL_ERROR, kind("what"))
    producer._open, producer._began = overdue, -math.inf
    if goes_on:
        producer.reset()
        assert producer.state is State.UNINITIALISED
        return
    for call in (producer.reset, producer.init):
        with pytest.raises(ProducerFencedError, match="still_mine"):
            call()


@pytest.mark.process
@pytest.mark.kip(691, "a producer that was late does not come back by itself")
def test_nor_does_who_was_late_take_the_id_again_inside_of_an_abort(
    producer_in: Callable[..., TransactionalProducer],
) -> None:
    producer = producer_in(State.ABORTABLE_ERROR)
    producer._open, producer._began = True, -math.inf
    producer._handle.broken = True  # so only another one could end the transaction
    with pytest.raises(ProducerFencedError, match="still_mine"):
        producer.abort(0.1)
