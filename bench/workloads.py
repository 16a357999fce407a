"""The work whose rate is measured: what is read, and the connector that both sides are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from inputs import FEWER_TEXTS, OBJECTS, ORDERS_IN_AVRO, ORDERS_IN_JSON, TEXTS, Input
from side import APACHE, HEADGATE

Config = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    what: str
    reads: Input
    config: Config = field(default_factory=dict)
    only: Mapping[str, Config] = field(default_factory=dict)
    """What one side alone is given."""
    is_source: bool = False
    needs_registry: bool = False

    def config_of(self, kind: str, registry: str) -> dict[str, str]:
        config = {**self.config, **self.only.get(kind, {})}
        return {key: value.replace(_REGISTRY, registry) for key, value in config.items()}


_REGISTRY: Final = "<registry>"
_TRANSFORMS: Final = "org.apache.kafka.connect.transforms"
_JSON: Final = {"value.converter": "org.apache.kafka.connect.json.JsonConverter"}
_PLAIN_JSON: Final = {**_JSON, "value.converter.schemas.enable": "false"}
_AVRO: Final = {
    "value.converter.schema.registry.url": _REGISTRY,
    "value.converter.apicurio.registry.url": f"{_REGISTRY}/apis/registry/v2",
    "value.converter.apicurio.registry.auto-register": "true",
    "value.converter.apicurio.registry.as-confluent": "true",
    "value.converter.apicurio.registry.headers.enabled": "false",
    "value.converter.apicurio.registry.serializer.dereference-schema": "true",
}
_AVRO_CONVERTERS: Final = {
    HEADGATE: {"value.converter": "io.confluent.connect.avro.AvroConverter"},
    APACHE: {"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"},
}
_INSERTED: Final = ("static.field", "topic.field", "timestamp.field")


def _chain(**transforms: Config) -> dict[str, str]:
    settings = {
        f"transforms.{name}.{key}": value for name, config in transforms.items() for key, value in config.items()
    }
    return {"transforms": ",".join(transforms), **settings}


def _hoist(into: str) -> Config:
    return {"type": f"{_TRANSFORMS}.HoistField$Value", "field": into}


def _insert(names: Config) -> Config:
    return {"type": f"{_TRANSFORMS}.InsertField$Value", "static.value": "bench", **names}


def _grown() -> dict[str, str]:
    """Transforms that make 20 fields at three levels of a line: 3 are hoisted, 17 inserted."""
    transforms = {}
    for level, count in (("line", 5), ("inner", 6), ("outer", 6)):
        transforms[level] = _hoist(level)
        for first in range(0, count, len(_INSERTED)):
            names = {key: f"{level}_{key[:5]}_{first}" for key in _INSERTED[: count - first]}
            transforms[f"{level}{first}"] = _insert(names)
    return _chain(**transforms)


_DROP: Final = {"type": f"{_TRANSFORMS}.ReplaceField$Value", "exclude": "note"}
_ADD: Final = _insert({"static.field": "origin"})
_CAST: Final = {"type": f"{_TRANSFORMS}.Cast$Value", "spec": "price:string"}
_MARK: Final = {"type": "headgate.transforms.Python", "function": "marking.mark"}

PLAIN: Final = (
    Workload("string-source", "file source, String", TEXTS, is_source=True),
    Workload("string-sink", "file sink, String", TEXTS),
    Workload(
        "json-sink",
        "file sink, JSON without schema, ReplaceField, InsertField, Cast",
        OBJECTS,
        {**_PLAIN_JSON, **_chain(drop=_DROP, add=_ADD, cast=_CAST)},
    ),
    Workload(
        "nested-sink",
        "file sink, JSON without schema, nested: HoistField, InsertField",
        OBJECTS,
        {**_PLAIN_JSON, **_chain(hoist=_hoist("payload"), add=_ADD)},
    ),
    Workload(
        "python-sink",
        "file sink, JSON without schema, a transform of the user's in Python",
        OBJECTS,
        _PLAIN_JSON,
        # The function does what these two of Apache's do.
        {HEADGATE: _chain(mark=_MARK), APACHE: _chain(drop=_DROP, add=_ADD)},
    ),
)
WITH_SCHEMAS: Final = (
    Workload("schema-sink", "file sink, JSON with schema, 20 fields at 3 levels", ORDERS_IN_JSON, _JSON),
    Workload(
        "schema-source",
        "file source, JSON with schema, 20 fields by 9 transforms",
        FEWER_TEXTS,
        {**_JSON, **_grown()},
        is_source=True,
    ),
    Workload(
        "avro-sink",
        "file sink, Avro, 20 fields at 3 levels",
        ORDERS_IN_AVRO,
        _AVRO,
        _AVRO_CONVERTERS,
        needs_registry=True,
    ),
    Workload(
        "avro-source",
        "file source, Avro, 20 fields by 9 transforms",
        FEWER_TEXTS,
        {**_AVRO, **_grown()},
        _AVRO_CONVERTERS,
        is_source=True,
        needs_registry=True,
    ),
)
WORKLOADS: Final = {each.name: each for each in (*PLAIN, *WITH_SCHEMAS)}
