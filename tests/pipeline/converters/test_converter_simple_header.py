"""SimpleHeaderConverter: headers as text that shows its type."""

from __future__ import annotations

import pytest

from headgate.api import HeaderConverter
from headgate.api import schema as s
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter


@pytest.fixture
def converter() -> SimpleHeaderConverter:
    made = SimpleHeaderConverter()
    made.configure({})
    return made


def test_it_serves_headers_under_apaches_name(converter: SimpleHeaderConverter) -> None:
    assert isinstance(converter, HeaderConverter)
    assert "org.apache.kafka.connect.storage.SimpleHeaderConverter" in converter.aliases


def test_values_are_written_as_text_and_null_stays_null(converter: SimpleHeaderConverter) -> None:
    assert converter.from_connect_header("t", "k", None, {"a": [1, "x"]}) == b'{"a":[1,"x"]}'
    assert converter.from_connect_header("t", "k", s.STRING, "caf\u00e9") == b"caf\xc3\xa9"
    assert converter.from_connect_header("t", "k", s.OPTIONAL_STRING, None) is None


def test_text_is_read_by_its_looks(converter: SimpleHeaderConverter) -> None:
    assert converter.to_connect_header("t", "k", b"300") == (s.INT16, 300)
    assert converter.to_connect_header("t", "k", None) == (None, None)
    assert converter.to_connect_header("t", "k", b"1\xff") == (s.STRING, "1\ufffd")
