"""The good client: asks every worker how all is, every second, and measures how soon it is answered."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

import httpx2
from cluster_harness import Cluster, Worker

from tests.soak.answers import Answers
from tests.soak.trouble import Trouble

HEALTH: Final = "GET /health"
STATUS: Final = "GET status"
EVERYTHING: Final = "GET /connectors?expand=status"
_EVERY_S: Final = 1.0
_ALL_EVERY: Final = 10
_PATIENCE_S: Final = 30.0
_SLOW_S: Final = 3.0
"""Health is asked of the group: while that rebalances, the answer waits for the next heartbeats."""


@dataclass
class GoodClient:
    """From `with` to its end."""

    cluster: Cluster
    names: Sequence[str]
    trouble: Trouble
    log: Callable[[str], None] = print
    times: dict[str, list[float]] = field(default_factory=lambda: {HEALTH: [], STATUS: [], EVERYTHING: []})
    """Seconds, of answers while nothing was broken."""

    def __post_init__(self) -> None:
        self.answers = Answers(self.trouble)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="good-client")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        clients = {worker.name: httpx2.Client(base_url=worker.url, timeout=_PATIENCE_S) for worker in self._workers}
        for number in itertools.count():
            for worker in self._workers:
                client, name = clients[worker.name], self.names[number % len(self.names)]
                self._ask(client, worker, HEALTH, "/health", 200)
                # It may have been deleted a moment ago, and be about to come again.
                self._ask(client, worker, STATUS, f"/connectors/{name}/status", 200, 404)
            if number % _ALL_EVERY == 0:
                worker = self._workers[number // _ALL_EVERY % len(self._workers)]
                self._ask(clients[worker.name], worker, EVERYTHING, "/connectors?expand=status", 200)
            if self._ending.wait(_EVERY_S):
                break
        for client in clients.values():
            client.close()

    @property
    def _workers(self) -> list[Worker]:
        return self.cluster.workers

    def _ask(self, client: httpx2.Client, worker: Worker, what: str, path: str, *expected: int) -> None:
        began = time.monotonic()
        status: int | None = None
        try:
            answer = client.get(path)
            status, told = answer.status_code, answer.text
        except httpx2.TransportError as error:
            told = f"{type(error).__name__} after {time.monotonic() - began:.1f} s"
        good = self.answers.take(f"GET {path} at {worker.name}", status, expected, began, told)
        took = time.monotonic() - began
        if good and not self.trouble.since(began):
            self.times[what].append(took)
            if took > _SLOW_S:
                self.log(f"  GET {path} at {worker.name} took {took:.1f} s")


def percentile(times: Sequence[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * part))] if times else 0.0
