"""Statements: between two parts of a chain, the engine runs them on what came out of the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from fakes import TASK, Clock, Engine, StatementRunner, chain_spec, consumed, failed, make_ports, task_spec

from headgate.api import SinkTask
from headgate.metrics import ErrorMetrics
from headgate.model import ChainSpec, EngineUnavailable, TopicPartition
from headgate.pipeline import blob
from headgate.pipeline.sink_chain import Kind, Output
from headgate.tasks.control import Control, Stopped
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.reporter import Reporter
from headgate.tasks.statements import Statements

P0 = TopicPartition("t", 0)
OUTPUT = Output(Kind.TABLE, ("offset", "value"))
CHAIN = blob.pack_spec(chain_spec())


class Bench:
    """The parts of the chain have no steps. A statement gives jobs for the rows that it keeps."""

    def __init__(self, *statements: Callable[[Sequence[pa.Table]], Any]) -> None:
        self.engine, self.control = Engine(), Control(paused=False)
        self.runner = StatementRunner(chain_spec(), *statements)
        self.statements = Statements(self.runner, TASK, self.engine, self.control)
        ports = make_ports(self.engine, Clock())
        reporter = Reporter(task_spec(SinkTask), ErrorMetrics(), self.control, ports)
        self.outcomes = Outcomes(TASK, reporter, self.control, self.engine, Clock(), lambda _: None)

    def after(self, *batches: int) -> list[list[str]]:
        """What all parts make of batches of so many records."""
        return [result.table()["value"].to_pylist() for result in self.results(*batches)]

    def results(self, *batches: int) -> list[blob.Result]:
        made = [blob.unpack(blob.run(blob.pack(job(range(count))))) for count in batches]
        return list(self.statements.after(made, self.outcomes, None))


def job(offsets: Sequence[int]) -> blob.Job:
    return blob.sink_job(CHAIN, OUTPUT, consumed([(P0, offset) for offset in offsets]))


def even(tables: Sequence[pa.Table]) -> list[blob.Job]:
    """WHERE offset % 2 = 0, a job for each table."""
    return [job([each for each in table["offset"].to_pylist() if each % 2 == 0]) for table in tables]


def small(tables: Sequence[pa.Table]) -> list[blob.Job]:
    """WHERE offset < 3, in one job."""
    return [job([each for table in tables for each in table["offset"].to_pylist() if each < 3])]


def test_a_chain_without_statements_gives_what_its_only_part_gave() -> None:
    bench = Bench()
    assert not bench.statements
    assert isinstance(bench.statements.first, ChainSpec)
    assert bench.after(2, 1) == [["0:0", "0:1"], ["0:0"]]
    assert bench.engine.submissions == []


def test_a_statement_sees_all_of_a_batch_and_the_next_part_gets_what_it_gave() -> None:
    bench = Bench(even)
    assert bench.statements
    assert bench.after(4, 3) == [["0:0", "0:2"], ["0:0", "0:2"]]
    assert bench.runner.asked == [7]
    assert len(bench.engine.submissions) == 1


def test_statements_run_one_after_the_other() -> None:
    bench = Bench(even, small)
    assert bench.after(6) == [["0:0", "0:2"]]
    assert bench.runner.asked == [6, 3]


@pytest.mark.parametrize("batches", [(), (0,), (0, 0)])
def test_a_statement_is_not_asked_about_nothing(batches: tuple[int, ...]) -> None:
    bench = Bench(even)
    assert bench.results(*batches) == []
    assert bench.runner.asked == []


def test_a_statement_that_keeps_nothing_leaves_nothing_for_the_next() -> None:
    bench = Bench(lambda _: [], even)
    assert bench.results(5) == []
    assert bench.runner.asked == [5]


def test_it_is_asked_again_when_the_engine_has_died_meanwhile() -> None:
    bench = Bench(even)
    bench.runner.lost = 2
    assert bench.after(3) == [["0:0", "0:2"]]
    assert (bench.runner.asked, bench.engine.asked_ready) == ([3, 3, 3], 2)


def test_an_engine_that_cannot_be_had_any_more_is_told_to_the_task() -> None:
    bench = Bench(even)
    bench.engine.failures = [EngineUnavailable("it keeps dying")]
    with pytest.raises(EngineUnavailable, match="it keeps dying"):
        bench.after(3)


def test_a_statement_that_fails_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(even)
    monkeypatch.setattr(bench.runner, "select", lambda *_: failed(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        bench.after(3)
    assert bench.engine.asked_ready == 0


def test_who_is_given_up_on_does_not_wait_for_the_next_part() -> None:
    bench = Bench(even)
    bench.engine.busy = True
    bench.control.cancel()
    with pytest.raises(Stopped):
        bench.after(3)


def test_they_end_with_the_task() -> None:
    bench = Bench(even)
    bench.statements.close()
    assert bench.runner.closed
