"""Tolerance: what becomes of a record whose operation failed."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable

import pytest

from headgate.api import ConnectError, DataError, RetriableError, SourceRecord
from headgate.model import TaskId
from headgate.pipeline.converters.string import StringConverter
from headgate.pipeline.failure import ConsumedRecord, Failure, PolledRecord, Stage, shown_record
from headgate.pipeline.policy import ErrorPolicy
from headgate.pipeline.tolerance import Postponed, Retry, StageFailed, ToleranceExceeded, Triage, attempt

pytestmark = pytest.mark.kip(298, "error handling in Connect")

RECORD = ConsumedRecord("orders", 3, 17, 1700000000123, "CreateTime", b"k", b"v", (("h", b"1"), ("n", None)))
PLACE = "{topic='orders', partition=3, offset=17}"
STRING = "org.apache.kafka.connect.storage.StringConverter"
STAGES = [Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER, Stage.HEADER_CONVERTER, Stage.TRANSFORMATION]


def failed(error: Exception, stage: Stage = Stage.VALUE_CONVERTER) -> StageFailed:
    def fail() -> None:
        raise error

    with pytest.raises(StageFailed) as raised:
        attempt(stage, StringConverter, fail)
    return raised.value


def _record() -> ConsumedRecord:
    return RECORD


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_works_passes() -> None:
    assert attempt(Stage.KEY_CONVERTER, StringConverter, int, "5") == 5


# --- tolerance none ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("error", [DataError("bad value"), RetriableError("bad value")])
def test_without_tolerance_an_error_names_stage_class_and_consumed_record(stage: Stage, error: Exception) -> None:
    with pytest.raises(ToleranceExceeded) as raised:
        Triage(ErrorPolicy()).goes_on(0, failed(error, stage), _record)
    assert str(raised.value) == (
        f"Tolerance exceeded in error handler: stage '{stage.name}' with class '{STRING}', "
        f"where consumed record is {PLACE}: {type(error).__name__}: bad value"
    )
    assert isinstance(raised.value, ConnectError)
    assert raised.value.__cause__ is error


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (
            PolledRecord("t", {"file": "a.txt"}, {"p": 7}),
            "{topic='t', sourcePartition={file=a.txt}, sourceOffset={p=7}}",
        ),
        (PolledRecord("t", None, None), "{topic='t', sourcePartition=null, sourceOffset=null}"),
    ],
)
def test_an_error_names_where_a_source_record_came_from(record: PolledRecord, shown: str) -> None:
    with pytest.raises(ToleranceExceeded) as raised:
        Triage(ErrorPolicy()).goes_on(0, failed(DataError("bad value")), lambda: record)
    assert f"where source record is {shown}: DataError: bad value" in str(raised.value)


def test_the_error_travels_with_its_failure() -> None:
    with pytest.raises(ToleranceExceeded) as raised:
        Triage(ErrorPolicy(log=True)).goes_on(0, failed(DataError("bad")), _record)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == str(raised.value)
    assert copy.failure == raised.value.failure


# --- tolerance all ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", STAGES)
def test_with_tolerance_the_batch_goes_on_and_the_failure_is_kept(stage: Stage) -> None:
    triage = Triage(ErrorPolicy(tolerant=True))
    assert triage.goes_on(5, failed(DataError("bad"), stage), _record)
    assert triage.goes_on(9, failed(ValueError(), stage), _record)
    assert triage.failures == [
        Failure(stage, STRING, "headgate.api.errors.DataError", "bad", (), RECORD, 5, 1),
        Failure(stage, STRING, "builtins.ValueError", None, (), RECORD, 9, 1),
    ]
    assert triage.postponed is None


def test_failures_survive_pickling_and_a_shared_trace_travels_once() -> None:
    triage = Triage(ErrorPolicy(tolerant=True, log=True))
    for row in range(1000):
        triage.goes_on(row, failed(DataError(f"bad {row}")), _record)
    data = pickle.dumps(triage.failures)
    assert pickle.loads(data) == triage.failures
    assert sum(len("".join(each.trace)) for each in triage.failures) > 250_000
    assert len(data) < 150_000


def test_an_error_that_cannot_be_shown_is_still_a_failure() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    triage = Triage(ErrorPolicy(tolerant=True, log=True))
    assert triage.goes_on(0, failed(Mute()), _record)
    assert triage.failures[0].message == "<its message cannot be shown>"


# --- retries ----------------------------------------------------------------------------------------------------------


def test_a_retriable_error_ends_the_batch_before_its_record_for_now() -> None:
    triage = Triage(ErrorPolicy(retry_timeout_ms=1000))
    assert not triage.goes_on(7, failed(RetriableError("later")), _record)
    assert triage.postponed == Postponed(7, Retry(Stage.VALUE_CONVERTER, STRING, 1, 0.0), 300)
    assert triage.failures == []


@pytest.mark.parametrize("tolerant", [False, True])
def test_other_errors_are_not_retried(tolerant: bool) -> None:
    triage = Triage(ErrorPolicy(retry_timeout_ms=-1, tolerant=tolerant))
    if tolerant:
        assert triage.goes_on(0, failed(DataError("bad")), _record)
    else:
        with pytest.raises(ToleranceExceeded):
            triage.goes_on(0, failed(DataError("bad")), _record)
    assert triage.postponed is None


def test_the_time_that_an_attempt_takes_counts() -> None:
    clock = Clock()
    retry = Retry(Stage.VALUE_CONVERTER, STRING, 1, 300.0)
    triage = Triage(ErrorPolicy(retry_timeout_ms=1000), retry, clock)
    clock.now += 0.5
    assert not triage.goes_on(0, failed(RetriableError("later")), _record)
    assert triage.postponed == Postponed(0, Retry(Stage.VALUE_CONVERTER, STRING, 2, 800.0), 200.0)


@pytest.mark.parametrize("tolerant", [False, True])
def test_when_the_time_is_over_the_record_has_failed(tolerant: bool) -> None:
    retry = Retry(Stage.VALUE_CONVERTER, STRING, 3, 1000.0)
    triage = Triage(ErrorPolicy(retry_timeout_ms=1000, tolerant=tolerant), retry)
    if tolerant:
        assert triage.goes_on(0, failed(RetriableError("never")), _record)
        assert [each.attempts for each in triage.failures] == [4]
    else:
        with pytest.raises(ToleranceExceeded, match="RetriableError: never") as raised:
            triage.goes_on(0, failed(RetriableError("never")), _record)
        assert raised.value.failure.attempts == 4


@pytest.mark.parametrize(("row", "stage"), [(1, Stage.VALUE_CONVERTER), (0, Stage.TRANSFORMATION)])
def test_another_record_or_operation_starts_its_own_retries(row: int, stage: Stage) -> None:
    triage = Triage(ErrorPolicy(retry_timeout_ms=1000), Retry(Stage.VALUE_CONVERTER, STRING, 3, 1000.0))
    assert not triage.goes_on(row, failed(RetriableError("later"), stage), _record)
    assert triage.postponed == Postponed(row, Retry(stage, STRING, 1, 0.0), 300)


# --- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "with_record", "where"),
    [
        (RECORD, False, ""),
        (
            RECORD,
            True,
            f", where consumed record is {PLACE[:-1]}, timestamp=1700000000123, timestampType=CreateTime}}",
        ),
        (ConsumedRecord("t", 0, 1), True, ", where consumed record is {topic='t', partition=0, offset=1}"),
        (PolledRecord("t", {}, {}, shown="SourceRecord{…}"), True, ", where source record is = SourceRecord{…}"),
    ],
)
def test_the_line_for_the_log_is_apaches_and_says_what_is_wrong(
    record: ConsumedRecord | PolledRecord, with_record: bool, where: str
) -> None:
    failure = Failure(Stage.TRANSFORMATION, "a.B", "c.D", "no", (), record)
    assert failure.report(TaskId("orders", 2), with_record) == (
        f"Error encountered in task orders-2. Executing stage 'TRANSFORMATION' with class 'a.B'{where}. D: no"
    )


def test_a_source_record_is_shown_as_apache_does() -> None:
    record = SourceRecord(topic="t", value={"a": 1}, source_partition={"file": "x"}, source_offset={"position": 3})
    assert shown_record(record) == (
        "SourceRecord{sourcePartition={file=x}, sourceOffset={position=3}} ConnectRecord{topic='t', "
        "kafkaPartition=null, key=null, keySchema=null, value={a=1}, valueSchema=null, timestamp=null, "
        "headers=ConnectHeaders(headers=)}"
    )


def test_the_trace_is_what_python_prints() -> None:
    def deep(number: int) -> None:
        try:
            int("x")
        except ValueError as error:
            if number:
                raise DataError("wrapped") from error
            raise DataError("while handling") from None

    for number in (0, 1):
        problem = failed_by(deep, number)
        triage = Triage(ErrorPolicy(tolerant=True, log=True))
        triage.goes_on(0, problem, _record)
        assert "".join(triage.failures[0].trace) == "".join(traceback.format_exception(problem.error))


def failed_by(fn: Callable[..., object], *args: object) -> StageFailed:
    with pytest.raises(StageFailed) as raised:
        attempt(Stage.TRANSFORMATION, StringConverter, fn, *args)
    return raised.value
