"""Lines of a file, made of a column: few by Python, many by Arrow, with one result."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headgate.connectors.lines import _FEW, lines_of


@given(st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]))), st.integers(0, 3))
def test_few_and_many_give_the_same(values: list[str | None], cut: int) -> None:
    column = pa.chunked_array([pa.array(values[:cut], pa.string()), pa.array(values[cut:], pa.string())])
    expected = "".join(f"{'null' if value is None else value}\n" for value in values).encode()
    assert bytes(lines_of(column)) == expected
    rest = ["x"] * (_FEW + 1)
    many = pa.chunked_array([*column.chunks, pa.array(rest)])
    assert bytes(lines_of(many)) == expected + b"x\n" * len(rest)
