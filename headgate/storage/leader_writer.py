"""LeaderWriter: what only the leader may write to the config topic, in transactions that shut out who led before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from headgate.clients import QUIET, ClientKind, translate
from headgate.model import Config
from headgate.producer import TransactionAbortableError, TransactionalProducer
from headgate.storage.topic_writer import Entry, WriteFailed

_CLAIM_S: Final = 30.0


class LeaderWriter:
    """Fits `Writer`. The last one that was made with an id is the only one whose writes count."""

    def __init__(self, topic: str, clients: Config, transactional_id: str) -> None:
        """Blocks until the id is this writer's alone. Raises the errors of `headgate.producer`, ClientConfigError."""
        self._topic = topic
        made = {**clients, "acks": "all", "enable.idempotence": "true", "transactional.id": transactional_id}
        self._producer = TransactionalProducer({**QUIET, **translate(ClientKind.PRODUCER, made).config})
        try:
            self._producer.init(_CLAIM_S)
        except BaseException:
            self._producer.close(0)
            raise

    def write(self, entries: Sequence[Entry], timeout: float) -> None:
        deadline = time.monotonic() + timeout
        try:
            self._producer.begin()
            for key, value in entries:
                self._producer.send(self._topic, value, key=key)
            self._producer.commit(max(deadline - time.monotonic(), 0.1))
        except TransactionAbortableError as error:
            self._producer.abort(_CLAIM_S)
            raise WriteFailed(f"Kafka did not take it: {error}") from error

    def close(self) -> None:
        self._producer.close(5.0)
