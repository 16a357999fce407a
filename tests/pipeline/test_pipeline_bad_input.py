"""Every converter and transform against what it was not made for: Apache's decision, and a message that says of which
record and which field."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Any

import pytest
from pipeline_plugins import BYTES, ENVELOPE, JSON, TEXT, builtin, chain_spec, consumed

from headgate.api import Header, Schema, SourceRecord, Struct
from headgate.api import schema as s
from headgate.java.nesting import DEEPEST
from headgate.model import PluginRef, PluginSpec, StepSpec
from headgate.pipeline.failure import ConsumedRecord
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.source_chain import SourceChain
from headgate.pipeline.tolerance import ToleranceExceeded, Triage
from headgate.runtime.plugins import GROUP

pytestmark = pytest.mark.kip(298, "error handling in Connect")

RECORDS = Output(Kind.RECORDS)
TOLERANT = {"errors.tolerance": "all"}
PLACE = "{topic='t', sourcePartition={file=x}, sourceOffset={line=7}}"


def source(value: Any, schema: Schema | None, timestamp: int | None = None) -> SourceRecord:
    """It comes from `PLACE`."""
    return SourceRecord(
        topic="t",
        value=value,
        value_schema=schema,
        timestamp=timestamp,
        source_partition={"file": "x"},
        source_offset={"line": 7},
    )


def offsets_of(triage: Triage) -> list[int]:
    """Of the consumed records that failed."""
    records = [failure.record for failure in triage.failures]
    assert all(isinstance(record, ConsumedRecord) for record in records)
    return [record.offset for record in records if isinstance(record, ConsumedRecord)]


# --- transforms -------------------------------------------------------------------------------------------------------

STRUCT = s.struct({"a": s.INT32, "b": s.OPTIONAL_STRING})
OTHER = s.struct({"z": s.INT32})


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


INPUTS: dict[str, tuple[Schema | None, Any]] = {
    "n": (None, None),
    "N": (STRUCT.as_optional(), None),
    "t": (None, "x"),
    "T": (s.STRING, "x"),
    "l": (None, [1]),
    "b": (None, b"\xff"),
    "e": (None, {}),
    "m": (None, {"a": None, "b": None}),
    "w": (None, {"a": [1], "b": {"x": 1}}),
    "h": (None, {"a": 10**400, "b": "9" * 400}),
    "d": (None, nested(DEEPEST)),
    "s": (STRUCT, Struct(STRUCT, {"a": 300, "b": "x"})),
    "u": (STRUCT, Struct(STRUCT)),
    "W": (STRUCT, "x"),
    "o": (OTHER, Struct(OTHER, {"z": 1})),
}
"""Null, text, a list, bytes; fields that are missing, null, of wrong types, huge, deep; a struct, one with nothing set,
one that is none, one without the fields."""

MAP = "Only Map objects supported in absence of schema for"
ONLY = "Only Struct objects supported for"
UNSET = 'null used for required field: "a"'
STAGE = re.compile(r"stage 'TRANSFORMATION' with class '(org\.apache\.kafka\.connect|headgate)\.transforms\.")

BAD: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "CastValue": (
        "cast",
        {"spec": "a:int8,b:int32"},
        {
            **dict.fromkeys("tlb", f"{MAP} [cast types], found: "),
            "T": "Cannot list fields on non-struct type",
            "W": f"{ONLY} [cast types], found: java.lang.String",
            "w": "does not support casting from ARRAY; supported types are .* [(]field a[)]",
            "h": r"Value \(9999.*\) was out of range for requested data type \(field b\)",
            "d": "does not support casting from MAP; .* [(]field a[)]",
            "s": r"Value \(x\) was out of range for requested data type \(field b\)",
            "u": UNSET,
        },
    ),
    "DropHeaders": ("drop_headers", {"headers": "h"}, {}),
    "ExtractFieldValue": (
        "extract_field",
        {"field": "a"},
        {
            **dict.fromkeys("tlb", f"{MAP} [field extraction], found: "),
            **dict.fromkeys("TW", f"{ONLY} [field extraction], found: "),
            "o": "Unknown field: a",
        },
    ),
    "Filter": ("filter", {}, {}),
    "FlattenValue": (
        "flatten",
        {},
        {
            **dict.fromkeys("tlb", f"{MAP} [flattening], found: "),
            **dict.fromkeys("TW", f"{ONLY} [flattening], found: "),
            "u": UNSET,
        },
    ),
    "FromJsonValue": (
        "from_json",
        {},
        {
            **dict.fromkeys("tTWb", "failed due to serialization error: "),
            **dict.fromkeys("lemwhdsuo", "Only bytes and text can be read as JSON, not a value of the class "),
        },
    ),
    "HeaderFromValue": (
        "header_from",
        {"fields": "a", "headers": "h", "operation": "move"},
        {
            **dict.fromkeys("ntlb", f"{MAP} [header move], found: "),
            **dict.fromkeys("NTW", f"{ONLY} [header move], found: "),
            "o": "Field does not exist: a",
        },
    ),
    "HoistFieldValue": ("hoist_field", {"field": "f"}, {}),
    "InsertFieldValue": (
        "insert_field",
        {"static.field": "s", "static.value": "v"},
        {
            **dict.fromkeys("tlb", f"{MAP} [field insertion], found: "),
            **dict.fromkeys("TW", f"{ONLY} [field insertion], found: "),
            "u": UNSET,
        },
    ),
    "InsertHeader": ("insert_header", {"header": "h", "value.literal": "1"}, {}),
    "MaskFieldValue": (
        "mask_field",
        {"fields": "a,b", "replacement": "zz"},
        {
            **dict.fromkeys("ntlb", f"{MAP} [mask fields], found: "),
            **dict.fromkeys("NTW", f"{ONLY} [mask fields], found: "),
            "w": r"Cannot mask value of type class java.util.ArrayList with custom replacement. \(field a\)",
            "h": r"Unable to convert zz \(class java.lang.String\) to a number \(field a\)",
            "d": r"Cannot mask value of type class java.util.HashMap with custom replacement. \(field a\)",
            "s": r"Unable to convert zz \(class java.lang.String\) to a number \(field a\)",
            "u": UNSET,
        },
    ),
    "RegexRouter": ("regex_router", {"regex": "t", "replacement": "y"}, {}),
    "ReplaceFieldValue": (
        "replace_field",
        {"exclude": "a"},
        {
            **dict.fromkeys("tlb", f"{MAP} [field replacement], found: "),
            **dict.fromkeys("TW", f"{ONLY} [field replacement], found: "),
        },
    ),
    "SetSchemaMetadataValue": (
        "set_schema_metadata",
        {"schema.name": "n"},
        {
            **dict.fromkeys("tlbemwhd", "Schema required for [updating schema metadata]"),
            "T": "Cannot list fields on non-struct type",
            "u": UNSET,
        },
    ),
    "TimestampConverterValue": (
        "timestamp_converter",
        {"field": "a", "target.type": "Timestamp", "format": "yyyy"},
        {
            **dict.fromkeys("tlb", f"{MAP} [converting timestamp formats], found: "),
            **dict.fromkeys("TW", f"{ONLY} [converting timestamp formats], found: "),
            "w": r"does not support class java.util.ArrayList objects as timestamps \(field a\)",
            "h": r"does not support class java.math.BigInteger objects as timestamps \(field a\)",
            "d": r"does not support class java.util.HashMap objects as timestamps \(field a\)",
            **dict.fromkeys("su", r"Schema Schema{INT32} does not correspond to a known timestamp type .*\(field a\)"),
        },
    ),
    "TimestampRouter": ("timestamp_router", {}, {}),
    "ValueToKey": (
        "value_to_key",
        {"fields": "a"},
        {
            **dict.fromkeys("ntlb", f"{MAP} [copying fields from value to key], found: "),
            **dict.fromkeys("NTW", f"{ONLY} [copying fields from value to key], found: "),
            "o": "Field does not exist: a",
            "u": UNSET,
        },
    ),
}
"""Module, configuration, and what it says of the inputs that it refuses; it takes all others."""

every_transform = pytest.mark.parametrize("name", BAD)


def transform(name: str) -> StepSpec:
    module, config, _ = BAD[name]
    return StepSpec(name, PluginSpec(PluginRef(f"headgate.pipeline.transforms.{module}", name), config))


def says(message: str) -> str:
    """As a pattern; what is none is meant letter by letter."""
    return message.replace("[", r"\[").replace("]", r"\]") if message.startswith((MAP, ONLY, "Schema req")) else message


def test_no_transform_is_left_out() -> None:
    entries = metadata.entry_points(group=GROUP)
    named = {each.name for each in entries if ".transforms." in each.value and not each.name.endswith("Key")}
    # These run what the user writes, and have tests of their own.
    assert {*BAD, "Python", "Sql", "ValueToKey"} >= named


@every_transform
@pytest.mark.parametrize("kind", INPUTS)
def test_a_transform_takes_it_or_says_of_which_record_and_field_it_was(name: str, kind: str) -> None:
    schema, value = INPUTS[kind]
    record = source(value, schema, timestamp=5)
    chain = SourceChain(chain_spec(transform(name)))
    expected = BAD[name][2].get(kind)
    if expected is None:
        assert chain.records([record]).num_rows == (0 if name == "Filter" else 1)
        return
    with pytest.raises(ToleranceExceeded, match=says(expected)) as raised:
        chain.records([record])
    assert PLACE in str(raised.value)
    assert STAGE.search(str(raised.value))


JSON_INPUTS = {
    "n": None,
    "t": b'"x"',
    "l": b"[1]",
    "e": b"{}",
    "m": b'{"a":null,"b":null}',
    "w": b'{"a":[1],"b":{"x":1}}',
    "d": b'{"a":' * (DEEPEST - 1) + b"{}" + b"}" * (DEEPEST - 1),
}


@every_transform
def test_a_sink_loses_the_bad_records_only_and_knows_them_by_their_offsets(name: str) -> None:
    kinds = [*JSON_INPUTS, *JSON_INPUTS]
    chain = SinkChain(chain_spec(transform(name), value=JSON, errors=TOLERANT), RECORDS)
    triage = Triage(chain.policy)
    found = chain.records(consumed([JSON_INPUTS[kind] for kind in kinds]), triage)
    refused = [10 + row for row, kind in enumerate(kinds) if kind in BAD[name][2]]
    assert offsets_of(triage) == refused
    kept = [] if name == "Filter" else [10 + row for row in range(len(kinds)) if 10 + row not in refused]
    assert [record.original_offset for record in found] == kept
    strict = SinkChain(chain_spec(transform(name), value=JSON), RECORDS)
    if refused:
        with pytest.raises(ToleranceExceeded, match=rf"{{topic='t', partition=3, offset={refused[0]}}}"):
            strict.records(consumed([JSON_INPUTS[kind] for kind in kinds]))


# --- converters, reading ----------------------------------------------------------------------------------------------

SHORT, INTEGER, LONG, FLOAT, DOUBLE = (
    builtin("numbers", f"{name}Converter") for name in ("Short", "Integer", "Long", "Float", "Double")
)
BOOLEAN = builtin("boolean", "BooleanConverter")
INSIDE = b'{"type":"struct","field":"o","fields":[{"type":"int32","field":"p"}]}'
FIELD = b'{"schema":{"type":"struct","fields":[' + INSIDE + b']},"payload":%s}'
NOT_READ = "Converting byte[] to Kafka Connect data failed due to serialization error: "


class Refused(str):
    """What a converter says of data or a value that it does not take."""


READ: list[tuple[PluginSpec, bytes, Any]] = [
    (TEXT, b"\xff\xfe", "\ufffd\ufffd"),
    (TEXT, b"", ""),
    (BYTES, b"\xff", b"\xff"),
    *((each, b"\x00", Refused("Failed to deserialize ")) for each in (SHORT, INTEGER, LONG, FLOAT, DOUBLE)),
    *((each, b"", Refused("Failed to deserialize ")) for each in (SHORT, INTEGER, LONG, FLOAT, DOUBLE, BOOLEAN)),
    (BOOLEAN, b"\x02", Refused("Failed to deserialize boolean: ")),
    *((JSON, data, Refused(NOT_READ)) for data in (b"{", b'"\xff"', b"\xff", b"1" * 1001, b"[" * 1025 + b"]" * 1025)),
    (JSON, b"", None),
    (JSON, b"18446744073709551617", 1),
    (JSON, b"1e400", float("inf")),
    (JSON, b"[" * DEEPEST + b"]" * DEEPEST, ...),
    *((ENVELOPE, data, Refused('requires "schema" and "payload" fields')) for data in (b"1", b"{}", b"", b"null")),
    (ENVELOPE, b'{"schema":{"type":"no"},"payload":1}', Refused("Unknown schema type: no")),
    (ENVELOPE, b'{"schema":{},"payload":1}', Refused("Schema must contain 'type' field")),
    (ENVELOPE, b'{"schema":{"type":"int8"},"payload":300}', 44),
    (ENVELOPE, FIELD % b"{}", Refused("Invalid null value for required STRUCT field (field o)")),
    (ENVELOPE, FIELD % b'{"o":{}}', Refused("Invalid null value for required INT32 field (field o.p)")),
    (ENVELOPE, FIELD % b'{"o":[1]}', Refused("Structs should be encoded as JSON objects, but found ARRAY (field o)")),
]


@pytest.mark.parametrize(("converter", "data", "expected"), READ)
@pytest.mark.parametrize("part", ["key", "value"])
def test_a_converter_reads_it_or_says_of_which_record_it_was(
    converter: PluginSpec, data: bytes, expected: Any, part: str
) -> None:
    given: list[bytes | None] = [None, data, None]
    batch = consumed(given) if part == "value" else consumed([b"v"] * 3, given)
    key, value = (TEXT, converter) if part == "value" else (converter, TEXT)
    chain = SinkChain(chain_spec(key=key, value=value, errors=TOLERANT), RECORDS)
    triage = Triage(chain.policy)
    found = chain.records(batch, triage)
    if not isinstance(expected, Refused):
        read = getattr(found[1], part)
        assert expected is ... or (type(read), read) == (type(expected), expected)
        return
    assert [record.offset for record in found] == [10, 12]
    (failure,) = triage.failures
    assert failure.stage.value == f"{part.upper()}_CONVERTER"
    assert expected in (failure.message or "")
    with pytest.raises(ToleranceExceeded, match=r"where consumed record is {topic='t', partition=3, offset=11}") as one:
        SinkChain(chain_spec(key=key, value=value), RECORDS).records(batch)
    assert expected in str(one.value)


@pytest.mark.parametrize(
    ("data", "value"), [(b"\xff", "\ufffd"), (b"", ""), (b"9" * 400, ...), (b"[" * 2000, "[" * 2000), (b"{", "{")]
)
def test_headers_become_something_whatever_they_are(data: bytes, value: Any) -> None:
    headers: list[list[dict[str, Any]] | None] = [[{"key": "h", "value": data}]]
    (record,) = SinkChain(chain_spec(), RECORDS).records(consumed([b"v"], headers=headers))
    assert value is ... or record.headers[0].value == value


# --- converters, writing ----------------------------------------------------------------------------------------------

INNER = s.struct({"o": s.struct({"p": s.INT32})})
DEEP: list[Any] = []
for _ in range(20_000):
    DEEP = [DEEP]

WRITTEN: list[tuple[PluginSpec, Schema | None, Any, bytes | Refused]] = [
    (TEXT, None, 10**400, str(10**400).encode()),
    (TEXT, None, {"a": [None]}, b"{a=[null]}"),
    (BYTES, None, "x", Refused("ByteArrayConverter is not compatible with objects of type class java.lang.String")),
    (BYTES, s.STRING, "x", Refused("Invalid schema type for ByteArrayConverter: STRING")),
    *((each, None, "x", Refused("Failed to serialize to ")) for each in (SHORT, INTEGER, LONG, FLOAT, DOUBLE)),
    (BOOLEAN, None, "x", Refused("BooleanConverter is not compatible with objects of type class java.lang.String")),
    (INTEGER, None, 2**40, Refused("Failed to serialize to integer (was class java.lang.Long): ")),
    (JSON, None, {"a": object()}, Refused("does not have corresponding schema type.")),
    (JSON, None, DEEP, Refused("Converting Kafka Connect data to byte[] failed due to serialization error: ")),
    (JSON, None, 10**30, str(10**30).encode()),
    (JSON, s.INT32, 2**40, Refused("Invalid type for INT32: class java.lang.Long")),
    (JSON, s.INT32, None, Refused("null value for field that is required and has no default value")),
    (JSON, INNER, Struct(INNER), Refused("that is required and has no default value (field o)")),
    (
        JSON,
        INNER,
        Struct.of(INNER, [Struct.of(INNER.fields[0].schema, ["x"])]),
        Refused("Invalid type for INT32: class java.lang.String (field o.p)"),
    ),
]


@pytest.mark.parametrize(("converter", "schema", "value", "expected"), WRITTEN)
def test_a_converter_writes_it_or_says_of_which_record_it_was(
    converter: PluginSpec, schema: Schema | None, value: Any, expected: bytes | Refused
) -> None:
    record = source(value, schema)
    chain = SourceChain(chain_spec(value=converter))
    if not isinstance(expected, Refused):
        assert chain.records([record])["value"].to_pylist() == [expected]
        return
    with pytest.raises(ToleranceExceeded) as raised:
        chain.records([record])
    assert expected in str(raised.value)
    assert f".{converter.ref.qualname}', where source record is {PLACE}" in str(raised.value)
    assert "stage 'VALUE_CONVERTER' with class 'org.apache.kafka.connect." in str(raised.value)


def test_a_header_that_cannot_be_written_is_named_by_its_record() -> None:
    record = SourceRecord(topic="t", value="v", headers=(Header("h", object()),), source_offset={"line": 7})
    with pytest.raises(ToleranceExceeded, match=r"stage 'HEADER_CONVERTER'.*sourceOffset={line=7}"):
        SourceChain(chain_spec()).records([record])


# --- schemas that change inside a batch -------------------------------------------------------------------------------

CHAIN = [
    StepSpec("c", PluginSpec(PluginRef("headgate.pipeline.transforms.cast", "CastValue"), {"spec": "a:string"})),
    StepSpec(
        "i",
        PluginSpec(
            PluginRef("headgate.pipeline.transforms.insert_field", "InsertFieldValue"),
            {"static.field": "s", "static.value": "v"},
        ),
    ),
    StepSpec("f", PluginSpec(PluginRef("headgate.pipeline.transforms.flatten", "FlattenValue"))),
]


def enveloped(kind: str, value: str, more: str = "") -> bytes:
    schema = f'{{"type":"struct","fields":[{{"type":"{kind}","field":"a"}}{more}]}}'
    return f'{{"schema":{schema},"payload":{value}}}'.encode()


def test_each_record_of_a_batch_has_its_own_schema() -> None:
    more = ',{"type":"struct","field":"o","fields":[{"type":"int8","field":"p"}]}'
    values = [
        enveloped("int32", '{"a":1}'),
        enveloped("string", '{"a":"x"}'),
        enveloped("int32", '{"a":2,"o":{"p":3}}', more),
        enveloped("struct", '{"a":{}}'),  # no struct can be cast
        b'{"schema":null,"payload":{"a":4}}',
        None,
        enveloped("int32", '{"a":5}'),
    ]
    chain = SinkChain(chain_spec(*CHAIN, value=ENVELOPE, errors=TOLERANT), RECORDS)
    triage = Triage(chain.policy)
    found = {record.offset: record for record in chain.records(consumed(values * 3), triage)}
    assert sorted({offset % 7 for offset in offsets_of(triage)}) == [13 % 7]
    for again in (0, 7, 14):
        shown = [found[10 + again + row].value for row in (0, 1, 2, 4, 5, 6)]
        shown = [each.as_dict() if isinstance(each, Struct) else each for each in shown]
        assert shown == [
            {"a": "1", "s": "v"},
            {"a": "x", "s": "v"},
            {"a": "2", "o.p": 3, "s": "v"},
            {"a": "4", "s": "v"},
            None,
            {"a": "5", "s": "v"},
        ]
    assert found[10].value_schema is found[16].value_schema, "what is the same is made once"


def test_a_source_may_change_its_schema_from_one_record_to_the_next() -> None:
    other = s.struct({"a": s.STRING, "b": s.OPTIONAL_STRING})
    values = [Struct(STRUCT, {"a": 1}), Struct(other, {"a": "x", "b": "y"}), Struct(STRUCT, {"a": 2}), {"a": 3}]
    records = [
        SourceRecord(topic="t", value=each, value_schema=each.schema if isinstance(each, Struct) else None)
        for each in values
    ]
    table = SourceChain(chain_spec(*CHAIN, value=JSON)).records(records)
    assert table["value"].to_pylist() == [
        b'{"a":"1","b":null,"s":"v"}',
        b'{"a":"x","b":"y","s":"v"}',
        b'{"a":"2","b":null,"s":"v"}',
        b'{"a":"3","s":"v"}',
    ]
