from __future__ import annotations

from collections.abc import Iterator

import pytest
from runtime_fakes import Script, Scripted, World

GRACE_S = 0.1


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    script = Script()
    monkeypatch.setattr(Scripted, "current", script, raising=False)
    # Plugin code that hangs is given up on after five seconds, which is long for a test.
    monkeypatch.setattr("headgate.runtime.connector.GRACEFUL_STOP_S", GRACE_S)
    monkeypatch.setattr("headgate.runtime.standalone.GRACEFUL_STOP_S", GRACE_S)
    yield script
    script.released.set()


@pytest.fixture
def world(script: Script) -> Iterator[World]:
    world = World(script)
    yield world
    script.released.set()
    world.runner.deaf = False
    world.herder.shutdown(timeout=5)
