"""Offsets of data sources as Connect's, and back: nothing is lost, nothing mistaken for something else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headgate.api import ConnectError
from headgate.connectors.spark.source.offset import StreamPosition, plain

LEAVES = (
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text()
)
VALUES = some.recursive(
    LEAVES, lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(), inner, max_size=3)
)
KEYS = some.text() | some.sampled_from(["offset", "until", "partition", "rows"])
OFFSETS = some.dictionaries(KEYS, VALUES | VALUES.map(json.dumps), max_size=5)


@given(OFFSETS, OFFSETS, some.integers(0, 1 << 40), some.integers(0, 1 << 40), some.booleans())
def test_what_is_written_is_read_again(
    start: dict[str, Any], until: dict[str, Any], partition: int, rows: int, within: bool
) -> None:
    position = StreamPosition(start, until, partition, rows) if within and partition + rows else StreamPosition(start)
    written = position.written()
    assert all(value is None or isinstance(value, str | bool | int | float) for value in written.values())
    again = StreamPosition.read(json.loads(json.dumps(written)))
    assert json.dumps(again.start) == json.dumps(start)
    assert again == position


@pytest.mark.parametrize(
    ("offset", "written"),
    [
        ({"line": 7, "file": "a", "open": True, "rest": None}, {"line": 7, "file": "a", "open": True, "rest": None}),
        ({"offset": 3}, {"offset": 3}),
        ({"offset": "text"}, {"offset": "text"}),
        ({"p": {"index": 3}}, {"offset": '{"p":{"index":3}}'}),
        ({}, {"offset": "{}"}),
        ({"big": 1 << 70}, {"offset": '{"big":1180591620717411303424}'}),
        ({"offset": "{}"}, {"offset": '{"offset":"{}"}'}),
    ],
)
def test_primitive_values_are_stored_as_they_are_and_all_else_as_json(
    offset: dict[str, Any], written: dict[str, Any]
) -> None:
    assert StreamPosition(offset).written() == written
    assert StreamPosition.read(written) == StreamPosition(offset)


def test_before_the_first_row_of_a_batch_its_end_is_not_stored() -> None:
    assert StreamPosition({"line": 1}, {"line": 9}).written() == {"line": 1}


@pytest.mark.parametrize(
    "wrong",
    [
        {"offset": "{}", "until": "{}", "partition": -1, "rows": 0},
        {"offset": "{}", "until": "{}", "partition": 0, "rows": True},
        {"offset": "{}", "until": "[]", "partition": 0, "rows": 1},
        {"offset": 5, "until": "{}", "partition": 0, "rows": 1},
    ],
)
def test_a_place_within_a_batch_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="place within a batch"):
        StreamPosition.read(wrong)


@pytest.mark.parametrize("wrong", [None, 5, [], "{}", {"a": float("nan")}, {"a": object()}, {("a", "b"): 1}])
def test_what_a_data_source_says_must_be_a_dictionary_that_json_has(wrong: object) -> None:
    with pytest.raises(ConnectError, match="What it returned"):
        plain(wrong, "What it returned")


def test_it_is_seen_as_after_a_restart() -> None:
    assert plain({1: (2, 3)}, "") == {"1": [2, 3]}
