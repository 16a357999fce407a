from __future__ import annotations

import itertools

import pytest

from headgate.model import ConnectorStatus, ConnectorType, RestartRequest, State, Status, TaskId, TaskStatus
from headgate.runtime.restart import impact, plan

WORKER = "w:8083"
LIVE = (State.UNASSIGNED, State.RUNNING, State.PAUSED, State.FAILED, State.RESTARTING)
PAIRS = list(itertools.product(LIVE, LIVE))
CONNECTOR_ONLY = RestartRequest("orders")
FAILED_CONNECTOR = RestartRequest("orders", only_failed=True)
ALL = RestartRequest("orders", include_tasks=True)
FAILED_ALL = RestartRequest("orders", include_tasks=True, only_failed=True)


def one(state: State) -> Status:
    return Status(state, WORKER, trace="boom" if state is State.FAILED else None, version="1.2", generation=7)


def status(connector: State, *tasks: State) -> ConnectorStatus:
    entries = tuple(TaskStatus(number, one(state)) for number, state in enumerate(tasks))
    return ConnectorStatus("orders", one(connector), entries, ConnectorType.SOURCE)


@pytest.mark.kip(745, "the default restarts the Connector instance regardless of its current status, and no Task")
@pytest.mark.parametrize(("connector", "task"), PAIRS)
def test_without_parameters_the_connector_alone_whatever_its_state(connector: State, task: State) -> None:
    made = plan(CONNECTOR_ONLY, status(connector, task))
    assert (made.connector, made.tasks) == (True, ())
    assert CONNECTOR_ONLY.forceful


@pytest.mark.kip(745, "onlyFailed=true restarts just the instances with a FAILED status")
@pytest.mark.parametrize(("connector", "task"), PAIRS)
def test_only_failed_without_tasks_is_the_connector_if_it_failed(connector: State, task: State) -> None:
    made = plan(FAILED_CONNECTOR, status(connector, task))
    assert (made.connector, made.tasks) == (connector is State.FAILED, ())
    assert not FAILED_CONNECTOR.forceful


@pytest.mark.kip(745, "includeTasks=true restarts the connector instance and task instances")
@pytest.mark.parametrize(("connector", "task"), PAIRS)
def test_with_tasks_everything_whatever_its_state(connector: State, task: State) -> None:
    made = plan(ALL, status(connector, task, State.RUNNING))
    assert (made.connector, made.tasks) == (True, (TaskId("orders", 0), TaskId("orders", 1)))
    assert not ALL.forceful


@pytest.mark.kip(745, "restart all failed Connector and Task instances using a single REST API call")
@pytest.mark.parametrize(("connector", "task"), PAIRS)
def test_only_failed_with_tasks_is_what_failed(connector: State, task: State) -> None:
    made = plan(FAILED_ALL, status(connector, State.RUNNING, task))
    assert made.connector is (connector is State.FAILED)
    assert made.tasks == ((TaskId("orders", 1),) if task is State.FAILED else ())
    assert bool(made.work) is not (connector is not State.FAILED and task is not State.FAILED)


@pytest.mark.parametrize("request_", [CONNECTOR_ONLY, FAILED_CONNECTOR, ALL, FAILED_ALL])
def test_a_stopped_connector_is_no_target(request_: RestartRequest) -> None:
    before = status(State.STOPPED)
    made = plan(request_, before)
    assert not made.work
    assert made.answer() == before


@pytest.mark.kip(745, 'the "state" field is set to RESTARTING for all instances that will eventually be restarted')
def test_the_answer_has_restarting_without_trace_on_the_targets_only() -> None:
    before = status(State.RUNNING, State.RUNNING, State.FAILED, State.FAILED)
    answer = plan(FAILED_ALL, before).answer()
    restarting = Status(State.RESTARTING, WORKER, trace=None, version="1.2", generation=7)
    assert answer.connector == before.connector
    assert answer.tasks == (before.tasks[0], TaskStatus(1, restarting), TaskStatus(2, restarting))
    assert (answer.name, answer.type) == ("orders", ConnectorType.SOURCE)


def test_a_failed_task_that_is_no_target_keeps_its_trace() -> None:
    answer = plan(FAILED_CONNECTOR, status(State.FAILED, State.FAILED)).answer()
    assert (answer.connector.state, answer.connector.trace) == (State.RESTARTING, None)
    assert (answer.tasks[0].status.state, answer.tasks[0].status.trace) == (State.FAILED, "boom")


def test_the_plan_keeps_the_status_it_was_made_from() -> None:
    before = status(State.FAILED, State.FAILED)
    made = plan(ALL, before)
    made.answer()
    assert made.status == before


def test_of_several_requests_the_one_with_the_highest_impact_counts() -> None:
    ordered = [FAILED_CONNECTOR, FAILED_ALL, CONNECTOR_ONLY, ALL]
    assert [impact(each) for each in ordered] == sorted({impact(each) for each in ordered})
