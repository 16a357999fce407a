"""Schemas in our own notation: what each generator makes, and what is refused, with its place."""

from __future__ import annotations

import datetime as dt
import inspect
import re
import uuid
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from datagen_support import column_of, errors, rows_of, values
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import Schema, SchemaType, schema
from headgate.api.frame import arrow_type
from headgate.connectors.datagen import words
from headgate.connectors.datagen.compact import read_compact
from headgate.connectors.datagen.generator import BadSchema
from headgate.connectors.datagen.quickstarts import QUICKSTARTS
from headgate.connectors.datagen.recipes import RECIPES

UTC = dt.UTC
NEEDED = {
    "choice": "(a)",
    "cycle": "(a)",
    "pattern": "(x)",
    "array": "(int)",
    "map": "(word, int)",
}
"""Arguments of those that do not go without."""


def of(text: str) -> Schema:
    found = read_compact(f"f {text}").schema.field("f")
    assert found is not None
    return found.schema


# --- what is made -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_every_generator_makes_columns_of_its_schema_and_says_which(name: str) -> None:
    text = name + NEEDED.get(name, "")
    made = read_compact(f"f {text}")
    column = column_of(made, range(50))
    assert column.type == arrow_type(made.schema)
    assert column.null_count == 0
    column.validate(full=True)
    kind = of(text)
    shown = (kind.name or kind.type.value).rpartition(".")[2]
    assert (inspect.getdoc(RECIPES[name]) or "").partition(":")[0] in (shown, "STRING or INT64")


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_every_quickstart_makes_columns_of_its_schema_and_has_its_key(name: str) -> None:
    made = read_compact(QUICKSTARTS[name].schema, name)
    column = column_of(made, range(500))
    assert column.type == arrow_type(made.schema)
    column.validate(full=True)
    assert made.schema.name == name
    assert made.schema.field(QUICKSTARTS[name].key) is not None
    assert len({str(row) for row in column.to_pylist()}) > 5


@pytest.mark.parametrize(
    ("text", "kind", "low", "high"),
    [
        ("int(3, 7)", schema.INT32, 3, 7),
        ("int(high=2)", schema.INT32, 0, 2),
        ("long(-5, -5)", schema.INT64, -5, -5),
        ("long(-9223372036854775808, -9223372036854775806)", schema.INT64, -(2**63), -(2**63) + 2),
        ("date(2024-02-28, 2024-03-01)", schema.DATE, dt.date(2024, 2, 28), dt.date(2024, 3, 1)),
        ("time(0, 2)", schema.TIME, dt.time(), dt.time(0, 0, 0, 2000)),
        (
            "timestamp(2024-01-01T00:00:00Z, 2024-01-01T01:00:00.002+01:00)",
            schema.TIMESTAMP,
            dt.datetime(2024, 1, 1, tzinfo=UTC),
            dt.datetime(2024, 1, 1, 0, 0, 0, 2000, tzinfo=UTC),
        ),
        ("decimal(-0.3, 0.2, 1)", schema.decimal(1), Decimal("-0.3"), Decimal("0.2")),
        ("money(1, 1.02)", schema.decimal(2), Decimal("1.00"), Decimal("1.02")),
    ],
)
def test_ranges_have_both_ends_and_nothing_beyond(text: str, kind: Schema, low: Any, high: Any) -> None:
    found = values(f"f {text}")
    assert (min(found), max(found)) == (low, high)
    assert of(text) == kind


def test_all_whole_numbers_of_64_bits_can_come() -> None:
    found = values("f long(-9223372036854775808, 9223372036854775807)")
    assert len(set(found)) == 1000
    assert min(found) < -(2**62)
    assert max(found) > 2**62


def test_numbers_are_spread_evenly() -> None:
    counts = Counter(values("f int(0, 9)", 100_000))
    assert set(counts) == set(range(10))
    assert all(abs(count - 10_000) < 500 for count in counts.values())


def test_floats_have_so_many_digits_and_stay_in_their_range() -> None:
    found = values("f double(-1.5, 2.5, 1)")
    assert all(-1.5 <= each <= 2.5 and round(each, 1) == each for each in found)
    assert len(set(found)) == 41
    assert max(values("f double(0, 0.04, 1)")) == 0.0
    assert min(values("f double(0.06, 0.09, 1)")) == 0.09
    assert of("float") == schema.FLOAT32


def test_booleans_and_nulls_come_with_their_probability() -> None:
    assert 150 < sum(values("f boolean(0.2)")) < 250
    assert 250 < values("f word ?0.3").count(None) < 350
    assert 50 < values("f word ?").count(None) < 150
    assert values("f word ?0").count(None) == 0
    assert values("f word ?1").count(None) == 1000
    assert of("word ?0").optional
    assert not of("word").optional


def test_nulls_do_not_depend_on_the_value_that_would_be_there() -> None:
    found = rows_of(read_compact("f name ?0.5"), range(4000))
    left = Counter(row["f"].split()[0] for row in found if row["f"] is not None)
    assert len(left) == len(words.FIRST_NAMES)


def test_choices_come_by_weight_and_those_without_one_have_1() -> None:
    counts = Counter(values("f choice(a=8, b, 'c d'=1, \"e'\"=0)", 10_000))
    assert set(counts) == {"a", "b", "c d"}
    assert abs(counts["a"] - 8_000) < 300
    assert abs(counts["b"] - counts["c d"]) < 300


def test_choices_are_texts_or_whole_numbers() -> None:
    assert set(values("f choice(200, -404)")) == {200, -404}
    assert set(values("f choice('200', '404')")) == {"200", "404"}
    assert of("choice(1)").type is SchemaType.INT64


def test_what_comes_in_turn_comes_in_lockstep() -> None:
    found = rows_of(read_compact("code cycle(200, 404), text cycle(fine, missing)"), range(5))
    assert [tuple(row.values()) for row in found] == [(200, "fine"), (404, "missing")] * 2 + [(200, "fine")]


def test_sequences_count_records_and_begin_anew() -> None:
    assert values("f sequence", 3) == [0, 1, 2]
    assert values("f sequence(10, -5)", 3) == [10, 5, 0]
    assert values("f sequence(1, 1, 3)", 7) == [1, 2, 3, 1, 2, 3, 1]
    assert values("f sequence(1, last=3, step=2)", 5) == [1, 3, 2, 1, 3]
    assert values("f sequence(0, -1, -2)", 4) == [0, -1, -2, 0]


def test_sequences_know_any_record() -> None:
    made = read_compact(
        "a sequence, b sequence(5, 3, 1000), c sequence(-9223372036854775808, 1099511627776), d sequence(-7, -9)"
    )
    for first in (0, 999, 10**12, 2**53 - 3):
        numbers = [first, first + 1, first + 2]
        for number, row in zip(numbers, rows_of(made, numbers), strict=True):
            wrapped = (-(2**63) + number * 2**40 + 2**63) % 2**64 - 2**63
            assert list(row.values()) == [number, 5 + number * 3 % 996, wrapped, -7 - 9 * number]


def test_a_walk_goes_forward() -> None:
    found = values("f walk(2024-01-01, 60000)")
    assert found == sorted(found)
    for number, each in enumerate(found):
        assert 0 <= (each - dt.datetime(2024, 1, 1, tzinfo=UTC)) / dt.timedelta(minutes=1) - number < 1


def test_now_is_the_time_of_the_record() -> None:
    assert values("f now", 2)[1] == dt.datetime.fromtimestamp(1_700_000_000.001, UTC)


def test_ids_are_random_uuids() -> None:
    found = [uuid.UUID(each) for each in values("f uuid")]
    assert len(set(found)) == 1000
    assert {each.version for each in found} == {4}
    assert [str(each) for each in found] == values("f uuid")


def test_texts_look_like_what_they_are() -> None:
    assert all(re.fullmatch(r"\w+ \w+", each) for each in values("f name"))
    assert all(re.fullmatch(r"[a-z]+\.[a-z]+\d{0,2}@[a-z.]+", each) for each in values("f email"))
    octets = [[int(each) for each in found.split(".")] for found in values("f ip")]
    assert all(len(each) == 4 and 0 < each[0] < 224 and max(each) < 256 for each in octets)
    assert set(values("f city", 5000)) == set(words.CITIES)
    sentences = values("f sentence(2, 4)")
    assert all(re.fullmatch(r"[A-Z][a-z]*( [a-z]+){1,3}\.", each) for each in sentences)
    assert {len(each.split()) for each in sentences} == {2, 3, 4}


def test_bytes_have_any_value_and_every_length() -> None:
    found = values("f bytes(0, 9)")
    assert {len(each) for each in found} == set(range(10))
    assert set(b"".join(found)) == set(range(256))
    assert len(set(found)) > 850


# --- structs, arrays, maps --------------------------------------------------------------------------------------------


def test_structs_arrays_and_maps_stand_in_each_other() -> None:
    text = "f array({ id sequence, tags map(word, array(int(1, 9), 1, 2), 1, 3) ?0.5 }, 0, 3)"
    found = values(text)
    assert {len(each) for each in found} == {0, 1, 2, 3}
    items = [item for each in found for item in each]
    assert any(item["tags"] is None for item in items)
    assert all(
        word in words.WORDS and 1 <= len(numbers) <= 2 and set(numbers) <= set(range(1, 10))
        for item in items
        for word, numbers in (item["tags"] or {}).items()
    )
    assert {item["id"] for item in found[7]} <= {7}
    kind = of(text.removeprefix("f ")).value_schema
    assert kind is not None
    tags = kind.field("tags")
    assert tags is not None
    assert tags.schema == schema.mapping(schema.STRING, schema.array(schema.INT32), optional=True)


def test_items_of_one_array_differ() -> None:
    assert all(len(set(each)) > 10 for each in values("f array(long, 20, 20)"))


def test_a_key_of_a_map_comes_once_and_the_first_one_counts() -> None:
    found = column_of(read_compact("f map(choice(a, b), int(0, 99), 5, 5)"), range(300)).field("f")
    assert {len(entries) for entries in found.to_pylist()} <= {1, 2}
    assert all(len(dict(entries)) == len(entries) for entries in found.to_pylist())


def test_arrays_that_are_all_empty_are_arrays() -> None:
    text = (
        "f array(uuid, 0, 0), g map(word, pattern('a?'), 0, 0), h array({a sequence, b now, c bytes, d sentence}, 0, 0)"
    )
    found = rows_of(read_compact(text), range(3))
    assert found == [{"f": [], "g": {}, "h": []}] * 3


def test_what_depends_on_another_field_is_the_same_wherever_that_is() -> None:
    text = "user long(1, 20), name name by user, home { city city } by user, age int by user ?0.3, mood word"
    rows = rows_of(read_compact(text), range(2000))
    facts = {(row["user"], row["name"], row["home"]["city"], row["age"]) for row in rows}
    assert len(facts) == 20
    assert len({row["mood"] for row in rows}) > 50
    # In another topic, too.
    others = rows_of(read_compact("user sequence(1, 1, 20), name name by user"), range(20))
    assert {(row["user"], row["name"]) for row in others} == {fact[:2] for fact in facts}


def test_a_field_may_be_like_another_and_differs_from_it() -> None:
    rows = rows_of(read_compact("sender long(1, 50), receiver like(sender)"), range(500))
    assert {row["receiver"] for row in rows} == set(range(1, 51))
    assert sum(row["sender"] == row["receiver"] for row in rows) < 40


def test_fields_of_one_name_in_two_structs_differ_and_none_depends_on_those_beside_it() -> None:
    rows = rows_of(read_compact("a { b long }, b { a long, b long }, c long"), range(100))
    assert all(len({row["a"]["b"], row["b"]["a"], row["b"]["b"], row["c"]}) == 4 for row in rows)
    assert [row["f"] for row in rows_of(read_compact("e long, f long"), range(100))] == values("f long", 100)


def test_separators_and_blanks_may_be_any() -> None:
    one = read_compact("a int,b { c word ?0.5 }, d choice(x=2, y)")
    other = read_compact("\n a\tint;\n b{c word?0.5};\n d choice( x = 2,\n y ), ")
    assert one.schema == other.schema
    assert rows_of(one, range(50)) == rows_of(other, range(50))


# --- what is refused --------------------------------------------------------------------------------------------------

BAD = [
    ("id", "line 1, column 3: a generator is expected there, not the end"),
    (",", "line 1, column 1: the name of a field is expected there, not ,"),
    ("1d int", "line 1, column 1: the name of a field is expected there, not 1d"),
    ("a int,\n b nothing", "line 2, column 4: there is no generator nothing; there are int, long,"),
    ("a int b int", "line 1, column 7: a comma or the end is expected there, not b"),
    ("a int, a int", "line 1, column 8: there are two fields a"),
    ("a int!", "line 1, column 6: '!' has no meaning there"),
    ("a pattern('x", 'line 1, column 11: "\'" has no meaning there'),
    ("a { }", "line 1, column 5: a struct has at least one field"),
    ("a { b int", "line 1, column 10: a comma or the end is expected there, not the end"),
    ("a {b {c int(1,x)}}", "line 1, column 15: x is not a whole number"),
    ("a int(5, 1)", "line 1, column 3: 5 is above 1"),
    ("a int(0, 2147483648)", "line 1, column 3: 2147483648 does not fit into 32 bits"),
    ("a int(1, 2, 3)", "line 1, column 13: int has no such argument, or has it already: there are low, high"),
    ("a int(high=3, high=4)", "line 1, column 15: int has no such argument"),
    ("a uuid(4)", "line 1, column 8: uuid has no such argument, or has it already: it has none"),
    ("a int(1 2)", "line 1, column 9: a comma or a ) is expected there, not 2"),
    ("a int({)", "line 1, column 7: a value is expected there, not {"),
    ("a choice(a b)", "line 1, column 12: a comma or a ) is expected there, not b"),
    ("a choice(a, a)", "line 1, column 13: 'a' is there already"),
    ("a choice(a=-1, b)", "line 1, column 3: weights are 0 or more, and not all of them 0"),
    ("a choice(a=nan)", "weights are 0 or more"),
    ("a choice(1, b)", "options are all whole numbers or all texts"),
    ("a choice()", "there is nothing to choose from"),
    ("a choice", "line 1, column 3: choice needs options"),
    ("a cycle(a=2, b)", "what comes in turn has no weights"),
    ("a array", "line 1, column 3: array needs items"),
    ("a map(word)", "line 1, column 3: map needs keys and values"),
    ("a map(int, int)", "the keys of a map are texts, and not null"),
    ("a array(int, 5, 2)", "the least not above the most: not 5 to 2"),
    ("a array(int, 0, 1000000000)", "a size is from 0 to 65536"),
    ("a array(array(word, 0, 1000), 0, 1000)", "line 1, column 3: a record could take 16016016 bytes, and 1048576"),
    ("a int ?2", "line 1, column 8: a probability is from 0 to 1, not 2"),
    ("a boolean(nan)", "a probability is from 0 to 1, not nan"),
    ("a int by b", "line 1, column 1: a cannot depend on 'b': that is no field of whole numbers before it"),
    ("a word, b int by a", "line 1, column 9: b cannot depend on 'a'"),
    ("a like(b)", "line 1, column 8: there is no field b before this one"),
    ("a int, b array(like(a))", "line 1, column 21: there is no field a before this one"),
    ("a double(nan, 1)", "from nan to 1.0 is too far"),
    ("a double(0, 1, 16)", "there are 0 to 15 digits behind the point, not 16"),
    ("a float(1, 1e300)", "that does not fit into a float"),
    ("a decimal(1e99999999999, 2)", "line 1, column 11: 1e99999999999 is not a number"),
    ("a decimal(0, 1, 99999999)", "a scale is from 0 to 18"),
    ("a decimal(0, 999999999999999999, 18)", "does not fit into 64 bits"),
    ("a timestamp(yesterday)", "yesterday is not a date or an instant, such as 2024-01-31"),
    ("a time(0, 86400000)", "times of day are from 0 to 86399999"),
    ("a walk(2024-01-01, 0)", "a walk goes on by a millisecond or more"),
    ("a sequence(1, 0)", "a step is not 0"),
    ("a sequence(1, -1, 5)", "steps of -1 do not lead from 1 to 5"),
    ("a sentence(0, 3)", "a sentence has at least one word"),
    ("a pattern('[a')", "line 1, column 3: the pattern '[a' has at character 4 the end, with a class left open"),
    ("a " + "array(" * 50 + "int" + ")" * 50, "structs, arrays and maps are at most 16 deep"),
    (", ".join(f"a{number} int" for number in range(1001)), "there are more than 1000 fields"),
]


@pytest.mark.parametrize(("text", "told"), BAD, ids=[text[:30] for text, _ in BAD])
def test_what_makes_no_sense_is_refused_with_its_place(text: str, told: str) -> None:
    with pytest.raises(BadSchema) as raised:
        read_compact(text)
    assert told in str(raised.value)
    assert str(raised.value).startswith("line ")
    (message,) = errors({"topic": "t", "schema": text})["schema"]
    assert str(raised.value) in message


def test_half_a_character_is_refused() -> None:
    with pytest.raises(BadSchema, match=r"there is half a character in it: U\+DC00"):
        read_compact("a choice('\udc00')")


TOKENS = st.sampled_from(
    [
        *RECIPES,
        *"(){},;=?'\"",
        "like",
        "by",
        "a",
        "b",
        "1",
        "-3",
        "0.5",
        "1e9",
        "nan",
        "2024-01-01",
        "'x'",
        "\n",
        "é",
        "$",
    ]
)


@given(st.lists(TOKENS, max_size=25).map(" ".join) | st.text(max_size=30))
def test_any_text_is_a_schema_or_refused(text: str) -> None:
    try:
        made = read_compact(text)
    except BadSchema:
        return
    assert isinstance(column_of(made, range(3)), pa.StructArray)
