"""Reporter and Outcomes: what a task does with what came back from Spark. No Spark and no Kafka here."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from headgate.api import SinkRecord, SinkTask, SourceRecord
from headgate.metrics import ErrorMetrics
from headgate.model import ChainSpec, ConnectorType, PluginRef, PluginSpec, StepSpec, TargetState, TaskId, TaskSpec
from headgate.pipeline import blob
from headgate.pipeline.dead_letter import DeadLetter
from headgate.pipeline.failure import Consumed, Failure, InternalSinkRecord, Polled, Stage
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.tolerance import ToleranceExceeded
from headgate.tasks import reporter as module
from headgate.tasks.control import Control
from headgate.tasks.outcomes import Outcomes
from headgate.tasks.reporter import Reporter

pytestmark = pytest.mark.kip(298, "error handling in Connect")

TEXT = PluginSpec(PluginRef("headgate.pipeline.converters.string", "StringConverter"))
HEADERS = PluginSpec(PluginRef("headgate.pipeline.converters.simple_header", "SimpleHeaderConverter"))
RECORD = Consumed("t", 3, 17, 5, "CreateTime", b"k", b"v")
FAILURE = Failure(Stage.TRANSFORMATION, "a.B", "c.D", "no", ("Traceback\n", "c.D: no\n"), RECORD)


class Letters:
    """Stands in for DeadLetters."""

    made: list[Letters] = []

    def __init__(self, spec: TaskSpec, policy: ErrorPolicy, metrics: ErrorMetrics, _: object) -> None:
        self.topic, self.replication = policy.dead_letter_topic, policy.dead_letter_replication
        self.sent: list[DeadLetter] = []
        self.futures: list[Future[None]] = []
        self.closed = False
        self.made.append(self)

    def send(self, letter: DeadLetter) -> Future[None]:
        self.sent.append(letter)
        self.futures.append(Future())
        return self.futures[-1]

    def flush(self, seconds: float) -> bool:
        return all(each.done() for each in self.futures)

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> list[Letters]:
    Letters.made = []
    monkeypatch.setattr(module, "_dead_letters", Letters)
    return Letters.made


def spec(*steps: StepSpec, **errors: str) -> TaskSpec:
    task = TaskId("orders", 2)
    given = {f"errors.{key.replace('_', '.')}": value for key, value in errors.items()}
    chain = ChainSpec(task, ConnectorType.SINK, TEXT, TEXT, HEADERS, steps, given)
    return TaskSpec(task, SinkTask, ConnectorType.SINK, None, {}, {}, chain, TargetState.STARTED)


def reporter(**errors: str) -> tuple[Reporter, ErrorMetrics]:
    metrics = ErrorMetrics()
    return Reporter(spec(**errors), metrics, lambda: True), metrics


def test_a_failure_is_counted(letters: list[Letters], caplog: pytest.LogCaptureFixture) -> None:
    made, metrics = reporter(tolerance="all")
    assert made.failed(FAILURE).done()
    made.retried()
    assert (metrics.failures, metrics.errors, metrics.skipped, metrics.retries) == (2, 1, 1, 1)
    assert (metrics.logged, metrics.dead_letters) == (0, 0)
    assert metrics.last_error_ms > 1.7e12
    assert (letters, caplog.messages, made.flush(0)) == ([], [], True)


def test_a_failure_that_is_not_tolerated_is_not_skipped() -> None:
    made, metrics = reporter()
    made.failed(FAILURE)
    assert (metrics.failures, metrics.errors, metrics.skipped) == (1, 1, 0)


@pytest.mark.parametrize(
    ("include", "where"),
    [
        ("false", ""),
        (
            "true",
            ", where consumed record is {topic='t', partition=3, offset=17, timestamp=5, timestampType=CreateTime}",
        ),
    ],
)
def test_the_log_has_apaches_line_and_the_trace_below(
    caplog: pytest.LogCaptureFixture, include: str, where: str
) -> None:
    made, metrics = reporter(log_enable="true", log_include_messages=include)
    made.failed(FAILURE)
    assert caplog.messages == [
        f"Error encountered in task orders-2. Executing stage 'TRANSFORMATION' with class 'a.B'{where}."
    ]
    assert caplog.records[0].levelno == logging.ERROR
    assert logging.Formatter("%(message)s").format(caplog.records[0]).endswith(".\nTraceback\nc.D: no")
    assert metrics.logged == 1


def test_dead_letters_are_waited_for(letters: list[Letters]) -> None:
    made, _ = reporter(deadletterqueue_topic_name="dead", deadletterqueue_topic_replication_factor="1")
    done = made.failed(FAILURE)
    (queue,) = letters
    assert (queue.topic, queue.replication) == ("dead", 1)
    assert queue.sent == [DeadLetter(b"k", b"v", (), 5)]
    assert not done.done()
    assert not made.flush(0)
    queue.futures[0].set_result(None)
    assert made.flush(0)
    made.close()
    assert queue.closed


# --- errant records ---------------------------------------------------------------------------------------------------


def chain() -> SinkChain:
    return SinkChain(spec().chain, Output(Kind.RECORDS))


@pytest.mark.kip(610, "errant record reporter")
@pytest.mark.parametrize(
    ("errors", "there"),
    [
        ({}, False),
        ({"tolerance": "all"}, False),
        ({"log_enable": "true"}, True),
        ({"deadletterqueue_topic_name": "dead"}, True),
    ],
)
def test_a_task_has_a_reporter_if_somebody_listens(errors: dict[str, str], there: bool) -> None:
    made, _ = reporter(**errors)
    assert (made.errant(chain()) is not None) is there


@pytest.mark.kip(610, "errant record reporter")
def test_a_reported_record_becomes_a_dead_letter_with_its_own_bytes(letters: list[Letters]) -> None:
    made, metrics = reporter(
        tolerance="all", deadletterqueue_topic_name="dead", deadletterqueue_context_headers_enable="true"
    )
    errant = made.errant(chain())
    assert errant is not None
    record = SinkRecord(topic="t", value="changed", partition=3, offset=17)
    row = ("t", 3, 17, 5, "CreateTime", b"k", b"\xff", [{"key": "h", "value": b"1"}])
    done = errant.report(InternalSinkRecord.of(record, row), ValueError("no"))
    letter = letters[0].sent[0]
    assert (letter.key, letter.value, letter.headers[0]) == (b"k", b"\xff", ("h", b"1"))
    headers = dict(letter.headers)
    assert headers["__connect.errors.stage"] == b"TASK_PUT"
    assert headers["__connect.errors.class.name"] == b"headgate.api.task.SinkTask"
    assert headers["__connect.errors.exception.class.name"] == b"builtins.ValueError"
    assert not done.done()
    assert (metrics.failures, metrics.errors, metrics.skipped) == (1, 1, 1)


@pytest.mark.kip(610, "errant record reporter")
def test_a_record_that_the_task_made_itself_is_written_by_the_converters(letters: list[Letters]) -> None:
    made, _ = reporter(tolerance="all", deadletterqueue_topic_name="dead")
    errant = made.errant(chain())
    assert errant is not None
    errant.report(SinkRecord(topic="t", value="changed", key="k", partition=3, offset=17, timestamp=9), ValueError())
    assert letters[0].sent == [DeadLetter(b"k", b"changed", (), 9)]


@pytest.mark.kip(610, "errant record reporter")
def test_without_tolerance_reporting_raises_and_yet_reports(letters: list[Letters]) -> None:
    made, metrics = reporter(deadletterqueue_topic_name="dead")
    errant = made.errant(chain())
    assert errant is not None
    with pytest.raises(ToleranceExceeded, match=r"stage 'TASK_PUT'.*offset=17.*ValueError: no"):
        errant.report(SinkRecord(topic="t", value="v", partition=3, offset=17), ValueError("no"))
    assert len(letters[0].sent) == 1
    assert (metrics.errors, metrics.skipped) == (1, 0)


# --- outcomes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def fail_times(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., StepSpec]]:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "pipeline"), *sys.path])
    from pipeline_plugins import FailTimes

    FailTimes.seen.clear()

    def step(value: str, times: int) -> StepSpec:
        ref = PluginRef("pipeline_plugins", "FailTimes")
        return StepSpec("f", PluginSpec(ref, {"value": value, "times": str(times)}))

    yield step
    FailTimes.seen.clear()


def run(packed: bytes) -> Future[list[blob.Packed]]:
    done: Future[list[blob.Packed]] = Future()
    done.set_result([blob.run(packed)])
    return done


def settle(task: TaskSpec, values: Sequence[str], **options: Any) -> tuple[list[bytes], list[float], ErrorMetrics]:
    """What is produced, the pauses, the counters."""
    metrics = ErrorMetrics()
    pauses: list[float] = []
    outcomes = Outcomes(Reporter(task, metrics, lambda: True), Control(paused=False), run, pauses.append)
    records = [SourceRecord(topic="t", value=value) for value in values]
    first = blob.run(blob.pack(blob.source_records_job(blob.pack_spec(task.chain), records)))
    found = [value for result in outcomes.of(first, **options) for value in result.table()["value"].to_pylist()]
    return found, pauses, metrics


@pytest.mark.kip(298, "retries")
def test_what_is_left_undone_is_tried_again_after_its_pause(fail_times: Callable[..., StepSpec]) -> None:
    found, pauses, metrics = settle(spec(fail_times("b", 2), retry_timeout="60000"), ["a", "b", "c"])
    assert found == [b"a", b"b", b"c"]
    assert pauses == [0.3, 0.6]
    assert (metrics.failures, metrics.retries, metrics.errors) == (2, 2, 0)


@pytest.mark.kip(298, "retries")
def test_a_record_that_never_goes_is_left_out_and_told_by_its_row(
    fail_times: Callable[..., StepSpec], letters: list[Letters]
) -> None:
    task = spec(fail_times("b", 999), retry_timeout="1", tolerance="all", deadletterqueue_topic_name="dead")
    rows: list[int] = []

    def place(row: int) -> tuple[dict[str, Any], dict[str, Any]]:
        rows.append(row)
        return {"file": "x"}, {"row": row}

    found, pauses, metrics = settle(task, ["a", "a", "b", "c"], place=place)
    assert found == [b"a", b"a", b"c"]
    assert rows == [2]
    assert [letter.value for letter in letters[0].sent] == [b"b"]
    assert metrics.failures == metrics.retries + 1 == len(pauses) + 1
    assert (metrics.errors, metrics.skipped) == (1, 1)


def test_a_row_of_a_table_learns_where_it_came_from() -> None:
    told: list[Failure] = []

    class Told(Reporter):
        def failed(self, failure: Failure) -> Future[None]:
            told.append(failure)
            return Future()

    result = blob.Result(
        b"", None, None, 0, 0, (Failure(Stage.TRANSFORMATION, "", "", None, (), Polled("t", None, None), 4),)
    )
    outcomes = Outcomes(Told(spec(), ErrorMetrics(), lambda: True), Control(paused=False), run, lambda _: None)
    assert len(list(outcomes.of(pickle.dumps(result), lambda row: ({"file": "x"}, {"row": row})))) == 1
    assert [each.record for each in told] == [Polled("t", {"file": "x"}, {"row": 4})]
