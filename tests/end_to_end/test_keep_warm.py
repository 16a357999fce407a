"""Spark ends Python workers that were idle for a minute; rides keep them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.cli.assembly import StandaloneWorker
from headgate.spark import ride
from headgate.spark.ride import Rides

pytestmark = pytest.mark.spark


def test_idle_python_workers_are_given_something_to_do(
    worker: StandaloneWorker, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    tracker = worker.engine.session().sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup("keep warm"))
    monkeypatch.setattr(ride, "KEEP_WARM_S", 0.1)
    rides = Rides(worker.engine)
    rides.start()
    try:
        eventually(lambda: len(tracker.getJobIdsForGroup("keep warm")) >= before + 2)
    finally:
        rides.stop()
