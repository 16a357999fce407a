"""Schemas as JSON: exact order of keys, exact errors."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from headgate.api import DataError, Schema, SchemaType
from headgate.api import schema as s
from headgate.pipeline.converters.json_schema import has_decimal, schema_from_tree, schema_tree
from headgate.pipeline.converters.json_value import Options

OPTIONS = Options()

FULL = Schema(SchemaType.INT32, True, 7, "n", 3, "d", {"k": "v", "a": "b"})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (s.BOOLEAN, '{"type":"boolean","optional":false}'),
        (s.INT8, '{"type":"int8","optional":false}'),
        (s.INT16, '{"type":"int16","optional":false}'),
        (s.INT64.as_optional(), '{"type":"int64","optional":true}'),
        (s.FLOAT32, '{"type":"float","optional":false}'),
        (s.FLOAT64, '{"type":"double","optional":false}'),
        (s.STRING, '{"type":"string","optional":false}'),
        (s.BYTES, '{"type":"bytes","optional":false}'),
        (s.array(s.INT32), '{"type":"array","items":{"type":"int32","optional":false},"optional":false}'),
        (
            s.mapping(s.INT32, s.STRING),
            (
                '{"type":"map","keys":{"type":"int32","optional":false},"values":{"type":"string","optional":false},'
                '"optional":false}'
            ),
        ),
        (
            FULL,
            (
                '{"type":"int32","optional":true,"name":"n","version":3,"doc":"d","parameters":{"k":"v","a":"b"},'
                '"default":7}'
            ),
        ),
        (
            s.decimal(2),
            (
                '{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
                '"parameters":{"scale":"2"}}'
            ),
        ),
        (
            s.struct(
                {"a": s.INT32, "b": Schema(SchemaType.STRING, optional=True, default="dv")},
                name="my.S",
                version=2,
                doc="d",
                parameters={"k": "v"},
            ),
            (
                '{"type":"struct","fields":[{"type":"int32","optional":false,"field":"a"},'
                '{"type":"string","optional":true,"default":"dv","field":"b"}],"optional":false,"name":"my.S",'
                '"version":2,"doc":"d","parameters":{"k":"v"}}'
            ),
        ),
    ],
)
def test_schemas_are_written_in_apaches_order_and_read_back(schema: Schema, expected: str) -> None:
    assert orjson.dumps(schema_tree(schema, OPTIONS)).decode() == expected
    assert schema_from_tree(orjson.loads(expected), OPTIONS) == schema


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "Schema must contain 'type' field"),
        ({"type": 3}, "Schema must contain 'type' field"),
        ("s", "Schema must contain 'type' field"),
        ([], "Schema must contain 'type' field"),
        ({"type": "zz"}, "Unknown schema type: zz"),
        ({"type": "array"}, "Array schema did not specify the element type"),
        ({"type": "array", "items": None}, "Array schema did not specify the element type"),
        ({"type": "map", "values": {"type": "int8"}}, "Map schema did not specify the key type"),
        ({"type": "map", "keys": {"type": "int8"}}, "Map schema did not specify the value type"),
        ({"type": "struct"}, 'Struct schema\'s "fields" argument is not an array.'),
        ({"type": "struct", "fields": 3}, 'Struct schema\'s "fields" argument is not an array.'),
        ({"type": "struct", "fields": [{"type": "int8"}]}, "Struct schema's field name not specified properly"),
        (
            {"type": "struct", "fields": [{"type": "int8", "field": "a"}] * 2},
            "Cannot create field because of field name duplication a",
        ),
        ({"type": "int32", "parameters": {"k": 1}}, "Schema parameters must have string values."),
        ({"type": "int32", "default": None}, "Invalid null value for required INT32 field"),
        ({"type": "string", "default": 1}, "Invalid default value"),
    ],
)
def test_a_broken_schema_is_described(tree: Any, message: str) -> None:
    with pytest.raises(DataError) as raised:
        schema_from_tree(tree, OPTIONS)
    assert str(raised.value) == message


def test_what_jackson_forgives_in_a_schema_is_forgiven() -> None:
    tree = {"type": "int32", "optional": "true", "version": "3", "name": 5, "doc": None, "parameters": {}}
    assert schema_from_tree(tree, OPTIONS) == s.INT32
    assert schema_from_tree({"type": "int32", "version": 3000000000}, OPTIONS) == Schema(
        SchemaType.INT32, version=-1294967296
    )
    assert schema_from_tree({"type": "int32", "default": "x"}, OPTIONS) == Schema(SchemaType.INT32, default=0)
    assert schema_from_tree(None, OPTIONS) is None


def test_a_decimal_is_found_however_deep() -> None:
    assert has_decimal(s.array(s.mapping(s.STRING, s.struct({"d": s.decimal(2)}))))
    assert not has_decimal(s.struct({"a": s.array(s.BYTES)}))
