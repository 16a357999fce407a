"""A cluster of three workers that tests share, and its pieces. Tests that break workers make their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_harness import Cluster, cluster

from headgate.dev.broker import Broker


@pytest.fixture(scope="session")
def three(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three workers that nobody breaks."""
    with cluster(tmp_path_factory.mktemp("three"), broker.bootstrap, "three", 3) as made:
        yield made


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
