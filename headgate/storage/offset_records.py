"""Records of an offsets topic: bytes, as Apache's workers write them, to values and back."""

from __future__ import annotations

from typing import Any

from headgate.java.json import dumps, strict_loads
from headgate.model import Offset, Partition
from headgate.storage.offset_table import encode as checked
from headgate.storage.offset_table import identity
from headgate.storage.records import MalformedRecord, value_of


def encode_key(connector: str, partition: Partition | None) -> bytes:
    """In the order of the partition's own keys. Raises InvalidOffset."""
    return dumps([connector, _plain(partition)])


def encode_offset(offset: Offset) -> bytes:
    """Raises InvalidOffset."""
    return dumps(_plain(offset))


def decode_key(key: bytes | None) -> tuple[str, Partition | None]:
    """Connector and partition. Raises MalformedRecord."""
    try:
        tree = strict_loads(key or b"")
    except ValueError as error:
        raise MalformedRecord(f"its key is not JSON: {error}") from error
    if not isinstance(tree, list) or len(tree) != 2 or not isinstance(tree[0], str):
        raise MalformedRecord("its key is no pair of a connector and a partition")
    connector, partition = tree
    if partition is not None and not isinstance(partition, dict):
        raise MalformedRecord("the partition in its key is no object")
    try:
        identity(partition)
    except ValueError as error:
        raise MalformedRecord(f"the partition in its key is no partition: {error}") from error
    return connector, partition


def decode_offset(value: bytes | None) -> Offset | None:
    """None for a tombstone. Raises MalformedRecord."""
    tree = value_of(value)
    if tree is not None and not isinstance(tree, dict):
        raise MalformedRecord("its value is no object")
    return tree


def _plain(content: Partition | Offset | None) -> Any:
    """After a round trip through JSON, so that only what JSON has is left: bytes are base64 text."""
    return strict_loads(checked(content))
