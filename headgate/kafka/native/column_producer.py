"""A native producer for transactions that takes whole columns; `producer` decides what to do with it.

It stands where confluent_kafka's Producer would, with those of its methods that a source task needs, and behaves the
same: failed records are told to callbacks within the calls, errors are raised as KafkaException, with librdkafka's
flags, and one that ends the producer comes out of the next `poll` or `flush`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from ctypes import CFUNCTYPE, byref, c_char_p, c_int, c_void_p, cast
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from headgate.kafka.native import calls as native
from headgate.kafka.native.calls import Message
from headgate.kafka.native.columns import Arguments, address
from headgate.kafka.native.rows import QUEUE_FULL
from headgate.kafka.statistics import traced

log = logging.getLogger(__name__)

_FATAL: Final = KafkaError._FATAL
_INVALID_TOPIC: Final = 17
_ON_DELIVERY: Final = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)
_ON_ERROR: Final = CFUNCTYPE(None, c_void_p, c_int, c_char_p, c_void_p)


class Report:
    """The record of a delivery report, as far as it is of interest."""

    def __init__(self, message: Message) -> None:
        self._message = message

    def topic(self) -> str:
        return self._message.topic

    def partition(self) -> int:
        return self._message.partition

    def key(self) -> bytes | None:
        return self._message.key


class ColumnProducer:
    """`config` has librdkafka's settings, with `on_delivery(error, report)` and `error_cb(error)`."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises KafkaException."""
        settings = dict(config)
        self._callbacks = _Callbacks(settings.pop("on_delivery"), settings.pop("error_cb"))
        self._calls = native.library()
        self._topics: dict[str, int] = {}
        self._traced = traced(str(settings.get("client.id", "rdkafka")))
        self.handle = native.new_producer(settings, self._callbacks.install, self._traced.sockets.install)

    # --- records ------------------------------------------------------------------------------------------------------

    def topic(self, name: str) -> int:
        """librdkafka's object for it. Raises KafkaException when no topic can have this name."""
        found = self._topics.get(name)
        if found is None:
            found = self._calls.rd_kafka_topic_new(self.handle, name.encode(), None)
            if not found:
                raise KafkaException(KafkaError(_INVALID_TOPIC, f"there can be no topic {name!r}"))
            self._topics[name] = found
        return found

    def produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = native.ANY_PARTITION,
        on_delivery: None = None,
        callback: None = None,
        timestamp: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> None:
        """One record. Raises BufferError when there is no room."""
        arguments = Arguments(self.topic(topic))
        arguments.set(_place(value), _place(key), partition, timestamp, headers or (), 0)
        code = native.produce(self.handle, arguments)
        if code == QUEUE_FULL:
            raise BufferError("the producer's queue is full")
        if code:
            raise KafkaException(error_of(code))

    # --- what came back -----------------------------------------------------------------------------------------------

    def poll(self, seconds: float = 0.0) -> int:
        served: int = self._calls.rd_kafka_poll(self.handle, _ms(seconds))
        self._callbacks.check()
        return served

    def flush(self, seconds: float) -> int:
        self._calls.rd_kafka_flush(self.handle, _ms(seconds))
        self._callbacks.check()
        return len(self)

    def purge(self) -> None:
        self._calls.rd_kafka_purge(self.handle, native.PURGE_KNOWN)

    def __len__(self) -> int:
        return int(self._calls.rd_kafka_outq_len(self.handle))

    # --- transactions -------------------------------------------------------------------------------------------------

    def init_transactions(self, seconds: float) -> None:
        self._check(self._calls.rd_kafka_init_transactions(self.handle, _ms(seconds)))

    def begin_transaction(self) -> None:
        self._check(self._calls.rd_kafka_begin_transaction(self.handle))

    def send_offsets_to_transaction(
        self, offsets: Sequence[TopicPartition], group_metadata: object, seconds: float
    ) -> None:
        if not isinstance(group_metadata, bytes):
            raise TypeError(f"expected bytes, {type(group_metadata).__name__} found")
        calls, group = self._calls, c_void_p()
        self._check(calls.rd_kafka_consumer_group_metadata_read(byref(group), group_metadata, len(group_metadata)))
        found = native.partition_list((each.topic, each.partition, each.offset) for each in offsets)
        try:
            self._check(calls.rd_kafka_send_offsets_to_transaction(self.handle, found, group, _ms(seconds)))
        finally:
            calls.rd_kafka_topic_partition_list_destroy(found)
            calls.rd_kafka_consumer_group_metadata_destroy(group)

    def commit_transaction(self, seconds: float) -> None:
        self._check(self._calls.rd_kafka_commit_transaction(self.handle, _ms(seconds)))

    def abort_transaction(self, seconds: float) -> None:
        self._check(self._calls.rd_kafka_abort_transaction(self.handle, _ms(seconds)))

    def _check(self, error: int | None) -> None:
        if not error:
            return
        calls = self._calls
        raised = KafkaError(
            calls.rd_kafka_error_code(error),
            calls.rd_kafka_error_string(error).decode(),
            bool(calls.rd_kafka_error_is_fatal(error)),
            bool(calls.rd_kafka_error_is_retriable(error)),
            bool(calls.rd_kafka_error_txn_requires_abort(error)),
        )
        calls.rd_kafka_error_destroy(error)
        raise KafkaException(raised)

    def destroy(self) -> None:
        """What was not sent is lost. Nobody may be inside, or ask it for anything afterwards. Harmless when closed."""
        handle, self.handle = getattr(self, "handle", 0), 0
        if handle:
            for topic in self._topics.values():
                self._calls.rd_kafka_topic_destroy(topic)
            self._calls.rd_kafka_destroy_flags(handle, native.DESTROY_AT_ONCE)

    __del__ = destroy


class _Callbacks:
    """librdkafka's callbacks. They do not know the producer: it could never be let go of otherwise."""

    def __init__(
        self, on_delivery: Callable[[KafkaError | None, Report], object], on_error: Callable[[KafkaError], object]
    ) -> None:
        self._tell_delivery = on_delivery
        self._tell_error = on_error
        self._fatal: KafkaError | None = None
        self._c_delivery = _ON_DELIVERY(self._delivered)
        self._c_error = _ON_ERROR(self._failed)

    def install(self, conf: int) -> None:
        calls = native.library()
        calls.rd_kafka_conf_set_dr_msg_cb(conf, cast(self._c_delivery, c_void_p))
        calls.rd_kafka_conf_set_error_cb(conf, cast(self._c_error, c_void_p))

    def check(self) -> None:
        """Raises what ended the producer, once."""
        fatal, self._fatal = self._fatal, None
        if fatal is not None:
            raise KafkaException(fatal)

    def _delivered(self, _: int, message: int, __: int) -> None:
        try:
            code = native.error_of(message)
            if code:
                self._tell_delivery(error_of(code), Report(native.bare_message_of(message)))
        except Exception:
            log.exception("A report of a delivery was lost")

    def _failed(self, producer: int, code: int, reason: bytes, _: int) -> None:
        try:
            fatal = native.fatal_error(producer) if code == _FATAL else None
            if fatal is not None:
                self._fatal = KafkaError(*fatal, True)
            else:
                self._tell_error(KafkaError(code, reason.decode()))
        except Exception:
            log.exception("An error of the producer was lost: %s", reason)


def error_of(code: int) -> KafkaError:
    return KafkaError(code, native.words(code))


def _place(data: bytes | None) -> tuple[int, int]:
    return (0, 0) if data is None else (address(data), len(data))


def _ms(seconds: float) -> int:
    return max(int(seconds * 1000), 0)
