from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.model import State, TargetState
from headgate.runtime.lifecycle import (
    CONNECTOR,
    EVENT_OF,
    PHASES,
    TASK,
    ImpossibleEvent,
    InstanceEvent,
    Phase,
    PluginCall,
    Table,
    step,
)

# One row per state, one column per event; "-" cannot happen. Written out, so that a change of the table shows here.
COLUMNS = [
    InstanceEvent[name]
    for name in ["ASSIGN", "WAITING", "STARTUP", "PAUSE", "STOP", "FAILURE", "SHUTDOWN", "RESTART", "DELETE"]
]
TASK_ROWS = """
UNASSIGNED  UNASSIGNED  UNASSIGNED  RUNNING  PAUSED  -  FAILED  UNASSIGNED  RESTARTING  DESTROYED
RUNNING     UNASSIGNED  -           RUNNING  PAUSED  -  FAILED  UNASSIGNED  RESTARTING  DESTROYED
PAUSED      UNASSIGNED  -           RUNNING  PAUSED  -  FAILED  UNASSIGNED  RESTARTING  DESTROYED
FAILED      UNASSIGNED  -           -        -       -  FAILED  UNASSIGNED  RESTARTING  DESTROYED
RESTARTING  RESTARTING  RESTARTING  RUNNING  PAUSED  -  FAILED  UNASSIGNED  RESTARTING  DESTROYED
STOPPED     -           -           -        -       -  -       -           -           -
DESTROYED   -           -           -        -       -  -       -           -           -
"""
CONNECTOR_ROWS = """
UNASSIGNED  UNASSIGNED  UNASSIGNED  RUNNING  PAUSED  STOPPED  FAILED  UNASSIGNED  RESTARTING  DESTROYED
RUNNING     UNASSIGNED  -           RUNNING  PAUSED  STOPPED  FAILED  UNASSIGNED  RESTARTING  DESTROYED
PAUSED      UNASSIGNED  -           RUNNING  PAUSED  STOPPED  FAILED  UNASSIGNED  RESTARTING  DESTROYED
FAILED      UNASSIGNED  -           -        -       STOPPED  FAILED  UNASSIGNED  RESTARTING  DESTROYED
RESTARTING  RESTARTING  RESTARTING  RUNNING  PAUSED  STOPPED  FAILED  UNASSIGNED  RESTARTING  DESTROYED
STOPPED     UNASSIGNED  -           RUNNING  PAUSED  STOPPED  FAILED  STOPPED     STOPPED     DESTROYED
DESTROYED   -           -           -        -       -        -       -           -           -
"""


def pairs(rows: str) -> list[tuple[State, InstanceEvent, State | None]]:
    return [
        (State[row[0]], event, None if cell == "-" else State[cell])
        for row in (line.split() for line in rows.strip().splitlines())
        for event, cell in zip(COLUMNS, row[1:], strict=True)
    ]


def check(table: Table, state: State, event: InstanceEvent, expected: State | None) -> None:
    if expected is None:
        with pytest.raises(ImpossibleEvent, match=f"{event.value} cannot happen to what is {state.value}"):
            step(table, state, event)
    else:
        assert step(table, state, event) is expected


@pytest.mark.parametrize(("state", "event", "expected"), pairs(TASK_ROWS))
def test_every_event_of_a_task(state: State, event: InstanceEvent, expected: State | None) -> None:
    check(TASK, state, event, expected)


@pytest.mark.parametrize(("state", "event", "expected"), pairs(CONNECTOR_ROWS))
def test_every_event_of_a_connector(state: State, event: InstanceEvent, expected: State | None) -> None:
    check(CONNECTOR, state, event, expected)


@pytest.mark.parametrize("rows", [TASK_ROWS, CONNECTOR_ROWS])
def test_the_tables_above_have_every_pair(rows: str) -> None:
    assert {(state, event) for state, event, _ in pairs(rows)} == {
        (state, event) for state in State for event in InstanceEvent
    }


def walk(table: Table, events: Sequence[InstanceEvent]) -> list[State]:
    """The states along these events; one that cannot happen changes nothing."""
    states = [State.UNASSIGNED]
    for event in events:
        try:
            states.append(step(table, states[-1], event))
        except ImpossibleEvent:
            states.append(states[-1])
    return states


EVENTS = st.lists(st.sampled_from(InstanceEvent))


@given(EVENTS)
def test_whatever_happens_a_task_is_never_stopped(events: list[InstanceEvent]) -> None:
    assert State.STOPPED not in walk(TASK, events)


@given(EVENTS)
def test_destroyed_is_final(events: list[InstanceEvent]) -> None:
    for table in (TASK, CONNECTOR):
        assert set(walk(table, [InstanceEvent.DELETE, *events])[1:]) == {State.DESTROYED}


@given(EVENTS)
def test_what_is_not_deleted_is_never_destroyed(events: list[InstanceEvent]) -> None:
    lived = [event for event in events if event is not InstanceEvent.DELETE]
    for table in (TASK, CONNECTOR):
        assert State.DESTROYED not in walk(table, lived)


@given(EVENTS)
@pytest.mark.kip(875, "Stopping a failed connector updates its state to `STOPPED` in the REST API")
def test_stopping_wins_from_everywhere(events: list[InstanceEvent]) -> None:
    lived = [event for event in events if event is not InstanceEvent.DELETE]
    assert walk(CONNECTOR, [*lived, InstanceEvent.STOP])[-1] is State.STOPPED


@given(EVENTS)
@pytest.mark.kip(875, "Can resume a stopped connector")
def test_what_was_stopped_can_run_again(events: list[InstanceEvent]) -> None:
    lived = [event for event in events if event is not InstanceEvent.DELETE]
    assert walk(CONNECTOR, [*lived, InstanceEvent.STOP, InstanceEvent.STARTUP])[-1] is State.RUNNING


@given(EVENTS)
def test_a_failure_is_left_only_by_assignment_shutdown_restart_stop_or_delete(events: list[InstanceEvent]) -> None:
    leaving = {
        InstanceEvent.ASSIGN,
        InstanceEvent.SHUTDOWN,
        InstanceEvent.RESTART,
        InstanceEvent.STOP,
        InstanceEvent.DELETE,
    }
    staying = [event for event in events if event not in leaving]
    for table in (TASK, CONNECTOR):
        assert set(walk(table, [InstanceEvent.FAILURE, *staying])[1:]) == {State.FAILED}


# --- the connector instance -------------------------------------------------------------------------------------------

PHASE_ROWS = """
INIT     START/STARTED    NOTHING/PAUSED  NOTHING/STOPPED
STARTED  NOTHING/STARTED  STOP/PAUSED     STOP/STOPPED
PAUSED   START/STARTED    NOTHING/PAUSED  NOTHING/STOPPED
STOPPED  START/STARTED    NOTHING/PAUSED  NOTHING/STOPPED
FAILED   REFUSED/FAILED   REFUSED/FAILED  NOTHING/STOPPED
"""
PHASE_PAIRS = [
    (Phase[row[0]], target, PluginCall[cell.split("/")[0]], Phase[cell.split("/")[1]])
    for row in (line.split() for line in PHASE_ROWS.strip().splitlines())
    for target, cell in zip((TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED), row[1:], strict=True)
]


@pytest.mark.parametrize(("phase", "target", "call", "following"), PHASE_PAIRS)
def test_every_phase_and_target(phase: Phase, target: TargetState, call: PluginCall, following: Phase) -> None:
    assert PHASES[phase, target] == (call, following)


def test_the_table_of_phases_has_every_pair_and_no_other() -> None:
    assert set(PHASES) == {(phase, target) for phase in Phase for target in TargetState}


def test_every_phase_but_the_first_has_its_event() -> None:
    assert EVENT_OF == {
        Phase.STARTED: InstanceEvent.STARTUP,
        Phase.PAUSED: InstanceEvent.PAUSE,
        Phase.STOPPED: InstanceEvent.STOP,
        Phase.FAILED: InstanceEvent.FAILURE,
    }


@given(st.lists(st.sampled_from(TargetState)))
def test_a_plugin_is_started_and_stopped_in_turn_whatever_is_wanted(targets: list[TargetState]) -> None:
    phase, started = Phase.INIT, False
    for target in targets:
        call, phase = PHASES[phase, target]
        if call is PluginCall.START:
            assert not started
            started = True
        elif call is PluginCall.STOP:
            assert started
            started = False
        assert started is (phase is Phase.STARTED)
        assert phase.name == target.name


@given(st.lists(st.sampled_from([TargetState.STARTED, TargetState.PAUSED])))
def test_a_failed_instance_stays_failed_until_it_is_stopped(targets: list[TargetState]) -> None:
    for target in targets:
        assert PHASES[Phase.FAILED, target] == (PluginCall.REFUSED, Phase.FAILED)
    assert PHASES[Phase.FAILED, TargetState.STOPPED][1] is Phase.STOPPED
