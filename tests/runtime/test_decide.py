from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from headgate.model import TargetState
from headgate.runtime.decide import (
    Action,
    Apply,
    Regenerate,
    RemoveConfig,
    Shutdown,
    StartTasks,
    StopTasks,
    SwitchTasks,
    WriteConfig,
    WriteTarget,
    WriteTasks,
    check_name,
    check_task_count,
    on_config,
    on_create,
    on_delete,
    on_pause,
    on_restart,
    on_resume,
    on_stop,
    on_task_configs,
    patched,
    task_configs_differ,
)
from headgate.runtime.errors import BadRequest, ConnectorNotFound, TooManyTasks
from headgate.runtime.view import ClusterView, ConnectorView

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED
CONFIG = {"name": "a", "file": "x"}
TASKS = ({"n": "0"}, {"n": "1"})


def view(target: TargetState = STARTED) -> ClusterView:
    tasks = () if target is STOPPED else TASKS
    return ClusterView.of(ConnectorView("a", CONFIG, target, tasks, applied=CONFIG))


@pytest.mark.kip(980, "Creating a connector with no explicit state specified results in a `RUNNING` state connector")
def test_create_writes_then_starts_then_makes_tasks() -> None:
    assert on_create("a", CONFIG, None) == [WriteConfig("a", CONFIG, None), Apply("a"), Regenerate("a")]


@pytest.mark.parametrize("initial", [PAUSED, STOPPED])
def test_create_writes_the_wanted_state_with_the_config(initial: TargetState) -> None:
    assert on_create("a", CONFIG, initial)[0] == WriteConfig("a", CONFIG, initial)


def test_a_new_config_ends_the_connector_before_it_is_written_and_leaves_the_tasks_alone() -> None:
    new = {**CONFIG, "file": "y"}
    assert on_config(view(), "a", new) == [Shutdown("a"), WriteConfig("a", new), Apply("a"), Regenerate("a")]


def test_delete_ends_tasks_before_the_connector_and_the_config_goes_last() -> None:
    assert on_delete(view(), "a") == [StopTasks("a"), WriteTasks("a", ()), Shutdown("a", True), RemoveConfig("a")]


@pytest.mark.kip(52, "This API asynchronously causes the connector and its tasks to suspend processing.")
def test_pause_of_what_is_started() -> None:
    assert on_pause(view(), "a") == [WriteTarget("a", PAUSED), SwitchTasks("a"), Apply("a")]


@pytest.mark.kip(875, "Can pause a stopped connector")
def test_pause_of_what_is_stopped_starts_it_so_that_its_tasks_come_up_paused() -> None:
    assert on_pause(view(STOPPED), "a") == [
        WriteTarget("a", PAUSED), Apply("a", STARTED), Regenerate("a"), Apply("a")
    ]  # fmt: skip


@pytest.mark.parametrize("target", [PAUSED, STOPPED])
def test_resume_tells_tasks_and_connector_and_asks_for_tasks(target: TargetState) -> None:
    assert on_resume(view(target), "a") == [
        WriteTarget("a", STARTED), SwitchTasks("a"), Apply("a"), Regenerate("a")
    ]  # fmt: skip


@pytest.mark.kip(875, "Can stop a running connector")
@pytest.mark.parametrize("target", [STARTED, PAUSED])
def test_stop_publishes_no_tasks_before_the_state(target: TargetState) -> None:
    assert on_stop(view(target), "a") == [
        StopTasks("a"), WriteTasks("a", ()), WriteTarget("a", STOPPED), Apply("a")
    ]  # fmt: skip


@pytest.mark.kip(52, "If the connector is already paused, this is a no-op.")
@pytest.mark.kip(875, "Can stop a stopped connector (i.e., stopping an already-stopped connector is idempotent)")
@pytest.mark.parametrize(("decision", "target"), [(on_pause, PAUSED), (on_resume, STARTED), (on_stop, STOPPED)])
def test_what_is_wanted_already_needs_nothing(
    decision: Callable[[ClusterView, str], list[Action]], target: TargetState
) -> None:
    assert decision(view(target), "a") == []


@pytest.mark.kip(52, "This API synchronously restarts the connector task.")
def test_restart_is_of_the_connector_alone() -> None:
    assert on_restart(view(), "a") == [Shutdown("a"), Apply("a"), Regenerate("a")]


@pytest.mark.parametrize("decision", [on_delete, on_pause, on_resume, on_stop, on_restart])
def test_commands_for_an_unknown_connector_fail(decision: Callable[[ClusterView, str], list[Action]]) -> None:
    with pytest.raises(ConnectorNotFound):
        decision(ClusterView(), "a")
    with pytest.raises(ConnectorNotFound):
        on_config(ClusterView(), "a", CONFIG)
    with pytest.raises(ConnectorNotFound):
        task_configs_differ(ClusterView(), "a", [], 1)


class TestTaskConfigs:
    def test_the_same_tasks_again_need_nothing(self) -> None:
        assert not task_configs_differ(view(), "a", [dict(each) for each in TASKS], 2)

    @pytest.mark.parametrize(
        "configs",
        [[], [TASKS[0]], [*TASKS, {"n": "2"}], [TASKS[0], {"n": "x"}], [*reversed(TASKS)]],
        ids=["none", "fewer", "more", "other content", "other order"],
    )
    def test_other_tasks_are_published_between_stop_and_start(self, configs: list[dict[str, str]]) -> None:
        assert task_configs_differ(view(), "a", configs, 3)
        assert on_task_configs("a", configs) == [
            StopTasks("a"), WriteTasks("a", tuple(configs)), StartTasks("a")
        ]  # fmt: skip

    def test_the_same_tasks_are_published_again_when_the_connectors_config_changed(self) -> None:
        changed = ClusterView.of(ConnectorView("a", {**CONFIG, "file": "y"}, tasks=TASKS, applied=CONFIG))
        assert task_configs_differ(changed, "a", TASKS, 2)

    def test_too_many_tasks_are_refused(self) -> None:
        text = (
            "The connector a has generated 3 tasks, which is greater than 2, the maximum number of tasks it is "
            "configured to create. This behaviour should be considered a bug and is disallowed. If necessary, it can "
            "be permitted by reconfiguring the connector with 'tasks.max.enforce' set to false; however, this option "
            "will be removed in a future release of Kafka Connect."
        )
        with pytest.raises(TooManyTasks, match=f"^{re.escape(text)}$"):
            task_configs_differ(view(), "a", [*TASKS, {"n": "2"}], 2)

    @pytest.mark.parametrize(("count", "limit"), [(0, 1), (2, 2), (1, 2), (1000, -1), (0, 0)])
    def test_a_number_within_the_limit_is_fine(self, count: int, limit: int) -> None:
        check_task_count("a", count, limit)


def test_a_patch_sets_keys_and_a_null_removes_one() -> None:
    known = ConnectorView("a", {"name": "a", "x": "1", "y": "2"})
    assert patched(known, {"x": None, "y": "3", "z": "4", "gone": None}) == {"name": "a", "y": "3", "z": "4"}
    assert known.config == {"name": "a", "x": "1", "y": "2"}


def test_a_config_may_leave_its_name_out_but_not_contradict_it() -> None:
    check_name("a", {})
    check_name("a", {"name": "a"})
    text = "Connector name configuration (b) doesn't match connector name in the URL (a)"
    with pytest.raises(BadRequest, match=f"^{re.escape(text)}$"):
        check_name("a", {"name": "b"})
