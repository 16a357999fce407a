"""JsonSchemaConverter by columns: what is written and read is the same as record by record, or it is refused."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from registry_columns import by_columns, by_records, damaged, schemas_with_rows
from registry_stand_in import StandIn
from registry_support import configured, kept

from headgate.api import Schema, Struct
from headgate.api import schema as s
from headgate.api.frame import NotByColumns, Values
from headgate.pipeline.columns.objects import values_of
from headgate.pipeline.converters.registry.json_schema import JsonSchemaConverter

pytestmark = [pytest.mark.process, pytest.mark.usefixtures("few_by_columns")]

SAME = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
OPTIONS = st.sampled_from([{}, {"decimal_format": "NUMERIC"}, {"use_optional_for_nonrequired": True}])

ADDRESS = s.struct({"street": s.STRING, "city": s.OPTIONAL_STRING}, name="Address")
USUAL = s.struct(
    {
        "number": s.INT64,
        "price": s.FLOAT64.as_optional(),
        "paid": s.BOOLEAN,
        "text": s.STRING,
        "data": s.OPTIONAL_BYTES,
        "at": s.TIMESTAMP,
        "amount": s.decimal(2),
        "with_default": replace(s.INT32, default=7),
        "address": ADDRESS.as_optional(),
        "addresses": s.array(ADDRESS),
        "map": s.mapping(s.STRING, s.INT32),
    },
    name="Usual",
)


def usual(**changed: Any) -> Struct:
    values = {
        "number": -(2**63),
        "price": 0.1,
        "paid": True,
        "text": 'Zürich "\\" \n',
        "data": b"\xff",
        "at": dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
        "amount": Decimal("-1.20"),
        "with_default": 8,
        "address": Struct(ADDRESS.as_optional(), {"street": "Main"}),
        "addresses": [Struct(ADDRESS, {"street": "", "city": "x"})],
        "map": {"b": 1, "a": 2},
    }
    return Struct(USUAL, {**values, **changed})


ROWS = [usual(), usual(price=None, data=None, address=None, with_default=None), usual(addresses=[], map={}, text="")]


def written(converter: JsonSchemaConverter, values: Values) -> list[bytes | None] | None:
    """None where that is refused."""
    try:
        found: list[bytes | None] = converter.write_columns("t", values).to_pylist()
    except NotByColumns:
        return None
    return found


@SAME
@given(schemas_with_rows(), OPTIONS)
def test_both_ways_write_and_read_the_same(
    shared_registry: StandIn, found: tuple[Schema, list[Any]], options: dict[str, Any]
) -> None:
    converter = kept(JsonSchemaConverter, shared_registry.url, **options)
    schema, rows = found
    data = [converter.from_connect("t", schema, row) for row in rows]
    assert written(converter, values_of(schema, rows)) in (None, data)
    read, expected = by_columns(converter, data), by_records(converter, data)
    assert read == {row: expected[row] for row in read}


@SAME
@given(schemas_with_rows(), OPTIONS, st.data())
def test_damaged_bytes_are_refused_or_read_the_same(
    shared_registry: StandIn, found: tuple[Schema, list[Any]], options: dict[str, Any], data: st.DataObject
) -> None:
    converter = kept(JsonSchemaConverter, shared_registry.url, **options)
    schema, rows = found
    given = [data.draw(damaged(converter.from_connect("t", schema, row))) for row in rows]
    read, expected = by_columns(converter, given), by_records(converter, given)
    assert read == {row: expected[row] for row in read}


@pytest.mark.parametrize("options", [{}, {"decimal_format": "NUMERIC"}], ids=str)
def test_usual_types_are_written_and_read_by_columns(registry: StandIn, options: dict[str, Any]) -> None:
    converter = configured(JsonSchemaConverter, registry.url, **options)
    data = [converter.from_connect("t", USUAL, row) for row in ROWS]
    assert written(converter, values_of(USUAL, ROWS)) == data
    found = by_columns(converter, data)
    assert len(found) == len(ROWS)
    assert found == by_records(converter, data)


def test_schemas_of_others_and_fields_in_another_order(registry: StandIn) -> None:
    tree = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
    number = registry.add("t-value", json.dumps(tree), "JSON")
    start = bytes([0, *number.to_bytes(4, "big")])
    converter = configured(JsonSchemaConverter, registry.url)
    data = [start + b'{"b":"x","a":1}', start + b'{"b":"y","a":2}', start + b'{"b":"y","a":"no"}', start]
    assert by_columns(converter, data) == {row: by_records(converter, data)[row] for row in (0, 1)}


@pytest.mark.parametrize(
    "schema",
    [s.mapping(s.INT32, s.STRING), s.array(s.mapping(s.OPTIONAL_STRING, s.STRING)), s.struct({"a": s.decimal(-1)})],
    ids=str,
)
def test_schemas_that_are_left_to_records(registry: StandIn, schema: Schema) -> None:
    converter = configured(JsonSchemaConverter, registry.url)
    assert written(converter, replace(values_of(s.array(s.INT32), [[1]]), schema=schema)) is None


def test_what_is_compared_with_its_schema_is_left_to_records(registry: StandIn) -> None:
    converter = configured(JsonSchemaConverter, registry.url, json_fail_invalid_schema=True, decimal_format="NUMERIC")
    data = [converter.from_connect("t", USUAL, row) for row in ROWS]
    assert written(converter, values_of(USUAL, ROWS)) is None
    assert by_columns(converter, data) == {}
