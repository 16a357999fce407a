"""What Kafka refused of a source task's records: each is told by where it came from, or fails the task."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headgate.api.errors import ConnectError
from headgate.api.record import SourceRecord
from headgate.pipeline.failure import Failure, PolledRecord, Stage, class_name, message_of, shown_record
from headgate.pipeline.trace import Traces
from headgate.tasks.ports import RefusedRecord
from headgate.tasks.reporter import Reporter

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_BYTES: Final = 64 * 1024 * 1024
_PRODUCER: Final = "org.apache.kafka.connect.runtime.WorkerSourceTask"
"""What Apache's workers name for records that their producer could not send."""


class RecordRefused(ConnectError):
    """Kafka does not take a record, however often it is sent."""

    def __init__(self, refused: RefusedRecord) -> None:
        message = refused.message
        size = len(message.key or b"") + len(message.value or b"")
        super().__init__(
            f"Unrecoverable exception from producer send callback: {refused.reason},"
            f" record of {size} bytes for topic {message.topic}"
        )


@dataclass(frozen=True, slots=True)
class _Sent:
    first: int
    """Number of its first row."""
    count: int
    rows: list[int] | None
    """Which row of the batch each was made of; None: the same."""
    origin: Callable[[int], SourceRecord]


class Refusals:
    """Remembers what was sent for as long as Kafka may refuse it. Used by one thread."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.count = 0
        """How many were refused so far."""
        self._sent: deque[_Sent] = deque()
        self._bytes = 0

    def expect(self, first: int, table: pa.Table, origin: Callable[[int], SourceRecord]) -> None:
        """These rows are sent next, the first with this number. `origin` knows what a row of the batch came from."""
        if self._reporter.policy.plain or not table.num_rows:
            return  # then the first one fails the task, and that is all
        rows = table.column("row").to_pylist() if "row" in table.column_names else None
        self._sent.append(_Sent(first, table.num_rows, rows, origin))
        self._bytes += table.nbytes

    @property
    def full(self) -> bool:
        """So much is remembered that Kafka's answers should be waited for."""
        return self._bytes > _MOST_BYTES

    def forget(self) -> None:
        """Kafka has answered for all that was sent."""
        self._sent.clear()
        self._bytes = 0

    def __call__(self, refused: RefusedRecord) -> None:
        """For a Sender. Raises RecordRefused where that is not tolerated, after it was reported all the same."""
        policy, message = self._reporter.policy, refused.message
        self.count += 1
        error = RecordRefused(refused)
        origin = self._origin(message.number)
        record = PolledRecord(
            message.topic,
            origin.source_partition if origin else None,
            origin.source_offset if origin else None,
            message.timestamp,
            message.key,
            message.value,
            tuple(message.headers),
            shown_record(origin) if origin and policy.log and policy.log_records else "",
        )
        trace = Traces().of(error) if policy.keeps_traces else ()
        name = class_name(RecordRefused)
        self._reporter.failed(Failure(Stage.KAFKA_PRODUCE, _PRODUCER, name, message_of(error), trace, record))
        if not policy.tolerant:
            raise error

    def _origin(self, number: int) -> SourceRecord | None:
        for sent in reversed(self._sent):
            if sent.first <= number < sent.first + sent.count:
                row = number - sent.first
                return sent.origin(row if sent.rows is None else sent.rows[row])
        return None
