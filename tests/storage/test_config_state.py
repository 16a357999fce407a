from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.model import LevelChange, RestartRequest, SessionKey, TargetState, TaskId
from headgate.storage.config_records import (
    CommitRecord,
    ConfigRecord,
    ConnectorRecord,
    TargetStateRecord,
    TaskCountRecord,
    TaskRecord,
    encode,
)
from headgate.storage.config_state import ConfigFold, ConfigState

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED
KEY = SessionKey(b"k", "HmacSHA256", 1)


def connector(name: str = "a", config: dict[str, str] | None = None) -> ConnectorRecord:
    return ConnectorRecord(name, {"name": name} if config is None else config)


def task(number: int, text: str = "", name: str = "a") -> TaskRecord:
    return TaskRecord(TaskId(name, number), {"t": text or str(number)})


def fold(*records: ConfigRecord) -> ConfigState:
    made = ConfigFold()
    for offset, record in enumerate(records):
        made.apply(record, offset)
    return made.state()


def told(*records: ConfigRecord) -> list[ConfigRecord]:
    """Those that whoever listens hears of."""
    made = ConfigFold()
    return [record for offset, record in enumerate(records) if made.apply(record, offset)]


def test_an_empty_topic_has_nothing() -> None:
    assert fold() == ConfigState()
    assert fold().offset == 0


def test_tasks_count_when_they_are_committed() -> None:
    before = fold(connector(), task(0), task(1))
    assert (before.view.require("a").tasks, before.task_counts.get("a", 0), before.generations.get("a", 0)) == (
        (),
        0,
        0,
    )
    after = fold(connector(), task(0), task(1), CommitRecord("a", 2))
    view = after.view.require("a")
    assert (view.tasks, view.applied, view.target) == (({"t": "0"}, {"t": "1"}), {"name": "a"}, STARTED)
    assert (after.task_counts.get("a", 0), after.generations.get("a", 0), after.offset) == (2, 1, 4)
    assert after.pending_fencing == {"a"}


def test_the_applied_config_is_that_of_the_commit() -> None:
    state = fold(connector(config={"v": "1"}), task(0), CommitRecord("a", 1), connector(config={"v": "2"}))
    assert (state.view.require("a").config, state.view.require("a").applied) == ({"v": "2"}, {"v": "1"})


def test_no_tasks_are_a_complete_set() -> None:
    state = fold(connector(), task(0), CommitRecord("a", 1), CommitRecord("a", 0))
    assert (state.view.require("a").tasks, state.task_counts.get("a", 0), state.generations.get("a", 0)) == ((), 0, 2)
    assert "a" not in state.inconsistent


def test_a_tombstone_takes_the_connector_and_its_tasks_but_not_its_target_state() -> None:
    deleted: list[ConfigRecord]
    deleted = [connector(), TargetStateRecord("a", PAUSED), task(0), CommitRecord("a", 1), task(0), connector("b")]
    state = fold(*deleted, TaskCountRecord("a", 1), ConnectorRecord("a", None))
    assert list(state.view.connectors) == ["b"]
    assert (state.task_counts.get("a", 0), state.task_count_records.get("a")) == (0, 1)
    again = fold(*deleted, ConnectorRecord("a", None), connector(), CommitRecord("a", 1))
    assert (again.view.require("a").target, again.view.require("a").applied) == (PAUSED, None)
    assert again.inconsistent == {"a"}  # the task that was held went with the connector


@pytest.mark.kip(980, "the target state is written before the config")
def test_a_target_state_that_came_before_its_connector_counts() -> None:
    records: list[ConfigRecord] = [TargetStateRecord("a", STOPPED), connector()]
    assert fold(records[0]).view.connectors == {}
    assert fold(*records).view.require("a").target is STOPPED
    assert told(*records) == [connector()]


def test_a_target_state_that_is_deleted_is_started_again() -> None:
    assert fold(connector(), TargetStateRecord("a", PAUSED), TargetStateRecord("a", None)).view.require("a").target is (
        STARTED
    )
    assert fold(TargetStateRecord("a", PAUSED), TargetStateRecord("a", None), connector()).view.require("a").target is (
        STARTED
    )


@pytest.mark.kip(618, "task count records")
def test_a_task_count_record_ends_the_pending_fencing_until_the_next_commit() -> None:
    records: list[ConfigRecord] = [connector(), task(0), CommitRecord("a", 1), TaskCountRecord("a", 1)]
    assert (fold(*records).pending_fencing, fold(*records).task_count_records.get("a")) == (frozenset(), 1)
    assert fold(*records, CommitRecord("a", 0)).pending_fencing == {"a"}
    assert fold(*records, TaskCountRecord("a", None)).task_count_records.get("a") is None


def test_the_last_session_key_counts() -> None:
    newer = SessionKey(b"n", "HmacSHA256", 2)
    assert fold(KEY, newer).session_key == newer


def test_what_records_tell() -> None:
    request, level = RestartRequest("a", True, True), LevelChange("root", "debug")
    assert told(
        connector(),
        task(0),
        CommitRecord("a", 1),
        CommitRecord("a", 2),
        CommitRecord("unknown", 0),
        TargetStateRecord("a", STARTED),
        TargetStateRecord("a", PAUSED),
        TargetStateRecord("a", PAUSED),
        TargetStateRecord("unknown", PAUSED),
        TaskCountRecord("a", 1),
        request,
        KEY,
        level,
        ConnectorRecord("a", None),
        TargetStateRecord("a", None),
    ) == [
        connector(),
        CommitRecord("a", 1),
        CommitRecord("a", 2),
        TargetStateRecord("a", PAUSED),
        request,
        KEY,
        level,
        ConnectorRecord("a", None),
    ]


def test_a_state_never_changes() -> None:
    made = ConfigFold()
    made.apply(connector(), 0)
    before = made.state()
    made.apply(task(0), 1)
    made.apply(CommitRecord("a", 1), 2)
    made.apply(ConnectorRecord("b", {}), 3)
    assert (before.view.require("a").tasks, list(before.view.connectors), before.offset) == ((), ["a"], 1)


def test_offsets_of_ignored_records_count() -> None:
    made = ConfigFold()
    made.ignore(41)
    assert made.state().offset == 42


class TestCompaction:
    """The cases that a reader must survive."""

    def test_an_older_task_that_was_replaced_makes_its_connector_inconsistent(self) -> None:
        records: list[ConfigRecord] = [connector(), task(1), CommitRecord("a", 2)]
        state = fold(*records)
        assert (state.inconsistent, state.view.require("a").tasks, state.task_counts.get("a", 0)) == (
            frozenset({"a"}),
            (),
            2,
        )
        assert (state.generations.get("a", 0), state.view.require("a").applied) == (0, None)
        # The earlier task 1 does not help the later commit: that one needs a whole set of its own.
        later = fold(*records, task(0, "new"), task(1, "new"), CommitRecord("a", 2))
        assert (later.inconsistent, later.view.require("a").tasks) == (frozenset(), ({"t": "new"}, {"t": "new"}))
        assert fold(*records, task(0, "new"), CommitRecord("a", 2)).inconsistent == {"a"}

    def test_a_task_that_is_no_more_is_dropped_at_the_commit(self) -> None:
        state = fold(connector(), task(1), task(0), CommitRecord("a", 1))
        assert state.view.require("a").task_ids == (TaskId("a", 0),)
        assert state.inconsistent == frozenset()
        assert fold(connector(), task(1), task(0), CommitRecord("a", 1), CommitRecord("a", 2)).inconsistent == {"a"}

    def test_tasks_without_their_connector_are_ignored(self) -> None:
        records: list[ConfigRecord] = [task(0), CommitRecord("a", 1)]
        assert fold(*records) == ConfigState(offset=2)
        assert fold(*records, connector(), CommitRecord("a", 1)).inconsistent == {"a"}

    def test_tasks_without_a_commit_wait_for_one(self) -> None:
        records: list[ConfigRecord] = [connector(), task(0, "old"), CommitRecord("a", 1), task(0, "new")]
        assert fold(*records).view.require("a").tasks == ({"t": "old"},)
        assert fold(*records, CommitRecord("a", 1)).view.require("a").tasks == ({"t": "new"},)

    def test_a_target_state_alone_shows_no_connector(self) -> None:
        assert fold(TargetStateRecord("a", PAUSED)).view.connectors == {}


# --- any log, any compaction ------------------------------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b"])
SMALL = st.integers(0, 2)


@st.composite
def steps(draw: st.DrawFn) -> list[ConfigRecord]:
    """What leaders write, one operation after the other."""
    log: list[ConfigRecord] = []
    for number in range(draw(st.integers(1, 12))):
        name, mark = draw(NAMES), str(number)
        kind = draw(st.sampled_from(["create", "tasks", "target", "delete", "count", "dies"]))
        tasks: list[ConfigRecord] = [task(n, f"{mark}-{n}", name) for n in range(draw(SMALL))]
        if kind == "create":
            target = draw(st.none() | st.sampled_from(TargetState))
            log += [TargetStateRecord(name, target)] if target else []
            log.append(connector(name, {"v": mark}))
        elif kind == "tasks":
            log += [*tasks, CommitRecord(name, len(tasks))]
        elif kind == "dies":  # before the commit
            log += tasks
        elif kind == "target":
            log.append(TargetStateRecord(name, draw(st.sampled_from(TargetState))))
        elif kind == "count":
            log.append(TaskCountRecord(name, draw(SMALL)))
        else:
            log += [ConnectorRecord(name, None), TargetStateRecord(name, None)]
    return log


def compacted(log: Sequence[ConfigRecord], cleaned: int, tombstones: bool) -> list[tuple[int, ConfigRecord]]:
    """Up to `cleaned`, only the last record of each key there; perhaps without tombstones. Offsets stay."""
    last = {encode(record)[0]: offset for offset, record in enumerate(log[:cleaned])}
    kept = []
    for offset, record in enumerate(log):
        key, value = encode(record)
        if offset >= cleaned or (last[key] == offset and (tombstones or value is not None)):
            kept.append((offset, record))
    return kept


@settings(max_examples=4 * settings().max_examples)
@given(steps(), st.data())
def test_a_compacted_log_says_the_same_or_that_it_does_not_know(log: list[ConfigRecord], data: st.DataObject) -> None:
    whole = fold(*log)
    made = ConfigFold()
    cleaned = data.draw(st.integers(0, len(log)))
    for offset, record in compacted(log, cleaned, data.draw(st.booleans())):
        made.apply(record, offset)
    state = made.state()
    assert set(state.view.connectors) == set(whole.view.connectors)
    assert state.task_count_records == whole.task_count_records
    for name, expected in whole.view.connectors.items():
        found = state.view.require(name)
        assert (found.config, found.target) == (expected.config, expected.target)
        if name in state.inconsistent:
            assert (found.tasks, state.task_counts.get(name, 0) >= 0) == ((), True)
        elif name in whole.inconsistent or state.task_counts.get(name, 0) != whole.task_counts.get(name, 0):
            # A commit of a connector that was deleted since, and made again, has outlived the rest.
            assert found.tasks == ()
        else:
            assert found.tasks == expected.tasks


@settings(max_examples=2 * settings().max_examples)
@given(steps())
def test_a_log_that_was_compacted_is_settled_by_the_next_commit(log: list[ConfigRecord]) -> None:
    log = [*log, connector("a"), task(0, "x"), task(1, "y"), CommitRecord("a", 2)]
    last = {encode(record)[0]: record for record in log}
    state = fold(*(record for record in log if last[encode(record)[0]] is record))
    assert state.view.require("a").tasks == ({"t": "x"}, {"t": "y"})
    assert state.view.require("a").applied == {"name": "a"}
    assert "a" not in state.inconsistent


@given(st.permutations([connector("a"), task(0), task(1), CommitRecord("a", 2)] * 2))
def test_whatever_the_order_tasks_are_complete_or_none(log: list[ConfigRecord]) -> None:
    found = fold(*log).view.require("a")
    assert found.tasks in ((), ({"t": "0"}, {"t": "1"}))


@given(steps(), steps(), st.randoms(use_true_random=False))
def test_connectors_do_not_disturb_each_other(
    first: list[ConfigRecord], second: list[ConfigRecord], random: object
) -> None:
    """Two logs about different connectors, interleaved anyhow, say what each says alone."""
    ones = [record for record in first if encode(record)[0].find(b"-b") < 0]
    others = [record for record in second if encode(record)[0].find(b"-b") >= 0]
    mixed: list[ConfigRecord] = []
    left, right = list(ones), list(others)
    while left or right:
        from_left = bool(left) and (not right or random.random() < 0.5)  # type: ignore[attr-defined]
        mixed.append((left if from_left else right).pop(0))
    alone, beside, both = fold(*ones), fold(*others), fold(*mixed)
    assert both.view.connectors == {**alone.view.connectors, **beside.view.connectors}
    assert both.generations == {**alone.generations, **beside.generations}
    assert both.pending_fencing == alone.pending_fencing | beside.pending_fencing
