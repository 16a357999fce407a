"""Tolerance: an error in a stage names the stage, the class and the record."""

from __future__ import annotations

import pickle

import pytest

from headgate.api import ConnectError, DataError, SourceRecord
from headgate.pipeline.converters.string import StringConverter
from headgate.pipeline.tolerance import Stage, ToleranceExceeded, attempt

ROW = ("orders", 3, 17)


def _fail(text: str) -> None:
    raise DataError(f"bad {text}")


def test_what_works_passes() -> None:
    assert attempt(Stage.KEY_CONVERTER, StringConverter, int, ROW, "5") == 5


@pytest.mark.parametrize("stage", list(Stage))
def test_an_error_names_stage_class_and_consumed_record(stage: Stage) -> None:
    with pytest.raises(ToleranceExceeded) as raised:
        attempt(stage, StringConverter, _fail, ROW, "value")
    assert str(raised.value) == (
        f"Tolerance exceeded in error handler: stage '{stage.name}' with class "
        "'headgate.pipeline.converters.string.StringConverter', "
        "where consumed record is {topic='orders', partition=3, offset=17}: DataError: bad value"
    )
    assert isinstance(raised.value, ConnectError)
    assert isinstance(raised.value.__cause__, DataError)


@pytest.mark.parametrize(
    ("record", "shown"),
    [
        (
            SourceRecord(topic="t", source_partition={"file": "a.txt"}, source_offset={"position": 7, "n": None}),
            "{topic='t', sourcePartition={file=a.txt}, sourceOffset={position=7, n=None}}",
        ),
        (SourceRecord(topic="t"), "{topic='t', sourcePartition=null, sourceOffset=null}"),
    ],
)
def test_an_error_names_where_a_source_record_came_from(record: SourceRecord, shown: str) -> None:
    with pytest.raises(ToleranceExceeded) as raised:
        attempt(Stage.TRANSFORMATION, StringConverter, _fail, record, "value")
    assert f"where source record is {shown}: DataError: bad value" in str(raised.value)


def test_the_error_travels_with_its_cause_as_text() -> None:
    with pytest.raises(ToleranceExceeded) as raised:
        attempt(Stage.VALUE_CONVERTER, StringConverter, _fail, ROW, "value")
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == str(raised.value)
    assert (copy.stage, copy.cause) == (Stage.VALUE_CONVERTER, "DataError: bad value")
