"""Schemas of Avro, with the properties that Confluent's generator reads."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from typing import Any

import pytest
from datagen_support import avro, column_of, errors, rows_of, values
from hypothesis import given
from hypothesis import strategies as st

from headgate.api import Schema, schema
from headgate.api.frame import arrow_type
from headgate.connectors.datagen.avro import read_avro
from headgate.connectors.datagen.generator import BadSchema


def of(field: Any) -> Schema:
    found = read_avro(avro(field)).schema.field("f")
    assert found is not None
    return found.schema


def with_properties(kind: str, properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, **more, "arg.properties": properties}


def test_a_schema_as_confluent_s_users_write_it() -> None:
    text = """
    {"namespace": "ksql", "name": "orders", "type": "record", "fields": [
      {"name": "ordertime", "type":
        {"type": "long", "arg.properties": {"range": {"min": 1487715775521, "max": 1519273364600}}}},
      {"name": "orderid", "type": {"type": "int", "arg.properties": {"iteration": {"start": 0}}}},
      {"name": "itemid", "type": {"type": "string", "arg.properties": {"regex": "Item_[1-9][0-9]{0,2}"}}},
      {"name": "orderunits", "type": {"type": "double", "arg.properties": {"range": {"min": 0.1, "max": 10.0}}}},
      {"name": "address", "type": {"name": "address", "type": "record", "fields": [
        {"name": "city", "type": {"type": "string", "arg.properties": {"options": ["Oslo", "Rome"]}}},
        {"name": "zipcode", "type":
          ["null", {"type": "long", "arg.properties": {"range": {"min": 10000, "max": 99999}}}]}
      ]}}
    ]}"""
    made = read_avro(text)
    assert made.schema == schema.struct(
        {
            "ordertime": schema.INT64,
            "orderid": schema.INT32,
            "itemid": schema.STRING,
            "orderunits": schema.FLOAT64,
            "address": schema.struct(
                {"city": schema.STRING, "zipcode": schema.INT64.as_optional()}, name="ksql.address"
            ),
        },
        name="ksql.orders",
    )
    rows = rows_of(made, range(200))
    assert [row["orderid"] for row in rows] == list(range(200))
    for row in rows:
        assert 1487715775521 <= row["ordertime"] < 1519273364600
        assert re.fullmatch("Item_[1-9][0-9]{0,2}", row["itemid"])
        assert 0.1 <= row["orderunits"] <= 10
        assert row["address"]["city"] in ("Oslo", "Rome")
    assert 60 < sum(row["address"]["zipcode"] is None for row in rows) < 140
    assert errors({"kafka.topic": "t", "schema.string": text, "schema.keyfield": "orderid"}) == {}
    assert errors({"topic": "t", "schema": text}) == {}


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("boolean", schema.BOOLEAN),
        ("int", schema.INT32),
        ("long", schema.INT64),
        ("float", schema.FLOAT32),
        ("double", schema.FLOAT64),
        ("bytes", schema.BYTES),
        ("string", schema.STRING),
        ({"type": {"type": "string"}}, schema.STRING),
        ({"type": "int", "logicalType": "date"}, schema.DATE),
        ({"type": "int", "logicalType": "time-millis"}, schema.TIME),
        ({"type": "long", "logicalType": "timestamp-millis"}, schema.TIMESTAMP),
        ({"type": "long", "logicalType": "timestamp-micros"}, schema.INT64),
        ({"type": "string", "logicalType": "uuid"}, schema.STRING),
        ({"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}, schema.decimal(2)),
        ({"type": "fixed", "name": "x", "size": 4, "logicalType": "decimal", "precision": 9}, schema.decimal(0)),
        ({"type": "fixed", "name": "x", "size": 4}, schema.BYTES),
        ({"type": "enum", "name": "x", "symbols": ["A", "B"]}, schema.STRING),
        ({"type": "array", "items": "int"}, schema.array(schema.INT32)),
        ({"type": "map", "values": ["null", "int"]}, schema.mapping(schema.STRING, schema.INT32.as_optional())),
        (["string", "null"], schema.OPTIONAL_STRING),
        (["string"], schema.STRING),
    ],
)
def test_types_are_those_of_connect(field: Any, kind: Schema) -> None:
    assert of(field) == kind
    made = read_avro(avro(field))
    column = column_of(made, range(100))
    assert column.type == arrow_type(made.schema)
    column.validate(full=True)
    assert len(set(map(str, column.to_pylist()))) > 1


def test_types_without_properties_have_usual_values() -> None:
    assert {len(each) for each in values(avro("string"))} == set(range(8, 16))
    assert all(0 <= each < 1 for each in values(avro("double")))
    assert {len(each) for each in values(avro({"type": "fixed", "name": "x", "size": 4}))} == {4}
    assert {each.year for each in values(avro({"type": "int", "logicalType": "date"}))} == {2024}
    decimals = values(avro({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}), 20_000)
    assert (min(decimals), max(decimals)) == (Decimal("-99.9"), Decimal("99.9"))


@pytest.mark.parametrize(
    ("field", "all_of_them"),
    [
        (with_properties("int", {"range": {"min": 1, "max": 4}}), {1, 2, 3}),
        (with_properties("long", {"options": [5, 7]}), {5, 7}),
        (with_properties("double", {"options": [1, 2.5]}), {1.0, 2.5}),
        (with_properties("boolean", {"odds": 1.0}), {True}),
        (with_properties("boolean", {"odds": 0}), {False}),
        (with_properties("boolean", {"options": [True]}), {True}),
        (with_properties("string", {"options": ["a", "b"], "prefix": "<", "suffix": ">"}), {"<a>", "<b>"}),
        (with_properties("string", {"regex": "[ab]", "prefix": "x("}), {"x(a", "x(b"}),
        (with_properties("int", {"options": [0, 1]}, logicalType="date"), {dt.date(1970, 1, 1), dt.date(1970, 1, 2)}),
        (
            with_properties("int", {"range": {"min": 1, "max": 2}}, logicalType="time-millis"),
            {dt.time(0, 0, 0, 1000)},
        ),
        (with_properties("enum", {"options": ["B"]}, name="x", symbols=["A", "B"]), {"B"}),
    ],
)
def test_properties_say_which_values_come(field: Any, all_of_them: set[Any]) -> None:
    assert set(values(avro(field))) == all_of_them


def test_whole_arrays_maps_and_records_may_be_options() -> None:
    arrays = with_properties("array", {"options": [["Game", "News"], []]}, items="string")
    assert {tuple(each) for each in values(avro(arrays))} == {("Game", "News"), ()}
    maps = with_properties("map", {"options": [{"one": 1}, {"two": 2, "three": None}]}, values=["int", "null"])
    assert {tuple(each.items()) for each in values(avro(maps))} == {(("one", 1),), (("two", 2), ("three", None))}
    months = [{"name": "m", "type": "string"}, {"name": "d", "type": "int"}]
    records = with_properties(
        "record", {"options": [{"m": "May", "d": 1}, {"d": 2, "m": "June"}]}, name="x", fields=months
    )
    assert {tuple(each.items()) for each in values(avro(records))} == {
        (("m", "May"), ("d", 1)),
        (("m", "June"), ("d", 2)),
    }


def test_lengths_and_keys_of_maps() -> None:
    lengths = {"length": {"min": 2, "max": 4}}
    assert {len(each) for each in values(avro(with_properties("array", lengths, items="int")))} == {2, 3}
    assert {len(each) for each in values(avro(with_properties("bytes", {"length": 3})))} == {3}
    assert {len(each) for each in values(avro(with_properties("string", lengths)))} == {2, 3}
    assert {len(each) for each in values(avro(with_properties("string", {"length": {"max": 3}})))} == {0, 1, 2}
    maps = with_properties("map", {"length": 2, "keys": {"regex": "k[0-9]"}}, values="boolean")
    assert all(re.fullmatch("k[0-9]", key) for each in values(avro(maps)) for key in each)


@pytest.mark.parametrize(
    ("iteration", "expected"),
    [
        ({"start": 3}, [3, 4, 5, 6, 7]),
        ({"start": 0, "step": 10}, [0, 10, 20, 30, 40]),
        ({"start": 0, "restart": 3}, [0, 1, 2, 0, 1]),
        ({"start": 0, "restart": 4, "step": 3}, [0, 3, 2, 1, 0]),
        ({"start": 5, "restart": 2}, [5, 4, 3, 5, 4]),
        ({"start": 0, "restart": 10, "initial": 8}, [8, 9, 0, 1, 2]),
    ],
)
def test_iterations_go_on_and_begin_anew(iteration: dict[str, int], expected: list[int]) -> None:
    assert values(avro(with_properties("int", {"iteration": iteration})), 5) == expected


def test_characters_may_be_any() -> None:
    options = ["\N{GRINNING FACE}", "\N{GREEK SMALL LETTER ALPHA}", "\0"]
    assert set(values(avro(with_properties("string", {"options": options})))) == set(options)
    assert set(values(avro(with_properties("string", {"regex": "é[ab]", "suffix": "€"})))) == {"éa€", "éb€"}


def test_a_type_may_be_named_again() -> None:
    address = {"type": "record", "name": "Address", "fields": [{"name": "zip", "type": "int"}]}
    fields = [{"name": "home", "type": address}, {"name": "work", "type": ["null", "Address"]}]
    for more in ({}, {"namespace": "a.b"}):
        text = json.dumps({"type": "record", "name": "r", "fields": fields, **more})
        made = read_avro(text)
        home, work = (made.schema.field(name) for name in ("home", "work"))
        assert home is not None
        assert work is not None
        assert work.schema == home.schema.as_optional()
        rows = rows_of(made, range(20))
        assert any(row["work"] is not None and row["work"] != row["home"] for row in rows)


def doubling(depth: int) -> str:
    """Records that each hold the one before twice: a few lines that would be 2 to the power of `depth` fields."""
    fields: list[Any] = [
        {"name": "f0", "type": {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}}
    ]
    for number in range(1, depth):
        inner = [{"name": name, "type": f"R{number - 1}"} for name in "ab"]
        fields.append({"name": f"f{number}", "type": {"type": "record", "name": f"R{number}", "fields": inner}})
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def nested(depth: int) -> str:
    """Records that each hold the one before once."""
    fields: list[Any] = [
        {"name": "f0", "type": {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}}
    ]
    for number in range(1, depth):
        inner = [{"name": "a", "type": f"R{number - 1}"}]
        fields.append({"name": f"f{number}", "type": {"type": "record", "name": f"R{number}", "fields": inner}})
    return json.dumps({"type": "record", "name": "r", "fields": fields})


BAD = [
    ("{", "line 1, column 2: that is no JSON"),
    ("[" * 100_000, "that is no JSON that could be read"),
    ('{"a": ' + "1" * 5000 + "}", "that is no JSON that could be read"),
    ('"string"', "the schema of values is a record"),
    ('{"type": "record"}', "a record has a name"),
    ('{"type": "record", "name": "r"}', "a record has a list of fields"),
    ('{"type": "record", "name": "r", "fields": []}', "a struct has at least one field"),
    ('{"type": "record", "name": "r", "fields": [1]}', "a field is an object with a name and a type"),
    (
        json.dumps({"type": "record", "name": "r", "fields": [{"name": "a b", "type": "int"}]}),
        "field a b: this is no name",
    ),
    (avro("nope"), "field f: there is no type nope"),
    (avro("r"), "field f: r is within itself, which has no end"),
    (avro("null"), "field f: there is no type null"),
    (avro(7), "field f: a type is a name, an object with a type, or a union, not 7"),
    (avro(["int", "string"]), "field f: a union is of null and one other type"),
    (avro(["null", "int", "string"]), "field f: a union is of null and one other type"),
    (avro({"type": "array"}), "field f.items: a type is a name"),
    (avro({"type": "array", "items": {"type": "map", "values": "x"}}), "field f.items.values: there is no type x"),
    (avro({"type": "enum", "name": "e", "symbols": []}), "field f: there is nothing to choose from"),
    (avro({"type": "enum", "name": "r", "symbols": ["A"]}), "field f: there are two types r"),
    (avro({"type": "fixed", "name": "x", "size": -1}), "field f: a size is from 0 to 65536"),
    (avro({"type": "fixed", "name": "x"}), "field f: the size of a fixed is a whole number, not null"),
    (avro({"type": "bytes", "logicalType": "decimal", "precision": 40}), "field f: a decimal has a precision from 1"),
    (avro({"type": "int", "arg.properties": 1}), "arg.properties are an object"),
    (avro(with_properties("int", {"regex": "x"})), "field f: arg.properties of a int have no regex here"),
    (avro(with_properties("int", {"range": {"min": 1}})), "field f: a range has min, and max"),
    (avro(with_properties("int", {"range": {"min": 1, "max": 1}})), "field f: 1 is above 0"),
    (avro(with_properties("int", {"range": {"min": 1.5, "max": 2}})), "field f: a limit is a whole number, not 1.5"),
    (avro(with_properties("int", {"range": {"min": 0, "max": 2**40}})), "does not fit into 32 bits"),
    (avro(with_properties("int", {"range": 5})), "field f: range in arg.properties is not what it should be: 5"),
    (avro(with_properties("double", {"range": {"min": "a", "max": 1}})), 'field f: "a" is no number'),
    (avro(with_properties("double", {"range": {"min": 0, "max": 10**400}})), "is no number, or too large a one"),
    (avro(with_properties("int", {"iteration": {"step": 1}})), "field f: an iteration has a start"),
    (avro(with_properties("int", {"iteration": {"start": 1, "restart": 1}})), "do not lead from 1 to 0"),
    (avro(with_properties("int", {"options": ["a"]})), 'field f: an option is a whole number, not "a"'),
    (avro(with_properties("int", {"options": [2**31]})), "does not fit into 32 bits"),
    (avro(with_properties("string", {"options": {"file": "x"}})), "field f: options are a list here, not a file"),
    (avro(with_properties("string", {"options": [1]})), "field f: the option 1 is none of a string"),
    (avro(with_properties("string", {"regex": "("})), "field f: the pattern '(' has at character 3"),
    (avro(with_properties("bytes", {"options": ["a"]})), "arg.properties of a bytes have no options here"),
    (avro(with_properties("array", {"length": 10**9}, items="int")), "field f: a size is from 0 to 65536"),
    (avro(with_properties("map", {"keys": {"range": 1}}, values="int")), "of a string have no range here"),
    (avro(with_properties("enum", {"options": ["C"]}, name="e", symbols=["A"])), "options of an enum are among"),
    (avro(with_properties("string", {"options": ["\ud83d"]})), "there is half a character in it: U+D83D"),
    (doubling(200), "there are more than 1000 fields"),
    (nested(400), "structs, arrays and maps are at most 16 deep"),
]


@pytest.mark.parametrize(("text", "told"), BAD, ids=[told[:40] for _, told in BAD])
def test_what_makes_no_sense_is_refused_with_its_field(text: str, told: str) -> None:
    with pytest.raises(BadSchema) as raised:
        read_avro(text)
    assert told in str(raised.value)
    (message,) = errors({"topic": "t", "schema.string": text})["schema.string"]
    assert str(raised.value) in message
    assert len(message) < 1000


NAMES = st.sampled_from(
    [
        "int",
        "long",
        "float",
        "double",
        "string",
        "bytes",
        "boolean",
        "null",
        "record",
        "enum",
        "fixed",
        "array",
        "map",
        "r",
    ]
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries(
            {"type": NAMES | inner},
            optional={
                "name": st.sampled_from(["a", "b", "a.b", ""]),
                "items": inner,
                "values": inner,
                "size": st.integers(-1, 9),
                "symbols": st.lists(st.sampled_from("AB")),
                "fields": st.lists(st.fixed_dictionaries({"name": st.sampled_from("ab"), "type": inner}), max_size=2),
                "logicalType": st.sampled_from(["date", "decimal", "uuid", "timestamp-millis"]),
                "precision": inner,
                "arg.properties": st.dictionaries(
                    st.sampled_from(["options", "range", "iteration", "length", "regex", "keys", "odds"]), inner
                ),
            },
        )
    ),
    max_leaves=15,
)


@pytest.mark.process
@given(JSON)
def test_any_json_is_a_schema_or_refused(field: Any) -> None:
    try:
        made = read_avro(avro(field))
    except BadSchema:
        return
    column_of(made, range(3)).validate(full=True)
