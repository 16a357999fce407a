"""How a task waits: for the engine, for an engine that has died, for time to pass."""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

import pytest
from fakes import Clock, Engine, QuickControl, done, failed

from headgate.model import EngineUnavailable
from headgate.tasks.control import Control, Stopped
from headgate.tasks.waiting import insist, result_of, sit_out

DIED = EngineUnavailable("the driver died")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def control(clock: Clock) -> QuickControl:
    return QuickControl(clock)


# --- for the engine ---------------------------------------------------------------------------------------------------


def test_what_is_there_is_taken_without_looking_around() -> None:
    assert result_of(done(7), Control(paused=False), lambda: pytest.fail("it waits")) == 7


def test_something_may_be_done_meanwhile_until_the_result_is_there() -> None:
    future: Future[int] = Future()
    calls: list[None] = []

    def meanwhile() -> None:
        calls.append(None)
        if len(calls) == 3:
            future.set_result(7)

    assert result_of(future, Control(paused=False), meanwhile) == 7
    assert len(calls) == 3


@pytest.mark.parametrize("error", [ZeroDivisionError(), DIED, FutureTimeout("of the work itself")])
def test_what_the_engine_raises_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        result_of(failed(error), Control(paused=False))
    assert raised.value is error


def test_a_task_that_was_asked_to_stop_still_wants_its_result(control: Control) -> None:
    future: Future[int] = Future()
    control.stop()
    assert result_of(future, control, lambda: future.set_result(7)) == 7


def test_a_task_that_is_given_up_on_does_not(control: Control) -> None:
    control.cancel()
    with pytest.raises(Stopped, match="given up on while Spark worked"):
        result_of(Future(), control, lambda: pytest.fail("it goes on waiting"))


def test_nor_does_one_whose_world_has_died(control: Control) -> None:
    control.fail(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        result_of(Future(), control)


def test_what_is_done_meanwhile_may_end_the_wait() -> None:
    def meanwhile() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        result_of(Future(), Control(paused=False), meanwhile)


# --- for an engine that has died --------------------------------------------------------------------------------------


class Asked:
    def __init__(self, *answers: Future[Any]) -> None:
        self.answers = list(answers)

    def __call__(self) -> Future[Any]:
        return self.answers.pop(0)


def test_what_was_lost_is_asked_for_again_when_there_is_a_new_engine() -> None:
    engine, asked = Engine(), Asked(failed(DIED), failed(DIED), done(7))
    assert insist(asked, engine, Control(paused=False)) == 7
    assert engine.asked_ready == 2


def test_what_is_not_the_engines_fault_is_not_asked_again() -> None:
    engine, asked = Engine(), Asked(failed(ZeroDivisionError()), done(7))
    with pytest.raises(ZeroDivisionError):
        insist(asked, engine, Control(paused=False))
    assert engine.asked_ready == 0


def test_an_engine_that_does_not_come_back() -> None:
    engine, asked = Engine(), Asked(failed(DIED), done(7))
    engine.readiness = [EngineUnavailable("it keeps dying")]
    with pytest.raises(EngineUnavailable, match="it keeps dying"):
        insist(asked, engine, Control(paused=False))


def test_a_task_that_was_asked_to_stop_still_insists_and_one_that_is_given_up_on_does_not(control: Control) -> None:
    control.stop()
    assert insist(Asked(failed(DIED), done(7)), Engine(), control) == 7
    control.cancel()
    engine = Engine()
    with pytest.raises(EngineUnavailable, match="the driver died"):
        insist(Asked(failed(DIED), done(7)), engine, control)
    assert engine.asked_ready == 0


# --- for time to pass -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.25])
def test_so_much_time_passes_in_small_steps(control: QuickControl, clock: Clock, seconds: float) -> None:
    calls: list[None] = []
    began = clock()
    sit_out(seconds, control, clock, lambda: calls.append(None))
    assert clock() - began == pytest.approx(seconds)
    assert len(calls) == len(control.waits)
    assert all(each <= 0.02 for each in control.waits)


def test_a_task_does_not_sit_it_out_when_it_is_asked_to_stop(control: QuickControl, clock: Clock) -> None:
    control.while_waiting = [lambda: None, control.stop]
    with pytest.raises(Stopped, match="before something was to be tried again"):
        sit_out(60, control, clock)
    assert len(control.waits) == 2


def test_what_is_done_meanwhile_may_take_time_too(control: QuickControl, clock: Clock) -> None:
    sit_out(60, control, clock, lambda: clock.move(60))
    assert len(control.waits) == 1
