"""Sender: a thread only while it is needed, futures that tell, room that is waited for."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from headgate.dev.broker import Broker
from headgate.kafka import sender as module
from headgate.kafka.sender import Sender
from headgate.log import about, name_of
from headgate.model import TaskId

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


class Producer:
    """Stands in for confluent_kafka's: takes two records at a time, answers when it is told to."""

    def __init__(self, config: dict[str, Any], logger: object) -> None:
        self.config = config
        self.waiting: list[tuple[str, Callable[[KafkaError | None, Any], None]]] = []
        self.answers: list[int] = []
        """Codes for what waits; 0 is success."""
        self.fatal: KafkaError | None = None
        self.purged = False
        self.told = threading.Condition()
        self.sent: list[str] = []
        self.refuses: int | None = None

    def produce(self, topic: str, value: Any, key: Any, *, on_delivery: Any, timestamp: int, headers: Any) -> None:
        if self.refuses is not None:
            raise KafkaException(KafkaError(self.refuses))
        if len(self.waiting) == 2:
            raise BufferError("full")
        self.sent.append(topic)
        self.waiting.append((topic, on_delivery))

    def poll(self, seconds: float) -> None:
        with self.told:
            self.told.wait_for(lambda: self.answers or self.fatal or self.purged, seconds)
            if self.fatal is not None:
                fatal, self.fatal = self.fatal, None
                raise KafkaException(fatal)
            codes = [KafkaError._PURGE_QUEUE] * len(self.waiting) if self.purged else self.answers
            self.answers = []
        for code in codes:
            _, report = self.waiting.pop(0)
            report(KafkaError(code) if code else None, self)

    def offset(self) -> int:
        return 7

    def answer(self, *codes: int) -> None:
        with self.told:
            self.answers += codes
            self.told.notify_all()

    def fail(self, error: KafkaError) -> None:
        with self.told:
            self.fatal = error
            self.told.notify_all()

    def purge(self, blocking: bool) -> None:
        with self.told:
            self.purged = True
            self.told.notify_all()


_numbers = itertools.count()


class Made:
    def __init__(self, may_go_on: Callable[[], bool] = lambda: True) -> None:
        self.name = f"sending-{next(_numbers)}"  # threads of others may be about to end
        self.sender = Sender(NOWHERE, self.name, may_go_on)
        self.producer: Producer = self.sender._producer  # type: ignore[assignment]

    def listeners(self) -> list[threading.Thread]:
        return [each for each in threading.enumerate() if each.name == self.name]


@pytest.fixture
def on_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Producer", Producer)


@pytest.fixture
def made(on_paper: None) -> Iterator[Made]:
    made = Made()
    yield made
    made.sender.close()


def test_it_has_a_thread_only_while_something_is_unanswered(made: Made, eventually: Callable[..., None]) -> None:
    assert made.listeners() == []
    first, second = made.sender.send("a", b"1"), made.sender.send("b", b"2")
    assert len(made.listeners()) == 1
    made.producer.answer(0)
    assert first.result(5) == 7
    assert not second.done()
    assert len(made.listeners()) == 1
    made.producer.answer(0)
    assert second.result(5) == 7
    eventually(lambda: made.listeners() == [])
    third = made.sender.send("c", b"3")
    assert len(made.listeners()) == 1
    made.producer.answer(0)
    assert third.result(5) == 7


def test_what_kafka_refuses_is_told(made: Made) -> None:
    first, second = made.sender.send("a", b"1"), made.sender.send("b", b"2")
    made.producer.answer(KafkaError.MSG_SIZE_TOO_LARGE, 0)
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        first.result(5)
    assert second.result(5) == 7
    assert made.sender.failure is None


def test_what_is_not_even_sent_is_told_the_same_way(made: Made) -> None:
    made.producer.refuses = KafkaError.MSG_SIZE_TOO_LARGE
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        made.sender.send("a", b"1").result(0)
    assert made.sender.flush(0)


def test_a_future_cannot_be_called_back(made: Made) -> None:
    done = made.sender.send("a", b"1")
    assert not done.cancel()
    made.producer.answer(0)
    assert done.result(5) == 7


def test_flush_waits_for_all(made: Made) -> None:
    assert made.sender.flush(0)
    made.sender.send("a", b"1")
    assert not made.sender.flush(0.01)
    threading.Timer(0.1, lambda: made.producer.answer(0)).start()
    assert made.sender.flush(5)


def test_callbacks_have_been_called_when_flush_returns(made: Made) -> None:
    told: list[Any] = []

    def slowly(done: Future[Any]) -> None:
        time.sleep(0.1)
        told.append(done.result())

    made.sender.send("a", b"1").add_done_callback(slowly)
    made.producer.answer(0)
    assert made.sender.flush(5)
    assert told == [7]


# --- room -------------------------------------------------------------------------------------------------------------


def test_room_is_waited_for_and_made_by_answers(made: Made) -> None:
    for topic in ("a", "b"):
        made.sender.send(topic, b"1")
    threading.Timer(0.1, lambda: made.producer.answer(0)).start()
    began = time.monotonic()
    made.sender.send("c", b"1")
    assert (made.producer.sent, 0.05 < time.monotonic() - began < 0.4) == (["a", "b", "c"], True)


@pytest.mark.parametrize("room", [0.0, 0.1])
def test_without_room_in_time_it_is_not_sent(made: Made, room: float) -> None:
    sent = [made.sender.send(topic, b"1") for topic in ("a", "b")]
    with pytest.raises(BufferError):
        made.sender.send("c", b"1", room_s=room)
    made.producer.answer(0, 0)
    assert made.sender.flush(5)
    assert [each.result() for each in sent] == [7, 7]


def test_who_may_not_go_on_does_not_wait(on_paper: None) -> None:
    made = Made(lambda: False)
    for topic in ("a", "b"):
        made.sender.send(topic, b"1")
    with pytest.raises(BufferError):
        made.sender.send("c", b"1")
    assert not made.sender.flush(100)
    made.sender.close(100)


# --- its end ----------------------------------------------------------------------------------------------------------


def test_what_is_left_when_it_is_closed_is_told_so(made: Made, eventually: Callable[..., None]) -> None:
    left = made.sender.send("a", b"1")
    made.sender.close(0.01)
    with pytest.raises(KafkaException, match="PURGE"):
        left.result(0)
    with pytest.raises(KafkaException, match="the sender is closed"):
        made.sender.send("b", b"2").result(0)
    assert made.producer.sent == ["a"]
    made.sender.close()
    eventually(lambda: made.listeners() == [])


def test_what_ends_the_producer_is_kept(made: Made, eventually: Callable[..., None]) -> None:
    made.sender.send("a", b"1")
    made.producer.fail(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "too late", True))
    assert not made.sender.flush(5)
    assert made.sender.failure == "too late"
    assert len(made.listeners()) == 1  # it still hears what becomes of the record
    made.producer.answer(KafkaError._PURGE_QUEUE)
    eventually(lambda: made.listeners() == [])


def test_log_lines_name_the_task(made: Made, caplog: pytest.LogCaptureFixture) -> None:
    from headgate.log import _context

    seen: list[str] = []
    with about(TaskId("orders", 0)):
        made.sender.send("a", b"1").add_done_callback(lambda _: seen.append(_context.get()))
    made.producer.answer(0)
    assert made.sender.flush(5)
    assert seen == [name_of(TaskId("orders", 0))]


def threads_of_librdkafka() -> int:
    found = 0
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            found += (thread / "comm").read_text().startswith("rdk:")
    return found


def test_a_closed_one_has_no_threads_however_long_it_is_held(eventually: Callable[..., None]) -> None:
    before = threads_of_librdkafka()
    sender = Sender({**NOWHERE, "reconnect.backoff.max.ms": "100"}, "sending-no-more")
    left = sender.send("t", b"1")
    assert threads_of_librdkafka() > before
    sender.close(0.1)
    with pytest.raises(KafkaException, match="PURGE"):
        left.result(0)
    eventually(lambda: threads_of_librdkafka() <= before)
    sender.poll(0)
    sender.close()
    with pytest.raises(KafkaException, match="the sender is closed"):
        sender.send("t", b"2").result(0)


# --- a real one -------------------------------------------------------------------------------------------------------


@pytest.mark.broker
def test_many_threads_send_and_all_of_it_arrives(
    broker: Broker, unique: Callable[[str], str], eventually: Callable[..., None]
) -> None:
    topic = unique("sent")
    sender = Sender(
        {"bootstrap.servers": broker.bootstrap, "transactional.id": "none", "buffer.memory": "100000"}, "sending-really"
    )

    def send(thread: int) -> None:
        for number in range(500):
            sender.send(topic, b"%d" % number, b"%d" % thread, [("h", b"\x00"), ("h", None)], 1700000000123)

    threads = [threading.Thread(target=send, args=(thread,)) for thread in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sender.flush(30)
    eventually(lambda: all(each.name != "sending-really" for each in threading.enumerate()))
    sender.close()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "log_level": 0})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Any] = []

    def all_found() -> bool:
        found.extend(consumer.consume(1000, 0.1))
        return len(found) >= 2000

    eventually(all_found)
    consumer.close()
    assert len(found) == 2000
    for thread in range(4):
        values = [int(each.value()) for each in found if each.key() == b"%d" % thread]
        assert values == list(range(500))
    assert found[0].headers() == [("h", b"\x00"), ("h", None)]
    assert found[0].timestamp() == (1, 1700000000123)


@pytest.mark.process
def test_what_the_producer_complains_about_is_said_once(
    caplog: pytest.LogCaptureFixture, eventually: Callable[..., None]
) -> None:
    sender = Sender({**NOWHERE, "reconnect.backoff.max.ms": "100"}, "sending")
    with caplog.at_level(logging.WARNING, logger="headgate"):
        done = sender.send("t", b"1")
        eventually(lambda: caplog.messages)
        sender.close(0.3)
    assert isinstance(done.exception(0), KafkaException)
    assert len(set(caplog.messages)) == len(caplog.messages)
    assert all(text.startswith("sending: ") for text in caplog.messages)
