"""Arrow batches: their columns, and their way through bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headgate.pipeline.batch import (
    CONSUMED,
    PRODUCED,
    Produced,
    from_ipc,
    interleaved,
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


def test_pieces_come_in_the_order_of_their_rows_up_to_one() -> None:
    def piece(*rows: int) -> tuple[pa.Array, pa.Table]:
        return pa.array(rows, pa.int64()), pa.table({"v": [f"v{row}" for row in rows]})

    schema = pa.schema({"v": pa.string()})
    found = interleaved([piece(1, 4), piece(), piece(0, 2, 5)], schema, None)
    assert found["v"].to_pylist() == ["v0", "v1", "v2", "v4", "v5"]
    assert interleaved([piece(1, 4), piece(0, 2, 5)], schema, 4)["v"].to_pylist() == ["v0", "v1", "v2"]
    assert interleaved([piece(0, 1), piece(2)], schema, None)["v"].to_pylist() == ["v0", "v1", "v2"]
    assert interleaved([], schema, None) == schema.empty_table()


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
