"""AdminClients: one Kafka admin client for each distinct configuration, for as long as somebody uses it."""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from headgate.kafka.settings import QUIET, ClientKind, translate
from headgate.model import Config

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

# Errors that go away by themselves: the broker of the group is starting or has just changed.
PASSING: Final = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)


@dataclass(slots=True)
class _Used:
    client: AdminClient
    last: float = field(default_factory=time.monotonic)


class AdminClients:
    """May be used from any thread. A client that nobody asked for in `idle` seconds is dropped, and closes as soon as
    its last user lets go of it: a worker with a hundred sinks shall not hold a hundred connections for nothing."""

    def __init__(self, idle: float = 60.0) -> None:
        self._idle = idle
        self._clients: dict[frozenset[tuple[str, Any]], _Used] = {}
        self._guard = threading.Lock()
        self._sweeper: threading.Timer | None = None

    def get(self, admin: Config) -> AdminClient:
        """For settings by Apache's names. Raises ClientConfigError, or KafkaException if the client cannot start."""
        config = translate(ClientKind.ADMIN, admin).config
        key = frozenset(config.items())
        with self._guard:
            used = self._clients.get(key)
            if used is None:
                used = self._clients[key] = _Used(AdminClient({**QUIET, **config}))
            used.last = time.monotonic()
            if self._sweeper is None:
                self._schedule()
            return used.client

    def __len__(self) -> int:
        return len(self._clients)

    def close(self) -> None:
        """Drop all clients."""
        with self._guard:
            if self._sweeper is not None:
                self._sweeper.cancel()
                self._sweeper = None
            dropped, self._clients = self._clients, {}
        dropped.clear()

    def _schedule(self) -> None:
        self._sweeper = threading.Timer(self._idle, self._sweep)
        self._sweeper.daemon = True
        self._sweeper.name = "admin-clients"
        self._sweeper.start()

    def _sweep(self) -> None:
        latest = time.monotonic() - self._idle
        with self._guard:
            if self._sweeper is not threading.current_thread():
                return  # closed meanwhile
            dropped = {key: used for key, used in self._clients.items() if used.last <= latest}
            self._clients = {key: used for key, used in self._clients.items() if key not in dropped}
            self._sweeper = None
            if self._clients:
                self._schedule()
        dropped.clear()  # here, and not under the lock: closing a client takes time


def wait(client: AdminClient, future: Future[T], timeout: float) -> T:
    """The future's result; TimeoutError if it does not come. Serves the client's log and token callbacks meanwhile."""
    deadline = time.monotonic() + timeout
    while True:
        client.poll(0)
        left = deadline - time.monotonic()
        try:
            return future.result(min(0.1, max(left, 0.0)))
        except TimeoutError:
            if future.done() or left <= 0:
                raise
