"""A batch on its way: which row was polled as what, and how its transaction ends."""

from __future__ import annotations

from concurrent.futures import Future

import pyarrow as pa
import pytest

from headgate.api import SourceRecord, SourceTable
from headgate.pipeline.blob import Packed
from headgate.tasks.source.batch import Batch
from headgate.tasks.source.polled import End, Polled


def records(*values: str) -> Polled:
    return Polled.of(
        [SourceRecord(topic="t", value=each, source_partition={"p": 0}, source_offset={"at": each}) for each in values]
    )


def columns(number: int, *values: str) -> Polled:
    table = pa.table({"value": pa.array(values, pa.string())})
    return Polled.of(
        SourceTable(topic="t", table=table, source_partition={"p": number}, source_offset={"n": len(values)})
    )


def batch(*polled: Polled) -> Batch:
    results: Future[list[Packed]] = Future()
    return Batch(polled, [sum(each.rows for each in polled)], [], results)


def test_rows_are_counted_through_all_that_was_polled() -> None:
    given = batch(records("a", "b"), columns(1), columns(2, "c"), records("d"))
    assert [given.record(row).value for row in range(4)] == ["a", "b", "c", "d"]
    with pytest.raises(IndexError):
        given.record(4)


def test_a_row_of_a_table_came_from_where_its_table_did_and_records_know_it_themselves() -> None:
    given = batch(records("a"), columns(1, "b", "c"), columns(2, "d"))
    assert [given.place(row) for row in range(5)] == [
        None,
        ({"p": 1}, {"n": 2}),
        ({"p": 1}, {"n": 2}),
        ({"p": 2}, {"n": 1}),
        None,
    ]


@pytest.mark.parametrize("end", [None, End.COMMIT, End.ABORT])
def test_a_batch_ends_as_the_last_that_was_polled_of_it(end: End | None) -> None:
    last = Polled.of([SourceRecord(topic="t", value="b")], end)
    assert batch(records("a"), last).end is end
