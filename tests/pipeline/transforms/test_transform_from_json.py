"""FromJson: bytes or text become the value that they are the JSON of."""

from __future__ import annotations

from typing import Any

import pytest
from transform_support import apply, source, typed

from headgate.api import DataError, Schema
from headgate.api import schema as s
from headgate.pipeline.transforms.from_json import FromJsonKey, FromJsonValue


@pytest.mark.parametrize(
    ("given", "schema", "value"),
    [
        (b'{"a": [1, 2.5, null, true]}', s.OPTIONAL_BYTES, {"a": [1, 2.5, None, True]}),
        ('"\N{SNOWMAN}"', s.STRING, "\N{SNOWMAN}"),
        (bytearray(b"7"), None, 7),
        (b"null", None, None),
        (None, s.OPTIONAL_BYTES, None),
    ],
)
def test_the_value_is_read_and_has_no_schema(given: Any, schema: Schema | None, value: Any) -> None:
    record = apply(FromJsonValue, {}, source(given, schema, key=b"1"))
    assert typed(record.value) == typed(value)
    assert record.value_schema is None
    assert record.key == b"1"


def test_the_key_is_read() -> None:
    record = apply(FromJsonKey, {}, source(b"no", s.BYTES, key=b'{"id": 1}', key_schema=s.BYTES))
    assert (record.key, record.key_schema, record.value) == ({"id": 1}, None, b"no")


@pytest.mark.parametrize("given", [b"{no json", "\ud800", {"a": 1}, 7])
def test_what_is_no_json_is_a_bad_record(given: Any) -> None:
    with pytest.raises(DataError):
        apply(FromJsonValue, {}, source(given))
