"""A part of a source's frame, on an executor: its rows, through the pipeline, to Kafka. Only figures come back.

Nothing is raised for what the chain, the producer or Kafka have against a record: Spark would run the part again, and
send once more what was sent before.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from headgate.log import trace_of
from headgate.model import Config
from headgate.pipeline.blob import JobFailed, SourceColumns, source_chain
from headgate.pipeline.failure import class_name
from headgate.pipeline.frame_report import FrameReport
from headgate.pipeline.tolerance import ToleranceExceeded, Triage
from headgate.spark.resident import uncollected

if TYPE_CHECKING:
    from headgate.kafka.native.delivery import Refused

REPORTS: Final = "report BINARY"
_LOOK_S: Final = 1.0

NewSender = Callable[[Config, Callable[[], bool], "Callable[[Refused], None]"], Any]
"""What makes a `kafka.native.delivery.Delivery`."""


class _Refused(Exception):
    pass


class _Unread(Exception):
    pass


@dataclass(frozen=True, slots=True)
class FramePart:
    """Plain values but for `records`, it travels. Called with the batches of a partition, by `mapInArrow`."""

    chain: bytes
    columns: SourceColumns
    producer: Config
    records: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.Table]] | None = None
    """Of SourceFrame."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from headgate.kafka.native.delivery import Delivery

        report = self.sent(batches, Delivery)
        for _ in batches:  # Spark counts on it that all are taken
            pass
        yield pa.RecordBatch.from_pydict({"report": [pickle.dumps(report)]})

    def sent(self, batches: Iterator[pa.RecordBatch], new_sender: NewSender) -> FrameReport:
        """When Kafka has acknowledged all of them, or it is known why it will not."""
        sending = _Sending(self)
        try:
            sending.all(batches, new_sender)
        except _Unread as error:
            return replace(sending.unfinished(), unread=trace_of(error.__cause__ or error))
        except _Refused:
            return replace(sending.unfinished(1), refused=sending.refused)
        except Exception as error:
            failed = JobFailed(trace_of(error), class_name(type(error)))
            return replace(sending.unfinished(isinstance(error, ToleranceExceeded)), failed=failed)
        return FrameReport(sending.rows, +sending.counts, sending.errors, sending.by_records)


@dataclass(eq=False)
class _Sending:
    part: FramePart
    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    by_records: Counter[str] = field(default_factory=Counter)
    refused: Refused | None = None
    tolerant: bool = False

    def all(self, batches: Iterator[pa.RecordBatch], new_sender: NewSender) -> None:
        part = self.part
        chain = source_chain(part.chain)
        self.tolerant = chain.policy.tolerant
        with closing(new_sender(part.producer, lambda: True, self._on_refused)) as sender:
            for table in self._tables(batches):
                triage = Triage(chain.policy)
                with uncollected():
                    made = chain.columns(part.columns.around(table), triage)
                self.rows += table.num_rows
                self.errors += len(triage.failures)
                self.by_records += triage.by_records
                for topic in made.column("topic").value_counts():
                    self.counts[topic["values"].as_py()] += topic["counts"].as_py()
                sender.send(made)
            while not sender.flush(_LOOK_S):
                pass

    def _tables(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
        try:
            records = self.part.records
            yield from records(batches) if records else (pa.Table.from_batches([batch]) for batch in batches)
        except Exception as error:
            raise _Unread from error

    def _on_refused(self, refused: Refused) -> None:
        if not self.tolerant:
            self.refused = refused
            raise _Refused
        self.errors += 1
        self.counts[refused.message.topic] -= 1

    def unfinished(self, errors: int = 0) -> FrameReport:
        """What is known of a part that was broken off; `errors`: for so many records more that failed."""
        return FrameReport(self.rows, errors=self.errors + errors, by_records=self.by_records)
