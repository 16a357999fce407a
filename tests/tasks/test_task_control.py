"""Control: what the outside wants of a task, and how its thread waits for that."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from headgate.tasks.control import Control, Rebalanced, Rewind, Stopped

Act = Callable[[Control], object]
LONG_S = 60.0


def parked(wait: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("paused", [True, False])
def test_a_task_begins_as_it_is_wanted(paused: bool) -> None:
    control = Control(paused)
    assert (control.paused, control.stopping, control.cancelled) == (paused, False, False)
    control.check()


def test_who_is_given_up_on_is_stopping_too() -> None:
    control = Control(paused=False)
    control.stop()
    assert (control.stopping, control.cancelled) == (True, False)
    control.cancel()
    assert (control.stopping, control.cancelled) == (True, True)


def test_the_first_failure_is_the_one_that_counts() -> None:
    control, first = Control(paused=False), ZeroDivisionError("first")
    control.fail(first)
    control.fail(OSError("second"))
    for ask in (control.check, lambda: control.wait(LONG_S), control.wait_while_paused):
        with pytest.raises(ZeroDivisionError) as raised:
            ask()
        assert raised.value is first


def test_time_goes_by_and_the_task_may_go_on() -> None:
    assert Control(paused=False).wait(0.0)


@pytest.mark.parametrize(
    ("act", "expected"), [(Control.stop, False), (Control.cancel, False), (lambda c: c.fail(OSError()), OSError)]
)
def test_who_waits_hears_at_once_that_it_shall_end(act: Act, expected: object) -> None:
    control = Control(paused=False)
    heard: list[object] = []

    def wait() -> None:
        try:
            heard.append(control.wait(LONG_S))
        except OSError as error:
            heard.append(type(error))

    thread = parked(wait)
    act(control)
    thread.join(5)
    assert heard == [expected]


def test_a_pause_does_not_end_a_wait() -> None:
    control = Control(paused=False)
    control.pause(True)
    assert control.wait(0.0)


@pytest.mark.parametrize("act", [lambda c: c.pause(False), Control.stop, Control.cancel])
def test_who_is_paused_hears_at_once_that_it_is_not_any_more_or_shall_end(act: Act) -> None:
    control = Control(paused=True)
    thread = parked(control.wait_while_paused)
    thread.join(0.01)
    assert thread.is_alive()
    act(control)
    thread.join(5)
    assert not thread.is_alive()


def test_who_is_not_paused_does_not_wait() -> None:
    Control(paused=False).wait_while_paused()


def test_who_lost_partitions_stops_what_it_does_and_who_goes_back_says_why() -> None:
    assert issubclass(Rebalanced, Stopped)
    error = OSError("fenced")
    assert (Rewind(error).error, Rewind().error) == (error, None)
