"""Regular expressions of Java; most of what they can do is told by the tests of RegexRouter."""

from __future__ import annotations

import pytest

from headgate.java.regex import RegexError, Replacement, compiled


@pytest.mark.parametrize(
    ("regex", "right", "wrong"),
    [
        (r"\d", "1", "\u0663"),
        (r"\w+", "a_1", "\u00e9"),
        (r"(?i)k", "K", "\u212a"),
        (r"\h\R", " \n", "x\n"),
        (r"[\p{Upper}\p{Punct}]+", "A-!", "a"),
        (r"[a-c[x-z]_]+", "a_z", "d"),
        (r"[a-z&&[^aeiou]]+", "xyz", "a"),
        (r"[\w&&\D&&[^_]]+", "ab", "1"),
        (r"[^a-c[x-z]]+", "d", "y"),
        (r"[^a-z&&[^aeiou]]+", "a1", "b"),
        (r"[\P{Alpha}a]+", "a1-", "b"),
        (r"[]a]&&[b&]", "]&&&", "a&&c"),
    ],
)
def test_classes_are_ascii_as_in_java(regex: str, right: str, wrong: str) -> None:
    assert compiled(regex).fullmatch(right)
    assert not compiled(regex).fullmatch(wrong)


@pytest.mark.parametrize(
    ("regex", "message"),
    [
        ("[", "unterminated character set"),
        ("a[b&&[c]", "unterminated character set"),
        (r"\p{Zz}", r"\p{Zz} is not supported here"),
        ("a{99999999999}", "the repetition number is too large"),
        ("(" * 9000 + ")" * 9000, "maximum recursion depth exceeded"),
    ],
)
def test_what_cannot_be_used_is_one_error(regex: str, message: str) -> None:
    with pytest.raises(RegexError) as error:
        compiled(regex)
    assert str(error.value).startswith(message)


def test_a_wrong_replacement_is_the_same_error() -> None:
    with pytest.raises(RegexError, match=r"^No group 2$"):
        Replacement(compiled("(a)b"), "$2")
