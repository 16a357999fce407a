from __future__ import annotations

import logging

import pytest

from headgate.model import ConnectorType, State, Status, TaskId
from headgate.runtime.board import StatusBoard
from headgate.runtime.errors import StatusNotFound
from headgate.runtime.lifecycle import InstanceEvent
from headgate.storage.memory import MemoryStatusStore

TASK = TaskId("orders", 0)


@pytest.fixture
def store() -> MemoryStatusStore:
    return MemoryStatusStore()


@pytest.fixture
def board(store: MemoryStatusStore) -> StatusBoard:
    return StatusBoard(store, "me:8083")


def test_the_first_event_of_an_unknown_instance_counts_from_unassigned(
    board: StatusBoard, store: MemoryStatusStore
) -> None:
    board.put("orders", InstanceEvent.STARTUP, version="1.0")
    board.put(TASK, InstanceEvent.PAUSE, version="1.0")
    assert store.get("orders") == Status(State.RUNNING, "me:8083", None, "1.0")
    assert store.get(TASK) == Status(State.PAUSED, "me:8083", None, "1.0")


def test_a_failure_has_its_trace_and_what_follows_has_not(board: StatusBoard, store: MemoryStatusStore) -> None:
    board.put(TASK, InstanceEvent.FAILURE, "boom")
    assert store.get(TASK) == Status(State.FAILED, "me:8083", "boom")
    board.put(TASK, InstanceEvent.SHUTDOWN)
    assert store.get(TASK) == Status(State.UNASSIGNED, "me:8083")


@pytest.mark.kip(875, "tasks are never STOPPED, only gone")
def test_what_cannot_happen_is_logged_and_changes_nothing(
    board: StatusBoard, store: MemoryStatusStore, caplog: pytest.LogCaptureFixture
) -> None:
    board.put(TASK, InstanceEvent.FAILURE, "boom")
    board.put("orders", InstanceEvent.FAILURE, "boom")
    with caplog.at_level(logging.ERROR):
        board.put(TASK, InstanceEvent.STARTUP)
        board.put(TASK, InstanceEvent.STOP)
        board.put("orders", InstanceEvent.STARTUP)
    assert store.get(TASK) == store.get("orders") == Status(State.FAILED, "me:8083", "boom")
    assert [record.getMessage() for record in caplog.records] == [
        "Status of task orders-0 left as it is: startup cannot happen to what is FAILED",
        "Status of task orders-0 left as it is: stop cannot happen to what is FAILED",
        "Status of connector orders left as it is: startup cannot happen to what is FAILED",
    ]


def test_what_is_deleted_has_no_status(board: StatusBoard, store: MemoryStatusStore) -> None:
    board.put("orders", InstanceEvent.STARTUP)
    board.put(TASK, InstanceEvent.STARTUP)
    board.put(TASK, InstanceEvent.DELETE)
    assert (store.get(TASK), list(store.connectors())) == (None, ["orders"])
    board.put("orders", InstanceEvent.DELETE)
    assert list(store.connectors()) == []


def test_a_connector_is_shown_with_its_tasks_sorted_by_number(board: StatusBoard) -> None:
    for number in (10, 9, 2):
        board.put(TaskId("orders", number), InstanceEvent.STARTUP)
    board.put("orders", InstanceEvent.STARTUP)
    shown = board.status("orders", ConnectorType.SINK)
    assert (shown.name, shown.type, shown.connector.state) == ("orders", ConnectorType.SINK, State.RUNNING)
    assert [each.id for each in shown.tasks] == [2, 9, 10]


def test_what_has_no_status_is_not_found(board: StatusBoard) -> None:
    with pytest.raises(StatusNotFound, match=r"^No status found for connector orders$"):
        board.status("orders", ConnectorType.UNKNOWN)
    with pytest.raises(StatusNotFound, match=r"^No status found for task orders-0$"):
        board.task_status(TASK)
    board.put(TASK, InstanceEvent.STARTUP)
    assert board.task_status(TASK).state is State.RUNNING
