"""HttpSinkTask: sends records, in their order, until each was taken or refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

from headgate.api import ConnectError, DataError, RetriableError, SinkRecord, SinkTask, TopicPartition
from headgate.connectors.http.answer import Outcome
from headgate.connectors.http.client import HttpClient
from headgate.connectors.http.pace import RequestPace
from headgate.connectors.http.parcels import Parcel, Parcels
from headgate.connectors.http.sink_config import HttpSinkConfig

_PUT_S: Final = 10.0
"""So long `put` goes on before it lets the consumer show that it is alive, and the task be stopped."""
_WANTED: Final = 65536
"""Of an answer that says that all is well. The rest is not read, which costs its connection."""
_LOGIN_WRONG: Final = frozenset({401, 407})
"""Which is no record's fault."""
_GONE: Final = frozenset({404, 410})
"""To a DELETE, that all is well: it may be the second one, since records may come again."""


class HttpSinkTask(SinkTask):
    """At least once: what was sent and not committed is sent again. When a request fails, those records of a batch that
    were taken are not sent again as long as the same batch is put."""

    def __init__(self) -> None:
        self._client: HttpClient | None = None
        self._stopping = threading.Event()
        self._forget()

    def _forget(self) -> None:
        self._batch: Sequence[SinkRecord] = ()
        self._done = 0
        """So many of the batch were taken, reported or left out."""
        self._alone_until = 0
        """One record before this one was refused, and it is not known which: each has a request of its own."""
        self._failures = 0

    def start(self, config: Mapping[str, str]) -> None:
        self._config = HttpSinkConfig.of(config)
        self._parcels = Parcels(self._config)
        self._pace = RequestPace(self._config.client.requests_per_second)
        self._client = HttpClient(self._config.client, self.context.require)

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        self._forget()

    def put(self, records: Sequence[SinkRecord]) -> None:
        if records is not self._batch:  # else it is the same again, after RetriableError
            self._forget()
            self._batch = records
        until = time.monotonic() + _PUT_S
        while self._done < len(records):
            most = 1 if self._done < self._alone_until else self._config.batch_records
            try:
                parcel = self._parcels.next(records, self._done, most)
            except DataError as error:
                self._report(records[self._done], error)
                self._done += 1
                continue
            if parcel.records:
                self._wait(until)
                if not self._sent(parcel):
                    self._alone_until = parcel.end
                    continue
            self._done = parcel.end
        self._batch = ()

    def stop_requested(self) -> None:
        self._stopping.set()

    def stop(self) -> None:
        if self._client is not None:
            self._client.close()

    def _sent(self, parcel: Parcel) -> bool:
        """False: one of several was refused. Raises RetriableError; ConnectError when it is of no use to go on."""
        assert self._client is not None
        self._pace.begin(time.monotonic())
        try:
            answer = self._client.ask(parcel.method, parcel.address, parcel.body, self._headers(parcel), _WANTED)
        except RetriableError as error:
            self._again(str(error), None)
        if answer.outcome is Outcome.DONE or (parcel.method == "DELETE" and answer.status in _GONE):
            self._failures = 0
            return True
        told = self._client.complaint(parcel.method, parcel.address, answer)
        if answer.outcome is Outcome.LATER:
            self._again(told, answer.retry_after_s)
        if answer.status < 400 or answer.status in _LOGIN_WRONG:
            raise ConnectError(told)
        self._failures = 0
        if len(parcel.records) > 1:
            return False
        self._report(parcel.records[0], DataError(told))
        return True

    def _headers(self, parcel: Parcel) -> dict[str, str]:
        headers = {} if parcel.body is None else {"Content-Type": self._config.content_type}
        if self._config.idempotency_header is not None:
            record = parcel.records[0]
            place = f"{record.original_topic}-{record.original_partition}-{record.original_offset}"
            headers[self._config.idempotency_header] = place
        return headers

    def _report(self, record: SinkRecord, error: DataError) -> None:
        """Raises where bad records are not tolerated."""
        if self.context.reporter is None:
            place = f"{record.original_topic}, partition {record.original_partition}, offset {record.original_offset}"
            raise ConnectError(f"A record is not taken, of topic {place}: {error}") from error
        self.context.reporter.report(record, error)

    def _wait(self, until: float) -> None:
        """For the request's turn. Raises RetriableError when that is later than this call should take, or when the
        task is to stop meanwhile."""
        now = time.monotonic()
        left = self._pace.left(now)
        if now + left > until or (left and self._stopping.wait(left)):
            self.context.timeout(max(1, int(left * 1000)))
            raise RetriableError(
                f"{self._done} of {len(self._batch)} records are sent, the others follow: the server is slow, or"
                " rate.limit.per.second low"
            )

    def _again(self, told: str, retry_after_s: float | None) -> NoReturn:
        self._failures += 1
        most = self._config.retry_max
        if 0 <= most < self._failures:
            raise ConnectError(f"{told}; it was tried {self._failures} times")
        delay = self._config.client.delay_s(self._failures, retry_after_s)
        self.context.timeout(max(1, int(delay * 1000)))
        raise RetriableError(told)
