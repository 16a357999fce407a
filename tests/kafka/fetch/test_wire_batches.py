"""Record batches as Arrow columns: what was written is read, whatever the batches look like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from wire_support import ALL, CODECS, WHERE, Rec, batch, rows, shown_time

from headgate.kafka.fetch.batches import Batches
from headgate.pipeline.batch import CONSUMED

END = 2**63 - 1
BLOBS = st.none() | st.binary(max_size=8) | st.integers(60, 20_000).map(lambda size: b"x" * size)
TIMES = st.sampled_from([-1, 0, 1_700_000_000_000, 2**62, 2**63 - 2]) | st.integers(-1, 2**63 - 2)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3).map(tuple)


@dataclass(frozen=True)
class Made:
    """A batch, and what is in it."""

    records: Sequence[Rec]
    data: bytes
    append_time: int | None
    last: int


@st.composite
def made(draw: st.DrawFn, base: int, codecs: Sequence[int] = CODECS) -> Made:
    """With holes between its records, before the first and after the last; or all of it one hole."""
    records, at = [], base
    for _ in range(draw(st.integers(0, 5))):
        at += draw(st.integers(0, 3))
        records.append(Rec(at, draw(TIMES), draw(BLOBS), draw(BLOBS), draw(HEADERS)))
        at += 1
    last = max(at - 1, base) + draw(st.integers(0, 3))
    append_time = draw(st.none() | st.integers(0, 2**62))
    codec = draw(st.sampled_from(codecs)) if records else 0
    return Made(records, batch(records, base=base, last=last, codec=codec, append_time=append_time), append_time, last)


@st.composite
def logs(draw: st.DrawFn, codecs: Sequence[int] = CODECS) -> list[Made]:
    found: list[Made] = []
    base = draw(st.sampled_from([0, 7, 2**40]))
    for _ in range(draw(st.integers(1, 4))):
        found.append(draw(made(base, codecs)))
        base = found[-1].last + 1 + draw(st.integers(0, 2))
    return found


def read(data: bytes, start: int = 0, end: int = END) -> list[dict[str, Any]]:
    table = Batches(data).read(WHERE, start, end, ALL)
    table.validate(full=True)
    assert table.schema.equals(CONSUMED)
    return table.to_pylist()  # type: ignore[no-any-return]


@settings(deadline=None)
@given(logs(), st.data())
def test_every_range_of_every_log_is_read_as_it_was_written(log: list[Made], data: st.DataObject) -> None:
    whole = b"".join(each.data for each in log)
    expected = [row for each in log for row in rows(each.records, each.append_time)]
    first, last = log[0].last - 8, log[-1].last + 3
    start = data.draw(st.integers(first, last))
    end = data.draw(st.integers(start, last))
    assert read(whole) == expected
    assert read(whole, start, end) == [row for row in expected if start <= row["offset"] < end]
    assert Batches(whole).following == log[-1].last + 1


@settings(deadline=None)
@given(logs(), st.data())
def test_a_last_batch_that_was_cut_off_waits_for_the_next_fetch(log: list[Made], data: st.DataObject) -> None:
    kept = b"".join(each.data for each in log[:-1])
    cut = kept + log[-1].data[: data.draw(st.integers(0, len(log[-1].data) - 1))]
    assert read(cut) == [row for each in log[:-1] for row in rows(each.records, each.append_time)]
    assert Batches(cut).following == (log[-2].last + 1 if len(log) > 1 else None)


@settings(deadline=None)
@given(logs(codecs=(0, 1)))
def test_kafka_python_reads_the_same(log: list[Made]) -> None:
    """It has the other two codecs only with packages that are not here."""
    for each in log:
        theirs = [
            {
                "offset": record.offset,
                "timestamp": shown_time(record.timestamp),
                "key": record.key,
                "value": record.value,
                "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
            }
            for record in DefaultRecordBatch(each.data)
        ]
        assert [{name: row[name] for name in row if name in (theirs or [row])[0]} for row in read(each.data)] == theirs


@pytest.mark.parametrize("codec", [0, 1])
def test_what_kafka_python_writes_is_read(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=100_000,
    )
    records = [Rec(at, 1000 + at, b"k%d" % at, b"v" * at * 50, (("h", b"%d" % at),)) for at in range(20)]
    for each in records:
        assert builder.append(each.offset, each.timestamp, each.key, each.value, list(each.headers)) is not None
    assert read(bytes(builder.build())) == rows(records)


@pytest.mark.parametrize("needed", [["value"], ["key", "offset"], ["headers"], ["timestamp", "timestamp_type"]])
def test_only_the_columns_that_are_needed_in_the_order_that_the_pipeline_knows(needed: list[str]) -> None:
    table = Batches(batch([Rec(0), Rec(1)])).read(WHERE, 0, END, needed)
    assert table.column_names == [name for name in CONSUMED.names if name in needed]
    assert table.num_rows == 2


def test_a_record_without_a_time_is_still_of_a_type() -> None:
    """As in Apache's Connect: the timestamp is null, its type is the topic's."""
    assert read(batch([Rec(0, timestamp=-1)]))[0].items() >= {"timestamp": None, "timestamp_type": "CreateTime"}.items()


def test_the_time_of_the_log_stands_for_that_of_every_record() -> None:
    found = read(batch([Rec(0, 5), Rec(1, 6)], append_time=99))
    assert [(row["timestamp"], row["timestamp_type"]) for row in found] == [(99, "LogAppendTime")] * 2


def test_nothing_is_no_records() -> None:
    assert Batches(b"").following is None
    assert read(b"") == []


def test_compressed_and_plain_batches_side_by_side() -> None:
    whole = b"".join(batch([Rec(at, value=b"%d" % at * 100)], codec=codec) for at, codec in enumerate(CODECS))
    assert [row["value"] for row in read(whole)] == [b"%d" % at * 100 for at in range(len(CODECS))]


def test_header_names_that_are_no_text_do_not_stop_the_reading() -> None:
    data = batch([Rec(0, headers=(("ab", b"1"),))]).replace(b"ab", b"\xffb")
    assert read(data)[0]["headers"] == [{"key": "\ufffdb", "value": b"1"}]
