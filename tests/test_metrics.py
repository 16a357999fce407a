from __future__ import annotations

import math
import time

import pytest

from headgate.metrics import Meter, SinkMetrics, SourceMetrics, TaskMetrics, Window


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


class TestWindow:
    def test_nothing_yet(self, clock: Clock) -> None:
        window = Window(clock=clock)
        assert math.isnan(window.average)
        assert math.isnan(window.maximum)
        assert math.isnan(window.minimum)
        assert window.rate == 0.0

    def test_average_and_extremes(self, clock: Clock) -> None:
        window = Window(clock=clock)
        for value in (3.0, 5.0, 1.0):
            window.add(value)
        assert (window.average, window.maximum, window.minimum) == (3.0, 5.0, 1.0)

    def test_negative_values_have_a_maximum_too(self, clock: Clock) -> None:
        window = Window(clock=clock)
        window.add(-3.0)
        assert window.maximum == -3.0

    def test_a_rate_is_per_second_and_not_exaggerated_at_the_beginning(self, clock: Clock) -> None:
        window = Window(seconds=10, clock=clock)
        window.add(20)
        assert window.rate == 2.0
        clock.now += 15
        window.add(10)
        assert window.rate == 30 / 15

    def test_what_is_older_than_all_windows_is_forgotten(self, clock: Clock) -> None:
        window = Window(seconds=10, samples=2, clock=clock)
        window.add(100.0)
        clock.now += 10
        window.add(4.0)
        assert (window.minimum, window.maximum) == (4.0, 100.0)
        clock.now += 10
        assert (window.maximum, window.average) == (4.0, 4.0)
        clock.now += 10
        assert math.isnan(window.maximum)
        assert window.rate == 0.0

    @pytest.mark.parametrize("samples", [1, 2, 5])
    def test_no_more_than_its_windows_are_kept(self, clock: Clock, samples: int) -> None:
        window = Window(seconds=1, samples=samples, clock=clock)
        for _ in range(100):
            window.add(1.0)
            clock.now += 1
        assert len(window._buckets) == samples


def test_a_meter_has_a_total_and_a_rate() -> None:
    meter = Meter()
    meter.add(3)
    meter.add(4)
    assert meter.total == 7
    assert meter.rate == pytest.approx(7 / 30)


class TestTasks:
    def test_commits(self) -> None:
        metrics = TaskMetrics()
        metrics.committed(time.monotonic() - 0.5, ok=True)
        metrics.committed(time.monotonic(), ok=False)
        assert (metrics.commits, metrics.commit_failures) == (1, 1)
        assert 500 <= metrics.commit_ms.maximum < 5000

    def test_the_share_of_time_it_was_paused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = Clock()
        monkeypatch.setattr(time, "monotonic", clock)
        metrics = TaskMetrics(created=clock.now)
        assert metrics.pause_ratio == 0.0
        clock.now += 3
        metrics.pause()
        clock.now += 1
        metrics.pause()
        assert metrics.pause_ratio == 0.25
        metrics.resume()
        metrics.resume()
        clock.now += 4
        assert (metrics.pause_ratio, metrics.paused_s) == (0.125, 1.0)

    @pytest.mark.parametrize("kind", [SourceMetrics, SinkMetrics])
    def test_tasks_share_nothing(self, kind: type[TaskMetrics]) -> None:
        one, two = kind(), kind()
        one.errors.skipped += 1
        one.batch_size.add(5)
        assert two.errors.skipped == 0
        assert math.isnan(two.batch_size.average)
