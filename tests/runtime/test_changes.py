from __future__ import annotations

from dataclasses import replace

from headgate.model import TargetState
from headgate.runtime.distributed.changes import Changes, between
from headgate.runtime.view import ClusterView, ConnectorView

ORDERS = ConnectorView("orders", {"name": "orders"}, tasks=({"part": "0"},))
VIEW = ClusterView.of(ORDERS)


def test_nothing_changed() -> None:
    assert between(VIEW, VIEW) == Changes()
    assert not between(VIEW, VIEW).needs_rebalance
    assert between(ClusterView(), ClusterView()) == Changes()


def test_a_connector_came_or_went() -> None:
    assert between(ClusterView(), VIEW) == Changes(added=frozenset({"orders"}))
    assert between(VIEW, ClusterView()) == Changes(removed=frozenset({"orders"}))
    assert between(ClusterView(), VIEW).needs_rebalance
    assert between(VIEW, ClusterView()).needs_rebalance


def test_a_new_config_is_its_owners_affair() -> None:
    for config in ({"name": "orders", "color": "red"}, {"name": "orders"}):
        assert between(VIEW, ClusterView.of(replace(ORDERS, config=config))) == Changes()


def test_a_set_of_tasks_that_was_written_again_counts_also_if_it_is_equal() -> None:
    for tasks in ((), ({"part": "0"},), ({"part": "0"}, {"part": "1"})):
        found = between(VIEW, ClusterView.of(replace(ORDERS, tasks=tasks)))
        assert found == Changes(recommitted=frozenset({"orders"}))
        assert found.needs_rebalance


def test_a_wanted_state_is_no_change_of_the_work() -> None:
    assert between(VIEW, ClusterView.of(replace(ORDERS, target=TargetState.PAUSED))) == Changes()


def test_several_at_once() -> None:
    before = ClusterView.of(ORDERS, ConnectorView("gone", {}), ConnectorView("same", {}))
    after = before.without("gone").with_connector(ConnectorView("new", {}))
    after = after.with_connector(replace(ORDERS, config={}, tasks=()))
    assert between(before, after) == Changes(
        added=frozenset({"new"}),
        removed=frozenset({"gone"}),
        recommitted=frozenset({"orders"}),
    )


def test_what_was_deleted_and_made_anew_meanwhile_is_another_one_of_the_same_name() -> None:
    found = between(VIEW, ClusterView.of(ConnectorView("orders", {"name": "orders"})))
    assert found.recommitted == {"orders"}
