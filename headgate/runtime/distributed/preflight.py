"""What a source task with transactions waits for before it starts (KIP-618). Used from the threads of tasks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from headgate.api.errors import ConnectError
from headgate.model import TaskId, TaskSpec
from headgate.runtime.distributed.group import SharedConfigs
from headgate.runtime.errors import ShuttingDown
from headgate.runtime.ports import PeerError

log = logging.getLogger(__name__)

_PATIENCE_S: Final = 60.0
"""A key that was just replaced, a leader that has just changed: all of that passes."""
_PAUSE_S: Final = 0.25
_REFRESH_S: Final = 30.0
_PASSING: Final = (403, 409, 503)


@dataclass(eq=False)
class ClusterPreflight:
    """Fits `runtime.worker.Preflight`."""

    _configs: SharedConfigs
    _fence: Callable[[str], None]
    """Asks the leader for a round; it blocks and raises PeerError."""
    _is_mine: Callable[[TaskId], bool]
    _in_session: Callable[[], bool]
    """Whether the group has confirmed lately that this worker has what it was given."""

    def await_fencing(self, spec: TaskSpec) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            self._require_mine(spec.id)
            try:
                self._fence(spec.id.connector)
                return
            except ShuttingDown:
                raise
            except PeerError as error:
                passing = error.status is None or error.status in _PASSING
                if not passing or time.monotonic() > deadline:
                    raise ConnectError(
                        f"Cannot start source task {spec.id}: older tasks could not be fenced: {error}"
                    ) from error
                log.debug("Fencing is asked for again: %s", error)
            time.sleep(_PAUSE_S)

    def confirm_start(self, spec: TaskSpec) -> None:
        state = self._configs.refresh(_REFRESH_S)
        if state.generations.get(spec.id.connector, 0) != spec.generation:
            raise ConnectError(
                f"Cannot start source task {spec.id} with exactly-once support as the connector has already generated"
                " a new set of task configs"
            )
        self._require_mine(spec.id)
        deadline = time.monotonic() + _PATIENCE_S
        # Who was held for longer than a session takes all for its own that others have by now, until the group answers.
        while not self._in_session():
            if time.monotonic() > deadline:
                raise TimeoutError(f"The group of workers does not say whether {spec.id} is still this worker's")
            time.sleep(_PAUSE_S)
            self._require_mine(spec.id)

    def _require_mine(self, task: TaskId) -> None:
        if not self._is_mine(task):
            raise ConnectError(f"Cannot start source task {task} as it has already been revoked from this worker")
