"""Fixtures of the tests of tasks."""

from __future__ import annotations

import pytest

from headgate.tasks import waiting


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for the engine looks around often."""
    monkeypatch.setattr(waiting, "_LOOK_S", 0.02)
