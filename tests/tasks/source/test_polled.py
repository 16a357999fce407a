"""What was polled: its offsets, its rows as records, put together with its neighbours and cut into pieces."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headgate.api import Header, RowsFrom, Schema, SchemaType, SourceRecord, SourceTable
from headgate.tasks.source.polled import Polled, cut, joined

TEXT = Schema(SchemaType.STRING)


def record(value: Any, partition: Any = None, offset: Any = None) -> SourceRecord:
    return SourceRecord(topic="t", value=value, source_partition=partition, source_offset=offset)


def table(values: list[Any], topic: str = "t", place: bool = True, **more: Any) -> SourceTable:
    where = ({"p": 0}, {"n": len(values)}) if place else (None, None)
    made = pa.table({"value": pa.array(values, pa.string())})
    return SourceTable(topic=topic, table=made, source_partition=where[0], source_offset=where[1], **more)


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_the_latest_offset_of_each_partition_stands_for_all_records() -> None:
    polled = Polled.of(
        [
            record("a", {"p": 0}, {"n": 1}),
            record("b", {"p": 1}, {"n": 7}),
            record("c", {"p": 0}, {"n": 2}),
        ]
    )
    assert sorted(polled.offsets, key=str) == [({"p": 0}, {"n": 2}), ({"p": 1}, {"n": 7})]
    assert polled.rows == 3
    assert polled.end is None


@pytest.mark.parametrize(("partition", "offset"), [(None, None), ({"p": 0}, None), (None, {"n": 1})])
def test_what_does_not_say_where_it_came_from_moves_no_offset(partition: Any, offset: Any) -> None:
    assert Polled.of([record("a", partition, offset)]).offsets == ()
    columns = pa.table({"value": ["a"]})
    given = SourceTable(topic="t", table=columns, source_partition=partition, source_offset=offset)
    assert Polled.of(given).offsets == ()


def test_a_table_has_one_offset_also_without_rows() -> None:
    assert Polled.of(table(["a", "b"])).offsets == (({"p": 0}, {"n": 2}),)
    empty = Polled.of(table([]))
    assert (empty.rows, empty.offsets) == (0, (({"p": 0}, {"n": 0}),))


PLACES = (RowsFrom(2, {"p": 0}, {"n": 5}), RowsFrom(3, {"p": 1}, {"n": 9}), RowsFrom(4, {"p": 0}, {"n": 6}))


def test_a_table_of_several_partitions_moves_each_to_its_last_offset() -> None:
    polled = Polled.of(table(["a", "b", "c", "d"], place=False, places=PLACES))
    assert sorted(polled.offsets, key=str) == [({"p": 0}, {"n": 6}), ({"p": 1}, {"n": 9})]
    assert [polled.record(row).source_partition for row in range(4)] == [{"p": 0}, {"p": 0}, {"p": 1}, {"p": 0}]
    assert [polled.record(row).source_offset for row in range(4)] == [{"n": 5}, {"n": 5}, {"n": 9}, {"n": 6}]


def test_places_without_rows_move_offsets_too() -> None:
    assert Polled.of(table([], place=False, places=[RowsFrom(0, {"p": 3}, {"n": 1})])).offsets == (
        ({"p": 3}, {"n": 1}),
    )


@pytest.mark.parametrize("ends", [[1], [3], [2, 1, 2]])
def test_places_cover_all_rows_in_order(ends: list[int]) -> None:
    with pytest.raises(ValueError, match="cover its 2 rows"):
        table(["a", "b"], place=False, places=[RowsFrom(end, {}, {}) for end in ends])


def test_headers_of_a_row_are_those_of_its_record() -> None:
    headers = pa.array([[{"key": "h", "value": "1"}], None])
    given = SourceTable(topic="t", table=pa.table({"value": ["a", "b"], "headers": headers}))
    assert [Polled.of(given).record(row).headers for row in (0, 1)] == [(Header("h", "1"),), ()]


def test_a_table_counts_with_its_bytes_and_records_with_a_guess() -> None:
    large = table(["x" * 1000] * 10)
    assert Polled.of(large).size == large.table.nbytes > 10_000
    assert Polled.of([record("x")] * 3).size == 3 * Polled.of([record("y" * 1000)]).size


# --- rows -------------------------------------------------------------------------------------------------------------


def test_a_row_is_shown_as_the_record_that_it_stands_for() -> None:
    given = [record("a"), record("b")]
    assert Polled.of(given).record(1) is given[1]
    columns = pa.table(
        {"value": ["a", "b"], "key": ["k", "l"], "timestamp": [1, 2], "partition": [3, 4], "more": [5, 6]}
    )
    polled = Polled.of(
        SourceTable(
            topic="t",
            table=columns,
            source_partition={"p": 0},
            source_offset={"n": 2},
            value_schema=TEXT,
            key_schema=TEXT,
        )
    )
    assert polled.record(1) == SourceRecord(
        topic="t",
        value="b",
        key="l",
        timestamp=2,
        partition=4,
        value_schema=TEXT,
        key_schema=TEXT,
        source_partition={"p": 0},
        source_offset={"n": 2},
    )
    assert Polled.of(table(["a"])).record(0).key is None, "a column that is not there"


# --- together, and apart ----------------------------------------------------------------------------------------------


def shown(contents: list[Any]) -> list[Any]:
    """Tables as their topic and values, records as a list of values."""
    return [
        (each.topic, each.table["value"].to_pylist()) if isinstance(each, SourceTable) else [one.value for one in each]
        for each in contents
    ]


def test_neighbours_of_one_kind_travel_together_in_their_order() -> None:
    given: list[Any] = [
        [record(1)],
        [record(2), record(3)],
        table(["a"]),
        table(["b"]),
        table(["c"], topic="u"),
        [record(4)],
    ]
    assert shown(joined(given)) == [[1, 2, 3], ("t", ["a", "b"]), ("u", ["c"]), [4]]
    assert joined([]) == []


def test_tables_that_do_not_fit_together_stay_apart() -> None:
    other = SourceTable(topic="t", table=pa.table({"value": [1]}), source_partition=None, source_offset=None)
    typed, keyed = table(["b"], value_schema=TEXT), table(["c"], value_schema=TEXT, key_schema=TEXT)
    assert [len(each[1]) for each in shown(joined([table(["a"]), other, typed, keyed, keyed]))] == [1, 1, 1, 2]


def test_joined_tables_keep_their_schemas_and_have_no_offset_of_their_own() -> None:
    (both,) = joined([table(["a"], value_schema=TEXT, key_schema=TEXT)] * 2)
    assert isinstance(both, SourceTable)
    assert (both.value_schema, both.key_schema) == (TEXT, TEXT)
    assert (both.source_partition, both.source_offset) == (None, None)
    alone = table(["a"])
    assert joined([alone]) == [alone], "what has no neighbour is not copied"


@pytest.mark.parametrize(
    ("rows", "bytes_each", "pieces"),
    [(1, 10, 1), (10, 100, 1), (5, 1024 * 1024, 3), (2, 5 * 1024 * 1024, 2), (0, 0, 0)],
    ids=["one row", "small", "large", "more bytes than rows", "none"],
)
def test_a_large_table_is_cut_into_pieces_of_about_the_same_size(rows: int, bytes_each: int, pieces: int) -> None:
    given = table([f"{row:x>{bytes_each}}" for row in range(rows)])
    parts = cut(given)
    assert len(parts) == pieces
    assert [value for part in parts for value in part.table["value"].to_pylist()] == given.table["value"].to_pylist()
    assert {part.topic for part in parts} <= {"t"}
