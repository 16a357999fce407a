"""The examples of docs/producer.md run as they stand there."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checks
import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headgate.dev.broker import Broker
from headgate.producer import TransactionalProducer, loop
from headgate.producer.loop import consumer_config

pytestmark = [pytest.mark.broker, pytest.mark.kip(691, "the usage template: one phase to send, one to commit or abort")]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "producer.md"
LINES, TEMPLATE = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
VALUES = [b"a", b"b", b"c"]


def topics(broker: Broker, source: str, target: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for made in admin.create_topics([NewTopic(source, 1), NewTopic(target, 1)]).values():
        made.result(20)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for value in VALUES:
        producer.produce(source, value)
    assert producer.flush(20) == 0


def test_the_ten_lines_of_the_page_run(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topics(broker, "orders", "loud-orders")
    loops: list[loop.Loop] = []

    class Known(loop.Loop):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            loops.append(self)

    monkeypatch.setattr(loop, "Loop", Known)
    names: dict[str, Any] = {}
    code = compile(LINES.replace("localhost:9092", broker.bootstrap), str(PAGE), "exec")
    thread = threading.Thread(target=exec, args=(code, names))
    thread.start()
    deadline = time.monotonic() + 60
    while checks.read_committed(broker.bootstrap, "loud-orders") != [b"A", b"B", b"C"]:
        assert time.monotonic() < deadline
        assert thread.is_alive()
        time.sleep(0.2)
    loops[0].stop()
    thread.join(30)
    names["producer"].close()
    names["consumer"].close()


def test_the_template_of_the_page_copies_each_message_once(broker: Broker, unique: Callable[[str], str]) -> None:
    source, target = unique("template-source"), unique("template-target")
    topics(broker, source, target)
    names: dict[str, Any] = {}
    exec(compile(TEMPLATE, str(PAGE), "exec"), names)
    tries: list[int] = []

    def copy(batch: list[Message]) -> list[tuple[str, bytes | None]]:
        tries.append(len(batch))
        if len(tries) == 1:
            raise ValueError("broken on purpose")
        return [(target, message.value()) for message in batch]

    consumer = Consumer(consumer_config({"bootstrap.servers": broker.bootstrap, "group.id": unique("template")}))
    consumer.subscribe([source])
    deadline = time.monotonic() + 60
    with TransactionalProducer({"bootstrap.servers": broker.bootstrap, "transactional.id": source}) as producer:
        names["transfer"](
            consumer, producer, copy, lambda: time.monotonic() < deadline and sum(tries[1:]) < len(VALUES)
        )
    consumer.close()
    checks.assert_output(broker.bootstrap, target, VALUES)
