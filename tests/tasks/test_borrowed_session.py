"""BorrowedSession: only who uses Spark can lose it, and is called again when there is a new one."""

from __future__ import annotations

import pytest
from fakes import TASK, Clock, Engine, QuickControl

from headgate.model import EngineUnavailable
from headgate.tasks.borrowed_session import BorrowedSession


class Plugin:
    """Fails as often as it has errors, and gives how often it was called then."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return self.calls


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def session(engine: Engine) -> BorrowedSession:
    return BorrowedSession(engine, TASK, QuickControl(Clock()))


def test_a_lost_session_is_waited_for_as_often_as_it_is_lost(engine: Engine, session: BorrowedSession) -> None:
    assert session.get() == f"the session of {TASK}"
    assert session.call(Plugin(ConnectionError(), ConnectionError()), "put()") == 3
    assert engine.asked_ready == 2


def test_who_does_not_use_it_has_not_lost_it(engine: Engine, session: BorrowedSession) -> None:
    with pytest.raises(ConnectionError):
        session.call(Plugin(ConnectionError()), "put()")
    assert engine.asked_ready == 0


def test_what_is_the_plugins_own_error_stays_so(engine: Engine, session: BorrowedSession) -> None:
    session.get()
    with pytest.raises(ZeroDivisionError):
        session.call(Plugin(ZeroDivisionError()), "put()")
    assert engine.asked_ready == 0


def test_a_session_that_does_not_come_back_is_the_end(engine: Engine, session: BorrowedSession) -> None:
    session.get()
    engine.readiness = [EngineUnavailable("it keeps dying")]
    plugin = Plugin(ConnectionError())
    with pytest.raises(EngineUnavailable, match="it keeps dying"):
        session.call(plugin, "put()")
    assert plugin.calls == 1
