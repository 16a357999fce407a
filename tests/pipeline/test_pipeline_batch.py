"""Arrow batches: their columns, and their way through bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headgate.pipeline.batch import (
    CONSUMED,
    PRODUCED,
    Produced,
    from_ipc,
    numbered,
    produced,
    rows,
    table_schema,
    text_column,
    to_ipc,
)


def test_rows_of_all_kinds_become_a_table_with_the_producers_columns() -> None:
    table = produced(
        [
            Produced(0, "t", None, None, b"v", None, None),
            Produced(2, "u", 1, b"k", None, 5, [("h", b"x"), ("h", None)]),
        ]
    )
    assert table.schema == PRODUCED
    assert table.to_pylist() == [
        {"row": 0, "topic": "t", "partition": None, "key": None, "value": b"v", "timestamp": None, "headers": None},
        {
            "row": 2,
            "topic": "u",
            "partition": 1,
            "key": b"k",
            "value": None,
            "timestamp": 5,
            "headers": [{"key": "h", "value": b"x"}, {"key": "h", "value": None}],
        },
    ]


def test_no_rows_make_an_empty_table() -> None:
    assert produced([]) == PRODUCED.empty_table()
    assert numbered(0).to_pylist() == []


def test_rows_are_numbered_from_zero() -> None:
    assert numbered(4) == pa.array([0, 1, 2, 3], pa.int32())


def test_columns_that_a_batch_lacks_have_one_value() -> None:
    batch = pa.table({"value": pa.array([b"a", None])})
    assert list(rows(batch, ("topic", "value"), ("t", None))) == [("t", b"a"), ("t", None)]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([b"a", None, "é".encode()], ["a", None, "é"]),
        ([b"a", None, b"\xff"], ["a", None, "\ufffd"]),
        ([], []),
    ],
)
def test_bytes_become_text(data: list[bytes | None], expected: list[str | None], kind: pa.DataType) -> None:
    for column in (pa.array(data, kind), pa.chunked_array([pa.array(data, kind)] * 2)):
        found = text_column(column)
        assert found.type == pa.string()
        assert found.to_pylist() == expected * (len(column) // len(data) if data else 1)


def test_batches_and_tables_travel_as_bytes() -> None:
    batch = pa.record_batch({"value": pa.array([b"a"]), "n": pa.array([1], pa.int32())})
    assert from_ipc(to_ipc(batch)) == pa.Table.from_batches([batch])
    assert from_ipc(to_ipc(CONSUMED.empty_table())) == CONSUMED.empty_table()


def test_a_task_gets_the_columns_it_asked_for_in_its_order() -> None:
    assert table_schema(("value", "offset")).names == ["value", "offset"]
    assert table_schema(()).names == []
