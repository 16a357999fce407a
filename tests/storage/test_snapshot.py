"""What is kept of internal topics that are only looked at. With a broker: tests/cli/test_migrate_command.py."""

from __future__ import annotations

import pytest

from headgate.model import State, Status, TaskId
from headgate.storage.config_records import ConnectorRecord
from headgate.storage.config_records import encode as encode_config
from headgate.storage.config_state import ConfigFold
from headgate.storage.records import MalformedRecord, NotJson
from headgate.storage.snapshot import OffsetTopic, take_config, take_status
from headgate.storage.status_cache import StatusCache
from headgate.storage.status_records import encode as encode_status
from headgate.storage.topic_log import LogRecord


def record(key: bytes | None, value: bytes | None, offset: int = 0) -> LogRecord:
    return LogRecord(key, value, 0, offset)


class TestOffsets:
    def test_partitions_with_an_offset_are_counted_by_their_content(self) -> None:
        topic = OffsetTopic()
        topic.take(record(b'["a",{"f":1,"g":2}]', b'{"p":1}'))
        topic.take(record(b'["a",{"g":2,"f":1}]', b'{"p":2}'))
        topic.take(record(b'["a",{"f":3}]', b'{"p":1}'))
        topic.take(record(b'["b",{"f":1}]', b'{"p":1}'))
        assert len(topic.partitions("a")) == 2
        assert len(topic.partitions("b")) == 1
        assert topic.partitions("c") == frozenset()

    def test_a_tombstone_counts_for_its_own_bytes(self) -> None:
        topic = OffsetTopic()
        topic.take(record(b'["a",{"f":1,"g":2}]', b'{"p":1}'))
        topic.take(record(b'["a",{"g":2,"f":1}]', b'{"p":2}'))
        topic.take(record(b'["a",{"g":2,"f":1}]', None))
        assert len(topic.partitions("a")) == 1, "what the other key says is left"
        topic.take(record(b'["a",{"f":1,"g":2}]', None))
        assert topic.partitions("a") == frozenset()

    def test_the_partition_null_has_no_place_among_them(self) -> None:
        topic = OffsetTopic()
        topic.take(record(b'["a",null]', b'{"p":1}'))
        assert topic.partitions("a") == frozenset()

    def test_an_offset_that_nobody_understands_is_none(self) -> None:
        topic = OffsetTopic()
        topic.take(record(b'["a",{"f":1}]', b'{"p":1}'))
        with pytest.raises(MalformedRecord):
            topic.take(record(b'["a",{"f":1}]', b"[]"))
        assert topic.partitions("a") == frozenset()


def test_configs_are_folded() -> None:
    fold = ConfigFold()
    take_config(fold, record(*encode_config(ConnectorRecord("a", {"k": "v"}))))
    with pytest.raises(NotJson):
        take_config(fold, record(b"connector-b", b"{"))
    with pytest.raises(MalformedRecord):
        take_config(fold, record(b"connector-b", b"[]"))
    assert list(fold.state().view.connectors) == ["a"]


def test_the_last_status_counts_and_nonsense_does_not() -> None:
    cache = StatusCache()
    for number, state in enumerate((State.RUNNING, State.FAILED)):
        take_status(cache, record(*encode_status("a", Status(state, "w:1")), offset=number))
        take_status(cache, record(*encode_status(TaskId("a", 0), Status(state, "w:1")), offset=number))
    with pytest.raises(MalformedRecord):
        take_status(cache, record(b"status-connector-a", b'{"state":"DANCING"}', 2))
    status = cache.status("a")
    assert status is not None
    assert status.state is State.FAILED
    assert {number: each.state for number, each in cache.tasks("a").items()} == {0: State.FAILED}
    assert cache.status("b") is None
