"""Puts: a sink task gets what the pipeline made, in the form that it takes, again where that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fakes import (
    TASK,
    Clock,
    Engine,
    Frame,
    QuickControl,
    StatementRunner,
    chain_spec,
    consumed,
    make_ports,
    task_spec,
)
from sink_bench import P0

from headgate.api import Form, FrameSinkTask, RetriableError, SinkTask, TableSinkTask
from headgate.api.schema import OPTIONAL_STRING
from headgate.metrics import SinkMetrics
from headgate.model import EngineUnavailable, PluginRef, PluginSpec, StepSpec
from headgate.pipeline import blob
from headgate.pipeline.sink_chain import Output
from headgate.tasks.borrowed_session import BorrowedSession
from headgate.tasks.control import Rebalanced, StartOver
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.reporter import Reporter
from headgate.tasks.sink.context import RuntimeSinkContext
from headgate.tasks.sink.puts import Puts
from headgate.tasks.statements import Statements


class Noting:
    """What each of the tasks below does."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.errors: list[Exception] = []

    def put(self, content: Any) -> None:
        self.got.append(content)
        if self.errors:
            raise self.errors.pop(0)


class Records(Noting, SinkTask): ...


class Tables(Noting, TableSinkTask): ...


class Typed(Noting, TableSinkTask):
    form = Form.TYPED
    columns = ("offset", "value")

    def put(self, content: Any) -> None:
        super().put((content.to_pydict(), self.value_schema))


class Frames(Noting, FrameSinkTask):
    columns = ("offset", "value")


class TypedFrames(Noting, FrameSinkTask):
    form = Form.TYPED
    columns = ("offset", "value")

    def put(self, content: Any) -> None:
        super().put((content.table.to_pydict(), self.value_schema))


class Bench:
    def __init__(
        self,
        task: Records | Tables | Typed | Frames | TypedFrames,
        steps: Sequence[StepSpec] = (),
        statement: Callable[[Sequence[Any]], Any] | None = None,
    ) -> None:
        self.task, self.engine, self.clock, self.metrics = task, Engine(), Clock(), SinkMetrics()
        self.control = QuickControl(self.clock)
        session = BorrowedSession(self.engine, TASK, self.control, used=isinstance(task, FrameSinkTask))
        self.context = RuntimeSinkContext({}, lambda: frozenset({P0}), session)
        self.pauses: list[float] = []
        self.chain = chain_spec(steps=steps)
        self.wait: Callable[[float], None] = self.pauses.append
        reporter = Reporter(task_spec(SinkTask), self.metrics.errors, self.control, make_ports(self.engine, self.clock))
        outcomes = Outcomes(TASK, reporter, self.control, self.engine, self.clock, self.pauses.append)
        runner = StatementRunner(self.chain, *[statement] if statement else [])
        self.puts = Puts(
            task,
            self.engine,
            Statements(runner, TASK, self.engine, self.control),
            outcomes,
            self.context,
            self.metrics,
            self.clock,
            lambda seconds: self.wait(seconds),
        )

    def results(self, *batches: Sequence[int]) -> None:
        """Puts what the pipeline makes of records with these offsets."""
        self.puts.results([self._packed(offsets) for offsets in batches], None)

    def _packed(self, offsets: Sequence[int]) -> bytes:
        table = consumed([(P0, offset) for offset in offsets])
        return blob.run(blob.pack(blob.sink_job(blob.pack_spec(self.chain), Output.of(self.task), table)))


# --- in the form that the task takes ----------------------------------------------------------------------------------


def test_records_come_as_records_blob_by_blob() -> None:
    bench = Bench(Records())
    bench.results([0, 1], [2])
    assert [[(each.partition, each.offset, each.value) for each in got] for got in bench.task.got] == [
        [(0, 0, "0:0"), (0, 1, "0:1")],
        [(0, 2, "0:2")],
    ]
    assert bench.metrics.sent.total == 3


@pytest.mark.parametrize("kind", [Typed, TypedFrames])
def test_typed_columns_come_with_their_schema_and_again_after_a_retry(kind: type[Typed | TypedFrames]) -> None:
    bench = Bench(kind())
    bench.task.errors = [RetriableError("not yet")]
    bench.results([0, 1], [2])
    first = {"offset": [0, 1], "value": ["0:0", "0:1"]}
    assert bench.task.got == [
        (first, OPTIONAL_STRING),
        (first, OPTIONAL_STRING),
        ({"offset": [2], "value": ["0:2"]}, OPTIONAL_STRING),
    ]
    assert bench.metrics.sent.total == 3


@pytest.mark.parametrize("task", [Records, Tables])
def test_a_task_that_wants_to_go_elsewhere_gets_no_more_of_the_batch(task: Callable[[], Any]) -> None:
    bench = Bench(task())
    put = bench.task.put

    def going_elsewhere(content: Any) -> None:
        put(content)
        bench.context.offset(P0, 0)

    bench.task.put = going_elsewhere  # type: ignore[method-assign]
    with pytest.raises(StartOver):
        bench.results([0, 1], [2])
    assert len(bench.task.got) == 1
    assert bench.context.take_seeks() == {P0: 0}
    bench.results([0])  # the last one of a batch ends it as always
    assert len(bench.task.got) == 2


def test_columns_come_as_tables_blob_by_blob() -> None:
    bench = Bench(Tables())
    bench.results([0, 1], [2])
    assert [got.to_pydict() for got in bench.task.got] == [{"value": ["0:0", "0:1"]}, {"value": ["0:2"]}]
    assert bench.metrics.sent.total == 3


def test_a_frame_comes_once_for_all_blobs() -> None:
    bench = Bench(Frames())
    bench.results([0, 1], [2])
    (frame,) = bench.task.got
    assert isinstance(frame, Frame)
    assert frame.table["offset"].to_pylist() == [0, 1, 2]
    assert bench.metrics.sent.total == 3


@pytest.mark.parametrize("task", [Records, Tables, Frames])
def test_a_task_hears_of_a_batch_of_which_transforms_left_nothing(task: Callable[[], Any]) -> None:
    drop = StepSpec("d", PluginSpec(PluginRef("headgate.pipeline.transforms.filter", "Filter")))
    bench = Bench(task(), [drop])
    bench.results([0, 1])
    assert len(bench.task.got) == 1
    assert bench.metrics.sent.total == 0


def test_a_frame_of_which_a_statement_left_nothing_is_not_put() -> None:
    bench = Bench(Frames(), statement=lambda _: [])
    bench.results([0, 1])
    assert (bench.task.got, bench.engine.frames) == ([], 0)


def test_what_failed_in_the_pipeline_is_not_put() -> None:
    fails = StepSpec("f", PluginSpec(PluginRef("pipeline_plugins", "FailOn"), {"value": "0:1"}))
    bench = Bench(Records(), [fails])
    with pytest.raises(blob.JobFailed, match="cannot take 0:1"):
        bench.results([0, 1])
    assert bench.task.got == []


# --- again ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", [Records, Tables, Frames])
def test_the_same_comes_again_after_a_second(task: Callable[[], Any]) -> None:
    bench = Bench(task())
    bench.task.errors = [RetriableError("busy"), RetriableError("busy")]
    bench.results([0, 1])
    first, *again = bench.task.got
    assert again == [first, first]
    assert bench.pauses == [1.0, 1.0]
    assert (bench.metrics.errors.retries, bench.metrics.sent.total) == (2, 2)


def test_a_task_says_how_long_to_wait_each_time() -> None:
    bench = Bench(Records())
    bench.task.errors = [RetriableError("busy"), RetriableError("busy")]
    bench.context.timeout(250)
    bench.results([0])
    assert bench.pauses == [0.25, 1.0]


def test_when_there_is_nothing_to_try_any_more_it_is_not_tried() -> None:
    bench = Bench(Records())
    bench.task.errors = [RetriableError("busy")]

    def gone(_: float) -> None:
        raise Rebalanced("partitions went")

    bench.wait = gone
    with pytest.raises(Rebalanced):
        bench.results([0], [1])
    assert len(bench.task.got) == 1
    assert bench.metrics.sent.total == 0


@pytest.mark.parametrize("task", [Records, Tables, Frames])
def test_anything_else_is_raised(task: Callable[[], Any]) -> None:
    bench = Bench(task())
    bench.task.errors = [ZeroDivisionError()]
    with pytest.raises(ZeroDivisionError):
        bench.results([0], [1])
    assert (len(bench.task.got), bench.pauses, bench.metrics.sent.total) == (1, [], 0)


@pytest.mark.parametrize("task", [Records, Tables])
def test_a_lost_connection_is_the_engines_only_where_the_task_uses_it(task: Callable[[], Any]) -> None:
    bench = Bench(task())
    bench.task.errors = [ConnectionError("the warehouse hung up")]
    with pytest.raises(ConnectionError):
        bench.results([0])
    assert bench.engine.asked_ready == 0


def test_a_frame_is_made_anew_when_there_is_a_new_engine() -> None:
    bench = Bench(Frames())
    bench.task.errors = [ConnectionError("reset by peer")]
    bench.results([0, 1])
    first, again = bench.task.got
    assert first is not again
    assert first.table == again.table
    assert (bench.engine.frames, bench.engine.asked_ready) == (2, 1)
    assert bench.pauses == []


@pytest.mark.parametrize("stopping", [True, False])
def test_a_task_does_not_wait_for_an_engine_that_is_not_coming_back(stopping: bool) -> None:
    bench = Bench(Frames())
    bench.task.errors = [ConnectionError("reset by peer")]
    if stopping:
        bench.control.stop()
    else:
        bench.engine.readiness = [EngineUnavailable("it keeps dying")]
    with pytest.raises(EngineUnavailable):
        bench.results([0])
    assert len(bench.task.got) == 1


def test_how_long_a_put_took_is_the_time_of_the_one_that_went() -> None:
    bench = Bench(Records())
    bench.task.errors = [RetriableError("busy")]
    bench.wait = lambda _: bench.clock.move(100)
    bench.results([0])
    assert bench.metrics.put_ms.maximum == 0.0
