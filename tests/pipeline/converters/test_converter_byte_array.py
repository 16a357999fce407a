"""ByteArrayConverter: bytes as they are."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.api import DataError, Schema
from headgate.api import schema as s
from headgate.pipeline.converters.byte_array import ByteArrayConverter


@pytest.fixture
def converter() -> ByteArrayConverter:
    made = ByteArrayConverter()
    made.configure({}, is_key=True)
    return made


def test_it_has_apaches_name() -> None:
    assert ByteArrayConverter.aliases == ("org.apache.kafka.connect.converters.ByteArrayConverter",)


@pytest.mark.parametrize("schema", [None, s.BYTES, s.OPTIONAL_BYTES])
@pytest.mark.parametrize("value", [None, b"", b"\x00\xff", bytearray(b"x"), memoryview(b"y")])
def test_bytes_pass(converter: ByteArrayConverter, schema: Schema | None, value: Any) -> None:
    assert converter.from_connect("t", schema, value) == value
    assert converter.from_connect_header("t", "k", schema, value) == value
    assert isinstance(converter.from_connect("t", schema, value), bytes | None)


@pytest.mark.parametrize("data", [None, b"", b"\xff"])
def test_it_reads_optional_bytes(converter: ByteArrayConverter, data: bytes | None) -> None:
    assert converter.to_connect("t", data) == (s.OPTIONAL_BYTES, data)
    assert converter.to_connect_header("t", "k", data) == (s.OPTIONAL_BYTES, data)


def test_another_schema_is_refused(converter: ByteArrayConverter) -> None:
    with pytest.raises(DataError, match="Invalid schema type for ByteArrayConverter: STRING"):
        converter.from_connect("t", s.STRING, b"x")


def test_another_value_is_refused(converter: ByteArrayConverter) -> None:
    message = r"ByteArrayConverter is not compatible with objects of type class java\.lang\.String"
    with pytest.raises(DataError, match=message):
        converter.from_connect("t", None, "x")
