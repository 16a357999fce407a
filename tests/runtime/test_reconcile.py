"""What there is to do, on plain values: each rule by itself, then all of them on whatever may be."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.cluster.work import NOTHING, Work
from headgate.model import Config, TargetState, TaskId
from headgate.runtime.reconcile import (
    Action,
    Apply,
    Begun,
    Passed,
    Regenerate,
    Running,
    Shutdown,
    StartTask,
    StopTasks,
    SwitchTasks,
    reconcile,
)
from headgate.runtime.view import ClusterView, ConnectorView

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED
CONFIG: Config = {"name": "a"}
AGAIN: Config = {"name": "a"}
"""Equal, but written another time."""
TASKS = ({"n": "0"}, {"n": "1"})
A0, A1, A2 = TaskId("a", 0), TaskId("a", 1), TaskId("a", 2)
ALL = Work.of(["a"], [A0, A1])


def wanted(
    target: TargetState = STARTED, *, tasks: tuple[Config, ...] | None = None, never: bool = False
) -> ClusterView:
    """One connector, with two tasks unless it is stopped. `never`: it has never made any."""
    tasks = (() if target is STOPPED or never else TASKS) if tasks is None else tasks
    return ClusterView.of(ConnectorView("a", CONFIG, target, tasks, applied=None if never else CONFIG))


def running(*tasks: TaskId, config: Config = CONFIG, made_tasks: bool = True) -> Running:
    return Running({"a": Begun(config, made_tasks)}, frozenset(tasks))


# --- one rule after the other -----------------------------------------------------------------------------------------


def test_what_is_as_it_should_be_needs_nothing() -> None:
    assert reconcile(wanted(), ALL, running(A0, A1), {}) == []
    assert reconcile(ClusterView(), NOTHING, Running(), {}) == []


@pytest.mark.kip(980, "Creating a connector with no explicit state specified results in a `RUNNING` state connector")
def test_what_is_new_is_started_and_makes_its_tasks() -> None:
    assert reconcile(wanted(never=True), Work.just("a"), Running(), {}) == [Apply("a"), Regenerate("a")]


@pytest.mark.kip(980, "No tasks are spawned for a connector created in the `PAUSED` or `STOPPED` state")
@pytest.mark.parametrize("initial", [PAUSED, STOPPED])
def test_what_was_created_in_a_state_is_brought_to_it_and_makes_no_tasks(initial: TargetState) -> None:
    assert reconcile(wanted(initial, never=True), Work.just("a"), Running(), {}) == [Apply("a")]


@pytest.mark.kip(980, "created with initial_state STOPPED, then paused: no tasks until it is resumed")
def test_what_was_created_stopped_makes_no_tasks_when_it_is_paused() -> None:
    begun = running(made_tasks=False)
    assert reconcile(wanted(PAUSED, never=True), ALL, begun, {"a": [PAUSED]}) == [Apply("a")]


def test_a_new_config_ends_the_connector_and_leaves_the_tasks_alone() -> None:
    assert reconcile(wanted(), ALL, running(A0, A1, config=AGAIN), {}) == [
        Shutdown("a"), Apply("a"), Regenerate("a")
    ]  # fmt: skip


def test_a_state_that_was_passed_before_a_new_config_is_no_longer_of_interest() -> None:
    assert reconcile(wanted(), Work.just("a"), running(config=AGAIN), {"a": [STOPPED, STARTED]}) == [
        Shutdown("a"), Apply("a"), Regenerate("a")
    ]  # fmt: skip


def test_what_is_held_no_more_ends() -> None:
    assert reconcile(wanted(), NOTHING, running(A0, A1), {}) == [Shutdown("a"), StopTasks((A0, A1))]
    assert reconcile(wanted(), Work.of(["a"], [A1]), running(A0, A1), {}) == [StopTasks((A0,))]
    assert reconcile(ClusterView(), NOTHING, running(A0), {}) == [Shutdown("a"), StopTasks((A0,))]


def test_what_was_deleted_waits_to_be_taken_away() -> None:
    assert reconcile(ClusterView(), ALL, running(A0, A1), {"a": [PAUSED]}) == []


def test_tasks_that_there_are_not_are_not_started() -> None:
    assert reconcile(wanted(), Work.of(tasks=[A1, A2, TaskId("b", 0)]), Running(), {}) == [StartTask(A1)]


def test_all_at_once_has_an_order() -> None:
    """What ends before what begins, the connector before its tasks, and new tasks last: they replace those."""
    begun = running(A2, config=AGAIN)
    assert reconcile(wanted(), ALL, begun, {"a": [PAUSED, STARTED]}) == [
        Shutdown("a"), StopTasks((A2,)), Apply("a"), StartTask(A0), StartTask(A1), Regenerate("a")
    ]  # fmt: skip


@pytest.mark.kip(52, "This API asynchronously causes the connector and its tasks to suspend processing.")
def test_pause_of_what_is_started() -> None:
    assert reconcile(wanted(PAUSED), ALL, running(A0, A1), {"a": [PAUSED]}) == [
        SwitchTasks((A0, A1), PAUSED), Apply("a")
    ]  # fmt: skip


def test_pause_of_what_has_no_tasks_asks_for_none() -> None:
    assert reconcile(wanted(PAUSED, tasks=()), ALL, running(), {"a": [PAUSED]}) == [Apply("a")]


@pytest.mark.kip(875, "Can pause a stopped connector")
@pytest.mark.parametrize("begun", [running(made_tasks=False), Running()], ids=["here", "new here"])
def test_pause_of_what_is_stopped_starts_it_so_that_its_tasks_come_up_paused(begun: Running) -> None:
    assert reconcile(wanted(PAUSED, tasks=()), ALL, begun, {"a": [PAUSED]}) == [
        Apply("a", STARTED), Regenerate("a", at_once=True), Apply("a")
    ]  # fmt: skip


def test_resume_tells_tasks_and_connector_and_asks_for_tasks() -> None:
    assert reconcile(wanted(), ALL, running(A0, A1), {"a": [STARTED]}) == [
        SwitchTasks((A0, A1), STARTED), Apply("a"), Regenerate("a")
    ]  # fmt: skip


@pytest.mark.kip(875, "Can stop a running connector")
def test_stop_brings_it_to_its_state() -> None:
    assert reconcile(wanted(STOPPED), Work.just("a"), running(), {"a": [STOPPED]}) == [Apply("a")]


@pytest.mark.kip(875, "Can resume a stopped connector")
def test_a_stop_that_is_overtaken_still_counts() -> None:
    assert reconcile(wanted(tasks=()), ALL, running(), {"a": [STOPPED, STARTED]}) == [
        Apply("a", STOPPED), Apply("a"), Regenerate("a")
    ]  # fmt: skip
    assert reconcile(wanted(PAUSED, tasks=()), ALL, running(), {"a": [STOPPED, PAUSED]}) == [
        Apply("a", STOPPED), Apply("a", STARTED), Regenerate("a", at_once=True), Apply("a")
    ]  # fmt: skip


def test_tasks_whose_connector_is_elsewhere_are_told_all_the_same() -> None:
    here = Running(tasks=frozenset({A1}))
    assert reconcile(wanted(PAUSED), Work.just(A1), here, {"a": [PAUSED]}) == [SwitchTasks((A1,), PAUSED)]


# --- whatever may be --------------------------------------------------------------------------------------------------


def carried_out(wanted: ClusterView, running: Running, actions: Iterable[Action]) -> Running:
    """What runs after that, if nothing fails and nobody makes other tasks."""
    connectors, tasks = dict(running.connectors), set(running.tasks)
    for action in actions:
        match action:
            case Shutdown(name):
                del connectors[name]
            case StopTasks(gone):
                assert tasks.issuperset(gone)
                tasks -= set(gone)
            case Apply(name, state):
                known = connectors.get(name, Begun(wanted.require(name).config))
                connectors[name] = Begun(known.config) if state is STOPPED else known
            case StartTask(task):
                assert task not in tasks
                tasks.add(task)
            case Regenerate(name):
                connectors[name] = Begun(connectors[name].config, made_tasks=True)
            case SwitchTasks(told):
                assert tasks.issuperset(told)
    return Running(connectors, frozenset(tasks))


def check(wanted: ClusterView, held: Work, running: Running, passed: Passed) -> None:
    actions = reconcile(wanted, held, running, passed)
    after = carried_out(wanted, running, actions)
    assert reconcile(wanted, held, after, {}) == [], "nothing is left"
    there = {name for name in held.connectors if wanted.get(name)}
    assert {name for name in after.connectors if wanted.get(name)} == there
    assert after.connectors.keys() <= held.connectors
    assert all(after.connectors[name].config is wanted.require(name).config for name in there)
    assert after.tasks == (running.tasks & held.tasks) | {task for task in held.tasks if wanted.has_task(task)}
    ends = [isinstance(action, Shutdown | StopTasks) for action in actions if not isinstance(action, SwitchTasks)]
    assert ends == sorted(ends, reverse=True), "what ends comes first"
    assert sorted(map(str, one_by_one(wanted, held, running, passed))) == sorted(map(str, split(actions)))


def one_by_one(wanted: ClusterView, held: Work, running: Running, passed: Passed) -> list[Action]:
    """As a worker in a group does it: each connector and task by itself."""
    found = []
    for what in held | Work.of(running.connectors, running.tasks):
        part = Work.just(what)
        here = {name: begun for name, begun in running.connectors.items() if name in part.connectors}
        found += reconcile(wanted, held & part, Running(here, running.tasks & part.tasks), passed)
    return found


def split(actions: Iterable[Action]) -> list[Action]:
    """What concerns several tasks, one by one."""
    found: list[Action] = []
    for action in actions:
        match action:
            case StopTasks(tasks):
                found += [StopTasks((task,)) for task in tasks]
            case SwitchTasks(tasks, target):
                found += [SwitchTasks((task,), target) for task in tasks]
            case _:
                found.append(action)
    return found


VIEWS = [
    None,
    *(
        ConnectorView("a", CONFIG, target, tasks, applied)
        for target in TargetState
        for tasks in ((), TASKS)
        for applied in (None, CONFIG)
    ),
]
BEGUN = [None, Begun(CONFIG), Begun(CONFIG, made_tasks=True), Begun(AGAIN)]
TARGETS = [(), *itertools.chain.from_iterable(itertools.product(TargetState, repeat=n) for n in (1, 2))]


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_one_connector_with_one_task_in_every_case(view: ConnectorView | None) -> None:
    booleans = (False, True)
    for begun, targets, held, holds_task, task_runs in itertools.product(BEGUN, TARGETS, booleans, booleans, booleans):
        check(
            ClusterView.of(view) if view else ClusterView(),
            Work.of(["a"] if held else (), [A0] if holds_task else ()),
            Running({"a": begun} if begun else {}, frozenset({A0} if task_runs else ())),
            {"a": targets},
        )


names = st.sampled_from("abc")
task_ids = st.builds(TaskId, names, st.integers(0, 3))
configs = st.builds(lambda text: {"x": text}, st.sampled_from("12"))
views = st.builds(
    ConnectorView,
    names,
    configs,
    st.sampled_from(TargetState),
    st.lists(configs, max_size=3).map(tuple),
    st.none() | configs,
)


@given(
    st.lists(views, max_size=3).map(lambda each: ClusterView.of(*each)),
    st.builds(Work.of, st.sets(names), st.sets(task_ids)),
    st.dictionaries(names, st.builds(Begun, configs, st.booleans())),
    st.frozensets(task_ids),
    st.dictionaries(names, st.lists(st.sampled_from(TargetState), max_size=3)),
)
def test_whatever_is_held_and_runs_comes_to_rest(
    view: ClusterView, held: Work, begun: dict[str, Begun], tasks: frozenset[TaskId], passed: Passed
) -> None:
    check(view, held, Running(begun, tasks), passed)
