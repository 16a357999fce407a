"""A cluster of three workers that tests share, and its pieces. Tests that break workers make their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_harness import Cluster, Faulty, cluster
from lab import Flow, Lab
from sightings import Sightings

from headgate.dev.broker import Broker


@pytest.fixture(scope="session")
def three(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers that nobody breaks."""
    with cluster(tmp_path_factory.mktemp("three"), broker.bootstrap, "three", 3) as made:
        yield made


@pytest.fixture(scope="session")
def two(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two workers that tests may stop, as operators do, if they start them again. They wait as long for a lost one as
    Apache's do by default; their session keys do not live long."""
    settings = {
        "scheduled_rebalance_max_delay_ms": "300000",
        "inter_worker_key_ttl_ms": "1500",
        "spark_master": "local[1,4]",
    }
    with cluster(tmp_path_factory.mktemp("two"), broker.bootstrap, "two", 2, **settings) as made:
        yield made


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with Lab(tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def lab(laboratory: Lab) -> Iterator[Lab]:
    """Three workers and a broker to break; whole and idle before and after each test."""
    yield laboratory
    laboratory.mend()


@pytest.fixture
def flow(lab: Lab, tmp_path: Path, name: str) -> Flow:
    """Lines that must all arrive, whatever breaks; its connectors run."""
    made = Flow(tmp_path, name)
    made.create(lab.workers[0])
    return made


@pytest.fixture
def seen(lab: Lab, topic: str) -> Iterator[Sightings]:
    """What witnesses tell in the topic."""
    with Sightings(lab.broker.bootstrap, topic) as made:
        yield made


@pytest.fixture(autouse=True)
def tidied(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test leaves behind on the shared workers is deleted, so that the next one finds them idle."""
    yield
    for name in {"three", "two"} & set(request.fixturenames):
        shared: Cluster = request.getfixturevalue(name)
        shared.delete_all()


@pytest.fixture
def name(unique: Callable[[str], str]) -> str:
    return unique("connector")


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    return unique("topic")


@pytest.fixture
def group(unique: Callable[[str], str]) -> str:
    return unique("group")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def faulty(three: Cluster, tmp_path: Path, name: str, topic: str) -> Iterator[Faulty]:
    made = Faulty(three, tmp_path, name, topic)
    yield made
    made.heal()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starting and breaking clusters takes minutes: these tests have a target of their own."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.clusters)
