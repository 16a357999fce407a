"""By columns or record by record: every transform gives the same, or leaves the row to records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from frame_lots import a_frame
from frame_support import assert_decides_the_same, assert_same
from hypothesis import given, note
from hypothesis import strategies as st
from transform_support import configured

from headgate.api import ConfigError, Predicate, Transform
from headgate.pipeline.predicates.has_header_key import HasHeaderKey
from headgate.pipeline.predicates.record_is_tombstone import RecordIsTombstone
from headgate.pipeline.predicates.topic_name_matches import TopicNameMatches
from headgate.pipeline.transforms.cast import CastKey, CastValue
from headgate.pipeline.transforms.drop_headers import DropHeaders
from headgate.pipeline.transforms.extract_field import ExtractFieldKey, ExtractFieldValue
from headgate.pipeline.transforms.filter import Filter
from headgate.pipeline.transforms.flatten import FlattenKey, FlattenValue
from headgate.pipeline.transforms.from_json import FromJsonKey, FromJsonValue
from headgate.pipeline.transforms.header_from import HeaderFromKey, HeaderFromValue
from headgate.pipeline.transforms.hoist_field import HoistFieldKey, HoistFieldValue
from headgate.pipeline.transforms.insert_field import InsertFieldKey, InsertFieldValue
from headgate.pipeline.transforms.insert_header import InsertHeader
from headgate.pipeline.transforms.mask_field import MaskFieldKey, MaskFieldValue
from headgate.pipeline.transforms.regex_router import RegexRouter
from headgate.pipeline.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from headgate.pipeline.transforms.set_schema_metadata import SetSchemaMetadataKey, SetSchemaMetadataValue
from headgate.pipeline.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue
from headgate.pipeline.transforms.timestamp_router import TimestampRouter
from headgate.pipeline.transforms.value_to_key import ValueToKey

Drawn = Callable[[Random], str]

NAMES: Final = ("a", "b", "c", "id", "a.b", "é😀", "zz")
ODD_NAME: Final = "\ud800"
"""Text that Arrow has no room for."""
TYPES: Final = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
LITERALS: Final = [
    "1", "1.5", "1e400", "[1,2]", '[1,"a"]', '{"a":1,"b":"x"}', '{"a":2020-01-01,"b":1}', "{}", "[]", "null", "true",
    "x", ODD_NAME, "2020-01-01", "12:00:00.000Z", '{"a":1}', "1e39", "0." + "1" * 40, "[true, 1]", '{"a":1,"b":[]}',
]  # fmt: skip


def one_of(*choices: str) -> Drawn:
    return lambda rng: rng.choice(choices)


def name(rng: Random) -> str:
    return ODD_NAME if rng.random() < 0.02 else rng.choice(NAMES)


def names(rng: Random) -> str:
    return ",".join(name(rng) for _ in range(rng.randint(1, 3)))


def spec(rng: Random) -> str:
    if rng.random() < 0.2:
        return rng.choice(TYPES)
    return ",".join(f"{name(rng)}:{rng.choice(TYPES)}" for _ in range(rng.randint(1, 4)))


def marked(rng: Random) -> str:
    return name(rng) + rng.choice(["", "!", "?"])


def renames(rng: Random) -> str:
    return f"{name(rng)}:{rng.choice(['z', 'a', 'b', ODD_NAME])}"


NULLS: Final[Mapping[str, Drawn]] = {"replace.null.with.default?": one_of("true", "false")}
FIELDS: Final[Mapping[str, Drawn]] = {"fields": names, **NULLS}
TRANSFORMS: Final[Sequence[tuple[Sequence[type[Transform[Any]]], Mapping[str, Drawn]]]] = (
    ((CastKey, CastValue), {"spec": spec, **NULLS}),
    ((DropHeaders,), {"headers": one_of("h", "h,i,zz", "j", ODD_NAME)}),
    (
        (ExtractFieldKey, ExtractFieldValue),
        {
            "field": lambda rng: rng.choice([name(rng), f"{name(rng)}.{name(rng)}", "`a.b`", "a.b.c"]),
            "field.syntax.version": one_of("V1", "V2"),
            **NULLS,
        },
    ),
    ((Filter,), {}),
    ((FlattenKey, FlattenValue), {"delimiter?": one_of(".", "", ODD_NAME)}),
    ((FromJsonKey, FromJsonValue), {}),
    (
        (HeaderFromKey, HeaderFromValue),
        {
            "fields": lambda rng: f"{name(rng)},{name(rng)}",
            "headers": one_of("h,k"),
            "operation": one_of("move", "copy"),
            **NULLS,
        },
    ),
    ((HoistFieldKey, HoistFieldValue), {"field": one_of("a", "é", "", ODD_NAME)}),
    (
        (InsertFieldKey, InsertFieldValue),
        {
            **{f"{each}.field?": marked for each in ("topic", "partition", "timestamp", "static")},
            "offset.field??": marked,
            "static.value": one_of("x", "é😀", "x", ODD_NAME),
            **NULLS,
        },
    ),
    ((InsertHeader,), {"header": one_of("h"), "value.literal": one_of(*LITERALS)}),
    ((MaskFieldKey, MaskFieldValue), {**FIELDS, "replacement?": one_of("x", "12", "1.50", "1e999", "-0.0", ODD_NAME)}),
    (
        (RegexRouter,),
        {"regex": one_of("t.*", "(t)(.*)", "x", "é"), "replacement": one_of("n", "$1-$2", "$0", "$", ODD_NAME)},
    ),
    ((ReplaceFieldKey, ReplaceFieldValue), {"exclude?": names, "include?": names, "renames?": renames, **NULLS}),
    (
        (SetSchemaMetadataKey, SetSchemaMetadataValue),
        {
            "schema.name": one_of(
                "m", "n", "org.apache.kafka.connect.data.Date", "org.apache.kafka.connect.data.Decimal"
            ),
            "schema.version?": one_of("5"),
            **NULLS,
        },
    ),
    (
        (TimestampConverterKey, TimestampConverterValue),
        {
            "field": lambda rng: rng.choice([name(rng), name(rng), ""]),
            "target.type": one_of("string", "unix", "Date", "Time", "Timestamp"),
            "format?": one_of("yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMdd", "EEE h 'o''clock' a", "yyyy", "yyyy-MM-dd"),
            "unix.precision?": one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
            **NULLS,
        },
    ),
    (
        (TimestampRouter,),
        {
            "timestamp.format?": one_of("yyyyMMdd", "HH", "yyyy-MM-dd'T'HH:mm:ss.SSS", ""),
            "topic.format?": one_of("${topic}-${timestamp}", "x", ODD_NAME),
        },
    ),
    ((ValueToKey,), FIELDS),
)
PREDICATES: Final[Sequence[tuple[type[Predicate[Any]], Sequence[Mapping[str, str]]]]] = (
    (HasHeaderKey, [{"name": each} for each in ("h", "j", "zz", "é")]),
    (RecordIsTombstone, [{}]),
    (TopicNameMatches, [{"pattern": each} for each in ("t", "t.*", "x")]),
)


def a_config(rng: Random, keys: Mapping[str, Drawn]) -> dict[str, str]:
    """A key with a question mark is there or not, with two of them seldom."""
    chances = {0: 1.0, 1: 0.5, 2: 0.1}
    return {key.rstrip("?"): draw(rng) for key, draw in keys.items() if rng.random() < chances[key.count("?")]}


@given(st.randoms(use_true_random=True))
def test_every_transform_gives_the_same_by_columns(rng: Random) -> None:
    frame = a_frame(rng)
    for classes, keys in TRANSFORMS:
        cls, config = rng.choice(classes), a_config(rng, keys)
        note(f"{cls.__name__} {config}")
        try:
            transform = configured(cls, config)
        except ConfigError:
            continue
        assert_same(transform, frame)


@given(st.randoms(use_true_random=True))
def test_every_predicate_decides_the_same_by_columns(rng: Random) -> None:
    frame = a_frame(rng)
    for cls, configs in PREDICATES:
        for config in configs:
            predicate = cls()
            predicate.configure(config)
            assert_decides_the_same(predicate, frame)
