"""StringConverter: text in, text out, whatever the schema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import ConfigError, Schema, Struct
from headgate.api import schema as s
from headgate.pipeline.converters.string import StringConverter, is_utf8


def converter(**config: str) -> StringConverter:
    made = StringConverter()
    made.configure({name.replace("_", "."): value for name, value in config.items()}, is_key=False)
    return made


def test_it_has_apaches_name() -> None:
    assert StringConverter.aliases == ("org.apache.kafka.connect.storage.StringConverter",)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (None, None, None),
        (s.OPTIONAL_STRING, None, None),
        (s.STRING, "caf\u00e9", b"caf\xc3\xa9"),
        (None, True, b"true"),
        (s.INT64, 12, b"12"),
        (s.FLOAT64, 1e20, b"1.0E20"),
        (s.FLOAT32, 1.1, b"1.1"),
        (None, {"a": [1, None]}, b"{a=[1, null]}"),
        (s.struct({"a": s.INT32}), Struct(s.struct({"a": s.INT32}), {"a": 1}), b"Struct{a=1}"),
        (None, "lone \ud800", b"lone ?"),
    ],
)
def test_it_writes_the_text_of_any_value(schema: Schema | None, value: Any, expected: bytes | None) -> None:
    assert converter().from_connect("t", schema, value) == expected
    assert converter().from_connect_header("t", "k", schema, value) == expected


@pytest.mark.parametrize(
    ("data", "expected"), [(None, None), (b"", ""), (b"caf\xc3\xa9", "caf\u00e9"), (b"\xffx", "\ufffdx")]
)
def test_it_reads_optional_strings(data: bytes | None, expected: str | None) -> None:
    assert converter().to_connect("t", data) == (s.OPTIONAL_STRING, expected)
    assert converter().to_connect_header("t", "k", data) == (s.OPTIONAL_STRING, expected)


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("ISO-8859-1", b"caf\xe9"),
        ("US-ASCII", b"caf?"),
        ("UTF-16", b"\xfe\xff\x00c\x00a\x00f\x00\xe9"),
        ("UTF-16LE", b"c\x00a\x00f\x00\xe9\x00"),
    ],
)
def test_the_encoding_can_be_chosen(encoding: str, data: bytes) -> None:
    chosen = converter(converter_encoding=encoding)
    assert chosen.from_connect("t", None, "caf\u00e9") == data
    assert chosen.to_connect("t", data)[1] == ("caf?" if encoding == "US-ASCII" else "caf\u00e9")
    assert not is_utf8(chosen)


def test_utf16_without_a_mark_is_big_endian() -> None:
    assert converter(converter_encoding="UTF-16").to_connect("t", b"\x00c")[1] == "c"


def test_an_unknown_encoding_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match=r"converter\.encoding"):
        converter(converter_encoding="EBCDIC-9000")


def test_the_runtime_may_say_what_it_is_for() -> None:
    assert is_utf8(converter(converter_type="key"))
    with pytest.raises(ConfigError, match="String must be one of: key, value, header"):
        converter(converter_type="zz")


@given(st.text())
def test_text_survives(value: str) -> None:
    made = converter()
    assert made.to_connect("t", made.from_connect("t", s.STRING, value)) == (s.OPTIONAL_STRING, value)
