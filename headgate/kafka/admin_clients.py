"""Admin clients: made, waited for, and kept, one for each distinct configuration, for as long as somebody uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from headgate.kafka.settings import USUAL, ClientKind, translate
from headgate.kafka.statistics import served, watched
from headgate.model import Config

T = TypeVar("T")

_LOOK_S: Final = 0.1


def admin_client(settings: Config, **callbacks: Callable[[KafkaError], None]) -> AdminClient:
    """For settings by Apache's names. Raises ClientConfigError, or KafkaException if the client cannot start."""
    config: dict[str, Any] = {**USUAL, **translate(ClientKind.ADMIN, settings).config, **callbacks}
    return _made(config)


def _made(config: dict[str, Any]) -> AdminClient:
    # Looking for a topic shall not make it: to librdkafka, who asks is a producer.
    return served(AdminClient(watched(ClientKind.ADMIN, {**config, "allow.auto.create.topics": False})))


def wait(client: AdminClient, answer: Future[T], seconds: float, may_go_on: Callable[[], bool] = lambda: True) -> T:
    """What a client's question is answered with. Serves the client's log and token callbacks meanwhile. Raises
    KafkaException, that it took too long too."""
    deadline = time.monotonic() + seconds
    while True:
        client.poll(0)
        left = deadline - time.monotonic()
        try:
            return answer.result(min(_LOOK_S, max(left, 0.0)))
        except TimeoutError:
            if left <= 0 or not may_go_on():
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None


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
                used = self._clients[key] = _Used(_made({**USUAL, **config}))
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
