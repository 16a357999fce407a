"""Converters of a schema registry in a chain: what is no data of theirs, and schemas that change inside a batch."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from pipeline_plugins import chain_spec, consumed
from registry_stand_in import StandIn
from registry_support import configured

from headgate.api import DataError, Schema, SourceRecord, Struct
from headgate.api import schema as s
from headgate.model import PluginRef, PluginSpec
from headgate.pipeline.converters.registry.avro import AvroConverter
from headgate.pipeline.converters.registry.converter import RegistryConverter
from headgate.pipeline.converters.registry.json_schema import JsonSchemaConverter
from headgate.pipeline.converters.registry.protobuf import ProtobufConverter
from headgate.pipeline.sink_chain import Kind, Output, SinkChain
from headgate.pipeline.source_chain import SourceChain
from headgate.pipeline.tolerance import ToleranceExceeded, Triage

pytestmark = [pytest.mark.process, pytest.mark.kip(298, "error handling in Connect")]

CONVERTERS = [AvroConverter, JsonSchemaConverter, ProtobufConverter]
every_converter = pytest.mark.parametrize("cls", CONVERTERS)
FIRST = s.struct({"id": s.INT32, "at": s.struct({"day": s.DATE})}, name="User")
SECOND = s.struct({"id": s.INT64, "name": s.STRING}, name="Customer")


def plugin(cls: type[RegistryConverter], registry: StandIn, **more: str) -> PluginSpec:
    config = {"schema.registry.url": registry.url, "max.retries": "0", **more}
    return PluginSpec(PluginRef(cls.__module__, cls.__qualname__), config)


def user(number: int) -> Struct:
    at = FIRST.fields[1].schema
    return Struct(FIRST, {"id": number, "at": Struct(at, {"day": dt.date(2024, 1, number)})})


def customer(number: int) -> Struct:
    return Struct(SECOND, {"id": number, "name": "x"})


@every_converter
def test_schemas_change_from_one_record_to_the_next_both_ways(registry: StandIn, cls: type[RegistryConverter]) -> None:
    values = [user(1), customer(2), user(3), customer(4)]
    records = [SourceRecord(topic="t", value=each, value_schema=each.schema) for each in values]
    table = SourceChain(chain_spec(value=plugin(cls, registry))).records(records)
    data: list[bytes] = table["value"].to_pylist()
    ids = [each[:5] for each in data]
    assert ids[0] == ids[2] != ids[1] == ids[3]
    found = SinkChain(chain_spec(value=plugin(cls, registry)), Output(Kind.RECORDS)).records(consumed(data))
    assert [record.value["id"] for record in found] == [1, 2, 3, 4]
    assert [record.value_schema.name for record in found if record.value_schema] == ["User", "Customer"] * 2


BAD: dict[type[RegistryConverter], bytes] = {
    AvroConverter: b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    JsonSchemaConverter: b'{"id": \xff',
    ProtobufConverter: b"\x00\xff\xff\xff\xff",
}


@every_converter
def test_what_is_no_data_costs_its_record_and_is_told_by_its_place(
    registry: StandIn, cls: type[RegistryConverter]
) -> None:
    good = configured(cls, registry.url).from_connect("t", FIRST, user(1))
    assert good is not None
    values = [
        good,
        b"",
        b"\x00\x00",
        b"\x01" + good[1:],
        good[:5] + BAD[cls],
        good[:-1],
        b"\x00\x00\x00\x03\xe7",
        None,
        good,
    ]
    spec = chain_spec(value=plugin(cls, registry), errors={"errors.tolerance": "all"})
    chain = SinkChain(spec, Output(Kind.RECORDS))
    triage = Triage(chain.policy)
    found = chain.records(consumed(values), triage)
    assert [record.offset for record in found] == [10, 17, 18]
    assert [failure.row for failure in triage.failures] == [1, 2, 3, 4, 5, 6]
    assert all("t" in (failure.message or "") for failure in triage.failures)
    strict = SinkChain(chain_spec(value=plugin(cls, registry)), Output(Kind.RECORDS))
    for row in range(1, 7):
        with pytest.raises(ToleranceExceeded, match=rf"{{topic='t', partition=3, offset={10 + row}}}"):
            strict.records(consumed(values).slice(row))


@every_converter
def test_a_value_that_cannot_be_written_is_told_by_its_field(registry: StandIn, cls: type[RegistryConverter]) -> None:
    inner: Schema = FIRST.fields[1].schema
    for value, field in (
        (Struct.of(FIRST, [None, Struct.of(inner, [None])]), "id"),
        (Struct.of(FIRST, [1, Struct.of(inner, [None])]), "at.day"),
    ):
        with pytest.raises(DataError, match=rf"\(field {field}\)$"):
            configured(cls, registry.url).from_connect("t", FIRST, value)


@pytest.mark.parametrize("value", [2**70, "x", [1], {"a": 1}, object()], ids=lambda value: type(value).__name__)
@every_converter
def test_values_of_wrong_types_and_sizes(registry: StandIn, cls: type[RegistryConverter], value: Any) -> None:
    with pytest.raises(DataError):
        configured(cls, registry.url).from_connect("t", s.INT32, value)
