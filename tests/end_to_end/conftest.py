"""One worker for all end-to-end tests that do not need their own: a Spark session takes seconds to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from dead_letters_support import Dead
from delta_support import delta_settings
from exactly_once_support import Bench
from harness import WATCHED, Client, worker_settings
from iceberg_support import iceberg_settings
from proxy import Proxy

from headgate.cli.assembly import StandaloneWorker
from headgate.dev.broker import Broker
from headgate.dev.postgres import Postgres
from headgate.dev.server_config import BrokerListener
from headgate.jars.jars import JDBC_DRIVERS, fetch


@pytest.fixture(scope="session")
def worker(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandaloneWorker]:
    folder = tmp_path_factory.mktemp("worker")
    settings = {**worker_settings(broker, folder), **WATCHED, **delta_settings(), **iceberg_settings(folder)}
    jars = [settings["spark.jars"], *map(str, fetch(JDBC_DRIVERS))]
    running = StandaloneWorker({**settings, "spark.jars": ",".join(jars)})
    running.start()
    running.engine.session()  # which may take long on a busy machine, and is not what is tested
    yield running
    running.stop()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A PostgreSQL for all tests that do not stop it."""
    with Postgres() as running:
        yield running


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


@pytest.fixture
def producer(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap})


@pytest.fixture
def dead(broker: Broker, topic: str) -> Iterator[Dead]:
    queue = Dead(broker, f"{topic}-dead")
    yield queue
    queue.close()


# --- transactions: tests of them spoil what goes to and fro, on a broker of their own ---------------------------------


@pytest.fixture(scope="session")
def transaction_doors() -> Iterator[tuple[Broker, Proxy]]:
    # Transactions that are too old are looked for that often: not every 10 s.
    often = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "300"}
    with Proxy() as proxy:
        listeners = [BrokerListener("PROXY", advertised=proxy.address)]
        with Broker(properties=often, listeners=listeners, heap="512m") as running:
            proxy.upstream = running.address("PROXY")
            yield running, proxy


@pytest.fixture
def bench(
    worker: StandaloneWorker, transaction_doors: tuple[Broker, Proxy], unique: Callable[[str], str]
) -> Iterator[Bench]:
    """A source connector of its own, with transactions."""
    made = Bench(worker, transaction_doors[0].bootstrap, unique("eos"))
    with made.open:
        yield made


@pytest.fixture
def proxy(transaction_doors: tuple[Broker, Proxy]) -> Iterator[Proxy]:
    """Without rules at first. Fails the test when a rule was never met, or met what it is not for."""
    proxy = transaction_doors[1]
    proxy.clear()
    yield proxy
    problems = [*proxy.problems, *(f"no message came for {rule}" for rule in proxy.unmet())]
    proxy.clear()
    assert not problems
