"""All of Apache's transforms, predicates and converters are here, under its names; schemas are made once."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from transform_support import a_map, a_struct, apply, configured, sink

from headgate.api import Predicate, Struct, Transform
from headgate.api import schema as s
from headgate.pipeline.schemas import SchemaCache
from headgate.pipeline.transforms.cast import CastValue
from headgate.runtime.plugins import PluginKind, Plugins

PACKAGE = "org.apache.kafka.connect.transforms"
OF_PARTS = {
    "Cast": {"spec": "a:string"},
    "ExtractField": {"field": "a"},
    "Flatten": {},
    "HeaderFrom": {"fields": "a", "headers": "h", "operation": "move"},
    "HoistField": {"field": "f"},
    "InsertField": {"static.field": "s", "static.value": "v"},
    "MaskField": {"fields": "a"},
    "ReplaceField": {"exclude": "a"},
    "SetSchemaMetadata": {"schema.name": "n"},
    "TimestampConverter": {"target.type": "unix", "field": "zz"},
}
OF_RECORDS = ("DropHeaders", "Filter", "InsertHeader", "RegexRouter", "TimestampRouter", "ValueToKey")


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins.discover()


@pytest.mark.parametrize(
    ("short", "kind", "package"),
    [
        *((f"{name}${part}", PluginKind.TRANSFORMATION, PACKAGE) for name in OF_PARTS for part in ("Key", "Value")),
        *((name, PluginKind.TRANSFORMATION, PACKAGE) for name in OF_RECORDS),
        *(
            (name, PluginKind.PREDICATE, f"{PACKAGE}.predicates")
            for name in ("HasHeaderKey", "RecordIsTombstone", "TopicNameMatches")
        ),
        *(
            (f"{name}Converter", kind, "org.apache.kafka.connect.converters")
            for name in ("Short", "Integer", "Long", "Float", "Double", "Boolean")
            for kind in (PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER)
        ),
    ],
)
def test_apaches_names_and_short_ones_lead_here(plugins: Plugins, short: str, kind: PluginKind, package: str) -> None:
    found = plugins.find(f"{package}.{short}", kind)
    assert found.cls.__name__ == short.replace("$", "")
    assert plugins.find(short, kind) == found
    assert plugins.find(found.name, kind) == found


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name in OF_PARTS for value in (a_map(), a_struct()) if name != "SetSchemaMetadata"]
    + [("SetSchemaMetadata", a_struct())],
)
def test_the_other_part_is_left_alone(plugins: Plugins, name: str, value: Any) -> None:
    schema = value.schema if isinstance(value, Struct) else None
    record = sink(value, key=value, key_schema=schema)
    for part, other in (("Key", "value"), ("Value", "key")):
        cls = plugins.find(f"{name}${part}", PluginKind.TRANSFORMATION).cls
        assert issubclass(cls, Transform)
        changed = apply(cls, OF_PARTS[name], record)
        assert getattr(changed, other) is value
        assert getattr(changed, f"{other}_schema") is schema
        assert changed.replace(key=1, key_schema=None, value=1, value_schema=None, headers=()) == record.replace(
            key=1, key_schema=None, value=1, value_schema=None, headers=()
        )


def test_every_key_is_described(plugins: Plugins) -> None:
    for found in plugins.all:
        kinds = (PluginKind.TRANSFORMATION, PluginKind.PREDICATE)
        if found.kind in kinds and found.name.startswith("headgate.pipeline"):
            assert issubclass(found.cls, (Transform, Predicate))
            assert all(key.doc for key in found.cls.config), found.name


def test_records_of_one_schema_share_the_new_one() -> None:
    cast = configured(CastValue, {"spec": "a:string"})
    first, second = (cast.apply(sink(a_struct())) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.value_schema is not None
    assert first.value_schema is second.value_schema


def test_a_schema_that_is_equal_is_no_other_schema() -> None:
    numbers = itertools.count(1)
    cache = SchemaCache(lambda _: next(numbers))
    one, other = (s.struct({"a": s.INT8}) for _ in range(2))
    assert [cache(one), cache(other), cache(one)] == [1, 1, 1]


def test_old_schemas_are_forgotten() -> None:
    numbers = itertools.count(1)
    cache = SchemaCache(lambda _: next(numbers))
    schemas = [s.struct({f"f{number}": s.INT8}) for number in range(20)]
    assert [cache(schema) for schema in schemas] == list(range(1, 21))
    assert cache(schemas[19]) == 20
    assert cache(schemas[0]) == 21
