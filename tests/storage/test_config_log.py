from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from log_doubles import MemoryLog, MemoryWriter, Topic

from headgate.model import LevelChange, PassingEvent, RestartRequest, SessionKey, TargetChange, TargetState, TaskId
from headgate.runtime.errors import ConnectorNotFound
from headgate.runtime.ports import ConfigsLost, ConfigStore
from headgate.storage.config_log import ConfigLog, LeaderWriteFailed
from headgate.storage.config_records import ConnectorRecord, TargetStateRecord, encode
from headgate.storage.topic_log import ReadTimeout
from headgate.storage.topic_writer import Entry, WriteFailed


class Worker:
    """A config log on a topic in memory."""

    def __init__(self, topic: Topic, **options: Any) -> None:
        self.log, self.writer = MemoryLog(topic), MemoryWriter(topic)
        self.told: list[PassingEvent | None] = []
        self.configs = ConfigLog(self.log, self.writer, **options)
        self.configs.start(self.told.append)


@pytest.fixture
def topic() -> Topic:
    return Topic("connect-configs")


@pytest.fixture
def worker(topic: Topic) -> Worker:
    return Worker(topic)


def test_it_fits_the_port(worker: Worker) -> None:
    port: ConfigStore = worker.configs
    assert port.view().connectors == {}


def test_the_records_of_a_connectors_life(worker: Worker, topic: Topic) -> None:
    configs = worker.configs
    configs.put_connector("a", {"name": "a"})
    configs.put_tasks("a", [{"t": "0"}, {"t": "1"}])
    assert configs.view().require("a").task_ids == (TaskId("a", 0), TaskId("a", 1))
    configs.put_tasks("a", [])
    configs.put_target_state("a", TargetState.STOPPED)
    assert configs.view().require("a").target is TargetState.STOPPED
    configs.remove_connector("a")
    assert configs.view().connectors == {}
    assert topic.text == [
        ("connector-a", '{"properties":{"name":"a"}}'),
        ("task-a-0", '{"properties":{"t":"0"}}'),
        ("task-a-1", '{"properties":{"t":"1"}}'),
        ("commit-a", '{"tasks":2}'),
        ("commit-a", '{"tasks":0}'),
        ("target-state-a", '{"state":"PAUSED","state.v2":"STOPPED"}'),
        ("connector-a", None),
        ("target-state-a", None),
    ]
    assert configs.state().offset == 8


@pytest.mark.kip(980, "the target state is written before the config")
def test_a_new_connectors_target_state_is_acknowledged_before_its_config_is_sent(worker: Worker) -> None:
    worker.configs.put_connector("a", {"name": "a"}, TargetState.PAUSED)
    assert [[key for key, _ in step] for step in worker.writer.writes] == [[b"target-state-a"], [b"connector-a"]]
    assert worker.configs.view().require("a").target is TargetState.PAUSED


@pytest.mark.kip(980, "a target state left behind by a create that died half way does not count for the next one")
@pytest.mark.parametrize("wanted", [None, TargetState.PAUSED])
def test_a_target_state_that_was_left_behind_counts_for_nobody(topic: Topic, wanted: TargetState | None) -> None:
    topic.append(*encode(TargetStateRecord("a", TargetState.STOPPED)))
    next_one, reading = Worker(topic), Worker(topic)
    next_one.configs.put_connector("a", {"name": "a"}, wanted)
    for each in (next_one, reading, Worker(topic)):
        assert each.configs.view().require("a").target is (wanted or TargetState.STARTED)
    next_one.configs.put_target_state("a", TargetState.STOPPED)
    next_one.configs.put_connector("a", {"name": "a", "color": "red"})
    assert next_one.configs.view().require("a").target is TargetState.STOPPED, "a new config changes nothing of it"


@pytest.mark.kip(980, "the target state is written before the config")
def test_a_config_is_not_sent_when_its_target_state_was_refused(worker: Worker, topic: Topic) -> None:
    topic.refusals.append(1)
    with pytest.raises(WriteFailed):
        worker.configs.put_connector("a", {"name": "a"}, TargetState.STOPPED)
    assert topic.entries == []


def test_the_commit_is_a_step_of_its_own_after_all_tasks_were_read_back(topic: Topic) -> None:
    worker = Worker(topic)
    worker.configs.put_connector("a", {})
    reads = worker.log.reads
    worker.configs.put_tasks("a", [{}, {}, {}])
    assert [len(step) for step in worker.writer.writes] == [1, 3, 1]
    assert worker.log.reads - reads == 3  # before, between, after
    worker.configs.put_tasks("a", [])
    assert [len(step) for step in worker.writer.writes] == [1, 3, 1, 1]


def test_a_leader_that_dies_before_the_commit_leaves_the_old_tasks_in_force(worker: Worker, topic: Topic) -> None:
    worker.configs.put_connector("a", {})
    worker.configs.put_tasks("a", [{"t": "old"}])

    def dies(entries: Sequence[Entry]) -> None:
        if entries[0][0].startswith(b"commit-"):
            raise WriteFailed("dead")

    leader = ConfigLog(MemoryLog(topic), MemoryWriter(topic, dies))
    leader.start()
    with pytest.raises(WriteFailed):
        leader.put_tasks("a", [{"t": "new"}])
    assert worker.configs.view().require("a").tasks == ({"t": "old"},)


def test_a_write_is_read_back_before_it_returns(topic: Topic) -> None:
    topic.delivering = False
    worker = Worker(topic)
    worker.configs.put_connector("a", {"v": "1"})
    assert worker.configs.view().require("a").config == {"v": "1"}
    worker.configs.put_target_state("a", TargetState.PAUSED)
    assert worker.configs.view().require("a").target is TargetState.PAUSED
    topic.append(b"connector-b", b'{"properties":{}}')
    assert worker.configs.view().get("b") is None
    assert worker.configs.refresh(5).view.get("b") is not None


@pytest.mark.parametrize("call", ["put_tasks", "put_target_state"])
def test_what_concerns_no_connector_is_not_written(worker: Worker, topic: Topic, call: str) -> None:
    argument: Any = [{}] if call == "put_tasks" else TargetState.PAUSED
    with pytest.raises(ConnectorNotFound):
        getattr(worker.configs, call)("nobody", argument)
    assert topic.entries == []


def test_all_steps_of_a_write_share_its_time(topic: Topic) -> None:
    def slow(entries: Sequence[Entry]) -> None:
        time.sleep(0.05)

    log, writer = MemoryLog(topic), MemoryWriter(topic, slow)
    configs = ConfigLog(log, writer, timeout=1.0)
    configs.start()
    configs.put_connector("a", {}, TargetState.STARTED)
    first, second = writer.timeouts
    assert first <= 1.0
    assert second <= first - 0.05


def test_a_write_that_waits_for_another_gives_up_in_time(topic: Topic) -> None:
    going_on = threading.Event()

    def wait(_: object) -> None:
        going_on.wait(5)

    configs = ConfigLog(MemoryLog(topic), MemoryWriter(topic, wait), timeout=0.1)
    configs.start()
    other = threading.Thread(target=lambda: configs.put_connector("a", {}))
    other.start()
    time.sleep(0.02)
    with pytest.raises(WriteFailed, match="takes longer"):
        configs.put_connector("b", {})
    going_on.set()
    other.join()


def test_a_write_that_is_not_read_back_is_an_error(worker: Worker) -> None:
    worker.log.broken = True
    with pytest.raises(ReadTimeout):
        worker.configs.put_connector("a", {})


def test_listeners_hear_what_comes_after_the_start(topic: Topic) -> None:
    before = Worker(topic).configs
    before.put_connector("a", {})
    before.put_restart_request(RestartRequest("a", True, False))
    before.put_logger_level("root", "debug")
    worker = Worker(topic)
    assert worker.told == []
    before.put_tasks("a", [{}, {}])
    before.put_target_state("a", TargetState.PAUSED)
    before.put_restart_request(RestartRequest("a", False, True))
    before.put_task_count("a", 2)
    before.put_logger_level("root", "info")
    key = SessionKey(b"k", "HmacSHA256", 1)
    before.put_session_key(key)
    before.remove_connector("a")
    assert worker.told == [
        None,
        TargetChange("a", TargetState.PAUSED),
        RestartRequest("a", False, True),
        LevelChange("root", "info"),
        None,
        None,
    ]
    state = worker.configs.state()
    assert (state.session_key, state.task_count_records.get("a"), state.pending_fencing) == (key, 2, frozenset())


def test_the_state_has_it_when_the_listener_hears_of_it(topic: Topic) -> None:
    configs = ConfigLog(MemoryLog(topic), MemoryWriter(topic))
    seen: list[Any] = []

    configs.start(lambda event: seen.append(configs.view().require("a").config))
    configs.put_connector("a", {"v": "1"})
    assert seen == [{"v": "1"}]


def test_odd_records_are_logged_and_passed_over(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(topic)
    with caplog.at_level(logging.ERROR, logger="headgate"):
        topic.append(b"connector-a", b'{"properties":{}}')
        topic.append(b"strange", b"{}")
        assert worker.configs.state().offset == 2
        topic.append(b"commit-a", b"nonsense")
    # What is not JSON does not even move the offset: Java's workers would not agree with us otherwise.
    assert worker.configs.state().offset == 2
    assert "Record 1 of connect-configs (b'strange') is ignored" in caplog.text
    assert "Record 2 of connect-configs is ignored: its value is not JSON" in caplog.text
    topic.append(b"commit-a", b'{"tasks":0}')
    assert worker.configs.state().offset == 4


@pytest.mark.kip(618, "the leader writes to the config topic with a transactional producer")
class TestTransactionalLeader:
    @pytest.fixture
    def worker(self, topic: Topic) -> Worker:
        return Worker(topic, transactional=True)

    def test_each_step_is_one_transaction(self, worker: Worker, topic: Topic) -> None:
        leader = MemoryWriter(topic)
        worker.configs.claim(leader)
        worker.configs.put_connector("a", {}, TargetState.STARTED)
        worker.configs.put_tasks("a", [{}, {}])
        worker.configs.remove_connector("a")
        assert [[key.decode() for key, _ in step] for step in leader.writes] == [
            ["target-state-a", "connector-a"],
            ["task-a-0", "task-a-1"],
            ["commit-a"],
            ["connector-a", "target-state-a"],
        ]
        assert worker.writer.writes == []

    def test_what_any_worker_may_write_goes_through_the_plain_producer(self, worker: Worker, topic: Topic) -> None:
        topic.append(b"connector-a", b'{"properties":{}}')
        worker.configs.put_target_state("a", TargetState.PAUSED)
        worker.configs.put_logger_level("root", "debug")
        assert len(worker.writer.writes) == 2

    def test_who_has_not_claimed_the_topic_writes_nothing(self, worker: Worker, topic: Topic) -> None:
        with pytest.raises(LeaderWriteFailed, match="has not claimed topic connect-configs"):
            worker.configs.put_connector("a", {})
        assert topic.entries == []

    def test_after_a_failure_the_topic_must_be_claimed_anew(self, worker: Worker, topic: Topic) -> None:
        fenced, next_one = MemoryWriter(topic), MemoryWriter(topic)
        worker.configs.claim(fenced)
        topic.refusals.append(1)
        with pytest.raises(LeaderWriteFailed):
            worker.configs.put_connector("a", {})
        assert fenced.closed
        with pytest.raises(LeaderWriteFailed, match="not claimed"):
            worker.configs.put_connector("a", {})
        worker.configs.claim(next_one)
        worker.configs.put_connector("a", {})
        assert worker.configs.view().get("a") is not None

    def test_closing_closes_the_leaders_writer_too(self, worker: Worker, topic: Topic) -> None:
        leader = MemoryWriter(topic)
        worker.configs.claim(leader)
        worker.configs.close()
        assert (leader.closed, worker.writer.closed) == (True, True)


def test_while_the_topic_is_gone_nothing_is_changed_and_what_was_read_is_known(topic: Topic) -> None:
    gone: list[bool] = []
    worker = Worker(topic, missing=lambda: bool(gone))
    worker.configs.put_connector("a", {"name": "a"})
    gone.append(True)
    worker.log.broken = True
    with pytest.raises(
        ConfigsLost, match=r"^Topic connect-configs of connector configurations was deleted\. What runs"
    ):
        worker.configs.remove_connector("a")
    assert worker.configs.refresh(1).view.require("a"), "rebalances go on by that"
    gone.clear()
    worker.log.broken = False
    worker.configs.remove_connector("a")


@pytest.mark.parametrize("another", [True, False])
def test_what_another_topic_of_the_name_says_is_not_carried_out(topic: Topic, another: bool) -> None:
    """Unlike what is read again of one that has lost its last records."""
    reader: Worker = Worker(topic, look=lambda: reader.configs.replaced() if another else None)
    reader.configs.put_connector("a", {"name": "a"})
    topic.records.clear()
    reader.log.begin_again(1)
    topic.append(*encode(ConnectorRecord("a", None)))
    assert list(reader.configs.view().connectors) == (["a"] if another else [])
    assert reader.told == ([None] if another else [None, None])
    if another:
        with pytest.raises(ConfigsLost, match=r"was deleted and made anew\. What runs goes on, by what is in memory"):
            reader.configs.put_connector("b", {})
        assert reader.configs.refresh(1).offset == 1
