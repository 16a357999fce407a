"""Frames beside the records that they stand for, and whether a transform does the same to both."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from headgate.api import Header, Predicate, Record, Schema, SinkRecord, SourceRecord, Struct, Transform
from headgate.api import schema as schemas
from headgate.api.frame import Frame, NotByColumns, Values, arrow_type
from headgate.pipeline.columns.objects import objects

# --- records of frames ------------------------------------------------------------------------------------------------


def records(frame: Frame) -> list[Record]:
    """Those of a sink, if there are offsets."""
    columns: dict[str, list[Any]] = {
        "topic": frame.topic.to_pylist(),
        "partition": frame.partition.to_pylist(),
        "timestamp": frame.timestamp.to_pylist(),
        "key": objects(frame.key),
        "value": objects(frame.value),
        "headers": _headers(frame),
    }
    kind: type[Record] = SourceRecord
    if frame.offset is not None:
        kind = SinkRecord
        columns["offset"] = frame.offset.to_pylist()
    common: dict[str, Any] = {"key_schema": frame.key.schema, "value_schema": frame.value.schema}
    return [kind(**common, **dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _headers(frame: Frame) -> list[tuple[Header, ...]]:
    given = [[]] * frame.count if frame.headers.given is None else frame.headers.given.to_pylist()
    added = [(name, values.schema, objects(values)) for name, values in frame.headers.added]
    return [
        (
            *(Header(each["key"], each["value"], schemas.BYTES) for each in some or ()),
            *(Header(name, items[row], schema) for name, schema, items in added),
        )
        for row, some in enumerate(given)
    ]


def exact(value: Any) -> Any:
    """Equal only to what is the same in every respect: 1 is not True, 1.50 is not 1.5, and NaN is NaN."""
    if isinstance(value, Record):
        return type(value), {name: exact(each) for name, each in vars(value).items()}
    if isinstance(value, Header):
        return value.key, exact(value.value), exact(value.schema)
    if isinstance(value, Schema):
        return value, exact(value.default), [exact(each.schema) for each in value.fields]
    if isinstance(value, Struct):
        return exact(value.schema), [exact(each) for each in value.values]
    if isinstance(value, list | tuple):
        return type(value), [exact(each) for each in value]
    if isinstance(value, dict):
        return [(exact(key), exact(each)) for key, each in value.items()]
    return type(value), repr(value)


# --- the comparison ---------------------------------------------------------------------------------------------------


def attempt(call: Callable[[], Any]) -> tuple[Any, list[bool] | None]:
    """What it gives, or which rows it refuses."""
    try:
        return call(), None
    except NotByColumns as refusal:
        rows: Any = refusal.rows
        return None, rows.to_pylist()


def by_columns(transform: Any, frame: Frame) -> tuple[list[Frame], set[int]]:
    """What comes of a frame, and the rows that were refused."""
    made: list[Frame] = []
    left: Frame | None = frame
    while left is not None:
        try:
            found: Frame | Iterable[Frame] | None = transform.apply_to_columns(left)
            made = [] if found is None else [found] if isinstance(found, Frame) else list(found)
            break
        except NotByColumns as refusal:
            left = _accepted(left, refusal)
    accepted = set() if left is None else set(left.rows.to_pylist())
    return made, set(frame.rows.to_pylist()) - accepted


def _accepted(frame: Frame, refusal: NotByColumns) -> Frame | None:
    if refusal.rows is None:
        return None
    assert len(refusal.rows) == frame.count
    assert refusal.rows.null_count == 0
    assert refusal.rows.true_count > 0
    return frame.split(refusal.rows)[1]


def assert_same(transform: Transform[Any], frame: Frame) -> set[int]:
    """The rows that were refused; the others are as records would be."""
    made, refused = by_columns(transform, frame)
    found: dict[int, Record] = {}
    for each in made:
        assert_sound(each)
        found |= zip(each.rows.to_pylist(), records(each), strict=True)
    assert sum(each.count for each in made) == len(found)
    expected = {}
    for row, record in zip(frame.rows.to_pylist(), records(frame), strict=True):
        if row not in refused:
            expected[row] = transform.apply(record)  # which does not fail
    kept = {row: exact(record) for row, record in expected.items() if record is not None}
    assert {row: exact(found[row]) for row in sorted(found)} == kept
    return refused


def assert_decides_the_same(predicate: Predicate[Any], frame: Frame) -> None:
    answer: Any = predicate.test_columns(frame)  # type: ignore[attr-defined]
    given = [answer] * frame.count if isinstance(answer, bool) else answer.to_pylist()
    assert given == [predicate.test(record) for record in records(frame)]


def assert_sound(frame: Frame) -> None:
    """Whether it keeps what frames promise."""
    columns = [frame.rows, frame.topic, frame.partition, frame.timestamp, frame.key.data, frame.value.data]
    columns += [each.data for _, each in frame.headers.added]
    columns += [each for each in (frame.headers.given, frame.offset) if each is not None]
    for column in columns:
        column.validate(full=True)
        assert len(column) == frame.count
    assert (frame.topic.type, frame.partition.type) == (pa.string(), pa.int32())
    assert frame.timestamp.type == frame.rows.type == pa.int64()
    assert frame.rows.to_pylist() == sorted(frame.rows.to_pylist())
    for values in (frame.key, frame.value, *(each for _, each in frame.headers.added)):
        if values.schema is None:
            assert _is_shape(values.data.type)
        else:
            assert values.data.type == arrow_type(values.schema)


def _is_shape(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return all(_is_shape(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _is_shape(kind.value_type)
    return kind in (pa.null(), pa.bool_(), pa.int64(), pa.float64(), pa.string(), pa.binary())


# --- frames -----------------------------------------------------------------------------------------------------------


def frame_of(value: Values, key: Values | None = None, *, sink: bool = True, **more: Any) -> Frame:
    """With the same topic, partition and timestamp for all records."""
    count = len(value)
    columns = {
        "topic": pa.array(["t"] * count, pa.string()),
        "partition": pa.array([3] * count, pa.int32()),
        "timestamp": pa.array([1700000000123] * count, pa.int64()),
        "offset": pa.array(range(10, 10 + count), pa.int64()) if sink else None,
        **more,
    }
    return Frame(pa.array(range(count), pa.int64()), key=key or Values.nulls(count), value=value, **columns)
