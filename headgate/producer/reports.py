"""What comes back from librdkafka by itself: reports of deliveries, and errors of its connections.

Its callbacks run inside our calls, and what they raise would come out of those, even of a commit that succeeded. So
nothing gets out of here. Nothing here knows the native producer either: it could never be let go of otherwise.
"""

from __future__ import annotations

import logging
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import KafkaError, Message

from headgate.log import Complaints
from headgate.producer import codes
from headgate.producer.classify import produce_failed
from headgate.producer.errors import (
    FailedRecord,
    FailedRecords,
    KafkaErrorInfo,
    ProduceFailedError,
    TransactionAbortedError,
)

log = logging.getLogger(__name__)

OnDelivery = Callable[[ProduceFailedError | None, Message], object]
"""Told of one record: the error, or None; and the message, with its offset if it has arrived."""

_KEPT: Final = 10


def info_of(error: KafkaError) -> KafkaErrorInfo:
    code = error.code()
    return KafkaErrorInfo(
        code, codes.name(code), error.str(), error.fatal(), error.retriable(), error.txn_requires_abort()
    )


class Reports:
    """The failures of one transaction's records. `failed` is read after every few sends, so it is a plain number."""

    def __init__(self, transactional_id: str | None) -> None:
        self._transactional_id = transactional_id
        self.begin()

    def begin(self) -> None:
        self.failed = 0
        self.codes: set[int] = set()
        self.first: KafkaErrorInfo | None = None
        """The first failure that tells what happened."""
        self.dropping = False
        """The transaction is being aborted, or the producer closed: dropped records are no failures."""
        self._records: list[FailedRecord] = []

    @property
    def records(self) -> FailedRecords:
        return FailedRecords(self.failed, tuple(self._records))

    # --- callbacks of librdkafka --------------------------------------------------------------------------------------

    def on_report(self, error: KafkaError | None, message: Message) -> None:
        """Of records without a callback of their own."""
        if error is not None:
            self._note(error, message)

    def telling(self, callback: OnDelivery) -> Callable[[KafkaError | None, Message], None]:
        """For one record whose sender wants to know."""

        def on_report(error: KafkaError | None, message: Message) -> None:
            told = None if error is None else self._note(error, message)
            self.tell(callback, told, message)

        return on_report

    def tell(self, callback: OnDelivery, error: ProduceFailedError | None, message: Message) -> None:
        try:
            callback(error, message)
        except Exception:
            log.exception("A delivery callback raised; the transaction does not depend on it")

    def _note(self, error: KafkaError, message: Message) -> ProduceFailedError | None:
        info = info_of(error)
        if info.code in codes.DELIVERED:
            return None
        if self.dropping and info.code in codes.PURGED:
            return produce_failed(info, self._transactional_id, kind=TransactionAbortedError)
        self.refuse(info, message.topic() or "", message.partition(), message.key())
        return produce_failed(info, self._transactional_id)

    def refuse(self, info: KafkaErrorInfo, topic: str, partition: int | None, key: Any) -> None:
        """A record of this transaction failed, here or at the broker."""
        self.failed += 1
        self.codes.add(info.code)
        if info.code in codes.SYMPTOMS:
            return
        if self.first is None:
            self.first = info
        if len(self._records) < _KEPT:
            data = key.encode() if isinstance(key, str) else key
            key_hash = None if data is None else zlib.crc32(data)
            self._records.append(FailedRecord(topic, -1 if partition is None else partition, key_hash, info.code))


class Hints:
    """What librdkafka says of its connections. A call that waits for them only ever says that it timed out."""

    _PATIENCE_S: Final = 5.0

    def __init__(self, name: str, forward: Callable[[KafkaError], object] | None) -> None:
        self._complaints = Complaints(log, name)
        self._forward = forward
        self.refused_login: KafkaErrorInfo | None = None
        self._since = 0.0

    def on_error(self, error: KafkaError) -> None:
        info = info_of(error)
        self._complaints.say(str(info))
        if info.code in codes.AUTHENTICATION_HINTS:
            if self.refused_login is None:
                self._since = time.monotonic()
            self.refused_login = info
        if self._forward is not None:
            try:
                self._forward(error)
            except Exception:
                log.exception("error_cb raised")

    def login_is_hopeless(self) -> bool:
        """A new user may take a moment to be known to all brokers; not that long."""
        return self.refused_login is not None and time.monotonic() - self._since > self._PATIENCE_S

    def forget(self) -> None:
        """The broker answered."""
        self.refused_login = None
