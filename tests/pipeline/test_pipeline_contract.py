"""The contract's table of transforms, from bytes to bytes: converters and transforms of Apache's names in one chain."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import EllipsisType

import pyarrow as pa
import pytest
from pipeline_plugins import ENVELOPE, JSON, TEXT, chain_spec

from headgate.api import ConfigError, SinkRecord
from headgate.model import PluginSpec, StepSpec
from headgate.pipeline.batch import CONSUMED
from headgate.pipeline.chain import Chain
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.tolerance import ToleranceExceeded
from headgate.runtime.plugins import PluginKind as Plugin
from headgate.runtime.plugins import Plugins

APACHE = "org.apache.kafka.connect.transforms."
PLUGINS = Plugins.discover()


def struct(*fields: str, more: str = "") -> str:
    return f'{{"type":"struct","fields":[{",".join(fields)}],"optional":false{more}}}'


def of(kind: str, name: str, optional: str = "true", more: str = "") -> str:
    return f'{{"type":"{kind}","optional":{optional}{more},"field":"{name}"}}'


def enveloped(schema: str, payload: str) -> str:
    return f'{{"schema":{schema},"payload":{payload}}}'


A, B = of("int32", "a", "false"), of("string", "b")
M = '{"a":5,"b":"x","n":null,"o":{"p":1}}'
S = enveloped(struct(A, B), '{"a":300,"b":"x"}')
TIMESTAMP = ',"name":"org.apache.kafka.connect.data.Timestamp","version":1'
INSTANT = enveloped(f'{{"type":"int64","optional":false{TIMESTAMP}}}', "1700000000123")


@dataclass(frozen=True)
class Case:
    """Bytes of a value in, and what is to come out of it."""

    transform: str
    config: dict[str, str]
    given: str | None
    value: str | EllipsisType | None = ...
    """The same as given, if nothing is said."""
    key: str | None = None
    topic: str = "topic-1"
    headers: list[tuple[str, bytes]] = field(default_factory=list)
    dropped: bool = False
    error: str = ""
    written_by: PluginSpec | None = None
    predicate: str = ""


INSERTED = struct(
    A,
    B,
    of("string", "t", "false"),
    of("int32", "p"),
    of("int64", "of"),
    of("int64", "ts", more=TIMESTAMP),
    of("string", "sf"),
)
ALL_FIELDS = {
    "topic.field": "t!",
    "partition.field": "p",
    "offset.field": "of",
    "timestamp.field": "ts",
    "static.field": "sf",
    "static.value": "sv",
}
WITH_MS = {"target.type": "string", "format": "yyyy-MM-dd HH:mm:ss.SSS", "field": "a"}
IN_SECONDS = {"target.type": "unix", "format": "yyyy-MM-dd", "unix.precision": "seconds"}

CASES = [
    Case("Cast$Value", {"spec": "a:string,zz:int8"}, M, '{"a":"5","b":"x","n":null,"o":{"p":1},"zz":null}'),
    Case("Cast$Value", {"spec": "a:int8"}, S, enveloped(struct(of("int8", "a", "false"), B), '{"a":44,"b":"x"}')),
    Case("Cast$Value", {"spec": "b:int32"}, S, error="Value (x) was out of range for requested data type (field b)"),
    Case("Cast$Value", {"spec": "int32"}, "3.99", "3"),
    Case("Cast$Value", {"spec": "int32"}, '"3.9"', error="Value (3.9) was out of range for requested data type"),
    Case("Cast$Value", {"spec": "boolean"}, '"yes"', "false"),
    Case("Cast$Value", {"spec": "string"}, INSTANT, "2023-11-14T22:13:20.123Z", written_by=TEXT),
    Case("Cast$Value", {"spec": "int64"}, INSTANT, "1700000000123", written_by=TEXT),
    Case("ExtractField$Value", {"field": "o.p"}, M, None),
    Case("ExtractField$Value", {"field": "o.p", "field.syntax.version": "V2"}, M, "1"),
    Case("ExtractField$Value", {"field": "q"}, S, error="Unknown field: q"),
    Case("ExtractField$Value", {"field": "a"}, S, enveloped('{"type":"int32","optional":false}', "300")),
    Case("Flatten$Value", {}, M, '{"a":5,"b":"x","n":null,"o.p":1}'),
    Case("Flatten$Value", {"delimiter": "_"}, M, '{"a":5,"b":"x","n":null,"o_p":1}'),
    Case("HoistField$Value", {"field": "f"}, None, '{"f":null}'),
    Case("HoistField$Value", {"field": "f"}, M, f'{{"f":{M}}}'),
    Case(
        "InsertField$Value",
        ALL_FIELDS,
        S,
        enveloped(INSERTED, '{"a":300,"b":"x","t":"topic-1","p":0,"of":7,"ts":1700000000123,"sf":"sv"}'),
    ),
    Case("InsertField$Value", {"timestamp.field": "ts"}, M, M[:-1] + ',"ts":1700000000123}'),
    Case(
        "InsertField$Value",
        {"static.field": "a", "static.value": "b"},
        '"str"',
        error="Only Map objects supported in absence of schema for [field insertion], found: java.lang.String",
    ),
    Case("MaskField$Value", {"fields": "a,b"}, S, enveloped(struct(A, B), '{"a":0,"b":""}')),
    Case("MaskField$Value", {"fields": "a,b", "replacement": "77"}, S, enveloped(struct(A, B), '{"a":77,"b":"77"}')),
    Case(
        "MaskField$Value",
        {"fields": "a", "replacement": "zz"},
        S,
        error="Unable to convert zz (class java.lang.String) to a number (field a)",
    ),
    Case("MaskField$Value", {"fields": "a,zz"}, M, '{"a":0,"b":"x","n":null,"o":{"p":1},"zz":null}'),
    Case("RegexRouter", {"regex": "topic-(.*)", "replacement": "x-$1"}, M, topic="x-1"),
    Case("RegexRouter", {"regex": "topic", "replacement": "x"}, M),
    Case("ReplaceField$Value", {"include": "b", "renames": "b:c"}, M, '{"c":"x"}'),
    Case("ReplaceField$Value", {"exclude": "a"}, S, enveloped(struct(B), '{"b":"x"}')),
    Case("SetSchemaMetadata$Value", {"schema.name": "N"}, M, error="Schema required for [updating schema metadata]"),
    Case(
        "SetSchemaMetadata$Value",
        {"schema.name": "N", "schema.version": "3"},
        S,
        enveloped(struct(A, B, more=',"name":"N","version":3'), '{"a":300,"b":"x"}'),
    ),
    Case("TimestampConverter$Value", WITH_MS, '{"a":1700000000123}', '{"a":"2023-11-14 22:13:20.123"}'),
    Case("TimestampConverter$Value", IN_SECONDS, '"2020-01-02"', "1577923200"),
    Case(
        "TimestampConverter$Value",
        {"target.type": "unix", "field": "a"},
        S,
        error="Schema Schema{INT32} does not correspond to a known timestamp type format (field a)",
    ),
    Case("TimestampRouter", {}, M, topic="topic-1-20231114"),
    Case("ValueToKey", {"fields": "a,zz"}, M, key='{"a":5,"zz":null}'),
    Case("ValueToKey", {"fields": "a,zz"}, S, error="Field does not exist: zz"),
    Case("ValueToKey", {"fields": "a"}, S, key=enveloped(struct(A), '{"a":300}')),
    Case("InsertHeader", {"header": "h", "value.literal": "12"}, M, headers=[("h", b"12")]),
    Case(
        "HeaderFrom$Value",
        {"fields": "a", "headers": "h", "operation": "move"},
        S,
        enveloped(struct(B), '{"b":"x"}'),
        headers=[("h", b"300")],
    ),
    Case("HeaderFrom$Value", {"fields": "a,q", "headers": "h,i", "operation": "copy"}, M, headers=[("h", b"5")]),
    Case("DropHeaders", {"headers": "zz"}, M),
    Case("Filter", {}, M, dropped=True),
    Case("Filter", {}, None, dropped=True, predicate="RecordIsTombstone"),
    Case("Filter", {}, M, predicate="RecordIsTombstone"),
]


def found(name: str, kind: Plugin, config: dict[str, str]) -> PluginSpec:
    return PluginSpec(PLUGINS.find(APACHE + name, kind).ref, config)


def through(case: Case, converter: PluginSpec) -> list[SinkRecord]:
    guard = found(f"predicates.{case.predicate}", Plugin.PREDICATE, {}) if case.predicate else None
    step = StepSpec("t", found(case.transform, Plugin.TRANSFORMATION, case.config), guard)
    row = {
        "topic": "topic-1",
        "partition": 0,
        "offset": 7,
        "timestamp": 1700000000123,
        "timestamp_type": "CreateTime",
        "value": None if case.given is None else case.given.encode(),
    }
    chain = SinkChain(chain_spec(step, key=converter, value=converter), Output(Kind.RECORDS))
    return chain.records(pa.Table.from_pylist([row], schema=CONSUMED))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.transform}-{case.given}")
def test_bytes_in_and_bytes_out(case: Case) -> None:
    converter = ENVELOPE if (case.given or "").startswith('{"schema"') else JSON
    if case.error:
        with pytest.raises(ToleranceExceeded) as raised:
            through(case, converter)
        assert str(raised.value).endswith(f"DataError: {case.error}")
        return
    records = through(case, converter)
    assert len(records) == (0 if case.dropped else 1)
    for record in records:
        written = case.written_by or converter
        chain = Chain.build(chain_spec(key=written, value=written))
        value, key = case.given if case.value is ... else case.value, case.key
        made = chain.value.from_connect(record.topic, record.value_schema, record.value)
        assert made == (None if value is None else value.encode())
        made = chain.key.from_connect(record.topic, record.key_schema, record.key)
        assert made == (None if key is None else key.encode())
        assert record.topic == case.topic
        assert (record.partition, record.offset, record.timestamp) == (0, 7, 1700000000123)
        headers = chain.headers.from_connect_header
        shown = [(each.key, headers("t", each.key, each.schema, each.value)) for each in record.headers]
        assert [each for each in shown if each[1] is not None] == case.headers


def test_every_transform_has_a_case() -> None:
    known = {
        alias.removeprefix(APACHE)
        for each in PLUGINS.all
        if each.kind is Plugin.TRANSFORMATION
        for alias in each.cls.aliases
        if alias.startswith(APACHE) and not alias.endswith("$Key")
    }
    assert {case.transform for case in CASES} == known


@pytest.mark.parametrize(
    ("transform", "config", "message"),
    [
        ("Cast$Value", {"spec": "a:zz"}, "Invalid type found in casting spec: zz"),
        ("Cast$Value", {"spec": ""}, "Must specify at least one field to cast."),
        ("Cast$Value", {"spec": "int8,a:int8"}, "may only specify a single cast in their spec"),
        ("ReplaceField$Value", {"renames": "b"}, "Invalid value [b] for configuration renames: Invalid rename mapping"),
        ("DropHeaders", {"headers": ""}, "Configuration 'headers' must not be empty. Valid values include: any non-"),
        ("InsertField$Value", {}, "No field insertion configured"),
        ("SetSchemaMetadata$Value", {}, "Neither schema name nor version configured"),
        (
            "TimestampConverter$Value",
            {"target.type": "string"},
            "TimestampConverter requires format option to be specified when using string timestamps",
        ),
        (
            "HeaderFrom$Value",
            {"fields": "a,b", "headers": "h", "operation": "copy"},
            "'fields' config must have the same number of elements as 'headers' config.",
        ),
    ],
)  # fmt: skip
def test_a_config_that_cannot_be(transform: str, config: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Chain.build(chain_spec(StepSpec("t", found(transform, Plugin.TRANSFORMATION, config))))
    assert message in str(raised.value)
