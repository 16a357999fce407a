"""Texts match the patterns that they are made of."""

from __future__ import annotations

import re

import pytest
from datagen_support import rows_of
from hypothesis import given
from hypothesis import strategies as st

from headgate.connectors.datagen.generator import BadSchema
from headgate.connectors.datagen.pattern import PatternTexts


def made(pattern: str, count: int = 300) -> list[str]:
    return rows_of(PatternTexts.of(pattern), range(count))


@pytest.mark.parametrize(
    ("pattern", "all_of_them"),
    [
        ("", {""}),
        ("abc", {"abc"}),
        ("User_[1-3]{0,1}", {"User_", "User_1", "User_2", "User_3"}),
        ("(a|bc|)x?", {"a", "bc", "", "ax", "bcx", "x"}),
        ("^[a-b_]{2}$", {"aa", "ab", "a_", "ba", "bb", "b_", "_a", "_b", "__"}),
        (r"(?:\.|\\|\[)", {".", "\\", "["}),
        (r"[\]\-a]", {"]", "-", "a"}),
        ("[a-]", {"a", "-"}),
        ("[]a]", {"]", "a"}),
        ("ä|\\€", {"ä", "€"}),
        ("(a?b){2}", {"abab", "abb", "bab", "bb"}),
        ("x{3,}", {"x" * count for count in range(3, 12)}),
        ("y*", {"y" * count for count in range(9)}),
        ("z+", {"z" * count for count in range(1, 9)}),
    ],
)
def test_all_texts_that_match_come_and_no_others(pattern: str, all_of_them: set[str]) -> None:
    assert set(made(pattern)) == all_of_them
    assert all(re.fullmatch(pattern, each) for each in all_of_them)


PARTS = st.sampled_from(["a", "B", "7", r"\d", r"\w", ".", "[a-f]", r"[x\d_]", "[0-9A-F]", r"\-", "é", " "])
QUANTIFIERS = st.sampled_from(["", "", "", "?", "*", "+", "{2}", "{0,3}", "{1,}"])
PATTERNS = st.recursive(
    st.tuples(PARTS, QUANTIFIERS).map("".join),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda each: f"({'|'.join(each)})"),
    ),
    max_leaves=8,
)


@given(PATTERNS)
def test_texts_match_their_pattern(pattern: str) -> None:
    assert all(re.fullmatch(pattern, each) for each in made(pattern, 20))


BAD = [
    ("(", "at character 3 the end, with a bracket left open"),
    (")", "at character 1 a bracket that was not opened"),
    ("a]", "a ] that does not belong there"),
    ("*", "at character 1 a * that does not belong there"),
    ("a**", "a * that does not belong there"),
    ("a{x}", "a number of times that is none"),
    ("a{2", "a number of times that is none"),
    ("a{3,2}", "a number of times that is none, or makes more than 1000 bytes"),
    ("a{9999999999999999999}", "a number of times that is none"),
    ("a{1001}", "makes more than 1000 bytes"),
    ("(a{100}){100}", "makes more than 1000 bytes"),
    ("((){1000}){1000}", "makes more than 1000 bytes"),
    ("a{600}b{600}", "a pattern may make at most 1000 bytes"),
    ("[^a]", "a class of all other characters, which is not known here"),
    ("[b-a]", "the end of a range that is none"),
    (r"[\d-z]", "the end of a range that is none"),
    ("[a-€]", "or goes beyond ASCII"),
    ("[ä]", "a class with characters beyond ASCII"),
    ("[", "the end, with a class left open"),
    ("[]", "the end, with a class left open"),
    (r"\b", "an escape that is not known here"),
    ("\\", "an escape that is not known here"),
    ("(?=a)", "a kind of group that is not known here"),
    ("a^", "a ^ that does not belong there"),
    ("$a", "a $ that does not belong there"),
    ("(" * 30 + ")" * 30, "too many brackets in brackets"),
]


@pytest.mark.parametrize(("pattern", "told"), BAD, ids=[pattern[:20] for pattern, _ in BAD])
def test_what_cannot_be_followed_is_refused(pattern: str, told: str) -> None:
    with pytest.raises(BadSchema, match=re.escape(told)):
        PatternTexts.of(pattern)


@given(st.text(alphabet="ab[](){}|?*+.^$\\-,0123é", max_size=15))
def test_any_text_is_a_pattern_or_refused(pattern: str) -> None:
    try:
        found = PatternTexts.of(pattern)
    except BadSchema:
        return
    assert len(rows_of(found, range(3))) == 3
