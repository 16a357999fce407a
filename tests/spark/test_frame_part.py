"""A part of a source's frame on an executor: what it sends, and what it says when it cannot."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from headgate.api import DataError, SourceRecord, Transform, schema
from headgate.kafka.native.calls import Message
from headgate.kafka.native.delivery import DeliveryFailed, Refused
from headgate.model import ChainSpec, Config, ConnectorType, PluginRef, PluginSpec, StepSpec, TaskId
from headgate.pipeline.blob import JobFailed, SourceColumns, pack_spec
from headgate.pipeline.frame_report import FrameReport
from headgate.spark.frame_part import FramePart

_STRING = PluginSpec(PluginRef("headgate.pipeline.converters.string", "StringConverter"), {})


class Sorting(Transform[SourceRecord]):
    """By what records say: to another topic, nowhere, or not at all."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        if record.value == "bad":
            raise DataError("a bad record")
        if record.value == "dropped":
            return None
        return replace(record, topic="other") if record.value == "moved" else record


def part(tolerance: str = "none", **more: Any) -> FramePart:
    step = StepSpec("sorting", PluginSpec(PluginRef(__name__, "Sorting")))
    errors = {"errors.tolerance": tolerance}
    spec = ChainSpec(TaskId("test", 0), ConnectorType.SOURCE, _STRING, _STRING, _STRING, (step,), errors)
    return FramePart(pack_spec(spec), SourceColumns("t", value_schema=schema.STRING), {"some": "setting"}, **more)


def batches(*values: list[str]) -> Iterator[pa.RecordBatch]:
    return (pa.RecordBatch.from_pydict({"value": pa.array(each, pa.string())}) for each in values)


class Sender:
    """Instead of a producer: refuses "refused", and breaks at "broken"."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.waits = 2
        """So often it is not done when it is flushed."""
        self.closed = False

    def __call__(self, config: Config, may_go_on: Callable[[], bool], on_refused: Callable[[Refused], None]) -> Sender:
        assert config == {"some": "setting"}
        assert may_go_on()
        self._on_refused = on_refused
        return self

    def send(self, table: pa.Table) -> None:
        for row in table.to_pylist():
            if row["value"] == b"broken":
                raise DeliveryFailed("no more")
            self.sent.append((row["topic"], row["value"].decode()))

    def flush(self, _: float) -> bool:
        self.waits -= 1
        for number, (topic, value) in enumerate(self.sent):
            if value == "refused" and self.waits == 1:
                self._on_refused(Refused(Message(10, number, topic, -1, None, value.encode()), "too large"))
        return self.waits <= 0

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def sender() -> Sender:
    return Sender()


def test_rows_go_through_the_chain_in_their_order_and_are_waited_for(sender: Sender) -> None:
    report = part().sent(batches(["a", "moved"], ["dropped"], ["b"]), sender)
    assert report == FrameReport(4, Counter(t=2, other=1), by_records=report.by_records)
    assert sender.sent == [("t", "a"), ("other", "moved"), ("t", "b")]
    assert (sender.waits, sender.closed) == (0, True)


def test_what_is_tolerated_is_counted(sender: Sender) -> None:
    report = part("all").sent(batches(["a", "bad", "refused"]), sender)
    assert (report.rows, report.sent, report.errors) == (3, Counter(t=1), 2)
    assert (report.failed, report.refused, report.unread) == (None, None, None)


def test_a_bad_record_ends_the_part_with_the_trace_that_any_other_way_has(sender: Sender) -> None:
    report = part().sent(batches(["a"], ["b", "bad"], ["c"]), sender)
    assert isinstance(report.failed, JobFailed)
    assert "DataError: a bad record (in test_frame_part.Sorting" in report.failed.cause_line
    assert report.failed.error_type == "headgate.pipeline.tolerance.ToleranceExceeded"
    assert (report.rows, report.errors, report.sent) == (1, 1, Counter())
    assert sender.sent == [("t", "a")]
    assert sender.closed


def test_a_record_that_kafka_refuses_comes_back(sender: Sender) -> None:
    report = pickle.loads(pickle.dumps(part().sent(batches(["a", "refused"]), sender)))
    assert report.refused.message.value == b"refused"
    assert (report.refused.reason, report.errors, report.failed) == ("too large", 1, None)


def test_a_producer_that_breaks_is_told_of(sender: Sender) -> None:
    report = pickle.loads(pickle.dumps(part().sent(batches(["broken"]), sender)))
    assert report.failed.cause_line == "DeliveryFailed: no more"
    assert report.errors == 0


def test_rows_may_be_made_on_the_executor_and_what_goes_wrong_there_is_no_record_s_fault(sender: Sender) -> None:
    def doubled(given: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        for batch in given:
            yield pa.table({"value": [each * 2 for each in batch.column("value").to_pylist()]})
            raise OSError("gone")

    report = part(records=doubled).sent(batches(["a", "b"]), sender)
    assert sender.sent == [("t", "aa"), ("t", "bb")]
    assert report.unread is not None
    assert report.unread.startswith("OSError: gone\n")
    assert (report.failed, report.sent) == (None, Counter())


def test_reports_are_added_up_and_the_first_trouble_is_told() -> None:
    failed = [JobFailed("first"), JobFailed("second")]
    parts = [FrameReport(1, Counter(t=1)), FrameReport(2, failed=failed[0]), FrameReport(3, Counter(t=2), 1)]
    assert FrameReport.joined([*parts, FrameReport(failed=failed[1])]) == FrameReport(
        6, Counter(t=3), 1, Counter(), failed[0]
    )
    assert FrameReport.joined([]) == FrameReport()
