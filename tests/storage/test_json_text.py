from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.pipeline.converters import json_text as of_the_pipeline
from headgate.storage.json_text import dumps, loads

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
PRIMITIVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
TREES = st.recursive(PRIMITIVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ({"a": [1, True, None]}, '{"a":[1,true,null]}'),
        ("\u00e4\u20ac", '"\u00e4\u20ac"'),
        ("\U0001f600", '"\\uD83D\\uDE00"'),
        ('"\\/\b\t\n\f\r', '"\\"\\\\/\\b\\t\\n\\f\\r"'),
        ("\x1f\x00", '"\\u001F\\u0000"'),
        ([1.0, 1.5, 1e20, 1e-5, -2.5e7, 0.001, -0.0], "[1.0,1.5,1.0E20,1.0E-5,-2.5E7,0.001,-0.0]"),
        (5e-324, "4.9E-324"),
        (2**80, str(2**80)),
    ],
)
def test_the_text_is_javas(tree: Any, text: str) -> None:
    assert dumps(tree) == text.encode()


@given(TREES)
def test_it_is_what_the_pipeline_writes(tree: Any) -> None:
    assert dumps(tree) == of_the_pipeline.dumps(tree)


@given(TREES)
def test_what_is_written_is_read(tree: Any) -> None:
    assert loads(dumps(tree)) == tree


@pytest.mark.parametrize("data", [b"", b" ", b"{", b"NaN", b"-Infinity", b"'a'", b"\xff", b"[" * 100_000, b"nul"])
def test_what_is_not_json_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of them
        loads(data)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_has_not_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="is not JSON"):
        dumps([value])
