"""TransactionalWriter: writes to one topic, all or none at a time, that shut out who wrote with the same id before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from headgate.kafka.settings import USUAL, ClientKind, translate
from headgate.model import Config
from headgate.producer import TransactionAbortableError, TransactionalProducer
from headgate.storage.topic_writer import Entry, WriteFailed

_CLAIM_S: Final = 30.0
_AT_ONCE: Final = 8


class TransactionalWriter:
    """Fits `Writer`. Of several with one id, the writes of the last one that was made are the only ones that count."""

    def __init__(self, topic: str, clients: Config, transactional_id: str) -> None:
        """Blocks until the id is this writer's alone. Raises the errors of `headgate.producer`, ClientConfigError."""
        self._topic = topic
        self._producer = claimed(clients, transactional_id)

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


def fence(clients: Config, ids: Sequence[str]) -> None:
    """KIP-618: returns when all producers with these transactional ids are shut out and nothing that they still send
    counts: Kafka lets only the newest producer of an id go on. Raises the errors of `headgate.producer`. `clients` are
    settings by Apache's names."""

    def shut_out(each: str) -> None:
        claimed(clients, each).close(1.0)

    if ids:
        with ThreadPoolExecutor(min(len(ids), _AT_ONCE), thread_name_prefix="fencing") as pool:
            list(pool.map(shut_out, ids))


def claimed(clients: Config, transactional_id: str) -> TransactionalProducer:
    """A producer whose id no other can use any more; what others left unfinished with it is aborted. `clients` are
    settings by Apache's names."""
    made = {**clients, "acks": "all", "enable.idempotence": "true", "transactional.id": transactional_id}
    config = translate(ClientKind.PRODUCER, made).config
    producer = TransactionalProducer({**USUAL, **config, "allow.auto.create.topics": False})
    try:
        producer.init(_CLAIM_S)
    except BaseException:
        producer.close(0)
        raise
    return producer
