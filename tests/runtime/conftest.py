from __future__ import annotations

from collections.abc import Iterator

import pytest
from cluster_fakes import Group, Node
from runtime_fakes import Script, Scripted, World

GRACE_S = 0.1


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    script = Script()
    monkeypatch.setattr(Scripted, "current", script, raising=False)
    # Plugin code that hangs is given up on after five seconds, which is long for a test.
    monkeypatch.setattr("headgate.runtime.connector.GRACEFUL_STOP_S", GRACE_S)
    monkeypatch.setattr("headgate.runtime.holdings.GRACEFUL_STOP_S", GRACE_S)
    yield script
    script.released.set()


@pytest.fixture
def world(script: Script) -> Iterator[World]:
    world = World(script)
    yield world
    script.released.set()
    world.runner.deaf = False
    world.herder.shutdown(timeout=5)


@pytest.fixture
def group(script: Script) -> Iterator[Group]:
    """Three workers, the first of which leads."""
    made = Group(script, "a", "b", "c")
    made.settle()
    yield made
    made.close()


@pytest.fixture
def node(script: Script) -> Iterator[Node]:
    """One worker, alone in its group; it is told what it holds by the test."""
    made = Group(script, "a")
    made.settle()
    yield made.nodes[0]
    made.close()
