"""Words that Avro schemas of Connect carry, and the names of Avro's types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headgate.api import DataError, Schema, SchemaType
from headgate.api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
MAP_ENTRY: Final = "MapEntry"
INTERNAL_TYPE: Final = "connect.internal.type"
ENUM: Final = f"{NAMESPACE}.Enum"
UNION: Final = f"{NAMESPACE}.Union"
RECORD_DOC: Final = f"{NAMESPACE}.record.doc"
FIELD_DOC: Final = f"{NAMESPACE}.field.doc."
ENUM_DOC: Final = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT: Final = f"{NAMESPACE}.enum.default."
FIELD_DEFAULT: Final = f"{NAMESPACE}.field.default"
PRECISION: Final = "connect.decimal.precision"
DEFAULT_PRECISION: Final = 64

TYPES: Final[Mapping[SchemaType, str]] = {
    SchemaType.INT8: "int",
    SchemaType.INT16: "int",
    SchemaType.INT32: "int",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
    SchemaType.ARRAY: "array",
    SchemaType.MAP: "map",
}
LOGICAL: Final[Mapping[str, str]] = {
    DECIMAL_NAME: "decimal",
    DATE_NAME: "date",
    TIME_NAME: "time-millis",
    TIMESTAMP_NAME: "timestamp-millis",
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def split(full: str) -> tuple[str | None, str]:
    """Namespace and name."""
    namespace, _, name = full.rpartition(".")
    return namespace or None, name


def check_name(full: str, what: str) -> str:
    """Raises DataError for what is no name in Avro."""
    if not all(_NAME.fullmatch(part) for part in full.split(".")):
        raise DataError(f"The {what} {full!r} is no name in Avro, where letters, digits and _ are allowed")
    return full


def is_enum(schema: Schema) -> bool:
    return schema.type is SchemaType.STRING and ENUM in schema.parameters


def symbols(schema: Schema) -> list[str]:
    """Of an enum."""
    prefix = f"{ENUM}."
    return [value for key, value in schema.parameters.items() if key.startswith(prefix)]


def is_default_name(full: str) -> bool:
    """Whether the name was made up for a struct that has none."""
    return re.fullmatch(rf"{re.escape(NAMESPACE)}\.{DEFAULT_NAME}\d*", full) is not None


def member_name(full: str, enhanced: bool) -> str:
    """The field of a union's struct that stands for this record or enum."""
    return full if enhanced else split(full)[1]
