"""State tables of connector and task. Docs draw their diagrams from here; a test visits every pair."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headgate.model import State, TargetState


class InstanceEvent(Enum):
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
    """It is being restarted: a plan chose it (KIP-745), or, in a group, somebody asked for it alone."""
    DELETE = "delete"


class ImpossibleEvent(Exception):
    def __init__(self, state: State, event: InstanceEvent) -> None:
        super().__init__(f"{event.value} cannot happen to what is {state.value}")


Table = Mapping[tuple[State, InstanceEvent], State]

_LIVE: Final = (State.UNASSIGNED, State.RUNNING, State.PAUSED, State.FAILED, State.RESTARTING)

TASK: Final[Table] = {
    **{(state, InstanceEvent.ASSIGN): State.UNASSIGNED for state in _LIVE},
    (State.RESTARTING, InstanceEvent.ASSIGN): State.RESTARTING,
    (State.UNASSIGNED, InstanceEvent.WAITING): State.UNASSIGNED,
    (State.RESTARTING, InstanceEvent.WAITING): State.RESTARTING,
    (State.UNASSIGNED, InstanceEvent.STARTUP): State.RUNNING,
    (State.RESTARTING, InstanceEvent.STARTUP): State.RUNNING,
    (State.PAUSED, InstanceEvent.STARTUP): State.RUNNING,
    (State.RUNNING, InstanceEvent.STARTUP): State.RUNNING,
    (State.UNASSIGNED, InstanceEvent.PAUSE): State.PAUSED,
    (State.RESTARTING, InstanceEvent.PAUSE): State.PAUSED,
    (State.RUNNING, InstanceEvent.PAUSE): State.PAUSED,
    (State.PAUSED, InstanceEvent.PAUSE): State.PAUSED,
    **{(state, InstanceEvent.FAILURE): State.FAILED for state in _LIVE},
    **{(state, InstanceEvent.SHUTDOWN): State.UNASSIGNED for state in _LIVE},
    **{(state, InstanceEvent.RESTART): State.RESTARTING for state in _LIVE},
    **{(state, InstanceEvent.DELETE): State.DESTROYED for state in _LIVE},
}

# KIP-875: stopping wins from everywhere, even from FAILED. Tasks are never STOPPED, only gone.
CONNECTOR: Final[Table] = {
    **TASK,
    **{(state, InstanceEvent.STOP): State.STOPPED for state in (*_LIVE, State.STOPPED)},
    (State.STOPPED, InstanceEvent.ASSIGN): State.UNASSIGNED,
    (State.STOPPED, InstanceEvent.STARTUP): State.RUNNING,
    (State.STOPPED, InstanceEvent.PAUSE): State.PAUSED,
    (State.STOPPED, InstanceEvent.FAILURE): State.FAILED,
    (State.STOPPED, InstanceEvent.SHUTDOWN): State.STOPPED,
    (State.STOPPED, InstanceEvent.RESTART): State.STOPPED,
    (State.STOPPED, InstanceEvent.DELETE): State.DESTROYED,
}


def step(table: Table, state: State, event: InstanceEvent) -> State:
    try:
        return table[state, event]
    except KeyError:
        raise ImpossibleEvent(state, event) from None


# --- the connector instance inside a worker ---------------------------------------------------------------------------


class Phase(Enum):
    """Where a connector instance is. FAILED is left only by stopping or by a new instance."""

    INIT = "init"
    STARTED = "started"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"


class PluginCall(Enum):
    """What has to be called on the plugin to get from one phase to the next."""

    START = "start"
    STOP = "stop"
    NOTHING = "nothing"
    REFUSED = "refused"


PHASES: Final[Mapping[tuple[Phase, TargetState], tuple[PluginCall, Phase]]] = {
    (Phase.INIT, TargetState.STARTED): (PluginCall.START, Phase.STARTED),
    (Phase.INIT, TargetState.PAUSED): (PluginCall.NOTHING, Phase.PAUSED),
    (Phase.INIT, TargetState.STOPPED): (PluginCall.NOTHING, Phase.STOPPED),
    (Phase.STARTED, TargetState.STARTED): (PluginCall.NOTHING, Phase.STARTED),
    (Phase.STARTED, TargetState.PAUSED): (PluginCall.STOP, Phase.PAUSED),
    (Phase.STARTED, TargetState.STOPPED): (PluginCall.STOP, Phase.STOPPED),
    (Phase.PAUSED, TargetState.STARTED): (PluginCall.START, Phase.STARTED),
    (Phase.PAUSED, TargetState.PAUSED): (PluginCall.NOTHING, Phase.PAUSED),
    (Phase.PAUSED, TargetState.STOPPED): (PluginCall.NOTHING, Phase.STOPPED),
    (Phase.STOPPED, TargetState.STARTED): (PluginCall.START, Phase.STARTED),
    (Phase.STOPPED, TargetState.PAUSED): (PluginCall.NOTHING, Phase.PAUSED),
    (Phase.STOPPED, TargetState.STOPPED): (PluginCall.NOTHING, Phase.STOPPED),
    (Phase.FAILED, TargetState.STARTED): (PluginCall.REFUSED, Phase.FAILED),
    (Phase.FAILED, TargetState.PAUSED): (PluginCall.REFUSED, Phase.FAILED),
    (Phase.FAILED, TargetState.STOPPED): (PluginCall.NOTHING, Phase.STOPPED),
}

EVENT_OF: Final[Mapping[Phase, InstanceEvent]] = {
    Phase.STARTED: InstanceEvent.STARTUP,
    Phase.PAUSED: InstanceEvent.PAUSE,
    Phase.STOPPED: InstanceEvent.STOP,
    Phase.FAILED: InstanceEvent.FAILURE,
}
