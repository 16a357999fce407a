from __future__ import annotations

import re

import pytest

from headgate.runtime.config_rules import check_name, check_task_count, patched, task_configs_differ
from headgate.runtime.errors import BadRequest, ConnectorNotFound, TooManyTasks
from headgate.runtime.view import ClusterView, ConnectorView

CONFIG = {"name": "a", "file": "x"}
TASKS = ({"n": "0"}, {"n": "1"})
VIEW = ClusterView.of(ConnectorView("a", CONFIG, tasks=TASKS, applied=CONFIG))


class TestTaskConfigs:
    def test_the_same_tasks_again_need_nothing(self) -> None:
        assert not task_configs_differ(VIEW, "a", [dict(each) for each in TASKS], 2)

    @pytest.mark.parametrize(
        "configs",
        [[], [TASKS[0]], [*TASKS, {"n": "2"}], [TASKS[0], {"n": "x"}], [*reversed(TASKS)]],
        ids=["none", "fewer", "more", "other content", "other order"],
    )
    def test_other_tasks_are_published(self, configs: list[dict[str, str]]) -> None:
        assert task_configs_differ(VIEW, "a", configs, 3)

    def test_those_of_an_unknown_connector_are_nobodys(self) -> None:
        with pytest.raises(ConnectorNotFound):
            task_configs_differ(ClusterView(), "a", [], 1)

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
            task_configs_differ(VIEW, "a", [*TASKS, {"n": "2"}], 2)

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
