"""RefusedRows: what goes record by record is kept apart, whatever refuses it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headgate.api.frame import Frame, NotByColumns, Values
from headgate.pipeline.columns.refused_rows import RefusedRows


def frame(*rows: int) -> Frame:
    count = len(rows)
    topics = pa.array(["t"] * count)
    values = Values(pa.array([f"v{row}" for row in rows]))
    none = pa.nulls(count, pa.int64())
    return Frame(pa.array(rows, pa.int64()), topics, none.cast(pa.int32()), none, Values.nulls(count), values)


def test_what_is_refused_is_remembered_with_its_reason() -> None:
    refused = RefusedRows(6)
    refused.add(np.array([4, 1]), "odd")
    refused.add_others(np.array([0, 2]), "left")
    assert refused.rows.tolist() == [1, 3, 4, 5]
    assert refused.reasons == {"odd": 2, "left": 2}
    assert refused.spared(np.array([0, 1, 2, 3])).tolist() == [0, 2]


def test_a_call_is_repeated_without_the_rows_that_it_refuses() -> None:
    refused, seen = RefusedRows(8), []

    def call(given: Frame) -> list[str]:
        found: list[str] = given.value.data.to_pylist()
        seen.append(found)
        if "v3" in found:
            raise NotByColumns("three", pa.array([each == "v3" for each in found]))
        return found

    done = refused.accepted(frame(2, 3, 5), call)
    assert done is not None
    assert done[0].rows.to_pylist() == [2, 5]
    assert done[1] == ["v2", "v5"]
    assert seen == [["v2", "v3", "v5"], ["v2", "v5"]]
    assert (refused.rows.tolist(), dict(refused.reasons)) == ([3], {"three": 1})


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (NotByColumns("all"), "all"),
        (NotByColumns("none named", pa.array([False, False])), "none named"),
        (ValueError("a bug, or what a plugin raises"), "ValueError"),
    ],
)
def test_without_rows_all_are_refused(error: Exception, why: str) -> None:
    refused = RefusedRows(3)

    def call(given: Frame) -> None:
        raise error

    assert refused.accepted(frame(0, 2), call) is None
    assert (refused.rows.tolist(), dict(refused.reasons)) == ([0, 2], {why: 2})


def test_who_refuses_one_after_the_other_loses_all() -> None:
    refused, calls = RefusedRows(20), []

    def call(given: Frame) -> None:
        calls.append(given.count)
        raise NotByColumns("one more", pa.array([True] + [False] * (given.count - 1)))

    assert refused.accepted(frame(*range(20)), call) is None
    assert refused.rows.tolist() == list(range(20))
    assert len(calls) < 10
