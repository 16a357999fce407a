"""Headers of a column are those of each value."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from value_strategies import any_values

from headgate.api import DataError, Schema
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.columns.header_bytes import header_bytes
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.numbers import LongConverter
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.converters.string import StringConverter


class Counting(SimpleHeaderConverter):
    """Says how often it was asked."""

    asked = 0

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        self.asked += 1
        return super().from_connect_header(topic, key, schema, value)


class Louder(StringConverter):
    """Has its own idea of text."""

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return b"LOUD"


CONVERTERS: Final = (SimpleHeaderConverter, Counting, StringConverter, Louder, JsonConverter, LongConverter)


def configured(cls: type[Any]) -> Any:
    made = cls()
    made.configure({})
    return made


@given(any_values(lacking=True), st.sampled_from(CONVERTERS))
def test_each_header_is_written_as_for_itself(values: Values, cls: type[Any]) -> None:
    converter = configured(cls)
    try:
        expected = [converter.from_connect_header("t", "h", values.schema, item) for item in objects(values)]
    except DataError:
        with pytest.raises(NotByColumns):
            header_bytes(converter, "t", "h", values)
    else:
        found = header_bytes(converter, "t", "h", values)
        assert (found.type, found.to_pylist()) == (pa.binary(), expected)


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        (Values(pa.array([0.0, -0.0, 0.0, float("nan"), float("nan"), None, None])), 4),
        (Values(pa.array(["a", "b", "a"]).slice(1)), 2),
        (values_of(s.TIMESTAMP, [None] * 3), 1),
        (Values(pa.array([[1], [1]])), 2),
    ],
)
def test_each_distinct_value_is_converted_once(values: Values, asked: int) -> None:
    converter = configured(Counting)
    header_bytes(converter, "t", "h", values)
    assert converter.asked == asked
