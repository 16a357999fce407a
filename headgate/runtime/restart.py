"""Which instances a restart touches (KIP-745)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headgate.cluster.work import Work
from headgate.model import ConnectorStatus, RestartRequest, State, Status, TaskId


@dataclass(frozen=True, slots=True)
class RestartPlan:
    request: RestartRequest
    status: ConnectorStatus
    """As it was when the plan was made."""
    connector: bool
    tasks: tuple[TaskId, ...]

    @property
    def work(self) -> Work:
        return Work.of([self.status.name] if self.connector else (), self.tasks)

    def answer(self) -> ConnectorStatus:
        """The status with RESTARTING put on every instance that the plan restarts; what failed before is over."""

        def restarting(status: Status) -> Status:
            return replace(status, state=State.RESTARTING, trace=None)

        chosen = {task.task for task in self.tasks}
        return replace(
            self.status,
            connector=restarting(self.status.connector) if self.connector else self.status.connector,
            tasks=tuple(
                replace(each, status=restarting(each.status)) if each.id in chosen else each
                for each in self.status.tasks
            ),
        )


def plan(request: RestartRequest, status: ConnectorStatus, chosen_before: bool = False) -> RestartPlan:
    """What a request means, given the states at this moment. `chosen_before`: a plan for the same request has put
    RESTARTING on what it chose, which is chosen again."""

    def chosen(state: State) -> bool:
        if chosen_before and state is State.RESTARTING:
            return True
        # A stopped connector has nothing that could be restarted: it stays STOPPED until it is resumed.
        return state is State.FAILED if request.only_failed else state is not State.STOPPED

    tasks = status.tasks if request.include_tasks else ()
    return RestartPlan(
        request=request,
        status=status,
        connector=chosen(status.connector.state),
        tasks=tuple(TaskId(status.name, each.id) for each in tasks if chosen(each.status.state)),
    )


def impact(request: RestartRequest) -> int:
    """Of several waiting requests for one connector, the one with the highest impact is carried out."""
    return (0 if request.only_failed else 2) + (1 if request.include_tasks else 0)
