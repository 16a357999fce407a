"""One worker for all end-to-end tests that do not need their own: a Spark session takes seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from harness import Client, worker_settings

from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker


@pytest.fixture(scope="session")
def worker(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneWorker]:
    running = StandaloneWorker(worker_settings(broker, tmp_path_factory.mktemp("worker")))
    running.start()
    yield running
    running.stop()


@pytest.fixture
def client(worker: StandaloneWorker) -> Iterator[Client]:
    """The worker's REST API; every connector that a test leaves behind is deleted."""
    made = Client(worker.server.addresses[0])
    yield made
    for name in made.call("GET", "/connectors", 200):
        made.http.delete(f"/connectors/{name}")
    made.close()


@pytest.fixture
def name(unique: Callable[[str], str]) -> str:
    return unique("connector")


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    return unique("topic")
