"""Outcomes: what came back from the engine is told, and what is to be tried again is, after its pause."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from fakes import TASK, Clock, Engine, Letters, TopicAdmin, errors_config, make_ports, task_spec
from pipeline_plugins import FailTimes

from headgate.api import SinkTask, SourceRecord
from headgate.metrics import ErrorMetrics
from headgate.model import EngineUnavailable, PluginRef, PluginSpec, StepSpec, TaskSpec
from headgate.pipeline import blob
from headgate.pipeline.failure import ConsumedRecord, Failure, PolledRecord, Stage
from headgate.tasks.control import Control, Stopped
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.reporter import Reporter

pytestmark = pytest.mark.kip(298, "retries")


@pytest.fixture
def fail_times() -> Iterator[Callable[..., StepSpec]]:
    """A transform that fails for a value, so often."""
    FailTimes.seen.clear()
    ref = PluginRef("pipeline_plugins", "FailTimes")
    yield lambda value, times: StepSpec("f", PluginSpec(ref, {"value": value, "times": str(times)}))
    FailTimes.seen.clear()


class Bench:
    """Pauses move the clock."""

    def __init__(self, *steps: StepSpec, **errors: str) -> None:
        self.spec: TaskSpec = task_spec(SinkTask, steps=steps, errors=errors_config(**errors))
        self.engine, self.clock, self.letters, self.metrics = Engine(), Clock(), Letters(), ErrorMetrics()
        self.control = Control(paused=False)
        self.pauses: list[float] = []
        self.pause: Callable[[float], None] = self._pause
        ports = make_ports(
            self.engine, self.clock, letters=lambda *_: self.letters, topics=lambda *_: TopicAdmin("dead")
        )
        self.reporter = Reporter(self.spec, self.metrics, self.control, ports)

    def outcomes(self) -> Outcomes:
        return Outcomes(TASK, self.reporter, self.control, self.engine, self.clock, lambda seconds: self.pause(seconds))

    def results(self, values: Sequence[str], **options: Any) -> Iterator[blob.Result]:
        records = [SourceRecord(topic="t", value=value) for value in values]
        job = blob.source_records_job(blob.pack_spec(self.spec.chain), records)
        return self.outcomes().of(blob.run(blob.pack(job)), **options)

    def settle(self, values: Sequence[str], **options: Any) -> list[bytes]:
        """What is produced."""
        return [value for result in self.results(values, **options) for value in result.table()["value"].to_pylist()]

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.move(seconds)


def test_what_is_left_undone_is_tried_again_after_its_pause(fail_times: Callable[..., StepSpec]) -> None:
    bench = Bench(fail_times("b", 2), retry_timeout="60000")
    assert bench.settle(["a", "b", "c"]) == [b"a", b"b", b"c"]
    assert bench.pauses == [0.3, 0.6]
    assert (bench.metrics.failures, bench.metrics.retries, bench.metrics.errors) == (2, 2, 0)


def test_what_is_done_comes_before_the_pause(fail_times: Callable[..., StepSpec]) -> None:
    """So that a sink puts what stands before the record that must wait."""
    bench = Bench(fail_times("b", 1), retry_timeout="60000")
    results = bench.results(["a", "b", "c"])
    assert next(results).table()["value"].to_pylist() == [b"a"]
    assert (bench.pauses, len(bench.engine.submissions)) == ([], 0)
    assert next(results).table()["value"].to_pylist() == [b"b", b"c"]
    assert len(bench.engine.submissions) == 1


def test_time_is_counted_from_the_first_failure_of_each_record(fail_times: Callable[..., StepSpec]) -> None:
    """A record that comes later has all of its time."""
    # Both steps count what either sees: d fails twice, in the second one.
    bench = Bench(fail_times("b", 2), fail_times("d", 4), retry_timeout="1000", tolerance="all")
    assert bench.settle(["a", "b", "c", "d"]) == [b"a", b"b", b"c", b"d"]
    assert bench.pauses == [0.3, 0.6, 0.3, 0.6]


def test_a_record_that_never_goes_is_left_out_and_told_by_its_row(fail_times: Callable[..., StepSpec]) -> None:
    bench = Bench(fail_times("b", 999), retry_timeout="1", tolerance="all", deadletterqueue_topic_name="dead")
    rows: list[int] = []

    def place(row: int) -> tuple[dict[str, Any], dict[str, Any]]:
        rows.append(row)
        return {"file": "x"}, {"row": row}

    assert bench.settle(["a", "a", "b", "c"], place=place) == [b"a", b"a", b"c"]
    assert rows == [2]
    assert [value for _, value, *_ in bench.letters.sent] == [b"b"]
    assert bench.metrics.failures == bench.metrics.retries + 1 == len(bench.pauses) + 1
    assert (bench.metrics.errors, bench.metrics.skipped) == (1, 1)


def test_what_is_not_tolerated_is_told_and_then_raised(fail_times: Callable[..., StepSpec]) -> None:
    bench = Bench(fail_times("b", 999))
    with pytest.raises(blob.JobFailed):
        bench.settle(["a", "b"])
    assert (bench.metrics.errors, bench.metrics.skipped) == (1, 0)


def test_a_task_that_shall_end_does_not_try_again(fail_times: Callable[..., StepSpec]) -> None:
    bench = Bench(fail_times("b", 1), retry_timeout="60000")

    def stop(_: float) -> None:
        raise Stopped("asked to stop")

    bench.pause = stop
    with pytest.raises(Stopped):
        bench.settle(["a", "b"])
    assert bench.engine.submissions == []


def test_an_engine_that_cannot_be_had_is_told_to_the_task(fail_times: Callable[..., StepSpec]) -> None:
    bench = Bench(fail_times("b", 1), retry_timeout="60000")
    bench.engine.failures = [EngineUnavailable("it keeps dying")]
    with pytest.raises(EngineUnavailable):
        bench.settle(["a", "b"])


def test_who_is_given_up_on_does_not_wait_for_what_is_tried_again(fail_times: Callable[..., StepSpec]) -> None:
    bench = Bench(fail_times("b", 1), retry_timeout="60000")
    bench.engine.busy = True
    bench.control.cancel()
    with pytest.raises(Stopped):
        bench.settle(["a", "b"])


# --- where a record came from -----------------------------------------------------------------------------------------


class Told(Reporter):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.records: list[object] = []

    def failed(self, failure: Failure) -> Future[None]:
        self.records.append(failure.record)
        return Future()


def told(record: PolledRecord | ConsumedRecord, *place: Callable[[int], Any]) -> list[object]:
    """What is told of a failure in row 4."""
    reporter, bench = Told(), Bench()
    bench.reporter = reporter
    failure = Failure(Stage.TRANSFORMATION, "", "", None, (), record, 4)
    result = blob.Result(b"", None, None, 0, 0, (failure,))
    assert len(list(bench.outcomes().of(pickle.dumps(result), *place))) == 1
    return reporter.records


def test_a_row_of_a_table_learns_where_it_came_from() -> None:
    found = told(PolledRecord("t", None, None), lambda row: ({"file": "x"}, {"row": row}))
    assert found == [PolledRecord("t", {"file": "x"}, {"row": 4})]


def test_a_record_that_knows_itself_is_told_as_it_is() -> None:
    polled, consumed = (
        PolledRecord("t", {"file": "y"}, {"row": 0}),
        ConsumedRecord("t", 3, 17, 5, "CreateTime", b"k", b"v"),
    )
    assert told(polled) == [polled]
    assert told(polled, lambda _: None) == [polled]
    assert told(consumed, lambda row: ({"file": "x"}, {"row": row})) == [consumed]
