"""GroupConsumer: what needs no tasks. The rest of it is in end_to_end/test_own_offsets.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Native
from confluent_kafka.admin import AdminClient, NewTopic

from headgate.dev.broker import Broker
from headgate.kafka import consumer as module
from headgate.kafka.consumer import GroupConsumer
from headgate.model import PartitionStart, TopicPartition

WHERE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


class Message:
    def __init__(self, offset: int, error: KafkaError | None = None) -> None:
        self._offset, self._error = offset, error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def error(self) -> KafkaError | None:
        return self._error


class Client:
    """Stands in for confluent_kafka's. A group that has offset 5 of a topic that has 3 to 9, and so few calls."""

    def __init__(self) -> None:
        self.offset = 5
        self.errors: list[int] = []
        """What it has against the next questions."""
        self.asked = 0
        self.calls: list[tuple[str, list[Any]]] = []
        self.callbacks: list[Any] = []
        """What happens within the next call that consumes."""
        self.messages: list[Message] = []
        self.seek_errors: list[int] = []
        self.topics: list[str] = []
        self.refusals: dict[int, KafkaError] = {}
        """By partition: what it has against a commit."""

    def committed(self, natives: list[Native], timeout: float) -> list[Native]:
        self._ask()
        return [Native(each.topic, each.partition, self.offset) for each in natives]

    def get_watermark_offsets(self, native: Native, timeout: float = 0, cached: bool = False) -> tuple[int, int]:
        if not cached:
            self._ask()
        return 3, 9

    def offsets_for_times(self, natives: list[Native], timeout: float) -> list[Any]:
        self._ask()
        return [SimpleNamespace(topic=each.topic, partition=each.partition, offset=9, error=None) for each in natives]

    def commit(self, offsets: list[Native], asynchronous: bool) -> list[Any]:
        return [
            SimpleNamespace(topic=each.topic, partition=each.partition, error=self.refusals.get(each.partition))
            for each in offsets
        ]

    def _ask(self) -> None:
        self.asked += 1
        if self.errors:
            raise KafkaException(KafkaError(self.errors.pop(0)))

    def consume(self, most: int, seconds: float) -> list[Message]:
        # The real one waits that long until it has so many: only of one it is told as soon as it is there.
        assert seconds == 0 or most == 1, "a single record would wait for others"
        while self.callbacks:
            self.callbacks.pop(0)()
        taken, self.messages = self.messages[:most], self.messages[most:]
        return taken

    def seek(self, native: Native) -> None:
        if self.seek_errors:
            raise KafkaException(KafkaError(self.seek_errors.pop(0)))
        self.calls.append(("seek", [(native.partition, native.offset)]))

    def list_topics(self, timeout: float) -> SimpleNamespace:
        self._ask()
        return SimpleNamespace(topics=dict.fromkeys(self.topics))

    def subscribe(self, topics: list[str], **_: Any) -> None:
        self.calls.append(("subscribe", topics))

    def unsubscribe(self) -> None:
        self.calls.append(("unsubscribe", []))

    def assign(self, natives: list[Native]) -> None:
        self.calls.append(("assign", [(each.partition, each.offset) for each in natives]))

    def unassign(self) -> None:
        self.calls.append(("unassign", []))

    def pause(self, natives: list[Native]) -> None:
        self.calls.append(("pause", sorted(each.partition for each in natives)))

    def resume(self, natives: list[Native]) -> None:
        self.calls.append(("resume", sorted(each.partition for each in natives)))

    def close(self) -> None:
        self.calls.append(("close", []))


class Told:
    """Fits Rebalances. Remembers; begins where the group does, or fails."""

    def __init__(self) -> None:
        self.starts: list[Mapping[TopicPartition, PartitionStart]] = []
        self.gone: list[tuple[str, list[TopicPartition]]] = []
        self.own: dict[TopicPartition, int] = {}
        self.error: Exception | None = None

    def on_assigned(self, starts: Mapping[TopicPartition, PartitionStart]) -> Mapping[TopicPartition, int]:
        self.starts.append(starts)
        self._fail()
        return {where: self.own.get(where, start.offset) for where, start in starts.items()}

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.gone.append(("revoked", list(partitions)))
        self._fail()

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self.gone.append(("lost", list(partitions)))
        self._fail()

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


class Bench:
    def __init__(self, **settings: str) -> None:
        self.client, self.told = Client(), Told()
        self.consumer = GroupConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", **settings}, self.told)
        self._real = self.consumer._consumer
        client: Any = self.client
        self.consumer._consumer = client

    def assign(self, *partitions: int) -> None:
        natives = [Native("t", each) for each in partitions]
        self.client.callbacks.append(lambda: self.consumer._on_assign(None, natives))

    def revoke(self, *partitions: int) -> None:
        natives = [Native("t", each) for each in partitions]
        self.client.callbacks.append(lambda: self.consumer._on_revoke(None, natives))

    def lose(self, *partitions: int) -> None:
        natives = [Native("t", each) for each in partitions]
        self.client.callbacks.append(lambda: self.consumer._on_lost(None, natives))

    def close(self) -> None:
        self._real.close()


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """With a broker that is never asked."""
    monkeypatch.setattr(module, "_PATIENT", replace(module._PATIENT, pause=lambda _: None))
    monkeypatch.setattr(module, "_SEEK_S", 0)
    made = Bench()
    yield made
    made.close()


# --- a broker that is not yet what it will be -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART],
)
def test_a_broker_that_is_not_yet_the_leader_is_asked_again(bench: Bench, code: int) -> None:
    """As for a topic that was made a moment ago."""
    bench.client.errors = [code, code]
    bench.assign(0)
    assert bench.consumer.fetch(1, 0) is None
    assert bench.client.asked == 4
    assert bench.told.starts == [{WHERE: PartitionStart(5, True, 3, 9)}]


@pytest.mark.parametrize(
    ("code", "tries"), [(KafkaError.TOPIC_AUTHORIZATION_FAILED, 1), (KafkaError.NOT_LEADER_FOR_PARTITION, 6)]
)
def test_what_does_not_pass_is_raised(bench: Bench, code: int, tries: int) -> None:
    bench.client.errors = [code] * 9
    bench.assign(0)
    with pytest.raises(KafkaException):
        bench.consumer.fetch(1, 0)
    assert bench.client.asked == tries
    assert bench.told.starts == []


def test_a_partition_that_was_assigned_just_now_is_sought_again(bench: Bench) -> None:
    bench.client.seek_errors = [KafkaError._STATE, KafkaError._STATE]
    bench.consumer.seek({WHERE: 7})
    assert bench.client.calls == [("seek", [(0, 7)])]
    bench.client.seek_errors = [KafkaError._UNKNOWN_PARTITION]
    with pytest.raises(KafkaException):
        bench.consumer.seek({WHERE: 7})


def test_what_the_broker_did_not_take_of_a_commit_is_told_although_it_took_the_rest(bench: Bench) -> None:
    offsets = {WHERE: 7, OTHER: 8}
    bench.consumer.commit(offsets)
    bench.client.refusals = {1: KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)}
    with pytest.raises(KafkaException, match=r"t-1: .*Unknown topic or partition"):
        bench.consumer.commit(offsets)


# --- partitions that come and go --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reset", "committed", "start"),
    [
        ("earliest", 5, PartitionStart(5, True, 3, 9)),
        ("earliest", 9, PartitionStart(9, True, 3, 9)),
        ("earliest", -1001, PartitionStart(3, False, 3, 9)),
        ("latest", -1001, PartitionStart(9, False, 3, 9)),
        ("earliest", 2, PartitionStart(3, False, 3, 9)),
        ("latest", 10, PartitionStart(9, False, 3, 9)),
    ],
)
def test_where_the_group_begins(reset: str, committed: int, start: PartitionStart) -> None:
    bench = Bench(**{"auto.offset.reset": reset})
    bench.client.offset = committed
    bench.assign(0)
    bench.consumer.fetch(1, 0)
    assert bench.told.starts == [{WHERE: start}]
    assert bench.client.calls == [("assign", [(0, start.offset)])]
    bench.close()


def test_reading_begins_where_the_listener_says(bench: Bench) -> None:
    bench.told.own = {OTHER: 8}
    bench.assign(0, 1)
    bench.consumer.fetch(1, 0)
    assert bench.client.calls == [("assign", [(0, 5), (1, 8)])]


def test_what_comes_while_all_is_paused_is_paused_too(bench: Bench) -> None:
    bench.consumer.pause()
    bench.assign(0, 1)
    bench.consumer.keep_alive()
    assert bench.client.calls == [("assign", [(0, 5), (1, 5)]), ("pause", [0, 1])]
    bench.consumer.resume(frozenset({OTHER}))
    assert bench.client.calls[-1] == ("resume", [0])


def test_what_a_listener_raises_comes_out_of_the_call_and_nothing_is_assigned(bench: Bench) -> None:
    bench.told.error = ZeroDivisionError()
    bench.assign(0)
    with pytest.raises(ZeroDivisionError):
        bench.consumer.fetch(1, 0)
    assert bench.client.calls == []
    bench.revoke(0)
    bench.consumer.fetch(1, 0)
    assert bench.told.gone == []  # it never had it


@pytest.mark.parametrize("how", ["revoked", "lost"])
def test_partitions_that_go_are_gone_whatever_the_listener_raises(bench: Bench, how: str) -> None:
    bench.assign(0)
    bench.consumer.fetch(1, 0)
    bench.told.error = ZeroDivisionError()
    bench.revoke(0) if how == "revoked" else bench.lose(0)
    with pytest.raises(ZeroDivisionError):
        bench.consumer.keep_alive()
    assert bench.told.gone == [(how, [WHERE])]
    assert bench.client.calls[1:] == [("resume", [0]), ("unassign", [])]


def test_who_leaves_the_group_is_not_told_of_what_it_gave_up(bench: Bench) -> None:
    bench.assign(0)
    bench.consumer.fetch(1, 0)
    bench.revoke(0)
    bench.consumer.close()
    assert bench.told.gone == []


def test_who_closes_has_answered_every_rebalance_before_and_asks_nothing_for_it(bench: Bench) -> None:
    bench.assign(0)
    bench.revoke(0)
    bench.client.messages = [Message(1), Message(2)]
    bench.consumer.close()
    assert [what for what, _ in bench.client.calls] == ["unsubscribe", "assign", "resume", "unassign", "close"]
    assert bench.client.asked == 0
    assert bench.told.starts == []


def test_a_rebalance_that_cannot_be_answered_does_not_keep_it_open(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise KafkaException(KafkaError(KafkaError._STATE))

    monkeypatch.setattr(bench.client, "unassign", fail)
    bench.revoke(0)
    with pytest.raises(KafkaException):
        bench.consumer.close()
    assert bench.client.calls[-1] == ("close", [])


@pytest.mark.broker
@pytest.mark.parametrize(
    ("strategy", "another"),
    # A cooperative member that closes while it waits to be let in says nothing to the group, whatever it is told: its
    # place is kept until its session ends (librdkafka 2.16).
    [("range", False), ("range", True), ("cooperative-sticky", False)],
)
def test_who_closes_before_it_has_heard_of_its_partitions_is_gone_soon(
    broker: Broker, unique: Callable[[str], str], eventually: Callable[..., None], strategy: str, another: bool
) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    topic, told = unique("unheard"), Told()
    admin.create_topics([NewTopic(topic, 4)])[topic].result()

    def state() -> Any:
        try:
            return admin.describe_consumer_groups([topic])[topic].result().state
        except KafkaException:  # the broker's very first group: its coordinator is still getting ready
            return None

    def subscribed() -> GroupConsumer:
        config = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "partition.assignment.strategy": strategy}
        consumer = GroupConsumer(config, told)
        consumer.subscribe([topic], None)
        return consumer

    consumers = [subscribed()]
    eventually(lambda: state() is ConsumerGroupState.STABLE)
    if another:  # it waits for the first one, which nobody tells that it should join again
        consumers.append(subscribed())
        eventually(lambda: state() is ConsumerGroupState.PREPARING_REBALANCING)
    began = time.monotonic()
    for consumer in consumers:
        consumer.close()
    assert time.monotonic() - began < 8, "it asked for offsets that nobody needs"
    assert told.starts == []
    eventually(lambda: state() is ConsumerGroupState.EMPTY)


# --- how far behind ---------------------------------------------------------------------------------------------------


def test_a_broker_that_has_nothing_new_is_asked_once_in_a_while(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    asked = []
    for now in (1000.0, 1005.0, 1029.0, 1031.0, 1035.0):  # noqa: B007
        assert bench.consumer.lag({WHERE: 9}, ask=True) == 0
        asked.append(bench.client.asked)
    assert asked == [1, 1, 1, 2, 2]


def test_who_gets_no_answer_tells_of_it_as_long_as_it_lasts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    monkeypatch.setattr(bench.consumer._complaints, "_clock", lambda: now)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    assert bench.consumer.lag({WHERE: 9}, ask=True) == 0
    for now in range(10, 130, 5):  # noqa: B007
        bench.client.errors = [KafkaError._ALL_BROKERS_DOWN]
        assert bench.consumer.lag({WHERE: 8}, ask=True) is None
        assert bench.consumer.trouble() == "Local: All broker connections are down"
    now = 130
    assert bench.consumer.lag({WHERE: 8}, ask=True) == 1
    assert bench.consumer.trouble() is None
    assert caplog.text == "", "the log has what the client itself complains of"


def lagging(bench: Bench) -> None:
    assert bench.consumer.lag({WHERE: 8}, ask=True) == 1


def complaining(bench: Bench) -> None:
    bench.consumer._on_error(KafkaError(KafkaError._TRANSPORT, "the broker is away"))
    assert bench.consumer.lag({WHERE: 9}, ask=True) == 0


def paused(bench: Bench) -> None:
    bench.consumer.pause()
    assert bench.consumer.lag({WHERE: 9}, ask=True) == 0


def partly_paused(bench: Bench) -> None:
    bench.consumer.pause([WHERE])
    bench.consumer.resume(frozenset({WHERE}))
    assert bench.consumer.lag({WHERE: 9}, ask=True) == 0


@pytest.mark.parametrize("doubtful", [lagging, complaining, paused, partly_paused])
def test_what_is_known_of_the_ends_does_not_count_where_it_may_be_old(
    bench: Bench, doubtful: Callable[[Bench], None]
) -> None:
    bench.assign(0)
    bench.consumer.fetch(1, 0)
    assert bench.consumer.lag({WHERE: 9}, ask=True) == 0
    before = bench.client.asked
    doubtful(bench)
    assert bench.client.asked == before + 1
    bench.consumer.resume()
    assert bench.consumer.lag({WHERE: 9}, ask=True) == 0
    assert bench.client.asked == before + 1, "and soon it is fresh again"


# --- topics by pattern ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"\p{Alpha}+", ["ab", "b"]),
        ("(?<x>[ab])\\k<x>?|(?<y>a)b", ["ab", "b"]),
        ("a*+b", ["ab", "b"]),
        ("a*+ab", None),
        ("[a-z&&[^b]]b", ["ab"]),
        ("b", ["b"]),
        ("__.*", ["__mine"]),
    ],
)
def test_patterns_are_javas_for_whole_names_but_not_for_the_brokers_own(
    bench: Bench, pattern: str, found: list[str] | None
) -> None:
    bench.client.topics = ["b", "ab", "ab-1", "__mine", "__consumer_offsets", "__transaction_state"]
    bench.consumer.subscribe([], pattern)
    assert bench.client.calls == ([] if found is None else [("subscribe", found)])


def test_topics_that_match_come_and_go(bench: Bench) -> None:
    bench.consumer._refresh_s = 0
    bench.consumer.subscribe([], "a.*")
    for topics in (["a1"], ["a1", "b"], ["a1", "a2"], ["a2"], ["b"], ["b", "a3"]):
        bench.client.topics = topics
        bench.consumer.fetch(1, 0)
    subscribed = [["a1"], ["a1", "a2"], ["a2"]]
    expected = [*(("subscribe", each) for each in subscribed), ("unsubscribe", []), ("subscribe", ["a3"])]
    assert bench.client.calls == expected


def test_a_broker_that_does_not_list_its_topics_is_asked_again_soon(bench: Bench) -> None:
    bench.client.errors = [KafkaError._TRANSPORT]
    before = time.monotonic()
    bench.consumer.subscribe([], "a.*")
    assert bench.consumer._next_refresh - before < 60  # metadata.max.age.ms are five minutes


# --- messages ---------------------------------------------------------------------------------------------------------


def test_a_message_that_was_on_its_way_when_its_partition_was_paused_comes_again(bench: Bench) -> None:
    bench.client.messages = [Message(7)]
    bench.consumer.keep_alive()
    assert bench.client.calls == [("seek", [(0, 7)])]


def test_errors_among_the_messages_are_left_out_unless_they_are_fatal(bench: Bench) -> None:
    bench.client.messages = [Message(7, KafkaError(KafkaError._ALL_BROKERS_DOWN))]
    assert bench.consumer.fetch(9, 0) is None
    bench.client.messages = [Message(7, KafkaError(KafkaError._FATAL, "fenced", fatal=True))]
    with pytest.raises(KafkaException, match="fenced"):
        bench.consumer.fetch(9, 0)


def test_who_waits_is_told_of_the_first_record_and_gets_the_others_with_it(bench: Bench) -> None:
    arrived = [Message(5), Message(6), Message(7)]
    consume = bench.client.consume

    def later(most: int, seconds: float) -> list[Message]:
        if seconds:  # they come while it waits
            bench.client.messages = list(arrived)
        return consume(most, seconds)

    bench.client.consume = later  # type: ignore[method-assign]
    fetched = bench.consumer.fetch(10, 0.5)
    assert fetched is not None
    assert len(fetched) == 3


def test_a_commit_without_an_answer_is_told_of_while_it_waits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str | None] = []

    def commit(**_: Any) -> list[Any]:
        for late in (0, module._HEARD_S + 1):
            now = time.monotonic() + late
            monkeypatch.setattr(time, "monotonic", lambda now=now: now)
            told.append(bench.consumer.trouble())
        return []

    monkeypatch.setattr(bench.client, "commit", commit)
    bench.consumer.commit({TopicPartition("t", 0): 5})
    assert told == [None, "127.0.0.1:1 has not answered a commit of offsets"]
    assert bench.consumer.trouble() is None
