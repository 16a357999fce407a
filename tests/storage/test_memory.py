from __future__ import annotations

import threading

import pytest
from memory_offsets import MemoryOffsetStore

from headgate.model import State, Status, TargetState, TaskId
from headgate.runtime.errors import ConnectorNotFound
from headgate.runtime.ports import ConfigStore, OffsetStore, StatusStore
from headgate.storage.memory import MemoryConfigStore, MemoryStatusStore
from headgate.storage.offset_table import InvalidOffset

RUNNING = Status(State.RUNNING, "w:8083")
FAILED = Status(State.FAILED, "w:8083", trace="boom")


def test_the_stores_fit_the_ports() -> None:
    config: ConfigStore = MemoryConfigStore()
    status: StatusStore = MemoryStatusStore()
    offsets: OffsetStore = MemoryOffsetStore()
    assert config.view().connectors == {}
    assert list(status.connectors()) == []
    assert offsets.all("a") == []


class TestConfigs:
    def test_a_new_connector_without_target_state_is_started(self) -> None:
        store = MemoryConfigStore()
        store.put_connector("a", {"name": "a"})
        view = store.view().require("a")
        assert (view.config, view.target, view.tasks, view.applied) == ({"name": "a"}, TargetState.STARTED, (), None)

    @pytest.mark.kip(980, "Can create a connector in the STOPPED state in standalone mode")
    def test_a_new_connector_takes_the_target_state_it_is_given(self) -> None:
        store = MemoryConfigStore()
        store.put_connector("a", {"name": "a"}, TargetState.STOPPED)
        assert store.view().require("a").target is TargetState.STOPPED

    def test_a_new_config_keeps_target_state_and_tasks(self) -> None:
        store = MemoryConfigStore()
        store.put_connector("a", {"v": "1"}, TargetState.PAUSED)
        store.put_tasks("a", [{"t": "0"}])
        store.put_connector("a", {"v": "2"})
        view = store.view().require("a")
        assert (view.config, view.target, view.tasks, view.applied) == (
            {"v": "2"},
            TargetState.PAUSED,
            ({"t": "0"},),
            {"v": "1"},
        )

    def test_publishing_tasks_remembers_the_config_they_were_made_from(self) -> None:
        store = MemoryConfigStore()
        store.put_connector("a", {"v": "1"})
        store.put_tasks("a", [{"t": "0"}, {"t": "1"}])
        store.put_connector("a", {"v": "2"})
        store.put_tasks("a", [{"t": "x"}])
        assert store.view().require("a").applied == {"v": "2"}
        assert store.view().require("a").task_ids == (TaskId("a", 0),)

    def test_no_tasks_are_left_after_a_stop(self) -> None:
        store = MemoryConfigStore()
        store.put_connector("a", {})
        store.put_tasks("a", [{}])
        store.put_tasks("a", ())
        store.put_target_state("a", TargetState.STOPPED)
        assert store.view().require("a").tasks == ()
        assert store.view().require("a").target is TargetState.STOPPED

    def test_a_view_never_changes(self) -> None:
        store = MemoryConfigStore()
        config, task = {"v": "1"}, {"t": "0"}
        store.put_connector("a", config)
        store.put_tasks("a", [task])
        before = store.view()
        config["v"] = task["t"] = "changed by the caller"
        store.put_connector("a", {"v": "2"})
        store.remove_connector("a")
        assert before.require("a").config == {"v": "1"}
        assert before.require("a").tasks == ({"t": "0"},)

    def test_a_connector_created_again_knows_nothing_of_the_removed_one(self) -> None:
        store = MemoryConfigStore()
        store.put_connector("a", {}, TargetState.STOPPED)
        store.remove_connector("a")
        store.remove_connector("a")
        assert store.view().get("a") is None
        store.put_connector("a", {})
        assert store.view().require("a").target is TargetState.STARTED

    def test_tasks_and_target_states_need_a_connector(self) -> None:
        store = MemoryConfigStore()
        with pytest.raises(ConnectorNotFound):
            store.put_tasks("a", [])
        with pytest.raises(ConnectorNotFound):
            store.put_target_state("a", TargetState.PAUSED)


class TestStatuses:
    def test_what_was_put_is_found(self) -> None:
        store = MemoryStatusStore()
        store.put("a", RUNNING)
        store.put(TaskId("a", 1), FAILED)
        store.put(TaskId("a", 0), RUNNING)
        assert store.get("a") == RUNNING
        assert store.get(TaskId("a", 1)) == FAILED
        assert dict(store.tasks("a")) == {0: RUNNING, 1: FAILED}
        assert list(store.connectors()) == ["a"]

    def test_what_was_not_put_is_none(self) -> None:
        store = MemoryStatusStore()
        assert store.get("a") is None
        assert store.get(TaskId("a", 0)) is None
        assert dict(store.tasks("a")) == {}

    def test_removing_a_connector_removes_its_tasks_and_no_others(self) -> None:
        store = MemoryStatusStore()
        for name in ("a", "b"):
            store.put(name, RUNNING)
            store.put(TaskId(name, 0), RUNNING)
        store.remove("a")
        store.remove("never there")
        assert store.get("a") is None
        assert store.get(TaskId("a", 0)) is None
        assert store.get(TaskId("b", 0)) == RUNNING

    def test_removing_a_task_leaves_the_others(self) -> None:
        store = MemoryStatusStore()
        store.put("a", RUNNING)
        store.put(TaskId("a", 0), RUNNING)
        store.put(TaskId("a", 1), FAILED)
        held = store.tasks("a")
        store.remove(TaskId("a", 0))
        store.remove(TaskId("a", 7))
        assert dict(store.tasks("a")) == {1: FAILED}
        assert dict(held) == {0: RUNNING, 1: FAILED}
        assert store.get("a") == RUNNING

    def test_readers_on_other_threads_never_see_half_a_change(self) -> None:
        store = MemoryStatusStore()
        ended = threading.Event()
        trouble: list[BaseException] = []

        def read() -> None:
            try:
                while not ended.is_set():
                    for name in store.connectors():
                        list(store.tasks(name).items())
            except BaseException as error:
                trouble.append(error)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for number in range(2000):
            store.put(f"c{number % 7}", RUNNING)
            store.put(TaskId(f"c{number % 7}", number % 5), RUNNING)
            if number % 11 == 0:
                store.remove(f"c{number % 3}")
        ended.set()
        for reader in readers:
            reader.join()
        assert trouble == []


class TestOffsets:
    def test_a_partition_is_known_by_its_content_whatever_the_order_of_its_keys(self) -> None:
        store = MemoryOffsetStore()
        store.put("a", [({"db": "x", "table": "t"}, {"id": 1})])
        store.put("a", [({"table": "t", "db": "x"}, {"id": 2})])
        assert store.get("a", [{"db": "x", "table": "t"}, {"db": "x"}]) == [{"id": 2}, None]
        assert store.all("a") == [({"db": "x", "table": "t"}, {"id": 2})]

    def test_numbers_text_and_booleans_that_look_alike_are_different_partitions(self) -> None:
        store = MemoryOffsetStore()
        values: list[object] = [1, 1.0, True, "1", None]
        store.put("a", [({"p": value}, {"at": number}) for number, value in enumerate(values)])
        assert store.get("a", [{"p": value} for value in values]) == [{"at": number} for number in range(5)]

    def test_partitions_are_listed_in_the_order_they_were_first_seen(self) -> None:
        store = MemoryOffsetStore()
        store.put("a", [({"p": "z"}, {"n": 1}), ({"p": "a"}, {"n": 1})])
        store.put("b", [({"p": "other"}, {"n": 1})])
        store.put("a", [({"p": "m"}, {"n": 1}), ({"p": "z"}, {"n": 2})])
        assert [partition["p"] for partition, _ in store.all("a")] == ["z", "a", "m"]

    def test_none_removes_an_offset(self) -> None:
        store = MemoryOffsetStore()
        store.put("a", [({"p": 1}, {"n": 1}), ({"p": 2}, {"n": 1})])
        store.put("a", [({"p": 1}, None), ({"p": "never there"}, None)])
        assert store.all("a") == [({"p": 2}, {"n": 1})]

    def test_a_record_may_have_the_partition_null_which_is_never_listed(self) -> None:
        store = MemoryOffsetStore()
        store.put("a", [(None, {"n": 1})])
        assert store.get("a", [None]) == [{"n": 1}]
        assert store.all("a") == []

    def test_bytes_are_kept_as_base64_text(self) -> None:
        store = MemoryOffsetStore()
        store.put("a", [({"p": b"\x00\xff"}, {"n": b"hi"})])
        assert store.all("a") == [({"p": "AP8="}, {"n": "aGk="})]
        assert store.get("a", [{"p": b"\x00\xff"}]) == [{"n": "aGk="}]

    def test_what_comes_back_is_a_copy(self) -> None:
        store = MemoryOffsetStore()
        offset = {"n": 1}
        store.put("a", [({"p": 1}, offset)])
        offset["n"] = 2
        [found] = store.get("a", [{"p": 1}])
        assert isinstance(found, dict)
        found["n"] = 3
        assert store.get("a", [{"p": 1}]) == [{"n": 1}]

    @pytest.mark.parametrize(
        ("offset", "message"),
        [
            ({1: "x"}, "Offsets may only use String keys"),
            ({"k": [1]}, "Offsets may only contain primitive types as values, but field k contains builtins.list"),
            ({"k": {}}, "Offsets may only contain primitive types as values, but field k contains builtins.dict"),
            ({"k": float("nan")}, "Offsets may only hold values that JSON has"),
            ({"k": "\ud800"}, "Offsets may only hold valid Unicode text"),
        ],
    )
    def test_one_offset_that_cannot_be_stored_leaves_all_as_they_were(
        self, offset: dict[str, object], message: str
    ) -> None:
        store = MemoryOffsetStore()
        with pytest.raises(InvalidOffset, match=f"^{message}"):
            store.put("a", [({"p": 1}, {"n": 1}), ({"p": 2}, offset)])
        assert store.all("a") == []
        with pytest.raises(InvalidOffset, match=f"^{message}"):
            store.get("a", [offset])
