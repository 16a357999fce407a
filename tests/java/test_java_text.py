from __future__ import annotations

import pytest

from headgate.java.text import decode_utf8


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"ok", "ok"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"a\xc3", "a\ufffd"),
        (b"\xe2\x82x", "\ufffdx"),
        (b"\xed\xa0\x80", "\ufffd"),
        (b"\xed\xa0", "\ufffd"),
        (b"\xe2\xed\xa0\xed\xff", "\ufffd" * 4),
    ],
)
def test_invalid_utf8_becomes_as_many_replacement_characters_as_in_java(data: bytes, expected: str) -> None:
    assert decode_utf8(data) == expected
