from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_sink_runtime import OTHER, WHERE, Delayed, MemoryTarget, SinkTrial, table

from headgate.api import ConnectError, Struct, schema
from headgate.api.frame import HEADERS
from headgate.api.testing import MemoryReporter
from headgate.connectors import SparkSink
from headgate.connectors.spark.sink.ddl import parse
from headgate.connectors.spark.sink.rows import GIVEN, RAW_HEADERS, TOPIC

LATE = {"rotate.ms": "60000"}
EXACT = {"path": "/nowhere", "exactly.once": "true", **LATE}


@pytest.fixture
def trial() -> Iterator[Callable[..., SinkTrial]]:
    made: list[SinkTrial] = []

    def make(config: dict[str, str] | None = None, target: MemoryTarget | None = None, **more: Any) -> SinkTrial:
        full = {"path": "/nowhere", **LATE, **(config or {})}
        one = SinkTrial(full, target or MemoryTarget(exact="exactly.once" in full), **more)
        one.task.open([WHERE, OTHER])
        made.append(one)
        return one

    yield make
    for each in made:
        each.task.stop()


def target_of(trial: SinkTrial) -> MemoryTarget:
    assert isinstance(trial.task._target, MemoryTarget)
    return trial.task._target


def broken() -> None:
    raise ConnectError("broken")


# --- rotation ---------------------------------------------------------------------------------------------------------


def test_nothing_is_written_or_let_pass_before_it_is_due(trial: Callable[..., SinkTrial]) -> None:
    one = trial()
    one.put([{"id": 1}, {"id": 2}], first=5)
    assert one.commit(7, 3) == {WHERE: 5, OTHER: 3}
    assert target_of(one).batches == []
    assert one.context.commit_requests == 0


def test_so_many_records_are_written_together(trial: Callable[..., SinkTrial]) -> None:
    one = trial({"rotate.records": "3"})
    one.put([{"id": 1}, {"id": 2}])
    one.put([{"id": 3}], where=OTHER, first=8)
    assert one.context.commit_requests == 1
    assert one.commit(2, 9) == {WHERE: 2, OTHER: 9}
    assert target_of(one).rows == [{"id": 1}, {"id": 2}, {"id": 3}]
    one.put([{"id": 4}], first=2)
    assert one.commit(3, 9) == {WHERE: 2, OTHER: 9}


def test_so_many_bytes_are_written_together(trial: Callable[..., SinkTrial]) -> None:
    one = trial({"rotate.bytes": "1000"})
    one.put([{"id": "x" * 100}])
    assert one.context.commit_requests == 0
    one.put([{"id": "x" * 900}], first=1)
    assert one.context.commit_requests == 1
    one.commit(2)
    assert len(target_of(one).rows) == 2


def test_rows_wait_only_so_long(trial: Callable[..., SinkTrial]) -> None:
    one = trial()
    one.put([{"id": 1}])
    one.now = 30
    one.put([{"id": 2}], first=1)
    one.now = 59
    assert one.commit(2) == {WHERE: 0}
    one.now = 60
    assert one.commit(2) == {WHERE: 2}
    assert len(target_of(one).batches) == 1


def test_a_commit_is_asked_for_when_they_have_waited_and_no_records_come(
    trial: Callable[..., SinkTrial], eventually: Callable[..., None]
) -> None:
    one = trial({"rotate.ms": "20"})
    one.put([{"id": 1}])
    eventually(lambda: one.context.commit_requests == 1)
    one.now = 1
    one.commit(1)
    one.put([{"id": 2}], first=1)
    eventually(lambda: one.context.commit_requests == 2)


def test_only_whole_records_are_written(trial: Callable[..., SinkTrial]) -> None:
    """A record may be several rows of several puts, and a batch may end in the middle."""
    one = trial({"rotate.records": "2"})
    one.put([{"id": 1}, {"id": 2}])
    assert one.commit(1) == {WHERE: 1}
    assert target_of(one).rows == [{"id": 1}]


def test_what_was_not_written_is_forgotten_with_its_partition(trial: Callable[..., SinkTrial]) -> None:
    one = trial({"rotate.records": "3"})
    one.put([{"id": 1}])
    one.put([{"id": 2}], where=OTHER)
    one.task.close([WHERE])
    one.task.open([WHERE])
    one.put([{"id": 1}, {"id": 3}])
    one.commit(2, 1)
    assert sorted(row["id"] for row in target_of(one).rows) == [1, 2, 3]
    assert target_of(one).opened == 1


def test_a_failed_write_is_forgotten_and_the_target_asked_again(trial: Callable[..., SinkTrial]) -> None:
    one = trial({"rotate.records": "1"})
    target_of(one).before = broken
    one.put([{"id": 1}])
    with pytest.raises(ConnectError, match="broken"):
        one.commit(1)
    assert one.commit(1) == {WHERE: 1}, "nothing is gathered any more, and the runtime has gone back"
    target_of(one).before = lambda: None
    one.put([{"id": 1}])
    one.commit(1)
    assert (target_of(one).rows, target_of(one).opened) == ([{"id": 1}], 2)


# --- writing while more rows come -------------------------------------------------------------------------------------


@pytest.fixture
def delayed() -> Delayed:
    return Delayed()


def test_a_commit_that_was_asked_for_does_not_wait_and_the_next_one_lets_pass(
    trial: Callable[..., SinkTrial], delayed: Delayed
) -> None:
    one = trial({"rotate.records": "2"}, begin=delayed)
    one.put([{"id": 1}, {"id": 2}], first=5)
    assert one.commit(7, 3) == {WHERE: 5, OTHER: 3}
    one.put([{"id": 3}], first=7)
    one.put([{"id": 4}], where=OTHER, first=3)
    requests = one.context.commit_requests
    delayed.end()
    assert one.context.commit_requests == requests + 1, "whoever waits for nothing else shall hear of it"
    assert target_of(one).rows == [{"id": 1}, {"id": 2}]
    assert one.commit(8, 4) == {WHERE: 7, OTHER: 3}, "rows are gathered that are not written"
    delayed.end()


def test_any_other_commit_waits(trial: Callable[..., SinkTrial], delayed: Delayed) -> None:
    """It may be the last one before partitions go."""
    one = trial({"rotate.records": "1"}, begin=delayed)
    one.put([{"id": 1}])
    one.commit(1)
    ending = threading.Timer(0.05, delayed.end)
    ending.start()
    assert one.commit(1) == {WHERE: 1}
    ending.join()


def test_no_more_is_gathered_than_is_due_while_rows_are_written(
    trial: Callable[..., SinkTrial], delayed: Delayed
) -> None:
    one = trial({"rotate.records": "2"}, begin=delayed)
    one.put([{"id": 1}, {"id": 2}])
    one.commit(2)
    one.put([{"id": 3}, {"id": 4}], first=2)
    ending = threading.Timer(0.05, delayed.end)
    ending.start()
    assert one.commit(4) == {WHERE: 2}, "the first rows are written, the others begun"
    ending.join()
    delayed.end()
    assert one.commit(4) == {WHERE: 4}
    assert [row["id"] for row in target_of(one).rows] == [1, 2, 3, 4]


def test_what_fails_meanwhile_fails_the_next_commit(trial: Callable[..., SinkTrial], delayed: Delayed) -> None:
    one = trial({"rotate.records": "1"}, begin=delayed)
    one.put([{"id": 1}])
    one.commit(1)
    one.put([{"id": 2}], first=1)
    target_of(one).before = broken
    delayed.end()
    with pytest.raises(ConnectError, match="broken"):
        one.commit(2)
    assert one.commit(2) == {WHERE: 2}, "nothing is gathered any more, and the runtime has gone back"


def test_columns_are_those_that_were_begun_with(trial: Callable[..., SinkTrial], delayed: Delayed) -> None:
    one = trial({"rotate.records": "1"}, begin=delayed)
    one.put([{"id": 1}])
    one.commit(1)
    with pytest.raises(ConnectError, match="There is no column more"):
        one.put([{"id": 2, "more": 1}], first=1)
    delayed.end()


def test_partitions_go_when_rows_are_written(trial: Callable[..., SinkTrial], delayed: Delayed) -> None:
    one = trial({**EXACT, "rotate.records": "1"}, begin=delayed)
    one.put([{"id": 1}])
    one.commit(1)
    ending = threading.Timer(0.05, delayed.end)
    ending.start()
    one.task.close([WHERE])
    assert target_of(one).offsets == {WHERE: 1}
    one.task.open([WHERE])
    assert one.context.rewound == {WHERE: 1}
    ending.join()


def test_what_fails_while_a_partition_goes_comes_again_of_the_others(
    trial: Callable[..., SinkTrial], delayed: Delayed
) -> None:
    one = trial({**EXACT, "rotate.records": "2"}, begin=delayed)
    one.put([{"id": 1}])
    one.put([{"id": 2}], where=OTHER, first=6)
    one.commit(1, 7)
    target_of(one).before = broken
    delayed.end()
    one.task.close([WHERE])
    assert one.context.rewound == {OTHER: 6}
    assert one.commit(1, 7) == {WHERE: 1, OTHER: 7}, "the runtime has gone back"


# --- exactly once -----------------------------------------------------------------------------------------------------


def test_it_goes_on_where_the_target_says(trial: Callable[..., SinkTrial]) -> None:
    target = MemoryTarget(exact=True)
    target.offsets = {WHERE: 2}
    one = trial({**EXACT, "rotate.records": "1"}, target)
    assert one.context.rewound == {WHERE: 2}
    one.put([{"id": number} for number in range(4)])
    one.put([{"id": 9}], where=OTHER)
    one.commit(4, 1)
    assert [row["id"] for row in target.rows] == [2, 3, 9]
    assert target.offsets == {WHERE: 4, OTHER: 1}


def test_offsets_of_the_target_never_go_back(trial: Callable[..., SinkTrial]) -> None:
    target = MemoryTarget(exact=True)
    target.offsets = {WHERE: 9}
    one = trial({**EXACT, "rotate.records": "1"}, target)
    one.put([{"id": 1}], where=OTHER)
    one.commit(3, 1)
    assert target.offsets == {WHERE: 9, OTHER: 1}


def test_records_that_are_dropped_move_the_offsets_too_but_not_each_time(trial: Callable[..., SinkTrial]) -> None:
    one = trial(EXACT)
    target = target_of(one)
    one.commit(5, 0)
    assert target.batches == []
    one.now = 60
    assert one.commit(6, 0) == {WHERE: 6, OTHER: 0}
    assert (target.offsets, target.rows) == ({WHERE: 6, OTHER: 0}, [])
    one.now = 120
    one.commit(6, 0)
    assert len(target.batches) == 1, "nothing has moved"


@given(st.lists(st.sampled_from(["put", "commit", "crash", "lose", "fail", "deaf"]), max_size=25), st.integers(1, 6))
def test_whatever_happens_each_record_is_there_once(steps: list[str], rotate: int) -> None:
    target = MemoryTarget(exact=True)
    made: list[SinkTrial] = []
    safe = at = end = 0

    def begin() -> SinkTrial:
        one = SinkTrial({**EXACT, "rotate.records": str(rotate)}, target)
        one.task.open([WHERE])
        made.append(one)
        return one

    def put(count: int) -> None:
        nonlocal at, end
        one.put([{"id": number} for number in range(at, at + count)], first=at)
        at += count
        end = max(end, at)

    def commit() -> None:
        nonlocal at, safe
        one.now += 1000
        try:
            safe = one.commit(at)[WHERE]
        except ConnectError:
            at = safe  # as the runtime goes back

    def broken() -> None:
        target.before = target.after = lambda: None
        raise ConnectError("broken")

    one = begin()
    for step in steps:
        match step:
            case "put":
                put(3)
            case "fail":
                target.before = broken
            case "deaf":
                target.after = broken  # it is written, and nobody hears of it
            case "commit":
                commit()
            case "lose" | "crash":
                if step == "crash":
                    one = begin()
                else:
                    one.task.close([WHERE])
                    one.task.open([WHERE])
                at = safe = max(safe, target.offsets.get(WHERE, 0))
    target.before = target.after = lambda: None
    put(max(end - at, 0))
    commit()
    for each in made:
        each.task.stop()
    assert [row["id"] for row in target.rows] == list(range(end))


# --- records that do not fit ------------------------------------------------------------------------------------------


def test_a_record_that_does_not_fit_is_reported_as_it_was(trial: Callable[..., SinkTrial]) -> None:
    reporter = MemoryReporter()
    one = trial({"schema": "id INT NOT NULL, at TIMESTAMP", "rotate.records": "1"}, reporter=reporter)
    order = schema.struct(
        {"id": schema.INT64, "tags": schema.mapping(schema.STRING, schema.INT8), "at": schema.TIMESTAMP}
    )
    noon = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
    one.task.value_schema = order
    one.put(
        [{"id": 1, "tags": None, "at": noon}, {"id": 2**40, "tags": [("a", 1)], "at": noon}],
        first=41, keys=["k1", "k2"], schema=order,
    )  # fmt: skip
    ((record, error),) = reporter.reported
    assert (record.topic, record.partition, record.offset, record.original_offset) == ("orders", 0, 42, 42)
    assert (record.key, record.timestamp) == ("k2", 1_700_000_000_042)
    assert record.value == Struct(order, {"id": 2**40, "tags": {"a": 1}, "at": noon})
    assert str(error) == "A value of type BIGINT does not fit a column of type INT: 1099511627776 (field id)"
    one.commit(43)
    assert target_of(one).rows == [{"id": 1, "at": noon}]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([{"id": "a"}], "A value of type STRING does not fit a column of type INT (field id)"),
        ([{"name": None}], "Column id may not be null"),
        ([{"id": 1, "more": 1}], "There is no column more. With schema.evolution=add"),
        (["text"], "A value of type STRING has no fields to be columns"),
        ([1.5], "A value of type DOUBLE has no fields to be columns"),
        ([[1]], "A value of type ARRAY<BIGINT> has no fields to be columns"),
    ],
)
def test_without_a_reporter_the_task_fails_with_a_sentence(
    trial: Callable[..., SinkTrial], values: list[Any], problem: str
) -> None:
    one = trial({"schema": "id INT NOT NULL"})
    with pytest.raises(ConnectError) as raised:
        one.put(values, first=17)
    assert str(raised.value).startswith(f"Record orders-0 at offset 17 does not fit: {problem}")
    assert "errors.deadletterqueue.topic.name" in str(raised.value)


def test_tombstones_are_left_out_of_what_is_only_appended_to(trial: Callable[..., SinkTrial]) -> None:
    one = trial({"rotate.records": "1"})
    one.put([{"id": 1}, None, {"id": 2}])
    one.put([None, None], first=3)
    assert one.commit(5) == {WHERE: 5}
    assert target_of(one).rows == [{"id": 1}, {"id": 2}]


def test_a_record_that_does_not_know_where_it_was_fails_the_task(trial: Callable[..., SinkTrial]) -> None:
    one = trial()
    given = table([{"id": 1}])
    lost = given.set_column(given.schema.get_field_index(TOPIC), TOPIC, pa.nulls(1, pa.string()))
    with pytest.raises(ConnectError, match="which one of Kafka it was"):
        one.task.put(lost)


# --- columns ----------------------------------------------------------------------------------------------------------


def test_metadata_become_columns(trial: Callable[..., SinkTrial]) -> None:
    config = {
        "metadata.columns": "_topic,_partition,_offset,_timestamp,_key",
        "schema": "id INT",
        "rotate.records": "1",
    }
    one = trial(config)
    one.put([{"id": 1}], first=3, keys=["k"])
    one.commit(4)
    at = dt.datetime.fromtimestamp(1_700_000_000.003, dt.UTC)
    assert target_of(one).rows == [
        {"id": 1, "_topic": "orders", "_partition": 0, "_offset": 3, "_timestamp": at, "_key": "k"}
    ]


def test_headers_become_a_column_and_come_only_where_they_are_wanted(trial: Callable[..., SinkTrial]) -> None:
    config = {"metadata.columns": "_headers", "schema": "id INT", "rotate.records": "1", "path": "/tmp/out"}
    assert SparkSink.task_class_for(config).columns == (*GIVEN, RAW_HEADERS)
    assert SparkSink.task_class_for({**config, "metadata.columns": "_key"}).columns == GIVEN
    one, headers = trial(config), [[{"key": "h", "value": b"\x00"}, {"key": "h", "value": None}], None]
    one.task.put(table([{"id": 1}, {"id": 2}]).append_column(RAW_HEADERS, pa.array(headers, HEADERS)))
    one.commit(2)
    assert target_of(one).schema == parse("id INT, _headers ARRAY<STRUCT<key: STRING, value: BINARY>>")
    assert [row["_headers"] for row in target_of(one).rows] == headers


def test_a_field_that_is_not_set_has_its_default(trial: Callable[..., SinkTrial]) -> None:
    one = trial({"rotate.records": "1"})
    status = replace(schema.STRING, optional=True, default="new")
    order = schema.struct({"id": schema.INT64, "status": status})
    one.task.value_schema = order
    one.put([{"id": 1, "status": None}, {"id": 2, "status": "paid"}], schema=order)
    one.commit(2)
    assert target_of(one).rows == [{"id": 1, "status": "new"}, {"id": 2, "status": "paid"}]


def test_a_field_named_like_metadata_is_refused(trial: Callable[..., SinkTrial]) -> None:
    with pytest.raises(ConnectError, match="The value has a field _topic, which is also one of"):
        trial({"metadata.columns": "_topic"}).put([{"_topic": 1}])


def test_columns_are_kept_across_restarts_where_the_target_has_them(trial: Callable[..., SinkTrial]) -> None:
    target = MemoryTarget()
    first = trial({"rotate.records": "1"}, target)
    first.put([{"id": 1, "name": None}])
    first.put([{"id": 2, "name": "a"}], first=1)
    first.commit(2)
    assert target.schema == parse("id BIGINT, name STRING")
    second = trial({"rotate.records": "1"}, target)
    with pytest.raises(ConnectError, match="There is no column more"):
        second.put([{"id": 1, "more": 1}], first=2)


def test_columns_are_added_and_all_rows_of_a_batch_have_them(trial: Callable[..., SinkTrial]) -> None:
    one = trial({"schema": "id BIGINT", "schema.evolution": "add", "rotate.records": "1"})
    one.put([{"id": 1}])
    one.put([{"id": 2, "more": True}], first=1)
    one.commit(2)
    assert target_of(one).rows == [{"id": 1, "more": None}, {"id": 2, "more": True}]


# --- upsert -----------------------------------------------------------------------------------------------------------

UPSERT = {"format": "delta", "mode": "upsert", "key.columns": "id", "rotate.records": "1"}


def changes(target: MemoryTarget) -> dict[Any, Any]:
    (batch,) = target.batches
    assert batch.deleted is not None
    rows = zip(batch.rows.to_pylist(), batch.deleted.to_pylist(), strict=True)
    return {row["id"]: None if deleted else row["name"] for row, deleted in rows}


def test_the_last_of_each_key_counts_and_a_null_deletes(trial: Callable[..., SinkTrial]) -> None:
    one = trial({**UPSERT, "schema": "id BIGINT, name STRING NOT NULL"})
    values = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}, None, {"id": 1, "name": "c"}, {"id": 3, "name": "d"}]
    one.put(values, keys=[1, 2, 2, 1, 3])
    one.put([None, {"id": 4, "name": "e"}], keys=[4, 4], first=5)
    one.commit(7)
    assert changes(target_of(one)) == {1: "c", 2: None, 3: "d", 4: "e"}


def test_keys_that_are_structs_have_the_key_columns(trial: Callable[..., SinkTrial]) -> None:
    one = trial({**UPSERT, "key.columns": "id,order"})
    one.put([{"id": 1, "order": "a", "n": 1}, None], keys=[{"id": 1, "order": "a"}, {"id": 2, "order": "b"}])
    one.commit(2)
    (batch,) = target_of(one).batches
    assert batch.rows.to_pylist() == [{"id": 1, "order": "a", "n": 1}, {"id": 2, "order": "b", "n": None}]
    assert batch.deleted is not None
    assert batch.deleted.to_pylist() == [False, True]


def test_key_columns_that_only_keys_have_are_theirs(trial: Callable[..., SinkTrial]) -> None:
    one = trial(UPSERT)
    one.put([{"name": "a"}], keys=[7])
    one.commit(1)
    assert changes(target_of(one)) == {7: "a"}


def test_a_row_without_a_key_does_not_fit(trial: Callable[..., SinkTrial]) -> None:
    with pytest.raises(ConnectError, match="Column id may not be null"):
        trial(UPSERT).put([{"name": "a"}])
    one = trial({**UPSERT, "schema": "id BIGINT"})
    with pytest.raises(ConnectError, match="Column id may not be null"):
        one.put([None])


def test_a_tombstone_before_any_row_deletes_nothing(trial: Callable[..., SinkTrial]) -> None:
    one = trial(UPSERT)
    one.put([None], keys=[1])
    assert one.commit(1) == {WHERE: 1}
    assert target_of(one).batches == []
