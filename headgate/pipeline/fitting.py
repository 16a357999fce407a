"""Which converter would fit: what bytes look like that another one could not read."""

from __future__ import annotations

from typing import Final

from headgate.java.json import MISSING, loads

_SHOWN: Final = 8
_ENVELOPE: Final = {"schema", "payload"}
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
_STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_OF_REGISTRIES: Final = ("AvroConverter", "JsonSchemaConverter", "ProtobufConverter")


def described(data: bytes) -> str:
    """How many, and the first of them: enough to know the kind, and hardly anything of what they say."""
    return f"{len(data)} bytes, first {data[:_SHOWN].hex(' ')}" if data else "no bytes"


def fitting(part: str, data: bytes, plugin: str, complaint: str) -> str | None:
    """What they look like, and the setting for that; None when `plugin`, which complains, is the one for them. `part`
    is key or value."""
    key, name = f"{part}.converter", plugin.rpartition(".")[2]
    if len(data) >= 5 and data[0] == 0 and any(data[1:5]):
        kinds = f"{', '.join(_OF_REGISTRIES[:-1])} or {_OF_REGISTRIES[-1]}"
        written = f"written with schema {int.from_bytes(data[1:5], 'big')} of a schema registry, so for {key}={kinds}"
        return None if name in _OF_REGISTRIES else written
    try:
        tree = loads(data)
    except (ValueError, RecursionError):
        if data.lstrip()[:1] in (b"{", b"["):
            return "JSON that is broken or cut off"
        tree = MISSING
    if isinstance(tree, dict) and tree.keys() == _ENVELOPE:
        return None if name == "JsonConverter" else f"JSON with its schema, so for {key}={_JSON}"
    plain = f"JSON without its schema, so for {key}={_JSON} with {key}.schemas.enable=false"
    if tree is not MISSING and name == "JsonConverter":
        return plain if "schemas.enable" in complaint else None
    return plain if isinstance(tree, dict | list) else _text_or_bytes(key, data)


def _text_or_bytes(key: str, data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if not text.strip():
        return None
    readable = all(char.isprintable() or char.isspace() for char in text)
    return f"plain text, so for {key}={_STRING}" if readable else f"neither text nor JSON; {key}={_BYTES} takes any"
