"""Refusals: a record that Kafka refused is told by where it came from. No Kafka here."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pyarrow as pa
import pytest
from source_fakes import Refused, RefusedMessage

from headgate.api import SourceRecord
from headgate.pipeline.batch import Produced, produced, slim
from headgate.pipeline.failure import Failure, PolledRecord, Stage
from headgate.pipeline.policy import ErrorPolicy
from headgate.tasks.reporter import Reporter
from headgate.tasks.source.refusals import RecordRefused, Refusals

pytestmark = pytest.mark.kip(298, "KAFKA_PRODUCE")


class Told(Reporter):
    """Remembers what it was told."""

    def __init__(self, **policy: Any) -> None:
        self.policy = ErrorPolicy(**policy)
        self.failures: list[Failure] = []

    def failed(self, failure: Failure) -> Future[None]:
        self.failures.append(failure)
        return Future()


def table(*rows: int) -> pa.Table:
    """What came back from Spark for these rows of a batch; the others were dropped."""
    return slim(produced(Produced(row, "t", None, None, b"v%d" % row, None, None) for row in rows))


def origin(batch: str) -> Any:
    return lambda row: SourceRecord(
        topic="t", value=f"{batch}{row}", source_partition={"batch": batch}, source_offset={"row": row}
    )


def refused(number: int) -> Refused:
    return Refused(RefusedMessage(number, "t", b"v", b"k", (("h", None),), 5))


def test_a_record_is_told_with_its_bytes_and_where_it_came_from() -> None:
    told = Told(tolerant=True)
    refusals = Refusals(told)
    refusals.expect(0, table(0, 1, 2), origin("a"))
    refusals.expect(3, table(1, 4), origin("b"))  # rows 0, 2 and 3 were dropped by a transform
    refusals.expect(5, table(), origin("c"))
    refusals.expect(5, table(0), origin("d"))
    for number in (1, 4, 5):
        refusals(refused(number))
    records = [failure.record for failure in told.failures]
    assert records == [
        PolledRecord("t", {"batch": batch}, {"row": row}, 5, b"k", b"v", (("h", None),))
        for batch, row in (("a", 1), ("b", 4), ("d", 0))
    ]
    failure = told.failures[0]
    assert (failure.stage, failure.error) == (Stage.KAFKA_PRODUCE, "headgate.tasks.source.refusals.RecordRefused")
    assert (failure.message or "").endswith("too large, record of 2 bytes for topic t")
    assert refusals.count == 3


def test_what_was_answered_is_forgotten_and_what_is_not_fills_up() -> None:
    refusals = Refusals(Told(tolerant=True))
    large = pa.table({"topic": ["t"], "value": [b"x" * 70_000_000]})
    refusals.expect(0, large, origin("a"))
    assert refusals.full
    refusals.forget()
    assert not refusals.full


def test_the_log_shows_the_record_as_it_was_polled_and_the_trace() -> None:
    told = Told(tolerant=True, log=True, log_records=True)
    refusals = Refusals(told)
    refusals.expect(0, table(0), origin("a"))
    refusals(refused(0))
    record = told.failures[0].record
    assert isinstance(record, PolledRecord)
    assert record.shown.startswith(
        "SourceRecord{sourcePartition={batch=a}, sourceOffset={row=0}} ConnectRecord{topic='t'"
    )
    assert "value=a0," in record.shown
    assert "RecordRefused: Unrecoverable exception" in "".join(told.failures[0].trace)


@pytest.mark.parametrize("policy", [{}, {"dead_letter_topic": "dead"}])
def test_where_nothing_is_tolerated_the_task_fails_and_it_is_told_all_the_same(policy: dict[str, Any]) -> None:
    told = Told(**policy)
    refusals = Refusals(told)
    refusals.expect(0, table(0), origin("a"))
    with pytest.raises(RecordRefused, match="producer send callback: too large, record of 2 bytes for topic t"):
        refusals(refused(0))
    place = {"batch": "a"} if policy else None  # by default nothing is remembered for this
    assert [failure.record.source_partition for failure in told.failures] == [place]  # type: ignore[union-attr]
