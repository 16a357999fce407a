"""Verdicts, from plain facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.model import Health, State, Status, TaskFacts, Verdict
from headgate.runtime import verdict

NOW = 1_000_000_000
QUIET = TaskFacts("poll()", NOW - 100)


def judged(facts: TaskFacts, state: State = State.RUNNING) -> tuple[Verdict, str | None]:
    found = verdict.of_task(None, state, facts, NOW)
    return found.verdict, found.reason


def status(state: State, health: Health | None = None) -> Status:
    return Status(state, "here:8083", health=health)


def test_who_has_just_got_something_done_is_ok() -> None:
    assert judged(replace(QUIET, last_progress_ms=NOW - 29_000)) == (Verdict.OK, None)


def test_who_has_had_nothing_to_do_for_a_while_is_idle() -> None:
    assert judged(QUIET) == (Verdict.IDLE, None)
    assert judged(replace(QUIET, last_progress_ms=NOW - 30_000)) == (Verdict.IDLE, None)


def test_a_poll_that_blocks_is_idle_and_says_since_when() -> None:
    found, reason = judged(TaskFacts("poll()", NOW - 600_000))
    assert found is Verdict.IDLE
    assert reason == f"in poll() since {verdict.at(NOW - 600_000)}"


@pytest.mark.parametrize(("ago", "expected"), [(9_999, Verdict.IDLE), (10_000, Verdict.STALLED)])
def test_who_ignores_a_pause_or_a_stop_for_ten_seconds_is_stalled(ago: int, expected: Verdict) -> None:
    found, reason = judged(replace(QUIET, asked_ms=NOW - ago))
    assert found is expected
    if expected is Verdict.STALLED:
        assert reason is not None
        assert "to pause or to stop" in reason
        assert "in poll()" in reason


def test_who_tries_again_says_what() -> None:
    facts = replace(QUIET, trouble="put(): database is locked", last_progress_ms=NOW, last_error="put(): …")
    assert judged(facts) == (Verdict.RETRYING, "put(): database is locked")


def test_records_that_stay_under_way_make_it_stalled_after_a_minute() -> None:
    at_work = TaskFacts("put()", NOW - 59_999, under_way_since_ms=NOW - 59_999)
    assert judged(at_work)[0] is Verdict.OK
    stuck = replace(at_work, doing_since_ms=NOW - 60_000, under_way_since_ms=NOW - 60_000)
    found, reason = judged(stuck)
    assert found is Verdict.STALLED
    assert reason is not None
    assert "in put() since" in reason


def test_records_under_way_of_which_some_are_done_all_the_time_are_fine() -> None:
    facts = replace(QUIET, under_way_since_ms=NOW - 3_600_000, last_progress_ms=NOW - 1_000)
    assert judged(facts)[0] is Verdict.OK


def test_who_is_not_running_yet_is_starting_and_says_where() -> None:
    assert judged(TaskFacts("Spark's start", NOW - 7_000), State.UNASSIGNED) == (
        Verdict.STARTING,
        f"in Spark's start since {verdict.at(NOW - 7_000)}",
    )
    assert judged(replace(QUIET, trouble="Kafka: away"), State.UNASSIGNED)[0] is Verdict.RETRYING


def test_the_time_stays_while_the_verdict_does() -> None:
    first = verdict.of_task(None, State.RUNNING, QUIET, NOW)
    second = verdict.of_task(first, State.RUNNING, QUIET, NOW + 5)
    third = verdict.of_task(second, State.RUNNING, replace(QUIET, trouble="x"), NOW + 9)
    assert (first.since_ms, second.since_ms, third.since_ms) == (NOW, NOW, NOW + 9)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.UNASSIGNED, Verdict.STARTING),
        (State.RESTARTING, Verdict.STARTING),
        (State.RUNNING, Verdict.STARTING),
        (State.PAUSED, Verdict.HELD),
        (State.STOPPED, Verdict.HELD),
        (State.FAILED, Verdict.FAILED),
    ],
)
def test_what_a_state_says_by_itself(state: State, expected: Verdict) -> None:
    assert verdict.of_state(state, NOW).verdict is expected


def test_a_failure_names_its_cause_in_one_line() -> None:
    trace = 'OSError: disk full\nTraceback (most recent call last):\n  File "x.py", line 1, in f\nOSError: disk full'
    found = verdict.of_state(State.FAILED, NOW, trace)
    assert found.reason == found.last_error == "OSError: disk full"


@pytest.mark.parametrize("trace", ["", "\n \n", "only this"])
def test_a_trace_without_a_traceback_has_a_cause_too(trace: str) -> None:
    assert verdict.cause(trace) == trace.strip()


def test_others_are_told_of_another_verdict_at_once_and_of_another_reason_now_and_then() -> None:
    told = Health(Verdict.RETRYING, NOW, "put(): 1")
    other = replace(told, reason="put(): 2")
    assert verdict.news(None, told, 0, NOW)
    assert verdict.news(told, replace(told, verdict=Verdict.OK), NOW, NOW)
    assert not verdict.news(told, told, NOW, NOW + 60_000)
    assert not verdict.news(told, other, NOW, NOW + 9_999)
    assert verdict.news(told, other, NOW, NOW + 10_000)


def test_figures_and_where_a_healthy_task_is_are_no_news() -> None:
    told = Health(Verdict.IDLE, NOW, "in poll() since 1", lag=1, rate=1.0)
    assert not verdict.news(told, replace(told, reason="in poll() since 2", lag=2, rate=0.0), NOW, NOW + 60_000)


# --- connectors -------------------------------------------------------------------------------------------------------


def test_a_connector_that_runs_fares_as_the_worst_of_its_tasks() -> None:
    connector = status(State.RUNNING, Health(Verdict.STARTING, NOW))
    fine = Health(Verdict.OK, NOW, last_progress_ms=5, lag=3, rate=1.5)
    bad = Health(Verdict.STALLED, NOW - 1, "in put()", "boom", last_progress_ms=4, lag=70, rate=0.5)
    found = verdict.of_connector(connector, [status(State.RUNNING, each) for each in (fine, bad)])
    assert found == replace(bad, last_progress_ms=5, lag=70, rate=2.0)


def test_a_connector_that_failed_says_so_whatever_its_tasks_do() -> None:
    failed = Health(Verdict.FAILED, NOW, "OSError")
    tasks = [status(State.RUNNING, Health(Verdict.OK, NOW))]
    found = verdict.of_connector(status(State.FAILED, failed), tasks)
    assert found is not None
    assert (found.verdict, found.reason) == (Verdict.FAILED, "OSError")


def test_a_connector_without_tasks_has_nothing_to_do() -> None:
    running = status(State.RUNNING, Health(Verdict.STARTING, NOW))
    stopped = status(State.STOPPED, Health(Verdict.HELD, NOW, "stopped"))
    assert verdict.of_connector(running, []) == Health(Verdict.IDLE, NOW, "it has no tasks")
    assert verdict.of_connector(stopped, []) == stopped.health


def test_nobody_guesses_how_that_fares_what_workers_without_verdicts_run() -> None:
    fine = status(State.RUNNING, Health(Verdict.OK, NOW))
    assert verdict.of_connector(status(State.RUNNING), [fine]) is None
    assert verdict.of_connector(fine, [status(State.RUNNING)]) is None
