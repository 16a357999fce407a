"""Words that Protobuf schemas of Connect carry, and the names of Protobuf's types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headgate.api import Schema, SchemaType
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

NAMESPACE: Final = "io.confluent.connect.protobuf"
DEFAULT_NAME: Final = "ConnectDefault"
ENUM: Final = f"{NAMESPACE}.Enum"
UNION: Final = f"{NAMESPACE}.Union."
TAG: Final = f"{NAMESPACE}.Tag"
CONNECT_TYPE: Final = "connect.type"
PRECISION: Final = "connect.decimal.precision"
ENTRY: Final = "Entry"

_WORDS: Final[Mapping[SchemaType, str]] = {
    SchemaType.INT8: "Int32",
    SchemaType.INT16: "Int32",
    SchemaType.INT32: "Int32",
    SchemaType.INT64: "Int64",
    SchemaType.FLOAT32: "Float",
    SchemaType.FLOAT64: "Double",
    SchemaType.BOOLEAN: "Bool",
    SchemaType.STRING: "String",
    SchemaType.BYTES: "Bytes",
}
SCALARS: Final = {kind: f"TYPE_{word.upper()}" for kind, word in _WORDS.items()}
WRAPPERS: Final = {kind: f"google.protobuf.{word}Value" for kind, word in _WORDS.items()}
UNWRAPPED: Final[Mapping[str, SchemaType]] = {
    **{name: kind for kind, name in WRAPPERS.items() if kind not in (SchemaType.INT8, SchemaType.INT16)},
    "google.protobuf.UInt32Value": SchemaType.INT64,
    "google.protobuf.UInt64Value": SchemaType.INT64,
}
LOGICAL: Final[Mapping[str, str]] = {
    DECIMAL_NAME: "confluent.type.Decimal",
    DATE_NAME: "google.type.Date",
    TIME_NAME: "google.type.TimeOfDay",
    TIMESTAMP_NAME: "google.protobuf.Timestamp",
}
FILES: Final[Mapping[str, str]] = {
    "confluent.type.Decimal": "confluent/type/decimal.proto",
    "google.type.Date": "google/type/date.proto",
    "google.type.TimeOfDay": "google/type/timeofday.proto",
    "google.protobuf.Timestamp": "google/protobuf/timestamp.proto",
    **dict.fromkeys(WRAPPERS.values(), "google/protobuf/wrappers.proto"),
}
META_FILE: Final = "confluent/meta.proto"


@dataclass(frozen=True, slots=True)
class ProtobufOptions:
    """Of one ProtobufConverter."""

    enhanced: bool = False
    """Structs keep the package in their names."""
    optional: bool = False
    """Nullable fields are proto3's `optional`."""
    wrapper: bool = False
    """Nullable fields are messages around a value."""

    @property
    def nullable(self) -> bool:
        return self.optional or self.wrapper


def camel(name: str) -> str:
    """As protoc names the entry of a map field."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def is_entry(descriptor: Any) -> bool:
    """Whether a repeated message of this type is a map."""
    names = [each.name for each in descriptor.fields]
    return bool(descriptor.name.endswith(ENTRY)) and names == ["key", "value"]


def optional_fields(descriptor: Any) -> set[str]:
    """Those that proto3 marks as `optional`."""
    from google.protobuf.descriptor_pb2 import DescriptorProto

    made = DescriptorProto()
    descriptor.CopyToProto(made)
    return {each.name for each in made.field if each.proto3_optional}


def is_union(schema: Schema) -> bool:
    return schema.type is SchemaType.STRUCT and (schema.name or "").startswith(UNION)
