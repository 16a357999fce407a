"""Recipes: what a schema in our own notation may name, with arguments, defaults and documentation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from headgate.api import schema
from headgate.connectors.datagen import words
from headgate.connectors.datagen.generator import (
    BadSchema,
    Booleans,
    Choices,
    CountedNumbers,
    Decimals,
    FloatNumbers,
    Generator,
    RecordTimes,
    WholeNumbers,
)
from headgate.connectors.datagen.nested import Arrays, Maps
from headgate.connectors.datagen.pattern import PatternTexts
from headgate.connectors.datagen.texts import JoinedTexts, RandomBytes, Sentences, Uuids, chosen

_DAY: Final = dt.timedelta(days=1)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FROM: Final = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_UNTIL: Final = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
LATEST: Final = dt.datetime(9999, 12, 31, tzinfo=dt.UTC)


def milliseconds(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // dt.timedelta(milliseconds=1)


def int_(low: int = 0, high: int = 999) -> Generator:
    """INT32: whole numbers, both ends included"""
    return WholeNumbers(schema.INT32, low, high)


def long_(low: int = 0, high: int = 999_999) -> Generator:
    """INT64: whole numbers, both ends included"""
    return WholeNumbers(schema.INT64, low, high)


def float_(low: float = 0.0, high: float = 1.0, digits: int = 3) -> Generator:
    """FLOAT32: numbers with so many digits behind the point"""
    return FloatNumbers(schema.FLOAT32, low, high, digits)


def double_(low: float = 0.0, high: float = 1.0, digits: int = 6) -> Generator:
    """FLOAT64: numbers with so many digits behind the point"""
    return FloatNumbers(schema.FLOAT64, low, high, digits)


def decimal_(low: Decimal = Decimal(0), high: Decimal = Decimal(1000), scale: int = 2) -> Generator:
    """Decimal: decimals with so many digits behind the point"""
    return _decimals(low, high, scale)


def money_(low: Decimal = Decimal(1), high: Decimal = Decimal(500)) -> Generator:
    """Decimal: decimals with two digits behind the point"""
    return _decimals(low, high, 2)


def boolean_(probability: float = 0.5) -> Generator:
    """BOOLEAN: true with this probability"""
    return Booleans(probability)


def sequence_(start: int = 0, step: int = 1, last: int | None = None) -> Generator:
    """INT64: the next number with each record; behind `last` it begins anew"""
    return CountedNumbers(schema.INT64, start, step, last)


def date_(low: dt.datetime = _FROM, high: dt.datetime = _UNTIL - _DAY) -> Generator:
    """Date: days, both ends included"""
    return WholeNumbers(schema.DATE, (low - _EPOCH).days, (high - _EPOCH).days)


def time_(low: int = 0, high: int = 86_399_999) -> Generator:
    """Time: times of day: milliseconds since midnight, both ends included"""
    if not 0 <= low <= high < 86_400_000:
        raise BadSchema(f"times of day are from 0 to 86399999, not from {low} to {high}")
    return WholeNumbers(schema.TIME, low, high)


def timestamp_(low: dt.datetime = _FROM, high: dt.datetime = _UNTIL) -> Generator:
    """Timestamp: moments, anywhere between the two"""
    return WholeNumbers(schema.TIMESTAMP, milliseconds(low), milliseconds(high))


def walk_(start: dt.datetime = _FROM, step: int = 1000) -> Generator:
    """Timestamp: moments in order: with each record up to two of these steps, in milliseconds, later"""
    if not 1 <= step <= 86_400_000:
        raise BadSchema(f"a walk goes on by a millisecond or more, and a day at most, not by {step}")
    return CountedNumbers(schema.TIMESTAMP, milliseconds(start), step, milliseconds(LATEST), jitter=step)


def now_() -> Generator:
    """Timestamp: the time of the record, see `timestamp.start`; without that the clock's, which is not repeatable"""
    return RecordTimes()


def uuid_() -> Generator:
    """STRING: random ids, such as 4cd1cbc7-0d32-47c4-b6a9-2b1cd7a90ac3"""
    return Uuids()


def pattern_(regex: str) -> Generator:
    """STRING: texts that match a regular expression of literals, `.`, `\\d`, `\\w`, classes, groups and quantifiers"""
    return PatternTexts.of(regex)


def bytes_(least: int = 8, most: int = 16) -> Generator:
    """BYTES: so many random bytes"""
    return RandomBytes(least, most)


def word_() -> Generator:
    """STRING: a word"""
    return chosen(words.WORDS)


def sentence_(least: int = 4, most: int = 12) -> Generator:
    """STRING: so many words"""
    return Sentences(chosen(words.WORDS), least, most)


def name_() -> Generator:
    """STRING: first and last name of a person"""
    return JoinedTexts((chosen(words.FIRST_NAMES), chosen(words.LAST_NAMES)), " ")


def first_name_() -> Generator:
    """STRING: first name of a person"""
    return chosen(words.FIRST_NAMES)


def last_name_() -> Generator:
    """STRING: last name of a person"""
    return chosen(words.LAST_NAMES)


def email_() -> Generator:
    """STRING: an address of mail, of domains that nobody has"""
    first, last = ([name.lower() for name in names] for names in (words.FIRST_NAMES, words.LAST_NAMES))
    ends = [f"{number}@{domain}" for domain in words.DOMAINS for number in ("", *range(1, 100))]
    return JoinedTexts((chosen([f"{name}." for name in first]), chosen(last), chosen(ends)))


def city_() -> Generator:
    """STRING: a city"""
    return chosen(words.CITIES)


def country_() -> Generator:
    """STRING: a country"""
    return chosen(words.COUNTRIES)


def ip_() -> Generator:
    """STRING: an IPv4 address"""
    first, others = chosen([str(byte) for byte in range(1, 224)]), chosen([str(byte) for byte in range(256)])
    return JoinedTexts((first, others, others, others), ".")


def user_agent_() -> Generator:
    """STRING: what browsers say of themselves"""
    return chosen(words.USER_AGENTS)


def choice_(options: Mapping[int | str, float]) -> Generator:
    """STRING or INT64: one of these, all texts or all whole numbers; `option=weight` for some that come more often than
    others, which have 1"""
    return _choices(options)


def cycle_(options: Mapping[int | str, float]) -> Generator:
    """STRING or INT64: one of these after the other, with each record the next"""
    if set(options.values()) - {1.0}:
        raise BadSchema("what comes in turn has no weights")
    return _choices(options, in_turn=True)


def array_(items: Generator, least: int = 0, most: int = 5) -> Generator:
    """ARRAY: so many of what another generator makes"""
    return Arrays.of(items, least, most)


def map_(keys: Generator, values: Generator, least: int = 0, most: int = 5) -> Generator:
    """MAP: so many entries; a key that comes twice is there once"""
    return Maps.of(keys, values, least, most)


RECIPES: Final[Mapping[str, Callable[..., Generator]]] = {
    recipe.__name__.removesuffix("_"): recipe
    for recipe in (
        int_, long_, float_, double_, decimal_, money_, boolean_, sequence_, choice_, cycle_, uuid_, pattern_, bytes_,
        word_, sentence_, name_, first_name_, last_name_, email_, city_, country_, ip_, user_agent_, date_, time_,
        timestamp_, walk_, now_, array_, map_,
    )
}  # fmt: skip
"""By name. Their arguments are those of the functions."""


def _decimals(low: Decimal, high: Decimal, scale: int) -> Generator:
    if not 0 <= scale <= 18:
        raise BadSchema(f"a scale is from 0 to 18, not {scale}")
    return Decimals.of(scale, int(low.scaleb(scale)), int(high.scaleb(scale)))


def _choices(options: Mapping[int | str, float], in_turn: bool = False) -> Generator:
    weights = list(options.values()) if set(options.values()) - {1.0} else ()
    kinds = {type(option) for option in options}
    if len(kinds) > 1:
        raise BadSchema("options are all whole numbers or all texts: put numbers that are texts into quotes")
    return Choices(schema.INT64 if int in kinds else schema.STRING, list(options), weights, in_turn)
