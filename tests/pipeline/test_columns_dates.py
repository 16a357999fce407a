"""Dates in columns: all at once or one by one, they are read and written alike."""

from __future__ import annotations

import datetime as dt
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest
from frame_lots import EDGES_MS, TEXTS
from frame_support import attempt
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import Schema
from headgate.api import schema as s
from headgate.java.dates.format import DateFormat
from headgate.pipeline.columns import dates
from headgate.pipeline.columns.instants import shown
from headgate.pipeline.columns.objects import objects, values_of
from headgate.pipeline.values import show

PATTERNS: Final = [
    *("yyyy-MM-dd HH:mm:ss.SSS", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "yyyyMMdd", "HH:mm", "dd.MM.yyyy", "SSS", "yyyy"),
    *(
        "yyyyMMddHHmmssSSS",
        "EEE, d MMM yyyy hh:mm a z",
        "yy-M-d",
        "''",
        "'x'",
        "yyyy '5' MM",
        "HH HH",
    ),
    *("yyyy-DDD", "YYYY-'W'ww-u", "MM/dd é", "k:K:H:h", "yyyy-MM-dd HH:mm:ss Z", "G y", "W F", "dd'-'MM"),
]


@given(st.randoms(use_true_random=True), st.sampled_from(PATTERNS))
def test_text_is_what_the_pattern_gives(rng: Random, pattern: str) -> None:
    made = DateFormat(pattern)
    ms = [*EDGES_MS, None, *(rng.randint(-(10**14), 10**15) for _ in range(20)), 2**63 - 1, -(2**63)]
    found = dates.formatted(pa.array(ms, pa.int64()).slice(2), made)
    assert found.to_pylist() == [None if each is None else made.format(each) for each in ms[2:]]


def read(text: str, pattern: DateFormat) -> int | None:
    try:
        ms = pattern.parse(text)
    except ValueError:
        return None
    return ms if -(2**63) <= ms < 2**63 else None


@given(st.randoms(use_true_random=True), st.sampled_from(PATTERNS))
def test_a_text_is_read_as_the_pattern_reads_it(rng: Random, pattern: str) -> None:
    made = DateFormat(pattern)
    texts: list[str | None] = [made.format(rng.randint(0, 2 * 10**12)) for _ in range(9)]
    texts += [None, *TEXTS, *(spoilt(rng, each) for each in texts if each)]
    expected = [None if each is None else read(each, made) for each in texts]
    failing = [each is not None and ms is None for each, ms in zip(texts, expected, strict=True)]
    column = pa.array(texts, pa.string())
    found, refused = attempt(lambda: dates.parsed(column, made))
    if refused is not None:
        assert refused == failing
        found = dates.parsed(column.filter(pa.array([not each for each in failing])), made)
        expected = [ms for ms, fails in zip(expected, failing, strict=True) if not fails]
    assert found.to_pylist() == expected


def spoilt(rng: Random, text: str) -> str:
    """With another digit, sign or blank somewhere."""
    place = rng.randrange(len(text))
    return text[:place] + rng.choice("0123456789 -+x٣") + text[place + 1 :]


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMdd", "dd.MM.yyyy'T'HH:mm"])
def test_usual_patterns_are_read_all_at_once(pattern: str) -> None:
    made = DateFormat(pattern)
    texts = pa.array([made.format(1700000000123), None, "x", made.format(0)])
    assert dates._parsed_at_once(texts, made).is_valid().to_pylist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("schema", "items"),
    [
        (s.DATE, [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(1970, 1, 2), dt.date(9999, 12, 31), None]),
        (s.TIME, [dt.time(0), dt.time(23, 59, 59, 999000), None]),
        (
            s.TIMESTAMP,
            [dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms) for ms in EDGES_MS] + [None],
        ),
    ],
)
def test_dates_are_shown_as_one_by_one(schema: Schema, items: list[Any]) -> None:
    given = values_of(schema.as_optional(), items)
    assert shown(given.data).to_pylist() == [None if each is None else show(each) for each in objects(given)]
