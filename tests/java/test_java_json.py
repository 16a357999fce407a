"""JSON text: what Jackson forgives, and what it writes."""

from __future__ import annotations

import math
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.java.json import MISSING, dumps, exact_loads, loads, quick_dumps, strict_loads


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"-0", 0),
        (b" 7 ", 7),
        (b"01", 1),
        (b"-01", -1),
        (b"1E6", 1000000.0),
        (b"1e400", math.inf),
        (b"1e-400", 0.0),
        (b"9223372036854775807", 9223372036854775807),
        (b"9223372036854775808", -9223372036854775808),
        (b"18446744073709551616", 0),
        (b'{"n":[123456789012345678901234567890]}', {"n": [-4362896299872285998]}),
        (b"[1700000000123456789, 1.5]", [1700000000123456789, 1.5]),
        (b"1 abc", 1),
        (b"{}x", {}),
        (b'"a"b', "a"),
        (b"[1]]", [1]),
        (b"true x", True),
        (b'{"a":1,"a":2,"b":3}', {"a": 2, "b": 3}),
        (b"\xef\xbb\xbf1", 1),
        ("[1]".encode("utf-16"), [1]),
        ("[1]".encode("utf-16-be"), [1]),
        (b'"\\ud800"', "\ud800"),
        (b"", MISSING),
        (b"  \n", MISSING),
        (b"null", None),
    ],
)
def test_it_reads_what_jackson_reads(data: bytes, value: Any) -> None:
    assert loads(data) == value
    assert type(loads(data)) is type(value)


@pytest.mark.parametrize("data", [b"-0.0", b"[-0.0]", b'{"a":-0.0e5}'])
def test_there_is_no_negative_zero(data: bytes) -> None:
    assert "-" not in repr(loads(data))


@pytest.mark.parametrize(
    "data",
    [
        *(b"1abc", b"1,2", b"truex", b"nul", b"NaN", b"Infinity", b"+1", b".5", b"1.", b"-", b"1e", b"{", b"[", b"[1"),
        *(b"{'a':1}", b"[1,]", b'{"a":1,}', b'{"a" 1}', b'{"a":1 "b":2}', b"{1:2}", b"// c\n1", b'"', b'"\\x"'),
        *(b'"\xff"', b'"a\nb"', b"1" * 1001, b"[" * 1025 + b"]" * 1025, b" [" * 1001 + b" ]" * 1001 + b"x"),
    ],
)
def test_it_refuses_what_jackson_refuses(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(data)


def test_numbers_can_be_kept_exact_for_a_schema() -> None:
    assert loads(b"[18446744073709551616, 0.5]", typed=True) == [18446744073709551616, Decimal("0.5")]
    assert exact_loads(b'{"d": 123.40}')["d"].as_tuple() == Decimal("123.40").as_tuple()


@pytest.mark.parametrize(
    ("tree", "data"),
    [
        ({"a": 1, "b": [True, None, "x"]}, b'{"a":1,"b":[true,null,"x"]}'),
        (1.0, b"1.0"),
        (-0.0, b"-0.0"),
        (1e20, b"1.0E20"),
        ([1e7, 9999999.5, 0.001, 0.0001], b"[1.0E7,9999999.5,0.001,1.0E-4]"),
        ({"x": [math.nan, math.inf, -math.inf]}, b'{"x":["NaN","Infinity","-Infinity"]}'),
        (Decimal("123.40"), b"123.40"),
        (Decimal("1E+30"), b"1E+30"),
        (1 << 70, b"1180591620717411303424"),
        ('\x00\x0b\x1f\x7f/\b\f\n\r\t"\\', b'"\\u0000\\u000B\\u001F\x7f/\\b\\f\\n\\r\\t\\"\\\\"'),
        ("\u00e9\u20ac\u2028", '"\u00e9\u20ac\u2028"'.encode()),
        ("\U0001f600", b'"\\uD83D\\uDE00"'),
        (MappingProxyType({"a": MappingProxyType({}), "b": (1e20,)}), b'{"a":{},"b":[1.0E20]}'),
        ({"\U0001f600": "\ud800"}, b'{"\\uD83D\\uDE00":"\\uD800"}'),
    ],
)
def test_it_writes_what_jackson_writes(tree: Any, data: bytes) -> None:
    assert dumps(tree) == data


TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@given(TREES)
def test_the_quick_writer_and_the_careful_one_agree(tree: Any) -> None:
    quick = quick_dumps(tree)
    # A Decimal keeps the quick writer away from the same tree.
    assert quick is None or b"[0," + quick + b"]" == dumps([Decimal(0), tree])


@given(TREES)
def test_what_was_written_is_read_back(tree: Any) -> None:
    def expected(node: Any) -> Any:
        if isinstance(node, float) and not math.isfinite(node):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(node)]
        if isinstance(node, dict):
            return {key: expected(value) for key, value in node.items()}
        return [expected(item) for item in node] if isinstance(node, list) else node

    assert loads(dumps(tree)) == expected(tree)


@given(TREES)
def test_the_exact_reader_and_the_quick_one_agree(tree: Any) -> None:
    data = dumps(tree)
    assert loads(data) == loads(b"\xef\xbb\xbf" + data)  # orjson reads no byte order mark


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_the_strict_reader_keeps_every_number(number: float) -> None:
    assert repr(strict_loads(dumps(number))) == repr(number)


@pytest.mark.parametrize(
    "data", [b"", b" ", b"{", b"{}x", b"01", b"NaN", b"-Infinity", b"'a'", b"\xff", b"[" * 100_000, b"nul"]
)
def test_the_strict_reader_forgives_nothing(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        strict_loads(data)
