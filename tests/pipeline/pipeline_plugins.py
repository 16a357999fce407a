"""Plugins and specs for these tests. The plugins are found by name, as an executor finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa

from headgate.api import (
    INT,
    STRING,
    ConfigDef,
    Converter,
    DataError,
    HeaderConverter,
    Key,
    Predicate,
    Record,
    RetriableError,
    Schema,
    Transform,
)
from headgate.model import ChainSpec, ConnectorType, PluginRef, PluginSpec, StepSpec, TaskId
from headgate.pipeline.batch import CONSUMED


class Append(Transform[Record]):
    """Adds a suffix to a text value."""

    config = ConfigDef(Key("suffix", STRING))
    closed: ClassVar[list[str]] = []

    def apply(self, record: Record) -> Record:
        return record.replace(value=f"{record.value}{self.settings['suffix']}")

    def close(self) -> None:
        self.closed.append(self.settings["suffix"])


class DropShort(Transform[Record]):
    """Drops values of one character."""

    def apply(self, record: Record) -> Record | None:
        return None if record.value is None or len(record.value) < 2 else record


class Reroute(Transform[Record]):
    def apply(self, record: Record) -> Record:
        return record.replace(topic=f"{record.topic}-new")


class AsDecimal(Transform[Record]):
    """Makes a value that has no JSON form without a schema."""

    def apply(self, record: Record) -> Record:
        return record if record.value is None else record.with_value(Decimal(record.value))


class DecimalConverter(Converter):
    def configure(self, config: Mapping[str, str], *, is_key: bool | None = None) -> None:
        pass

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else str(value).encode()

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return None, None if data is None else Decimal(data.decode())


class FailOn(Transform[Record]):
    config = ConfigDef(Key("value", STRING))

    def apply(self, record: Record) -> Record:
        if record.value == self.settings["value"]:
            raise DataError(f"cannot take {record.value}")
        return record


class FailTimes(Transform[Record]):
    """Fails for this value so many times, retriably."""

    config = ConfigDef(Key("value", STRING), Key("times", INT))
    seen: ClassVar[list[Any]] = []

    def apply(self, record: Record) -> Record:
        self.seen.append(record.value)
        if record.value == self.settings["value"] and self.seen.count(record.value) <= self.settings["times"]:
            raise RetriableError(f"{record.value} is not possible yet")
        return record


class Starts(Predicate[Record]):
    config = ConfigDef(Key("with", STRING))

    def test(self, record: Record) -> bool:
        return record.value is not None and record.value.startswith(self.settings["with"])


class BadConverter(Converter, HeaderConverter):
    """Fails for everything."""

    def configure(self, config: Mapping[str, str], *, is_key: bool | None = None) -> None:
        pass

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        raise DataError("no bytes today")

    def to_connect(self, topic: str, data: bytes | None) -> tuple[Schema | None, Any]:
        raise DataError("no values today")

    def from_connect_header(self, topic: str, key: str, schema: Schema | None, value: Any) -> bytes | None:
        raise DataError(f"no header {key} today")

    def to_connect_header(self, topic: str, key: str, data: bytes | None) -> tuple[Schema | None, Any]:
        raise DataError(f"no header {key} today")


_CONVERTERS = "headgate.pipeline.converters"


def builtin(module: str, name: str, **config: str) -> PluginSpec:
    return PluginSpec(PluginRef(f"{_CONVERTERS}.{module}", name), config)


TEXT = builtin("string", "StringConverter")
BYTES = builtin("byte_array", "ByteArrayConverter")
JSON = PluginSpec(PluginRef(f"{_CONVERTERS}.json", "JsonConverter"), {"schemas.enable": "false"})
ENVELOPE = builtin("json", "JsonConverter")
HEADERS = builtin("simple_header", "SimpleHeaderConverter")


def plugin(cls: type, config: Mapping[str, str] | None = None) -> PluginSpec:
    return PluginSpec(PluginRef(cls.__module__, cls.__qualname__), config or {})


BAD = plugin(BadConverter)
DECIMALS = plugin(DecimalConverter)


def step(
    cls: type,
    config: Mapping[str, str] | None = None,
    *,
    only_if: PluginSpec | None = None,
    negate: bool = False,
) -> StepSpec:
    return StepSpec(cls.__name__.lower(), plugin(cls, config), only_if, negate)


def chain_spec(
    *steps: StepSpec,
    key: PluginSpec = TEXT,
    value: PluginSpec = TEXT,
    headers: PluginSpec = HEADERS,
    errors: Mapping[str, str] | None = None,
) -> ChainSpec:
    return ChainSpec(TaskId("test", 0), ConnectorType.SINK, key, value, headers, steps, errors or {})


def consumed(
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None = None,
    headers: Sequence[list[dict[str, Any]] | None] | None = None,
) -> pa.Table:
    """Records of partition 3 of topic `t`, offsets from 10."""
    count = len(values)
    columns = {
        "topic": ["t"] * count,
        "partition": [3] * count,
        "offset": list(range(10, 10 + count)),
        "timestamp": [1700000000000 + row for row in range(count)],
        "timestamp_type": ["CreateTime"] * count,
        "key": keys or [None] * count,
        "value": values,
        "headers": headers or [None] * count,
    }
    return pa.table(columns, schema=CONSUMED)
