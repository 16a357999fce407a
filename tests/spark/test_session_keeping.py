"""A session that is kept alive: started in the background, anew when its JVM dies, and told of when it cannot be had.

There is no JVM here: what makes a context, and its process, are doubles."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext

from headgate.model import EngineUnavailable
from headgate.spark import jvm
from headgate.spark import session as session_module
from headgate.spark.session import Session, label

WAIT_S = 30.0
Eventually = Callable[..., None]


class Jvm:
    """A process, and the gateway to it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None
        self._ended = threading.Event()

    @property
    def proc(self) -> Jvm:
        return self

    def die(self, code: int = 137) -> None:
        self.code = code
        self._ended.set()

    def wait(self) -> int | None:
        assert self._ended.wait(WAIT_S)
        return self.code

    def poll(self) -> int | None:
        return self.code


class FakeContext:
    master = "local[2]"

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm
        self.stops = 0
        self.cancelled: list[str] = []
        self.problem: Exception | None = None

    @property
    def version(self) -> str:
        if self.jvm.code is not None:
            raise Py4JNetworkError("Answer from Java side is empty")
        return "4.2.0"

    def stop(self) -> None:
        self.stops += 1
        if self.problem is not None:
            raise self.problem

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        if self.problem is not None:
            raise self.problem
        self.cancelled.append(group)


class Pauses:
    """How long is waited after so many troubles: not at all, until `held`."""

    def __init__(self) -> None:
        self.troubles: list[int] = []
        self.held = 10**9
        self.meanwhile: Callable[[], None] = lambda: None

    def after(self, troubles: int) -> float:
        self.troubles.append(troubles)
        self.meanwhile()
        return WAIT_S if troubles >= self.held else 0.0


class KeptSession(Session):
    """What `_create` does is said by the test: an error to be raised, or None for a context."""

    def __init__(self) -> None:
        super().__init__({"spark.jars": "a.jar"}, list, lambda: Path("java"), ["/plugins"])
        self.starts: list[Exception | None] = []
        self.default: Exception | None = None
        self.contexts: list[FakeContext] = []
        self.created = 0
        self.gate = threading.Event()
        self.gate.set()
        self.starting = threading.Event()
        self.stillborn = 0
        """So many contexts whose JVM is dead before anybody has asked it for anything."""

    def _create(self) -> Any:
        self.starting.set()
        assert self.gate.wait(WAIT_S)
        self.created += 1
        problem = self.starts.pop(0) if self.starts else self.default
        if problem is not None:
            raise problem
        context = FakeContext(Jvm(1000 + self.created))
        SparkContext._gateway = context.jvm
        if self.stillborn:
            self.stillborn -= 1
            context.jvm.die()
        else:
            self.contexts.append(context)
        return context


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    made = Pauses()
    monkeypatch.setattr(session_module, "_RETRY", made)
    return made


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long it was waited each time that a JVM was let go of."""
    seen: list[float] = []

    def forget(seconds: float = 10.0) -> None:
        seen.append(seconds)
        gateway: Any = SparkContext._gateway
        SparkContext._gateway = None
        if gateway is not None:
            gateway.die(0)

    monkeypatch.setattr(jvm, "forget", forget)
    return seen


@pytest.fixture
def session(pauses: Pauses, forgotten: list[float]) -> Iterator[KeptSession]:
    made = KeptSession()
    yield made
    made.gate.set()
    made.stop()
    if made._thread.is_alive():
        made._thread.join(WAIT_S)
    assert not made._thread.is_alive()
    SparkContext._gateway = None


@pytest.fixture
def aside() -> Iterator[Callable[[Callable[[], Any]], Future[Any]]]:
    """Runs something in a thread of its own."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


Aside = Callable[[Callable[[], Any]], Future[Any]]


# --- starting ---------------------------------------------------------------------------------------------------------


def test_starting_returns_at_once_and_whoever_wants_a_context_waits(session: KeptSession, aside: Aside) -> None:
    session.gate.clear()
    session.start()
    waits = [aside(session.context) for _ in range(3)]
    assert session.starting.wait(WAIT_S)
    assert not any(each.done() for each in waits)
    session.gate.set()
    assert [each.result(WAIT_S) for each in waits] == session.contexts * 3
    found: Any = session.context()
    assert found is session.contexts[0]
    assert session.pid() == 1001


def test_who_is_cancelled_waits_no_longer(session: KeptSession, aside: Aside) -> None:
    session.gate.clear()
    session.start()
    cancelled = threading.Event()
    waits = aside(lambda: session.context(cancelled.is_set))
    assert session.starting.wait(WAIT_S)
    cancelled.set()
    with pytest.raises(EngineUnavailable, match="shutting down"):
        waits.result(WAIT_S)


def test_when_the_first_start_fails_whoever_waits_is_told_why(
    session: KeptSession, pauses: Pauses, aside: Aside
) -> None:
    session.default, pauses.held = FileNotFoundError("no Java 17 was found"), 1
    session.gate.clear()
    session.start()
    waits = [aside(session.context) for _ in range(3)]
    session.gate.set()
    for each in waits:
        with pytest.raises(EngineUnavailable, match="Spark could not be started: no Java 17 was found"):
            each.result(WAIT_S)
    with pytest.raises(EngineUnavailable, match="no Java 17"):
        session.context()


def test_it_is_tried_again_after_longer_and_longer_pauses_until_it_works(
    session: KeptSession, pauses: Pauses, forgotten: list[float], eventually: Eventually
) -> None:
    session.starts = [OSError("not yet")] * 7
    session.start()
    eventually(lambda: session.contexts)
    found: Any = session.context()
    assert found is session.contexts[0]
    assert pauses.troubles == [1, 2, 3, 4, 5, 6, 7]
    assert len(forgotten) == 7, "half a JVM would be in the way of the next one"


def test_pauses_grow_to_a_minute_and_not_further_even_after_weeks() -> None:
    after = session_module._RETRY.after
    assert [after(troubles) for troubles in range(1, 9)] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert after(100_000) == 60


def test_who_comes_while_it_is_tried_again_waits_for_it(
    session: KeptSession, pauses: Pauses, aside: Aside, eventually: Eventually
) -> None:
    def hold() -> None:
        session.gate.clear()
        session.starting.clear()

    session.starts, pauses.meanwhile = [OSError("not yet")], hold
    session.start()
    eventually(lambda: pauses.troubles)
    assert session.starting.wait(WAIT_S)
    waits = aside(session.context)
    session.gate.set()
    assert waits.result(WAIT_S) is session.contexts[0]


def test_a_jvm_that_is_dead_before_it_was_asked_for_anything(
    session: KeptSession, pauses: Pauses, aside: Aside
) -> None:
    session.stillborn = 2
    session.start()
    eventually_there = aside(lambda: retried(session))
    assert eventually_there.result(WAIT_S).jvm.pid == 1003
    assert pauses.troubles == [1, 2]


def retried(session: Session) -> Any:
    """The context, for somebody who asks again when he is told that there is none."""
    while True:
        try:
            return session.context()
        except EngineUnavailable:
            continue


# --- when the JVM dies ------------------------------------------------------------------------------------------------


def test_when_the_jvm_dies_there_is_a_new_one_and_nobody_is_told(
    session: KeptSession, pauses: Pauses, forgotten: list[float], aside: Aside
) -> None:
    session.start()
    first = session.context()
    session.gate.clear()
    session.starting.clear()
    first.jvm.die()  # type: ignore[attr-defined]
    assert session.starting.wait(WAIT_S)
    waits = [aside(session.context) for _ in range(3)]
    session.gate.set()
    assert [each.result(WAIT_S) for each in waits] == [session.contexts[1]] * 3
    assert pauses.troubles == [1]
    assert len(forgotten) == 1


def test_after_a_long_life_there_is_no_pause(
    session: KeptSession, pauses: Pauses, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(session_module, "_SHORT_LIFE_S", 0.0)
    session.start()
    for number in range(10):
        eventually(lambda at=number: len(session.contexts) > at)
        session.contexts[number].jvm.die()
    eventually(lambda: len(session.contexts) == 11)
    assert pauses.troubles == []


def test_after_five_short_lives_whoever_waits_is_told(
    session: KeptSession, pauses: Pauses, aside: Aside, eventually: Eventually
) -> None:
    pauses.held = 5
    session.start()
    for number in range(4):
        eventually(lambda at=number: len(session.contexts) > at)
        session.contexts[number].jvm.die()
        assert session._problem is None
    eventually(lambda: len(session.contexts) == 5)
    session.context()
    session.contexts[4].jvm.die(1)
    eventually(lambda: session._problem)
    reason = r"The Spark driver JVM \(pid 1005\) ended with exit code 1"
    for _ in range(2):
        with pytest.raises(EngineUnavailable, match=reason):
            session.context()
    assert pauses.troubles == [1, 2, 3, 4, 5]


def test_starts_that_fail_after_a_death_count_too(
    session: KeptSession, pauses: Pauses, aside: Aside, eventually: Eventually
) -> None:
    """One that fails is not told at once: it has worked before."""
    pauses.held = 5
    session.starts = [None, *[OSError("port in use")] * 10]
    session.start()
    session.context()
    session.gate.clear()
    session.contexts[0].jvm.die()
    eventually(lambda: session._context is None)
    waits = aside(session.context)
    session.gate.set()
    with pytest.raises(EngineUnavailable, match="Spark could not be started: port in use"):
        waits.result(WAIT_S)
    assert pauses.troubles == [1, 2, 3, 4, 5]


def test_the_thread_that_keeps_it_does_not_end_unseen(
    session: KeptSession, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, aside: Aside
) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("nobody thought of this")

    monkeypatch.setattr(session, "_wait_for_death", fail)
    session.start()
    session._thread.join(WAIT_S)
    with pytest.raises(EngineUnavailable, match="Spark cannot be kept running: nobody thought of this"):
        session.context()
    assert "There will be no Spark session any more" in caplog.text


# --- stopping ---------------------------------------------------------------------------------------------------------


def test_stopping_ends_the_context_and_its_jvm(session: KeptSession, forgotten: list[float]) -> None:
    session.start()
    context: Any = session.context()
    session.stop()
    session._thread.join(WAIT_S)
    assert (context.stops, context.jvm.code, session.created) == (1, 0, 1)
    assert forgotten == [session_module._ARCHIVE_S]
    with pytest.raises(EngineUnavailable, match="shutting down"):
        session.context()


def test_stopping_while_it_is_starting(session: KeptSession, forgotten: list[float], aside: Aside) -> None:
    """What has been started by then is ended, too."""
    session.gate.clear()
    session.start()
    waits = aside(session.context)
    assert session.starting.wait(WAIT_S)
    session.stop()
    with pytest.raises(EngineUnavailable, match="shutting down"):
        waits.result(WAIT_S)
    session.gate.set()
    session._thread.join(WAIT_S)
    assert session.contexts[0].stops == 1
    assert session.contexts[0].jvm.code == 0
    assert session._context is None


def test_stopping_while_a_start_fails(session: KeptSession, pauses: Pauses) -> None:
    session.default = OSError("not yet")
    session.gate.clear()
    session.start()
    assert session.starting.wait(WAIT_S)
    session.stop()
    session.gate.set()
    session._thread.join(WAIT_S)
    assert pauses.troubles == []


def test_stopping_during_a_pause(session: KeptSession, pauses: Pauses, eventually: Eventually) -> None:
    session.default, pauses.held = OSError("not yet"), 1
    session.start()
    eventually(lambda: pauses.troubles)
    session.stop()
    session._thread.join(WAIT_S / 2)
    assert not session._thread.is_alive()


def test_stopping_what_is_dead_already(session: KeptSession, forgotten: list[float]) -> None:
    session.start()
    context: Any = session.context()
    context.problem = Py4JNetworkError("gone")
    session.stop()
    assert len(forgotten) == 1


def test_stopping_what_was_never_started(forgotten: list[float]) -> None:
    KeptSession().stop()
    assert forgotten == []


# --- what an error means ----------------------------------------------------------------------------------------------


class JavaError(Py4JJavaError):  # type: ignore[misc]
    """A Java exception, without a Java to ask for its text."""

    def __init__(self) -> None:
        Exception.__init__(self, "Job aborted")

    def __str__(self) -> str:
        return "Job aborted"


def test_an_error_while_all_is_well_means_what_it_says(session: KeptSession) -> None:
    session.start()
    session.context()
    for error in (ValueError("x"), JavaError(), OSError("disk full")):
        assert session.explain(error) is error


@pytest.mark.parametrize(
    "error",
    [Py4JNetworkError("empty"), Py4JError("while calling o54.f"), ConnectionResetError("reset"), EOFError()],
    ids=repr,
)
def test_an_error_of_the_line_to_a_jvm_that_dies_means_that_it_died(
    session: KeptSession,
    pauses: Pauses,
    error: Exception,
    eventually: Eventually,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though its process may still be there for a moment."""
    monkeypatch.setattr(session, "_lives", lambda: True)
    pauses.held = 1
    session.start()
    context: Any = session.context()
    context.jvm.die(9)
    explained = session.explain(error)
    assert isinstance(explained, EngineUnavailable)
    eventually(lambda: session.last_death)
    assert "exit code 9" in str(session.explain(error))


def test_a_lost_line_to_a_jvm_that_lives_on_is_as_good_as_its_end(
    session: KeptSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "_NOTICE_S", 0.05)
    session.start()
    session.context()
    monkeypatch.setattr(session, "_lives", lambda: True)
    assert isinstance(session.explain(Py4JNetworkError("empty")), EngineUnavailable)


@pytest.mark.parametrize("error", [ConnectionRefusedError("the database is away"), EOFError("its file ends")], ids=repr)
def test_an_error_of_a_line_of_the_callers_own_is_left_as_it_is(
    session: KeptSession, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Else a sink whose database is away would be put to again and again, without a pause: Spark is ready."""
    monkeypatch.setattr(session_module, "_NOTICE_S", 0.05)
    session.start()
    session.context()
    assert session.explain(error) is error


def test_any_error_after_the_end_of_the_session_means_that(session: KeptSession) -> None:
    explained = session.explain(ValueError("x"))
    assert isinstance(explained, EngineUnavailable)
    assert "connection to the Spark driver JVM was lost" in str(explained)


def test_what_says_so_already_is_left_as_it_is(session: KeptSession) -> None:
    error = EngineUnavailable("told")
    assert session.explain(error) is error


def test_what_java_raised_is_never_the_end_of_the_session(session: KeptSession) -> None:
    error = JavaError()
    assert session.explain(error) is error


# --- jobs -------------------------------------------------------------------------------------------------------------


def test_cancelling_jobs(session: KeptSession, caplog: pytest.LogCaptureFixture) -> None:
    session.cancel("nobody's")
    session.start()
    context: Any = session.context()
    session.cancel("mine")
    assert context.cancelled == ["mine"]
    context.problem = Py4JNetworkError("gone")
    session.cancel("mine")
    assert "Could not cancel the Spark jobs of mine" in caplog.text


def test_jobs_are_labelled_with_their_group_and_pool() -> None:
    seen: list[object] = []

    class Labelled:
        def setJobGroup(self, group: str, description: str, interruptOnCancel: bool) -> None:  # noqa: N802, N803
            seen.append((group, description, interruptOnCancel))

        def setLocalProperty(self, key: str, value: str) -> None:  # noqa: N802
            seen.append((key, value))

    made: Any = Labelled()
    label(made, "resident-1", "residents")
    assert seen == [("resident-1", "headgate resident-1", True), ("spark.scheduler.pool", "residents")]


def test_settings_of_spark(session: KeptSession) -> None:
    made = session._all_settings([Path("/b.jar")])
    assert made["spark.jars"] == "a.jar,/b.jar"
    assert made["spark.executorEnv.PYTHONPATH"] == "/plugins"
    assert "log4j2.properties" in made["spark.driver.extraJavaOptions"]
