from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_doubles import MemoryLog, MemoryWriter, Topic

from headgate.model import Offset, Partition
from headgate.runtime.ports import OffsetsLost, OffsetStore
from headgate.storage.merged_offsets import MergedOffsets
from headgate.storage.offset_log import OffsetLog
from headgate.storage.offset_records import decode_key, decode_offset, encode_key, encode_offset
from headgate.storage.offset_table import InvalidOffset, OffsetTable
from headgate.storage.records import MalformedRecord
from headgate.storage.topic_log import ReadTimeout
from headgate.storage.topic_writer import Entry, WriteFailed

FILE = {"filename": "/d/in.txt"}


class Worker:
    def __init__(self, topic: Topic) -> None:
        self.log, self.writer = MemoryLog(topic), MemoryWriter(topic)
        self.offsets = OffsetLog(self.log, self.writer)
        self.offsets.start()


@pytest.fixture
def topic() -> Topic:
    return Topic("connect-offsets")


@pytest.fixture
def worker(topic: Topic) -> Worker:
    return Worker(topic)


# --- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition", "offset", "key", "value"),
    [
        (FILE, {"position": 9}, b'["a",{"filename":"/d/in.txt"}]', b'{"position":9}'),
        ({"b": 1, "a": 2}, {}, b'["a",{"b":1,"a":2}]', b"{}"),
        (None, {"x": None}, b'["a",null]', b'{"x":null}'),
        ({"x": 1.0}, {"y": 1e20}, b'["a",{"x":1.0}]', b'{"y":1.0E20}'),
        ({"x": "\u00e4"}, {"y": b"\x00\xff"}, '["a",{"x":"\u00e4"}]'.encode(), b'{"y":"AP8="}'),
        ({"x": True}, {"y": "a/b\x1f"}, b'["a",{"x":true}]', b'{"y":"a/b\\u001F"}'),
    ],
)
def test_the_bytes_are_those_of_apaches_workers(
    partition: Partition | None, offset: Offset, key: bytes, value: bytes
) -> None:
    assert (encode_key("a", partition), encode_offset(offset)) == (key, value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
MAPS = st.dictionaries(
    TEXTS,
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    max_size=4,
)


@given(TEXTS, st.none() | MAPS, MAPS)
def test_they_survive_the_way_through_the_topic(connector: str, partition: Partition | None, offset: Offset) -> None:
    assert decode_key(encode_key(connector, partition)) == (connector, partition)
    assert decode_offset(encode_offset(offset)) == offset


@given(st.none() | st.binary(max_size=30), st.none() | st.binary(max_size=30))
def test_any_bytes_are_an_offset_or_malformed(key: bytes | None, value: bytes | None) -> None:
    with suppress(MalformedRecord):
        decode_key(key)
    with suppress(MalformedRecord):
        decode_offset(value)


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"text",
        b"{}",
        b"[]",
        b'["a"]',
        b'["a",{},1]',
        b"[1,{}]",
        b'["a",[]]',
        b'["a","b"]',
        b'["a",{"x":[]}]',
    ],
)
def test_keys_that_no_worker_writes_are_malformed(key: bytes | None) -> None:
    with pytest.raises(MalformedRecord):
        decode_key(key)


@pytest.mark.parametrize("value", [b"", b" ", b"{", b"[]", b"1", b'{"x":NaN}', b"[" * 100_000])
def test_offsets_that_no_worker_writes_are_malformed(value: bytes) -> None:
    with pytest.raises(MalformedRecord):
        decode_offset(value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_has_not_are_not_written(number: float) -> None:
    with pytest.raises(InvalidOffset):
        encode_key("a", {"x": number})
    with pytest.raises(InvalidOffset):
        encode_offset({"x": number})


# --- the store --------------------------------------------------------------------------------------------------------


def test_it_fits_the_port(worker: Worker) -> None:
    port: OffsetStore = worker.offsets
    assert port.all("a") == []


def test_offsets_are_read_by_other_workers(worker: Worker, topic: Topic) -> None:
    other = Worker(topic).offsets
    worker.offsets.put("a", [(FILE, {"position": 9}), ({"filename": "b"}, {"position": 1})])
    worker.offsets.put("b", [(FILE, {"position": 3})])
    assert other.get("a", [FILE, {"filename": "c"}]) == [{"position": 9}, None]
    assert other.all("a") == [(FILE, {"position": 9}), ({"filename": "b"}, {"position": 1})]
    assert other.all("c") == []


def test_reading_reads_to_the_end_first(worker: Worker, topic: Topic) -> None:
    topic.delivering = False
    Worker(topic).offsets.put("a", [(FILE, {"position": 9})])
    assert worker.offsets.get("a", [FILE]) == [{"position": 9}]
    Worker(topic).offsets.put("a", [(FILE, {"position": 10})])
    assert worker.offsets.all("a") == [(FILE, {"position": 10})]
    worker.log.broken = True
    with pytest.raises(ReadTimeout):
        worker.offsets.get("a", [FILE])


@pytest.mark.kip(875, "a null offset is a tombstone")
@pytest.mark.kip(875, "viewing the in-memory offsets to recover from accidental deletion of the offsets topic")
def test_what_was_read_of_a_topic_that_was_deleted_is_told_with_its_name(worker: Worker) -> None:
    worker.offsets.put("a", [(FILE, {"p": 1})])
    worker.log.gone = True
    with pytest.raises(OffsetsLost, match="Topic connect-offsets of source offsets was deleted") as lost:
        worker.offsets.all("a")
    assert lost.value.known == [(FILE, {"p": 1})]
    with pytest.raises(ReadTimeout):  # a task does not go on from what may be old
        worker.offsets.get("a", [FILE])


def test_none_is_a_tombstone(worker: Worker, topic: Topic) -> None:
    worker.offsets.put("a", [(FILE, {"position": 9}), ({"f": 2}, {"p": 1})])
    worker.offsets.put("a", [(FILE, None), ({"f": 3}, None)])
    assert worker.offsets.all("a") == [({"f": 2}, {"p": 1})]
    assert topic.text[2:] == [('["a",{"filename":"/d/in.txt"}]', None), ('["a",{"f":3}]', None)]
    assert Worker(topic).offsets.get("a", [FILE]) == [None]


def test_of_what_is_said_twice_the_last_counts(worker: Worker, topic: Topic) -> None:
    worker.offsets.put("a", [({"x": 1, "y": 2}, {"p": 1}), ({"y": 2, "x": 1}, {"p": 2})])
    assert len(topic.entries) == 1
    assert worker.offsets.all("a") == [({"y": 2, "x": 1}, {"p": 2})]


def test_the_partition_null_has_an_offset_but_is_not_listed(worker: Worker) -> None:
    worker.offsets.put("a", [(None, {"p": 1})])
    assert worker.offsets.get("a", [None]) == [{"p": 1}]
    assert worker.offsets.all("a") == []


def test_nothing_is_written_if_anything_is_invalid(worker: Worker, topic: Topic) -> None:
    with pytest.raises(InvalidOffset):
        worker.offsets.put("a", [(FILE, {"p": 1}), ({"x": [1]}, {"p": 1})])
    worker.offsets.put("a", [])
    assert (topic.entries, worker.writer.writes) == ([], [])


def test_what_is_returned_is_the_callers_own(worker: Worker) -> None:
    worker.offsets.put("a", [(FILE, {"p": 1})])
    worker.offsets.get("a", [FILE])[0]["p"] = 2  # type: ignore[index]
    worker.offsets.all("a")[0][0]["filename"] = "x"  # type: ignore[index]
    assert worker.offsets.all("a") == [(FILE, {"p": 1})]


def test_a_write_that_kafka_refuses_is_an_error(worker: Worker, topic: Topic) -> None:
    topic.refusals.append(1)
    with pytest.raises(WriteFailed):
        worker.offsets.put("a", [(FILE, {"p": 1})])


class TestTakeover:
    """Java's workers wrote partitions with their fields in some order of a hash map."""

    JAVA = b'["a", {"table":"t",  "db":"d"}]'

    def test_an_offset_is_found_by_its_content_and_written_under_the_key_that_is_there(
        self, worker: Worker, topic: Topic
    ) -> None:
        topic.append(self.JAVA, b'{"p":1}')
        assert worker.offsets.get("a", [{"db": "d", "table": "t"}]) == [{"p": 1}]
        worker.offsets.put("a", [({"db": "d", "table": "t"}, {"p": 2})])
        assert topic.entries[-1] == (self.JAVA, b'{"p":2}')
        worker.offsets.put("a", [({"db": "d", "table": "t"}, None)])
        *_, last = topic.entries
        assert last == (self.JAVA, None)
        assert worker.offsets.all("a") == []

    def test_a_new_key_keeps_the_connectors_order(self, worker: Worker, topic: Topic) -> None:
        worker.offsets.put("a", [({"table": "t", "db": "d"}, {"p": 1})])
        assert topic.entries[-1][0] == b'["a",{"table":"t","db":"d"}]'

    def test_of_two_keys_for_one_partition_one_is_left(self, worker: Worker, topic: Topic) -> None:
        second = b'["a",{"db":"d","table":"t"}]'
        topic.append(self.JAVA, b'{"p":1}')
        topic.append(second, b'{"p":2}')
        assert worker.offsets.all("a") == [({"table": "t", "db": "d"}, {"p": 2})]
        worker.offsets.put("a", [({"table": "t", "db": "d"}, {"p": 3})])
        assert topic.entries[2:] == [(second, b'{"p":3}'), (self.JAVA, None)]
        topic.append(self.JAVA, b'{"p":4}')
        worker.offsets.put("a", [({"table": "t", "db": "d"}, None)])
        assert set(topic.entries[5:]) == {(second, None), (self.JAVA, None)}
        assert Worker(topic).offsets.all("a") == []

    def test_if_one_of_two_keys_is_removed_the_other_counts(self, worker: Worker, topic: Topic) -> None:
        topic.append(self.JAVA, b'{"p":1}')
        topic.append(b'["a",{"db":"d","table":"t"}]', b'{"p":2}')
        topic.append(b'["a",{"db":"d","table":"t"}]', None)
        assert worker.offsets.all("a") == [({"table": "t", "db": "d"}, {"p": 1})]

    def test_odd_records_are_logged_and_left_alone(
        self, worker: Worker, topic: Topic, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, logger="headgate"):
            topic.append(b"odd", b"{}")
            topic.append(b'["a",{"f":1}]', b"odd")
            topic.append(b'["a",{"f":2}]', b"null")
        assert "Record 0 of connect-offsets-0 is ignored: its key is not JSON" in caplog.text
        assert "is unreadable" in caplog.text
        assert (worker.offsets.all("a"), worker.offsets.get("a", [{"f": 1}])) == ([], [None])
        worker.offsets.put("a", [({"f": 1}, {"p": 1})])
        assert worker.offsets.all("a") == [({"f": 1}, {"p": 1})]


def test_entries_are_what_a_transaction_of_somebody_elses_writes(worker: Worker, topic: Topic) -> None:
    topic.append(TestTakeover.JAVA, b'{"p":1}')
    entries = worker.offsets.entries("a", [({"db": "d", "table": "t"}, {"p": 2}), (FILE, None)])
    assert entries == [(TestTakeover.JAVA, b'{"p":2}'), (b'["a",{"filename":"/d/in.txt"}]', None)]
    assert len(topic.entries) == 1


PUTS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.lists(
            st.tuples(
                st.sampled_from([{"x": 1, "y": 2}, {"y": 2, "x": 1}, {"x": 1}, {}]),
                st.none() | st.fixed_dictionaries({"p": st.integers(0, 9)}),
            ),
            max_size=4,
        ),
    ),
    max_size=12,
)


@given(PUTS)
def test_it_says_what_a_table_in_memory_says(puts: list[tuple[str, Any]]) -> None:
    worker, table = Worker(topic := Topic()), OffsetTable()
    for connector, offsets in puts:
        worker.offsets.put(connector, offsets)
        table = table.changed(connector, offsets)
    last = {key: (key, value) for key, value in topic.entries}
    compacted = Topic()
    for entry in last.values():
        compacted.append(*entry)
    for found in (worker.offsets, Worker(topic).offsets, Worker(compacted).offsets):
        for connector in "ab":
            expected = sorted(map(str, ((dict(sorted(p.items())), o) for p, o in table.all(connector))))
            assert sorted(map(str, ((dict(sorted(p.items())), o) for p, o in found.all(connector)))) == expected


# --- a connector with a topic of its own ------------------------------------------------------------------------------


class TestMerged:
    @pytest.fixture
    def steps(self) -> list[tuple[str, bytes, bytes | None]]:
        return []

    @pytest.fixture
    def own(self, steps: list[tuple[str, bytes, bytes | None]]) -> OffsetLog:
        return self.store("own", steps)

    @pytest.fixture
    def shared(self, steps: list[tuple[str, bytes, bytes | None]]) -> OffsetLog:
        return self.store("shared", steps)

    @staticmethod
    def store(name: str, steps: list[tuple[str, bytes, bytes | None]]) -> OffsetLog:
        class Recording(MemoryWriter):
            def write(self, entries: Sequence[Entry], timeout: float) -> None:
                super().write(entries, timeout)
                steps.extend((name, *entry) for entry in entries)

            def answer(self, entry: Entry, told: Any) -> None:
                super().answer(entry, told)
                steps.append((f"{name} soon", *entry))

        topic = Topic(name)
        offsets = OffsetLog(MemoryLog(topic), Recording(topic))
        offsets.start()
        offsets.memory = topic  # type: ignore[attr-defined]
        return offsets

    def test_it_fits_the_port(self, own: OffsetLog, shared: OffsetLog) -> None:
        port: OffsetStore = MergedOffsets(own, shared)
        assert port.all("a") == []

    def test_the_connectors_topic_counts_and_the_workers_fills_in(self, own: OffsetLog, shared: OffsetLog) -> None:
        shared.put("a", [({"f": 1}, {"p": 1}), ({"f": 2}, {"p": 2})])
        own.put("a", [({"f": 2}, {"p": 20}), ({"f": 3}, {"p": 30})])
        merged = MergedOffsets(own, shared)
        assert merged.get("a", [{"f": 3}, {"f": 1}, {"f": 4}, {"f": 2}]) == [{"p": 30}, {"p": 1}, None, {"p": 20}]
        assert merged.all("a") == [({"f": 1}, {"p": 1}), ({"f": 2}, {"p": 20}), ({"f": 3}, {"p": 30})]

    def test_a_workers_topic_that_was_deleted_fills_in_from_memory(self, own: OffsetLog, shared: OffsetLog) -> None:
        shared.put("a", [({"f": 1}, {"p": 1}), ({"f": 2}, {"p": 2})])
        own.put("a", [({"f": 2}, {"p": 20})])
        shared._topic_log.gone = True  # type: ignore[attr-defined]
        with pytest.raises(OffsetsLost, match="Topic shared of source offsets was deleted") as lost:
            MergedOffsets(own, shared).all("a")
        assert lost.value.known == [({"f": 1}, {"p": 1}), ({"f": 2}, {"p": 20})]

    def test_offsets_go_to_the_connectors_topic_and_then_as_well_as_it_goes_to_the_workers(
        self, own: OffsetLog, shared: OffsetLog, steps: list[Any]
    ) -> None:
        MergedOffsets(own, shared).put("a", [(FILE, {"p": 1})])
        assert [where for where, *_ in steps] == ["own", "shared soon"]
        shared.memory.refusals.append(1)  # type: ignore[attr-defined]
        MergedOffsets(own, shared).put("a", [(FILE, {"p": 2})])
        assert (own.get("a", [FILE]), shared.get("a", [FILE])) == ([{"p": 2}], [{"p": 1}])

    def test_tombstones_go_to_the_workers_topic_first(
        self, own: OffsetLog, shared: OffsetLog, steps: list[Any]
    ) -> None:
        MergedOffsets(own, shared).put("a", [(FILE, {"p": 1}), ({"f": 2}, None)])
        assert [(where, value) for where, _, value in steps] == [
            ("shared", None),
            ("own", b'{"p":1}'),
            ("own", None),
            ("shared soon", b'{"p":1}'),
        ]

    def test_and_must_arrive_there(self, own: OffsetLog, shared: OffsetLog) -> None:
        merged = MergedOffsets(own, shared)
        merged.put("a", [(FILE, {"p": 1})])
        shared.memory.refusals.append(1)  # type: ignore[attr-defined]
        with pytest.raises(WriteFailed):
            merged.put("a", [(FILE, None)])
        assert merged.get("a", [FILE]) == [{"p": 1}]
        merged.put("a", [(FILE, None)])
        assert merged.get("a", [FILE]) == [None]

    def test_a_failure_of_the_connectors_topic_is_an_error(self, own: OffsetLog, shared: OffsetLog) -> None:
        own.memory.refusals.append(1)  # type: ignore[attr-defined]
        with pytest.raises(WriteFailed):
            MergedOffsets(own, shared).put("a", [(FILE, {"p": 1})])
        assert shared.all("a") == []
