"""JSON by columns or one by one: JsonConverter reads the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_strategies import check, columns, converter, plain_batches, typed_batches
from test_jackson_answers import ANSWERS

from headgate.api import Schema
from headgate.pipeline.columns import json_groups
from headgate.pipeline.converters.json_schema import schema_tree
from headgate.pipeline.converters.json_value import Options


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    """All that looks alike goes by columns, however little it is."""
    with patch.object(json_groups, "FEWEST", 1):
        yield


@given(st.lists(plain_batches(), min_size=1, max_size=2), st.data())
def test_without_schemas(batches: list[list[bytes | None]], data: st.DataObject) -> None:
    made = converter(schemas_enable="false")
    for texts in batches:  # the second one finds something remembered
        check(made, data.draw(columns(texts)))


def enveloped(schema: str, payload: str, order: str, spaced: bool) -> bytes:
    parts = [f'"schema":{schema}', f'"payload":{payload}'][:: 1 if order == "schema" else -1]
    text = f"{{{(', ' if spaced else ',').join(parts)}}}"
    return (text.replace('":', '": ', 1) if spaced else text).encode(errors="replace")


@given(
    typed_batches(),
    st.sampled_from(["schema", "payload"]),
    st.sampled_from(["true", "false"]),
    st.sampled_from(["BASE64", "NUMERIC"]),
    st.data(),
)
def test_with_schemas(
    batch: tuple[Schema, list[str], Callable[[Any], str]],
    order: str,
    replace_null: str,
    decimals: str,
    data: st.DataObject,
) -> None:
    schema, payloads, write = batch
    tree = schema_tree(schema, Options())
    spaced = '": ' in write({"a": 1})
    config = {"replace_null_with_default": replace_null, "decimal_format": decimals}
    texts = [enveloped(write(tree), payload, order, spaced) for payload in payloads]
    check(converter(**config), data.draw(columns(texts)))
    fixed = converter(**config, schema_content=json.dumps(tree))
    check(fixed, data.draw(columns([payload.encode(errors="replace") for payload in payloads])))


def test_what_jackson_answered() -> None:
    made, other = converter(schemas_enable="false"), converter()
    for data, _ in ANSWERS[:: max(1, 100 // settings().max_examples)]:
        check(made, pa.array([data, b'{"a":1.5}', data]))
        check(other, pa.array([b'{"schema":null,"payload":%s}' % data] * 2))
