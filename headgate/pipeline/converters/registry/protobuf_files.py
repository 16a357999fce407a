"""Protobuf files of the registry, as descriptors, each in its own pool: names may mean other things elsewhere."""

from __future__ import annotations

import base64
import binascii
import importlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from headgate.api import DataError

MAIN: Final = "headgate-main.proto"

# What schemas import without giving it as a reference: these modules put it into the default pool.
_WELL_KNOWN: Final = (
    *(f"google.protobuf.{name}_pb2" for name in ("any", "api", "descriptor", "duration", "empty", "field_mask")),
    *(f"google.protobuf.{name}_pb2" for name in ("source_context", "struct", "timestamp", "type", "wrappers")),
    *(f"google.type.{name}_pb2" for name in ("calendar_period", "color", "date", "datetime", "dayofweek", "expr")),
    *(f"google.type.{name}_pb2" for name in ("fraction", "latlng", "money", "month", "postal_address")),
    *(f"google.type.{name}_pb2" for name in ("quaternion", "timeofday")),
    "confluent_kafka.schema_registry.confluent.meta_pb2",
    "confluent_kafka.schema_registry.confluent.type.decimal_pb2",
    "confluent_kafka.schema_registry.confluent.types.decimal_pb2",
)


def described(file: Any, used: Iterable[tuple[str, Any]] = ()) -> Any:
    """The FileDescriptor of this FileDescriptorProto; `used` are those it imports, by name. Raises DataError."""
    from google.protobuf.descriptor_pool import DescriptorPool

    for module in _WELL_KNOWN:
        importlib.import_module(module)
    pool = DescriptorPool()
    try:
        for name, each in used:
            each.name = name
            _add(pool, each)
        _add(pool, file)
        return pool.FindFileByName(file.name)
    except (TypeError, KeyError, ValueError) as error:
        raise DataError(f"The Protobuf schema {file.name} cannot be used: {error}") from error


def parsed(text: str, name: str = MAIN) -> Any:
    """A FileDescriptorProto as the registry sends it. Raises DataError."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    made = FileDescriptorProto()
    try:
        made.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError) as error:
        raise DataError("The registry did not send a Protobuf schema in serialized form (format=serialized)") from error
    made.name = name
    return made


def message_at(file: Any, indexes: Sequence[int]) -> Any:
    """The descriptor at this place. Raises DataError."""
    try:
        if min(indexes) < 0:
            raise IndexError
        found = list(file.message_types_by_name.values())[indexes[0]]
        for index in indexes[1:]:
            found = found.nested_types[index]
    except IndexError:
        raise DataError(f"The Protobuf schema has no message at {list(indexes)}") from None
    return found


def place_of(file: Any, full_name: str) -> tuple[tuple[int, ...], Any]:
    """Where the message of this name is, by its full name or its own; else the first. Raises DataError."""
    messages = list(file.message_types_by_name.values())
    if not messages:
        raise DataError("The Protobuf schema has no message")
    simple = full_name.rpartition(".")[2]
    for wanted in ("full_name", "name"):
        for index, each in enumerate(messages):
            if getattr(each, wanted) == (full_name if wanted == "full_name" else simple):
                return (index,), each
    return (0,), messages[0]


def _add(pool: Any, file: Any) -> None:
    for name in file.dependency:
        _add_known(pool, name)
    pool.AddSerializedFile(file.SerializeToString())


def _add_known(pool: Any, name: str) -> None:
    from google.protobuf import descriptor_pool
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    try:
        pool.FindFileByName(name)
    except KeyError:
        made = FileDescriptorProto()
        descriptor_pool.Default().FindFileByName(name).CopyToProto(made)
        _add(pool, made)
