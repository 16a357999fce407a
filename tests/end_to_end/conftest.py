"""One worker for all end-to-end tests that do not need their own: a Spark session takes seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import Client

from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker

PLUGINS = Path(__file__).parent.parent / "plugins"


def worker_settings(broker: Broker, folder: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "offset.storage.file.filename": str(folder / "offsets.json"),
        "offset.flush.interval.ms": "1000",
        "listeners": "http://127.0.0.1:0",
        "plugin.path": str(PLUGINS),
        "task.shutdown.graceful.timeout.ms": "5000",
    }


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
