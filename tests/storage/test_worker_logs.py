"""The three stores on a broker: what the tests with topics in memory cannot show."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headgate.dev.broker import Broker
from headgate.model import RestartRequest, SessionKey, State, Status, TargetState, TaskId
from headgate.runtime.ports import ConfigsLost, KafkaAway
from headgate.storage import topic_watch
from headgate.storage.internal_topics import InternalTopicError
from headgate.storage.topic_writer import Entry
from headgate.storage.worker_logs import WorkerLogs

pytestmark = pytest.mark.broker

Eventually = Callable[..., None]


@pytest.fixture
def file(broker: Broker, unique: Callable[[str], str]) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": unique("cluster"),
        "client.id": "w",
        "config.storage.topic": unique("configs"),
        "offset.storage.topic": unique("offsets"),
        "status.storage.topic": unique("status"),
        "config.storage.replication.factor": "1",
        "offset.storage.replication.factor": "1",
        "status.storage.replication.factor": "-1",
        "offset.storage.partitions": "5",
        "listeners": "http://127.0.0.1:0",
        "producer.linger.ms": "7",
    }


@pytest.fixture
def logs(file: dict[str, str]) -> Iterator[WorkerLogs]:
    with closing(WorkerLogs(file)) as logs:
        logs.start()
        yield logs


@pytest.fixture
def other(file: dict[str, str], logs: WorkerLogs) -> Iterator[WorkerLogs]:
    with closing(WorkerLogs({**file, "client.id": "x"})) as logs:
        logs.start()
        yield logs


def test_configs_of_one_worker_are_seen_by_the_other(
    logs: WorkerLogs, other: WorkerLogs, eventually: Eventually
) -> None:
    began = time.monotonic()
    logs.configs.put_connector("a", {"name": "a"}, TargetState.PAUSED)
    logs.configs.put_tasks("a", [{"t": str(number)} for number in range(50)])
    logs.configs.put_restart_request(RestartRequest("a", True, False))
    logs.configs.put_task_count("a", 50)
    logs.configs.put_session_key(SessionKey(b"k" * 32, "HmacSHA256", 1))
    logs.configs.put_logger_level("root", "debug")
    assert time.monotonic() - began < 5
    state = logs.configs.state()
    assert len(state.view.require("a").tasks) == 50
    assert other.configs.refresh(10) == state
    other.configs.put_target_state("a", TargetState.STARTED)
    eventually(lambda: logs.configs.view().require("a").target is TargetState.STARTED)
    logs.configs.remove_connector("a")
    eventually(lambda: logs.configs.state().offset == other.configs.state().offset == 60)
    assert other.configs.view().connectors == {}


def test_a_worker_that_comes_later_knows_all_of_it(file: dict[str, str], logs: WorkerLogs) -> None:
    task = TaskId("a", 0)
    logs.configs.put_connector("a", {"name": "a"})
    logs.configs.put_tasks("a", [{"t": "0"}])
    logs.statuses.put("a", Status(State.RUNNING, "w:1", None, "1.0", 4))
    logs.statuses.put(task, Status(State.FAILED, "w:1", "boom", None, 4))
    logs.statuses.put_topic("a", "orders", 0)
    assert logs.statuses.flush(10)
    logs.offsets.put("a", [({"f": number}, {"p": number}) for number in range(20)])
    logs.offsets.put("a", [({"f": number}, None) for number in range(10)])
    with closing(WorkerLogs(file)) as late:
        late.start()
        assert late.configs.state() == logs.configs.state()
        assert late.statuses.get("a") == logs.statuses.get("a")
        assert late.statuses.get(task) == Status(State.FAILED, "w:1", "boom", None, 4)
        assert late.statuses.topics("a") == ("orders",)
        assert sorted(offset["p"] for _, offset in late.offsets.all("a")) == list(range(10, 20))


def test_statuses_are_quick_and_their_tombstones_reach_the_topic(
    logs: WorkerLogs, other: WorkerLogs, eventually: Eventually
) -> None:
    began = time.monotonic()
    for number in range(500):
        logs.statuses.put(TaskId("a", number), Status(State.RUNNING, "w:1"))
    assert time.monotonic() - began < 2
    assert logs.statuses.flush(20)
    eventually(lambda: len(other.statuses.tasks("a")) == 500)
    logs.statuses.put("a", Status(State.RUNNING, "w:1"))
    logs.statuses.remove("a")
    assert logs.statuses.flush(20)
    eventually(lambda: list(other.statuses.connectors()) == [])
    assert list(logs.statuses.connectors()) == []


def test_internal_clients_have_apaches_names(file: dict[str, str], broker: Broker) -> None:
    with closing(WorkerLogs(file)) as logs:
        assert logs._clients("configs")["client.id"] == f"{file['group.id']}-w-configs"
        unnamed = WorkerLogs({key: value for key, value in file.items() if key != "client.id"})
        assert unnamed._clients("statuses")["client.id"] == f"{file['group.id']}-statuses"


def test_a_wrong_topic_stops_the_start(file: dict[str, str], logs: WorkerLogs) -> None:
    with pytest.raises(InternalTopicError, match=r"supplied via the 'config.storage.topic' property"):
        WorkerLogs({**file, "config.storage.topic": file["offset.storage.topic"]}).start()


@pytest.mark.kip(618, "connectors may have offsets topics of their own")
def test_a_connector_with_an_offsets_topic_of_its_own(
    logs: WorkerLogs, file: dict[str, str], unique: Callable[[str], str]
) -> None:
    logs.offsets.put("a", [({"f": 1}, {"p": 1})])
    name = unique("own-offsets")
    merged = logs.connector_offsets(name, {"client.id": "connector"})
    assert merged is not None
    assert merged.get("a", [{"f": 1}]) == [{"p": 1}]
    merged.put("a", [({"f": 1}, {"p": 2}), ({"f": 2}, {"p": 3})])
    assert merged.all("a") == [({"f": 1}, {"p": 2}), ({"f": 2}, {"p": 3})]
    merged.put("a", [({"f": 1}, None)])
    assert merged.all("a") == [({"f": 2}, {"p": 3})]
    merged.close()
    assert logs.offsets.get("a", [{"f": 1}]) == [None]
    assert logs.connector_offsets(file["offset.storage.topic"], {}) is None


def control_records(broker: Broker, topic: str) -> int:
    """How many places in a topic that was not compacted yet have no record of anybody's."""
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.partition.eof": True, "log_level": 0}
    consumer = Consumer({**settings, "isolation.level": "read_uncommitted", "auto.offset.reset": "earliest"})
    partitions = [TopicPartition(topic, number) for number in consumer.list_topics(topic, 10).topics[topic].partitions]
    consumer.assign(partitions)
    places = sum(consumer.get_watermark_offsets(each, 10)[1] for each in partitions)
    ends = 0
    while ends < len(partitions):
        (message,) = consumer.consume(1, 20)
        ends, places = (ends + 1, places) if message.error() else (ends, places - 1)
    consumer.close()
    return places


@pytest.mark.kip(
    875, "offsets are reset transactionally in the connector's topic, in the worker's without a transaction"
)
def test_offsets_are_reset_in_both_topics_and_nobody_else_with_the_id_can_write(
    broker: Broker, file: dict[str, str], unique: Callable[[str], str]
) -> None:
    own, shared, id_ = unique("own-offsets"), file["offset.storage.topic"], unique("id")
    with closing(WorkerLogs({**file, "exactly.once.source.support": "enabled"})) as logs:
        logs.start()
        logs.offsets.put("a", [({"f": 1}, {"p": 1}), ({"f": 2}, {"p": 2})])
        before = Transactions(broker, unique("elsewhere"), id_)
        before.begin([(b"late", b"{}")])
        with logs.open_offsets(own, {}, id_) as store:
            store.put("a", [({"f": 2}, {"p": 3}), ({"f": 3}, {"p": 4})])
            known = store.all("a")
            assert sorted(known, key=str) == [({"f": 1}, {"p": 1}), ({"f": 2}, {"p": 3}), ({"f": 3}, {"p": 4})]
            store.put("a", [(partition, None) for partition, _ in known])
            assert store.all("a") == logs.offsets.all("a") == []
        with pytest.raises(KafkaException) as fenced:
            before.commit()
        assert fenced.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    assert control_records(broker, own) >= 2, "no transactions"
    assert control_records(broker, shared) == 0
    with closing(WorkerLogs(file)) as late:
        late.start()
        with late.open_offsets(own, {}) as store:
            assert store.all("a") == []


class Transactions:
    """What the leader's writer will be like."""

    def __init__(self, broker: Broker, topic: str, id_: str) -> None:
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": id_, "log_level": 0})
        self._producer.init_transactions(30)

    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        self.begin(entries)
        self.commit(timeout)

    def begin(self, entries: Sequence[Entry]) -> None:
        self._producer.begin_transaction()
        for key, value in entries:
            self._producer.produce(self._topic, value, key)
        self._producer.flush(10)

    def commit(self, timeout: float = 10.0) -> None:
        self._producer.commit_transaction(timeout)

    def abort(self, entries: Sequence[Entry]) -> None:
        self.begin(entries)
        self._producer.abort_transaction(10)

    def close(self) -> None:
        pass


@pytest.mark.kip(618, "the leader writes to the config topic with a transactional producer")
@pytest.mark.parametrize("support", ["preparing", "enabled"])
def test_a_leader_with_transactions(broker: Broker, file: dict[str, str], support: str) -> None:
    file = {**file, "exactly.once.source.support": support}
    with closing(WorkerLogs(file)) as logs:
        logs.start()
        leader = Transactions(broker, file["config.storage.topic"], f"connect-cluster-{file['group.id']}")
        logs.configs.claim(leader)
        began = time.monotonic()
        logs.configs.put_connector("a", {"name": "a"}, TargetState.STARTED)
        logs.configs.put_tasks("a", [{"t": "0"}, {"t": "1"}])
        logs.configs.put_target_state("a", TargetState.PAUSED)
        assert time.monotonic() - began < 10
        view = logs.configs.view().require("a")
        assert (len(view.tasks), view.target) == (2, TargetState.PAUSED)
        leader.abort([(b"connector-ghost", b'{"properties":{}}')])
        committed = logs.configs.refresh(10)
        assert (committed.view.get("ghost") is None) is (support == "enabled")
        with closing(WorkerLogs(file)) as late:
            late.start()
            assert late.configs.state() == committed
            assert late.configs.state().offset == logs.configs.state().offset


def test_no_group_remembers_what_a_worker_read(broker: Broker, file: dict[str, str], logs: WorkerLogs) -> None:
    logs.configs.put_connector("a", {})
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": file["group.id"], "log_level": 0})
    found: list[Any] = consumer.committed([TopicPartition(file["config.storage.topic"], 0)], 10)
    assert found[0].offset < 0
    consumer.close()


def test_a_broker_that_goes_and_comes_back(file: dict[str, str], tmp_path: Path) -> None:
    with (
        Broker(tmp_path, heap="256m") as own,
        closing(WorkerLogs({**file, "bootstrap.servers": own.bootstrap})) as logs,
    ):
        logs.start()
        logs.configs.put_connector("a", {"v": "1"})
        logs.statuses.put(TaskId("a", 0), Status(State.RUNNING, "w:1"))
        own.kill()
        began = time.monotonic()
        for number in range(10):
            logs.statuses.put(TaskId("a", number), Status(State.FAILED, "w:1", "boom"))
        assert time.monotonic() - began < 1  # the herder goes on
        assert not logs.statuses.flush(6)  # longer than the writer tries: they have come back, and wait
        assert logs.configs.view().require("a").config == {"v": "1"}
        for topic in (None, "own-offsets"):
            began = time.monotonic()
            with pytest.raises(KafkaAway, match=own.bootstrap), logs.open_offsets(topic, {}, at_once=True) as offsets:
                offsets.all("a")
            assert time.monotonic() - began < 6
        own.restart()
        assert logs.statuses.flush(60)
        logs.configs.put_connector("a", {"v": "2"})
        logs.offsets.put("a", [({"f": 1}, {"p": 1})])
        with closing(WorkerLogs({**file, "bootstrap.servers": own.bootstrap})) as late:
            late.start()
            assert late.configs.view().require("a").config == {"v": "2"}
            assert [status.state for status in late.statuses.tasks("a").values()] == [State.FAILED] * 10
            assert late.offsets.all("a") == [({"f": 1}, {"p": 1})]


def test_topics_that_are_deleted_and_made_anew_are_noticed_and_not_made_by_whoever_writes(
    broker: Broker, file: dict[str, str], monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(topic_watch, "EVERY_S", 0.2)
    configs, offsets, status = names = [file[f"{each}.storage.topic"] for each in ("config", "offset", "status")]
    admin, running = AdminClient({"bootstrap.servers": broker.bootstrap}), Status(State.RUNNING, "w:1")
    with closing(WorkerLogs(file)) as logs, closing(WorkerLogs(file)) as late:
        logs.start()
        logs.configs.put_connector("a", {"name": "a"})
        logs.statuses.put("a", running)
        logs.offsets.put("a", [({"f": 1}, {"p": 1})])
        assert logs.statuses.flush(10)
        assert logs.offsets.all("a") == [({"f": 1}, {"p": 1})], "known is what was read, not what was written"
        assert logs.trouble() is None
        for deleted in admin.delete_topics(names).values():
            deleted.result(30)
        eventually(lambda: all(f"Topic {name} of" in (logs.trouble() or "") for name in names))
        logs.statuses.put(TaskId("a", 0), running)
        logs.offsets.put_soon("a", [({"f": 2}, {"p": 2})])
        with pytest.raises(ConfigsLost, match="nothing can be changed"):
            logs.configs.put_connector("b", {"name": "b"})
        assert not logs.statuses.flush(2), "it is sent again and again"
        made = admin.create_topics([NewTopic(name, 1, 1, config={"cleanup.policy": "compact"}) for name in names])
        for each in made.values():
            each.result(30)  # it fails if somebody has made one by then
        eventually(lambda: "made anew" in (logs.trouble() or "") and offsets not in (logs.trouble() or ""))
        assert status not in (logs.trouble() or "")
        assert logs.statuses.flush(20)
        logs.offsets.put("a", [({"f": 2}, {"p": 3})])
        assert sorted(offset["p"] for _, offset in logs.offsets.all("a")) == [1, 3], "what was known still is"
        late.start()
        eventually(lambda: (late.statuses.get("a"), late.statuses.get(TaskId("a", 0))) == (running, running))
        assert late.offsets.all("a") == [({"f": 2}, {"p": 3})]
        assert list(logs.configs.view().connectors) == ["a"]
        assert configs in (logs.trouble() or "")
