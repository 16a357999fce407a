from __future__ import annotations

import pytest

from headgate.model import TargetState, TaskId
from headgate.runtime.errors import ConnectorNotFound, TaskNotFound
from headgate.runtime.view import ClusterView, ConnectorView

ORDERS = ConnectorView("orders", {"name": "orders"}, tasks=({"n": "0"}, {"n": "1"}))


def test_a_connector_is_started_and_without_tasks_unless_said_otherwise() -> None:
    view = ConnectorView("a", {})
    assert (view.target, view.tasks, view.task_ids, view.applied) == (TargetState.STARTED, (), (), None)


def test_tasks_are_numbered_from_zero() -> None:
    assert ORDERS.task_ids == (TaskId("orders", 0), TaskId("orders", 1))


def test_what_is_there_can_be_asked_for_and_must_be_required() -> None:
    view = ClusterView.of(ORDERS)
    assert view.get("orders") is view.require("orders") is ORDERS
    assert view.get("other") is None
    with pytest.raises(ConnectorNotFound, match=r"^Connector other not found$") as raised:
        view.require("other")
    assert raised.value.connector == "other"


def test_a_task_is_found_by_its_number() -> None:
    assert ClusterView.of(ORDERS).require_task(TaskId("orders", 1)) == {"n": "1"}


@pytest.mark.parametrize("number", [-1, 2])
def test_a_task_of_another_number_is_not_found(number: int) -> None:
    task = TaskId("orders", number)
    with pytest.raises(TaskNotFound, match=f"^Unknown task: {task}$") as raised:
        ClusterView.of(ORDERS).require_task(task)
    assert raised.value.task == task


def test_a_task_of_an_unknown_connector_is_an_unknown_connector() -> None:
    with pytest.raises(ConnectorNotFound):
        ClusterView().require_task(TaskId("orders", 0))


def test_a_change_makes_a_new_view_and_leaves_the_old_as_it_was() -> None:
    empty = ClusterView()
    one = empty.with_connector(ORDERS)
    two = one.with_connector(ConnectorView("orders", {"v": "2"}))
    gone = two.without("orders")
    assert [list(view.connectors) for view in (empty, one, two, gone)] == [[], ["orders"], ["orders"], []]
    assert one.require("orders") is ORDERS
    assert two.require("orders").config == {"v": "2"}


def test_removing_what_is_not_there_changes_nothing() -> None:
    assert ClusterView.of(ORDERS).without("other") == ClusterView.of(ORDERS)
