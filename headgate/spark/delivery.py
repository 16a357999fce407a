"""The task's own producer: sends the pipeline's columns to Kafka and knows when all of it has arrived."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable
from ctypes import c_char_p, c_void_p, cast
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from headgate.api.errors import ConnectError
from headgate.clients import QUIET, ClientKind, Complaints, translate
from headgate.model import Config
from headgate.spark import librdkafka as native

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_QUEUE_FULL: Final = -184
_PURGED: Final = (-152, -151)
_SLICE: Final = 10_000
"""Rows of one call: between two of them, failures are looked at."""


class Delivery:
    """One thread sends; `check` and `flush` raise what Kafka refused."""

    def __init__(self, config: Config, may_go_on: Callable[[], bool]) -> None:
        translated = translate(ClientKind.PRODUCER, config)
        if translated.ignored:
            log.info("Producer settings without meaning here are ignored: %s", ", ".join(translated.ignored))
        settings = {**QUIET, "queue.buffering.max.messages": 1_000_000, "linger.ms": 5, **translated.config}
        # Only failures are reported: what has left the queue without one has arrived.
        settings["delivery.report.only.error"] = True
        self._calls = native.library()
        self._handle = native.new_producer(settings)
        self._queue = self._calls.rd_kafka_queue_get_main(self._handle)
        self._topics: dict[str, int] = {}
        self._may_go_on = may_go_on
        self._failure: Exception | None = None
        self._complaints = Complaints(log, "Producer")

    # --- sending ------------------------------------------------------------------------------------------------------

    def send(self, table: pa.Table) -> None:
        """Hands all rows to the producer, in order; waits where its queue is full."""
        for batch in table.to_batches():
            topics = batch.column("topic")
            for start, count, topic in _runs(topics):
                self._send_run(topic, batch.slice(start, count))
        self._serve(0)
        self.check()

    def _send_run(self, topic: str, batch: pa.RecordBatch) -> None:
        """Rows of one topic."""
        handle = self._topic(topic)
        plain = all(_column(batch, name).null_count == batch.num_rows for name in ("timestamp", "headers"))
        for start in range(0, batch.num_rows, _SLICE):
            rows = batch.slice(start, _SLICE)
            if plain:
                self._send_columns(handle, rows)
            else:
                self._send_rows(handle, rows)
            self._serve(0)
            self.check()

    def _send_columns(self, topic: int, rows: pa.RecordBatch) -> None:
        messages = np.zeros(rows.num_rows, native.MESSAGE)
        messages["payload"], messages["len"] = _places(rows.column("value"))
        key = _column(rows, "key")
        if key.null_count < rows.num_rows:
            messages["key"], messages["key_len"] = _places(key)
        partition = _column(rows, "partition")
        flags = native.COPY
        if partition.null_count < rows.num_rows:
            messages["partition"] = partition.fill_null(native.ANY_PARTITION).to_numpy(zero_copy_only=False)
            flags |= native.PARTITIONS
        produce = self._calls.rd_kafka_produce_batch
        while len(messages):
            sent = produce(topic, native.ANY_PARTITION, flags, messages.ctypes.data, len(messages))
            if sent == len(messages):
                return
            # The rest comes again in its order: the first that was refused ends what went through, or it is an error.
            left = messages[messages["err"] != 0]
            codes = set(left["err"].tolist())
            if codes != {_QUEUE_FULL}:
                raise self._refused(next(iter(codes - {_QUEUE_FULL})), topic)
            messages = left.copy()
            messages["err"] = 0
            self._wait_for_room()

    def _send_rows(self, topic: int, rows: pa.RecordBatch) -> None:
        """With timestamps or headers, which the call for whole columns does not take."""
        values, sizes = _places(rows.column("value"))
        keys, key_sizes = _places(_column(rows, "key"))
        at = zip(
            values.tolist(),
            sizes.tolist(),
            keys.tolist(),
            key_sizes.tolist(),
            _column(rows, "partition").to_pylist(),
            _column(rows, "timestamp").to_pylist(),
            _column(rows, "headers").to_pylist(),
            strict=True,
        )
        most = 6
        arguments = (native.Argument * most)()
        for index, kind in enumerate(
            (native.RKT, native.FLAGS, native.VALUE, native.KEY, native.PARTITION, native.TIMESTAMP)
        ):
            arguments[index].vtype = kind
        arguments[0].u.rkt = topic
        arguments[1].u.i = native.COPY
        value, key, partition, timestamp = (arguments[index].u for index in range(2, most))
        for payload, size, name, name_size, number, moment, headers in at:
            value.mem.ptr, value.mem.size = payload or None, size
            key.mem.ptr, key.mem.size = name or None, name_size
            partition.i32 = native.ANY_PARTITION if number is None else number
            timestamp.i64 = moment or 0
            if headers:
                self._produce(*_with_headers(arguments, headers))
            else:
                self._produce(arguments, most)

    def _produce(self, arguments: Any, count: int) -> None:
        while True:
            error = self._calls.rd_kafka_produceva(self._handle, arguments, count)
            if not error:
                return
            code = self._calls.rd_kafka_error_code(error)
            self._calls.rd_kafka_error_destroy(error)
            if code != _QUEUE_FULL:
                raise self._refused(code, arguments[0].u.rkt)
            self._wait_for_room()

    def _topic(self, name: str) -> int:
        found = self._topics.get(name)
        if found is None:
            found = self._calls.rd_kafka_topic_new(self._handle, name.encode(), None)
            if not found:
                raise ConnectError(f"{name!r} cannot be a topic of Kafka")
            self._topics[name] = found
        return found

    def _wait_for_room(self) -> None:
        """Back-pressure: the broker is slower than the source."""
        self._serve(100)
        self.check()
        if not self._may_go_on():
            raise ConnectError("Given up on while the producer's queue was full")

    def _refused(self, code: int, topic: int) -> ConnectError:
        name = self._calls.rd_kafka_topic_name(topic).decode()
        return ConnectError(f"Unrecoverable exception trying to send: {self._words(code)}, record for topic {name}")

    def _words(self, code: int) -> str:
        text: bytes = self._calls.rd_kafka_err2str(code)
        return text.decode()

    # --- what Kafka answered ------------------------------------------------------------------------------------------

    def _serve(self, milliseconds: int) -> None:
        """Looks at what failed; waits for that long for something to look at."""
        calls = self._calls
        while event := calls.rd_kafka_queue_poll(self._queue, milliseconds):
            kind = calls.rd_kafka_event_type(event)
            if kind == native.EVENT_DELIVERY:
                while message := calls.rd_kafka_event_message_next(event):
                    code, topic = native.message_error(message)
                    if code and code not in _PURGED:
                        self._fail(
                            f"Unrecoverable exception from producer send callback: {self._words(code)},"
                            f" record for topic {topic}"
                        )
            elif kind == native.EVENT_ERROR:
                text = calls.rd_kafka_event_error_string(event).decode()
                if calls.rd_kafka_event_error_is_fatal(event):
                    self._fail(f"The producer failed for good: {text}")
                else:
                    self._complaints.say(text)
            calls.rd_kafka_event_destroy(event)
            milliseconds = 0

    def _fail(self, message: str) -> None:
        self._failure = self._failure or ConnectError(message)

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def flush(self, seconds: float) -> bool:
        """Waits until Kafka has everything; False when it has not within this time. Raises what it refused."""
        deadline = time.monotonic() + seconds
        while self.outstanding > 0:
            left = deadline - time.monotonic()
            if left <= 0 or not self._may_go_on():
                break
            # With events, the library's flush only wakes up what lingers; what failed is served here.
            self._calls.rd_kafka_flush(self._handle, int(min(left, 0.1) * 1000))
            self._serve(0)
            self.check()
        self._serve(0)
        self.check()
        return self.outstanding == 0

    @property
    def outstanding(self) -> int:
        return int(self._calls.rd_kafka_outq_len(self._handle)) if self._handle else 0

    def close(self) -> None:
        """Forgets what was not acknowledged: its offsets are not committed either. May be repeated."""
        if not self._handle:
            return
        self._calls.rd_kafka_purge(self._handle, native.PURGE_ALL)
        self._serve(0)
        for topic in self._topics.values():
            self._calls.rd_kafka_topic_destroy(topic)
        self._calls.rd_kafka_queue_destroy(self._queue)
        self._calls.rd_kafka_destroy_flags(self._handle, native.DESTROY_AT_ONCE)
        self._handle = 0


def _column(rows: pa.RecordBatch, name: str) -> pa.Array:
    """A column that is left out holds nothing."""
    if name in rows.schema.names:
        return rows.column(name)
    import pyarrow as pa

    return pa.nulls(rows.num_rows, pa.null())


def _runs(topics: pa.Array) -> list[tuple[int, int, str]]:
    """Neighbouring rows of one topic: where they begin, how many, which topic. Usually it is one."""
    first = topics[0].as_py() if len(topics) else ""
    if len(topics.unique()) <= 1:
        return [(0, len(topics), first)] if len(topics) else []
    names = topics.to_pylist()
    starts = [0, *(index for index in range(1, len(names)) if names[index] != names[index - 1]), len(names)]
    return [(start, end - start, names[start]) for start, end in itertools.pairwise(starts)]


def _places(column: pa.Array) -> tuple[np.ndarray[Any, np.dtype[np.uint64]], np.ndarray[Any, np.dtype[np.uint64]]]:
    """Where each value lies in the column's own buffer, and its length; null is nowhere."""
    count = len(column)
    if column.null_count == count:
        return np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    _, offsets, data = column.buffers()
    at = np.frombuffer(offsets, np.int32)[column.offset : column.offset + count + 1].astype(np.uint64)
    # The buffer of a column of empty values may be nowhere, but empty is not null: it lies somewhere.
    base = data.address if data is not None and data.size else offsets.address
    places, sizes = at[:-1] + np.uint64(base), np.diff(at)
    if column.null_count:
        present = column.is_valid().to_numpy(zero_copy_only=False)
        places, sizes = np.where(present, places, np.uint64(0)), np.where(present, sizes, np.uint64(0))
    return places, sizes


def _with_headers(arguments: Any, headers: list[dict[str, Any]]) -> tuple[Any, int]:
    count = len(arguments) + len(headers)
    extended = (native.Argument * count)(*arguments)
    for index, header in enumerate(headers, len(arguments)):
        argument, data = extended[index], header["value"]
        argument.vtype = native.HEADER
        argument.u.header.name = header["key"].encode()
        argument.u.header.val = None if data is None else _address(data)
        argument.u.header.size = -1 if data is None else len(data)
    return extended, count


def _address(data: bytes) -> Any:

    return cast(c_char_p(data), c_void_p)
