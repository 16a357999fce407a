from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError
from hypothesis import given
from hypothesis import strategies as st
from log_doubles import MemoryLog, MemoryWriter, Topic

from headgate.backoff import Backoff
from headgate.model import ConnectorType, Health, State, Status, TaskId, Verdict
from headgate.runtime.board import StatusBoard
from headgate.runtime.lifecycle import InstanceEvent
from headgate.runtime.ports import StatusStore
from headgate.storage import status_log
from headgate.storage.status_log import StatusLog
from headgate.storage.status_records import decode, encode

HERE, THERE = "here:8083", "there:8083"
TASK = TaskId("a", 0)
AWAY = KafkaError._MSG_TIMED_OUT


def status(state: State, worker: str = HERE, generation: int = 1) -> Status:
    return Status(state, worker, generation=generation)


class Worker:
    def __init__(self, topic: Topic) -> None:
        self.writer = MemoryWriter(topic)
        self.statuses = StatusLog(MemoryLog(topic), self.writer)
        self.statuses.start()


@pytest.fixture
def topic() -> Topic:
    return Topic("connect-status")


@pytest.fixture
def worker(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setattr(status_log, "_PAUSE", Backoff(0.01, 2.0, most=5.0))
    worker = Worker(topic)
    yield worker
    worker.statuses.close(0.1)


def test_it_fits_the_port(worker: Worker) -> None:
    port: StatusStore = worker.statuses
    assert list(port.connectors()) == []


def test_a_status_is_as_old_as_the_last_word_on_it(
    worker: Worker, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, now = Worker(topic).statuses, time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    worker.statuses.put("a", status(State.RESTARTING))
    now += 70
    assert worker.statuses.age("a") == other.age("a") == 70
    worker.statuses.put("a", status(State.RESTARTING))
    now += 5
    assert worker.statuses.age("a") == other.age("a") == 5, "also if it is the same again"
    assert other.age(TASK) == 0


def test_a_status_is_seen_by_others_once_it_is_in_the_topic(worker: Worker, topic: Topic) -> None:
    other = Worker(topic).statuses
    worker.statuses.put("a", Status(State.RUNNING, HERE, None, "1.2", 5))
    worker.statuses.put(TASK, status(State.RUNNING))
    worker.statuses.put(TaskId("a", 10), status(State.PAUSED))
    assert other.get("a") == Status(State.RUNNING, HERE, None, "1.2", 5)
    assert other.tasks("a") == {0: status(State.RUNNING), 10: status(State.PAUSED)}
    assert other.get(TASK) == status(State.RUNNING)
    assert list(other.connectors()) == ["a"]
    assert topic.text[0] == (
        "status-connector-a",
        '{"state":"RUNNING","trace":null,"worker_id":"here:8083","generation":5,"version":"1.2"}',
    )
    other.close()


def test_in_a_topic_that_was_made_anew_every_worker_says_again_what_is_its_own(worker: Worker, topic: Topic) -> None:
    other, second = Worker(topic), TaskId("a", 1)
    worker.statuses.put(second, status(State.RUNNING))
    other.statuses.put(second, status(State.RUNNING, THERE, 2))
    other.statuses.put(TASK, status(State.FAILED, THERE, 2))
    worker.statuses.put("a", status(State.RUNNING))
    worker.statuses.put_topic("a", "orders", 0)
    known = worker.statuses.get("a"), worker.statuses.tasks("a"), worker.statuses.topics("a")
    topic.records.clear()
    for each in (worker, other):
        each.statuses.begin_again(1)
    assert len(topic.records) == 4
    late = Worker(topic)
    for each in (worker, other, late):
        assert (each.statuses.get("a"), each.statuses.tasks("a"), each.statuses.topics("a")) == known
    worker.statuses.put("a", status(State.PAUSED))
    assert worker.statuses.get("a") == status(State.PAUSED), "as soon as it is put, though the topic is short"
    for each in (other, late):
        each.statuses.close(0.1)


def test_an_own_status_is_seen_at_once(worker: Worker, topic: Topic) -> None:
    topic.held = []
    worker.statuses.put("a", status(State.RUNNING))
    assert topic.entries == []
    assert worker.statuses.get("a") == status(State.RUNNING)
    worker.statuses.remove("a")
    assert worker.statuses.get("a") is None


def test_what_another_worker_wrote_after_us_counts_in_the_end(worker: Worker, topic: Topic) -> None:
    topic.delivering = False
    worker.statuses.put(TASK, status(State.RUNNING))
    topic.append(*encode(TASK, status(State.RUNNING, THERE, 2)))
    assert worker.statuses.get(TASK) == status(State.RUNNING)
    topic.deliver()
    assert worker.statuses.get(TASK) == status(State.RUNNING, THERE, 2)


def test_what_another_worker_wrote_before_us_does_not_hide_ours(worker: Worker, topic: Topic) -> None:
    topic.delivering = False
    topic.append(*encode(TASK, status(State.PAUSED, THERE, 0)))
    worker.statuses.put(TASK, status(State.RUNNING))
    topic.records, late = topic.records[:1], topic.records[1:]
    topic.deliver()
    assert worker.statuses.get(TASK) == status(State.RUNNING)
    topic.records += late
    topic.deliver()
    assert worker.statuses.get(TASK) == status(State.RUNNING)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize(("worker_id", "generation"), [(HERE, 9), (THERE, 4), (THERE, 5), (THERE, 6)])
def test_only_unassigned_and_failed_give_way_to_a_later_generation(
    worker: Worker, topic: Topic, state: State, worker_id: str, generation: int
) -> None:
    topic.append(*encode("a", status(State.RUNNING, worker_id, generation)))
    worker.statuses.put("a", status(state, HERE, 5))
    safe = state in (State.UNASSIGNED, State.FAILED)
    written = not safe or worker_id == HERE or generation <= 5
    assert worker.statuses.get("a") == (status(state, HERE, 5) if written else status(State.RUNNING, THERE, 6))
    assert len(topic.entries) == (2 if written else 1)


class TestStale:
    """A worker that was slow tells that it stopped a task which another has started meanwhile."""

    @pytest.mark.parametrize(("generation", "stale"), [(4, True), (5, True), (6, False)])
    def test_unassigned_does_not_replace_running_of_a_later_generation(
        self, worker: Worker, topic: Topic, generation: int, stale: bool
    ) -> None:
        topic.append(*encode(TASK, status(State.RUNNING, THERE, 5)))
        late = status(State.UNASSIGNED, "elsewhere:8083", generation)
        topic.append(*encode(TASK, late))
        assert worker.statuses.get(TASK) == (status(State.RUNNING, THERE, 5) if stale else late)

    def test_a_worker_may_take_back_what_it_said_itself(self, worker: Worker, topic: Topic) -> None:
        topic.append(*encode(TASK, status(State.RUNNING, THERE, 5)))
        topic.append(*encode(TASK, status(State.UNASSIGNED, THERE, 5)))
        assert worker.statuses.get(TASK) == status(State.UNASSIGNED, THERE, 5)

    def test_connectors_and_other_states_are_taken_as_they_come(self, worker: Worker, topic: Topic) -> None:
        topic.append(*encode("a", status(State.RUNNING, THERE, 5)))
        topic.append(*encode("a", status(State.UNASSIGNED, HERE, 4)))
        topic.append(*encode(TASK, status(State.PAUSED, THERE, 5)))
        topic.append(*encode(TASK, status(State.UNASSIGNED, HERE, 4)))
        assert worker.statuses.get("a") == status(State.UNASSIGNED, HERE, 4)
        assert worker.statuses.get(TASK) == status(State.UNASSIGNED, HERE, 4)


class TestOvertaken:
    """A worker that Kafka could not hear for a while is heard after the one that has its work now."""

    @pytest.mark.parametrize("state", [State.RUNNING, State.PAUSED, State.STOPPED, State.FAILED])
    @pytest.mark.parametrize("late", [State.UNASSIGNED, State.FAILED])
    def test_who_has_the_work_says_its_state_again(
        self, worker: Worker, topic: Topic, state: State, late: State
    ) -> None:
        other = Worker(topic).statuses
        for whose in ("a", TASK):
            worker.statuses._put(whose, status(state, HERE, 5))
            topic.append(*encode(whose, status(late, THERE, 4)))
            assert topic.entries[-1] == encode(whose, status(state, HERE, 5))
        for statuses in (worker.statuses, other):
            assert statuses.get("a") == statuses.get(TASK) == status(state, HERE, 5)
        assert len(topic.entries) == 6
        other.close()

    def test_but_what_is_newer_counts(self, worker: Worker, topic: Topic) -> None:
        worker.statuses.put("a", status(State.RUNNING, HERE, 5))
        newer = [status(State.UNASSIGNED, THERE, 5), status(State.RUNNING, THERE, 4), status(State.FAILED, THERE, 6)]
        for each in newer:
            topic.append(*encode("a", each))
            assert worker.statuses.get("a") == each
        worker.statuses.put("a", status(State.UNASSIGNED, HERE, 7))
        topic.append(*encode("a", status(State.FAILED, THERE, 6)))
        assert worker.statuses.get("a") == status(State.FAILED, THERE, 6)
        assert len(topic.entries) == 6


class TestToldAgain:
    """How a task fares is told with its state, and by a worker that was cut off perhaps long after the task moved."""

    FARES = replace(status(State.RUNNING, HERE, 4), health=Health(Verdict.RETRYING, 1), again=True)

    @pytest.mark.parametrize("state", [State.RUNNING, State.UNASSIGNED, State.FAILED])
    def test_it_takes_no_task_from_another_worker(self, topic: Topic, state: State) -> None:
        owner, other = Worker(topic), Worker(topic)
        topic.append(*encode(TASK, status(State.RUNNING, HERE, 4)))
        owner.statuses.put(TASK, status(state, THERE, 5))
        topic.append(*encode(TASK, self.FARES))
        for statuses in (owner.statuses, other.statuses):
            assert statuses.get(TASK) == status(state, THERE, 5)
        owner.statuses.close()
        other.statuses.close()

    def test_who_has_the_task_says_its_state_again(self, worker: Worker, topic: Topic) -> None:
        worker.statuses.put(TASK, status(State.RUNNING, HERE, 5))
        worker.statuses.put(TASK, replace(self.FARES, generation=5))
        topic.append(*encode(TASK, replace(self.FARES, worker_id=THERE)))
        whose, value = decode(*topic.entries[-1])
        assert (whose, value) == (TASK, status(State.RUNNING, HERE, 5))
        assert isinstance(value, Status)
        assert not value.again
        assert len(topic.entries) == 4

    def test_it_is_told_only_where_the_topic_says_the_same(self, worker: Worker, topic: Topic) -> None:
        worker.statuses.put(TASK, self.FARES)
        assert worker.statuses.get(TASK) is None
        topic.append(*encode(TASK, status(State.RUNNING, THERE, 5)))
        worker.statuses.put(TASK, self.FARES)
        assert worker.statuses.get(TASK) == status(State.RUNNING, THERE, 5)
        topic.append(*encode(TASK, status(State.RUNNING, HERE, 4)))
        worker.statuses.put(TASK, self.FARES)
        told = worker.statuses.get(TASK)
        assert told is not None
        assert told.health == self.FARES.health
        assert len(topic.entries) == 3

    def test_it_does_not_go_ahead_of_a_state_that_kafka_does_not_have_yet(self, worker: Worker, topic: Topic) -> None:
        topic.append(*encode(TASK, status(State.RUNNING, HERE, 4)))
        topic.held = []
        worker.statuses.put(TASK, status(State.RUNNING, HERE, 4))
        worker.statuses.put(TASK, self.FARES)
        told = worker.statuses.get(TASK)
        assert told is not None
        assert told.health is None


class TestDeletion:
    def test_removed_is_a_tombstone(self, worker: Worker, topic: Topic) -> None:
        worker.statuses.put(TASK, status(State.RUNNING))
        worker.statuses.remove(TASK)
        assert (worker.statuses.get(TASK), worker.statuses.tasks("a"), list(worker.statuses.connectors())) == (
            None,
            {},
            [],
        )
        assert topic.text[-1] == ("status-task-a-0", None)

    def test_a_connectors_tasks_go_with_it_in_the_topic_too(self, worker: Worker, topic: Topic) -> None:
        worker.statuses.put("a", status(State.RUNNING))
        worker.statuses.put(TASK, status(State.RUNNING))
        worker.statuses.put("b", status(State.RUNNING))
        worker.statuses.remove("a")
        assert list(worker.statuses.connectors()) == ["b"]
        assert topic.text[-2:] == [("status-task-a-0", None), ("status-connector-a", None)]
        assert list(Worker(topic).statuses.connectors()) == ["b"]

    def test_a_connectors_tombstone_takes_its_tasks_for_who_reads_it(self, worker: Worker, topic: Topic) -> None:
        topic.append(*encode("a", status(State.RUNNING, THERE)))
        topic.append(*encode(TASK, status(State.RUNNING, THERE)))
        topic.append(*encode("a", None))
        assert worker.statuses.tasks("a") == {}

    def test_but_not_those_of_its_successor_which_stand_in_another_partition(
        self, worker: Worker, topic: Topic
    ) -> None:
        """Partitions are read in any order: the tombstone is older, though it is read later."""
        topic.append(*encode(TASK, status(State.RUNNING, THERE)))
        tombstone = topic.records[0]._replace(key=b"status-connector-a", value=None, partition=1, timestamp=5)
        topic.records.append(tombstone)
        topic.deliver()
        assert worker.statuses.get(TASK) == status(State.RUNNING, THERE)

    def test_tasks_that_have_lost_their_connector_are_still_found(self, worker: Worker) -> None:
        worker.statuses.put(TaskId("lost", 3), status(State.FAILED))
        assert list(worker.statuses.connectors()) == ["lost"]

    def test_a_connector_of_the_same_name_begins_anew(self, worker: Worker, topic: Topic) -> None:
        topic.delivering = False
        worker.statuses.put("a", status(State.RUNNING))
        worker.statuses.remove("a")
        worker.statuses.put("a", status(State.PAUSED))
        assert worker.statuses.get("a") == status(State.PAUSED)
        for count in range(1, 4):
            kept, topic.records = topic.records, topic.records[:count]
            topic.deliver()
            topic.records = kept
            assert worker.statuses.get("a") == status(State.PAUSED)
        assert list(worker.statuses.connectors()) == ["a"]


class TestRetries:
    def test_what_kafka_did_not_take_is_sent_again(
        self, worker: Worker, topic: Topic, eventually: Callable[..., None]
    ) -> None:
        topic.refusals += [AWAY, KafkaError.NOT_ENOUGH_REPLICAS, KafkaError._QUEUE_FULL, KafkaError._DESTROY]
        worker.statuses.put(TASK, status(State.RUNNING))
        assert worker.statuses.get(TASK) == status(State.RUNNING)
        assert worker.statuses.flush(5)
        assert topic.text[0][0] == "status-task-a-0"
        assert len(worker.writer.writes) == 5

    def test_the_herder_does_not_wait(self, worker: Worker, topic: Topic) -> None:
        topic.held = []
        began = time.monotonic()
        for number in range(100):
            worker.statuses.put(TaskId("a", number), status(State.RUNNING))
        assert time.monotonic() - began < 1
        assert not worker.statuses.flush(0.01)
        assert len(worker.statuses.tasks("a")) == 100

    @pytest.mark.parametrize("newer", [status(State.PAUSED), None])
    def test_not_when_something_newer_was_written(self, worker: Worker, topic: Topic, newer: Status | None) -> None:
        topic.held = []
        worker.statuses.put(TASK, status(State.RUNNING))
        if newer is None:
            worker.statuses.remove(TASK)
        else:
            worker.statuses.put(TASK, newer)
        (_, told), (second, told_second) = topic.held
        topic.held = None
        told(KafkaError(AWAY), -1)
        worker.writer.answer(second, told_second)
        assert worker.statuses.flush(5)
        assert topic.entries == [encode(TASK, newer)]
        assert worker.statuses.get(TASK) == newer

    def test_not_when_the_group_has_moved_on(self, worker: Worker, topic: Topic) -> None:
        topic.held = []
        worker.statuses.put(TASK, status(State.RUNNING, HERE, 1))
        worker.statuses.put("b", status(State.RUNNING, HERE, 2))
        (_, told), (second, told_second) = topic.held
        topic.held = None
        told(KafkaError(AWAY), -1)
        worker.writer.answer(second, told_second)
        assert worker.statuses.flush(5)
        assert [key for key, _ in topic.entries] == [b"status-connector-b"]
        assert worker.statuses.get(TASK) is None

    def test_not_when_it_was_deleted_meanwhile(self, worker: Worker, topic: Topic) -> None:
        topic.append(*encode(TASK, status(State.RUNNING, THERE)))
        topic.held = []
        worker.statuses.put(TASK, status(State.RUNNING))
        topic.append(*encode(TASK, None))
        assert worker.statuses.get(TASK) is None
        (_, told) = topic.held[0]
        topic.held = None
        told(KafkaError(AWAY), -1)
        assert worker.statuses.flush(5)
        assert len(topic.entries) == 2

    def test_not_when_another_worker_knows_better(self, worker: Worker, topic: Topic) -> None:
        topic.held = []
        worker.statuses.put(TASK, status(State.FAILED, HERE, 1))
        topic.append(*encode(TASK, status(State.RUNNING, THERE, 2)))
        (_, told) = topic.held[0]
        topic.held = None
        told(KafkaError(AWAY), -1)
        assert worker.statuses.flush(5)
        assert worker.statuses.get(TASK) == status(State.RUNNING, THERE, 2)

    def test_what_kafka_will_never_take_is_logged(
        self, worker: Worker, topic: Topic, caplog: pytest.LogCaptureFixture
    ) -> None:
        topic.append(*encode(TASK, status(State.PAUSED, THERE)))
        topic.refusals.append(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        with caplog.at_level(logging.ERROR, logger="headgate"):
            worker.statuses.put(TASK, status(State.RUNNING))
        assert "Status of a-0 was not written" in caplog.text
        assert worker.statuses.flush(0)
        assert worker.statuses.get(TASK) == status(State.PAUSED, THERE)

    def test_closing_ends_them(self, topic: Topic) -> None:
        worker = Worker(topic)
        topic.refusals += [AWAY] * 1000
        worker.statuses.put(TASK, status(State.RUNNING))
        began = time.monotonic()
        worker.statuses.close(0.1)
        assert time.monotonic() - began < 2
        assert worker.writer.closed


def test_a_long_trace_is_cut_so_that_kafka_takes_it(worker: Worker, topic: Topic) -> None:
    worker.statuses.put(TASK, Status(State.FAILED, HERE, "begin" + "x" * 2_000_000 + "end"))
    found = worker.statuses.get(TASK)
    assert found is not None
    assert found.trace is not None
    assert found.trace.startswith("begin")
    assert found.trace.endswith("end")
    assert len(topic.entries[0][1] or b"") < 900_000


def test_odd_records_are_logged_and_passed_over(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    topic.append(b"status-connector-a", b"nonsense")
    topic.append(*encode("b", status(State.RUNNING)))
    with caplog.at_level(logging.ERROR, logger="headgate"):
        found = Worker(topic).statuses
    assert list(found.connectors()) == ["b"]
    assert "Record of connect-status (b'status-connector-a') is ignored" in caplog.text


@pytest.mark.kip(558, "active topics of a connector")
class TestTopics:
    def test_a_topic_is_told_once(self, worker: Worker, topic: Topic) -> None:
        worker.statuses.put_topic("a", "orders", 0, 17)
        worker.statuses.put_topic("a", "orders", 1)
        worker.statuses.put_topic("a", "lines", 1)
        assert worker.statuses.topics("a") == ("orders", "lines")
        assert worker.statuses.topics("b") == ()
        assert topic.text[0] == (
            "status-topic-orders:connector-a",
            '{"topic":{"name":"orders","connector":"a","task":0,"discoverTimestamp":17}}',
        )
        assert len(topic.entries) == 2
        assert Worker(topic).statuses.topics("a") == ("orders", "lines")

    def test_a_reset_is_tombstones_and_what_comes_after_counts_again(self, worker: Worker, topic: Topic) -> None:
        other = Worker(topic).statuses
        worker.statuses.put_topic("a", "orders", 0)
        other.remove_topics("a")
        assert worker.statuses.topics("a") == ()
        assert topic.text[-1] == ("status-topic-orders:connector-a", None)
        assert not worker.statuses.has_topic("a", "orders")
        worker.statuses.put_topic("a", "orders", 0)
        assert worker.statuses.has_topic("a", "orders")
        assert other.topics("a") == ("orders",)

    def test_they_are_no_statuses_of_connectors(self, worker: Worker) -> None:
        worker.statuses.put_topic("a", "orders", 0)
        assert list(worker.statuses.connectors()) == []
        worker.statuses.remove("a")
        assert worker.statuses.topics("a") == ("orders",)

    def test_they_are_sent_again_whatever_the_generation(self, worker: Worker, topic: Topic) -> None:
        topic.refusals.append(AWAY)
        worker.statuses.put_topic("a", "orders", 0)
        worker.statuses.put("a", status(State.RUNNING, HERE, 7))
        assert worker.statuses.flush(5)
        assert len(topic.entries) == 2


def test_the_board_writes_the_generation_that_it_is_told(worker: Worker) -> None:
    generation = 3
    board = StatusBoard(worker.statuses, HERE, lambda: generation)
    board.put("a", InstanceEvent.STARTUP, version="1")
    board.put(TASK, InstanceEvent.STARTUP)
    generation = 4
    board.put(TASK, InstanceEvent.SHUTDOWN)
    assert worker.statuses.get("a") == Status(State.RUNNING, HERE, None, "1", 3)
    assert worker.statuses.get(TASK) == Status(State.UNASSIGNED, HERE, None, None, 4)
    assert board.status("a", ConnectorType.SINK).connector.generation == 3


# --- any order of events ----------------------------------------------------------------------------------------------

WRITES = st.lists(
    st.tuples(st.sampled_from(["own", "other", "remove", "other removes", "fail", "answer", "read"]),
              st.sampled_from([State.RUNNING, State.PAUSED, State.FAILED])),
    max_size=30,
)  # fmt: skip


@given(WRITES)
def test_in_the_end_the_topic_decides(steps: list[tuple[str, State]]) -> None:
    topic = Topic()
    topic.delivering, topic.held = False, []
    writer = MemoryWriter(topic)
    statuses = StatusLog(MemoryLog(topic), writer)
    statuses._topic_log.start(statuses._on_record, 1)  # without the thread of retries
    held = topic.held

    def answer(error: int | None) -> None:
        if held:
            entry, told = held.pop(0)
            if error is None:
                told(None, topic.append(*entry))
            else:
                told(KafkaError(error), -1)

    for what, state in steps:
        if what == "own":
            statuses.put(TASK, status(state))
            expected = status(state)
            assert statuses.get(TASK) == expected or state is State.FAILED
        elif what == "remove":
            statuses.remove(TASK)
            assert statuses.get(TASK) is None
        elif what == "other":
            topic.append(*encode(TASK, status(state, THERE, 2)))
        elif what == "other removes":
            topic.append(*encode(TASK, None))
        elif what == "fail":
            answer(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        elif what == "answer":
            answer(None)
        else:
            topic.deliver()
    while held:
        answer(None)
    topic.deliver()
    reader = StatusLog(MemoryLog(topic), MemoryWriter(topic))
    reader._topic_log.start(reader._on_record, 1)
    assert statuses.get(TASK) == reader.get(TASK)
    assert list(statuses.connectors()) == list(reader.connectors())
