"""State tables of connector and task. Docs draw their diagrams from here; a test visits every pair."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headgate.model import State, TargetState


class Event(Enum):
    """What happened to an instance."""

    ASSIGN = "assign"
    """It is this worker's from now on, whatever became of it where it was before."""
    WAITING = "waiting"
    """It was made, and waits for what it needs to run, e.g. for Spark."""
    STARTUP = "startup"
    """It was started, or resumed, and runs."""
    PAUSE = "pause"
    STOP = "stop"
    """KIP-875: the connector was stopped, its tasks are gone."""
    FAILURE = "failure"
    SHUTDOWN = "shutdown"
    """It was shut down here: for a restart, a reconfiguration, or with the worker."""
    RESTART = "restart"
    """KIP-745: a restart plan chose it."""
    DELETE = "delete"


class IllegalTransition(Exception):
    def __init__(self, state: State, event: Event) -> None:
        super().__init__(f"{event.value} cannot happen to what is {state.value}")


Table = Mapping[tuple[State, Event], State]

_LIVE: Final = (State.UNASSIGNED, State.RUNNING, State.PAUSED, State.FAILED, State.RESTARTING)

TASK: Final[Table] = {
    **{(state, Event.ASSIGN): State.UNASSIGNED for state in _LIVE},
    (State.RESTARTING, Event.ASSIGN): State.RESTARTING,
    (State.UNASSIGNED, Event.WAITING): State.UNASSIGNED,
    (State.RESTARTING, Event.WAITING): State.RESTARTING,
    (State.UNASSIGNED, Event.STARTUP): State.RUNNING,
    (State.RESTARTING, Event.STARTUP): State.RUNNING,
    (State.PAUSED, Event.STARTUP): State.RUNNING,
    (State.RUNNING, Event.STARTUP): State.RUNNING,
    (State.UNASSIGNED, Event.PAUSE): State.PAUSED,
    (State.RESTARTING, Event.PAUSE): State.PAUSED,
    (State.RUNNING, Event.PAUSE): State.PAUSED,
    (State.PAUSED, Event.PAUSE): State.PAUSED,
    **{(state, Event.FAILURE): State.FAILED for state in _LIVE},
    **{(state, Event.SHUTDOWN): State.UNASSIGNED for state in _LIVE},
    **{(state, Event.RESTART): State.RESTARTING for state in _LIVE},
    **{(state, Event.DELETE): State.DESTROYED for state in _LIVE},
}

# KIP-875: stopping wins from everywhere, even from FAILED. Tasks are never STOPPED, only gone.
CONNECTOR: Final[Table] = {
    **TASK,
    **{(state, Event.STOP): State.STOPPED for state in (*_LIVE, State.STOPPED)},
    (State.STOPPED, Event.ASSIGN): State.UNASSIGNED,
    (State.STOPPED, Event.STARTUP): State.RUNNING,
    (State.STOPPED, Event.PAUSE): State.PAUSED,
    (State.STOPPED, Event.FAILURE): State.FAILED,
    (State.STOPPED, Event.SHUTDOWN): State.UNASSIGNED,
    (State.STOPPED, Event.DELETE): State.DESTROYED,
}


def step(table: Table, state: State, event: Event) -> State:
    try:
        return table[state, event]
    except KeyError:
        raise IllegalTransition(state, event) from None


# --- the connector instance inside a worker ---------------------------------------------------------------------------


class Phase(Enum):
    """Where a connector instance is. FAILED is left only by stopping or by a new instance."""

    INIT = "init"
    STARTED = "started"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"


class Call(Enum):
    """What has to be called on the plugin to get from one phase to the next."""

    START = "start"
    STOP = "stop"
    NOTHING = "nothing"
    REFUSED = "refused"


PHASES: Final[Mapping[tuple[Phase, TargetState], tuple[Call, Phase]]] = {
    (Phase.INIT, TargetState.STARTED): (Call.START, Phase.STARTED),
    (Phase.INIT, TargetState.PAUSED): (Call.NOTHING, Phase.PAUSED),
    (Phase.INIT, TargetState.STOPPED): (Call.NOTHING, Phase.STOPPED),
    (Phase.STARTED, TargetState.STARTED): (Call.NOTHING, Phase.STARTED),
    (Phase.STARTED, TargetState.PAUSED): (Call.STOP, Phase.PAUSED),
    (Phase.STARTED, TargetState.STOPPED): (Call.STOP, Phase.STOPPED),
    (Phase.PAUSED, TargetState.STARTED): (Call.START, Phase.STARTED),
    (Phase.PAUSED, TargetState.PAUSED): (Call.NOTHING, Phase.PAUSED),
    (Phase.PAUSED, TargetState.STOPPED): (Call.NOTHING, Phase.STOPPED),
    (Phase.STOPPED, TargetState.STARTED): (Call.START, Phase.STARTED),
    (Phase.STOPPED, TargetState.PAUSED): (Call.NOTHING, Phase.PAUSED),
    (Phase.STOPPED, TargetState.STOPPED): (Call.NOTHING, Phase.STOPPED),
    (Phase.FAILED, TargetState.STARTED): (Call.REFUSED, Phase.FAILED),
    (Phase.FAILED, TargetState.PAUSED): (Call.REFUSED, Phase.FAILED),
    (Phase.FAILED, TargetState.STOPPED): (Call.NOTHING, Phase.STOPPED),
}

EVENT_OF: Final[Mapping[Phase, Event]] = {
    Phase.STARTED: Event.STARTUP,
    Phase.PAUSED: Event.PAUSE,
    Phase.STOPPED: Event.STOP,
    Phase.FAILED: Event.FAILURE,
}
