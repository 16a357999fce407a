"""Connector files and worker files of the command line (KIP-980).

A connector file is told apart by its content, never by its name: a flat JSON object, a create request as for
`POST /connectors`, or Java properties. Text is UTF-8, with or without a byte order mark; a file that is not valid UTF-8
is read as ISO 8859-1, which is what Java takes properties for. `\\u` escapes work in either.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import javaproperties

from headgate.model import INITIAL_STATES, NumberText, TargetState

_FIELDS: Final = ("name", "config", "initial_state")


class FileError(Exception):
    """The file cannot be used; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    name: str
    config: dict[str, str]
    """With `name` in it."""
    initial_state: TargetState | None = None
    """None where the file does not say: the connector runs."""
    warnings: tuple[str, ...] = ()


def read_connector(path: Path | str) -> ConnectorFile:
    """Raises FileError."""
    path = Path(path).absolute()
    text = _text(path)
    if not text.strip():
        raise FileError(f"The connector file '{path}' is empty")
    try:
        content = _json(path, text)
    except json.JSONDecodeError as error:
        return _from_properties(path, text, error if text.lstrip().startswith(("{", "[")) else None)
    if isinstance(content, dict):
        return _from_json(path, content)
    if isinstance(content, list):
        raise FileError(f"The connector file '{path}' holds a JSON array: it must hold one JSON object")
    return _from_properties(path, text, None)  # a word or a number: JSON by accident


def read_properties(path: Path | str, warnings: list[str] | None = None) -> dict[str, str]:
    """A worker file. Of a key that is given twice the last value counts, as in Java, and `warnings` gets a line that
    says so. Raises FileError."""
    path = Path(path).absolute()
    properties, repeated = _properties(path, _text(path))
    if warnings is not None:
        warnings.extend(repeated)
    return properties


def _text(path: Path | str) -> str:
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise FileError(f"The file '{path}' does not exist") from None
    except IsADirectoryError:
        raise FileError(f"'{path}' is a folder, not a file") from None
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise FileError(f"The file '{path}' cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileError(f"The file '{path}' is encoded as UTF-16: save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("iso-8859-1")


# --- JSON -------------------------------------------------------------------------------------------------------------


def _json(path: Path | str, text: str) -> Any:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content: dict[str, Any] = {}
        for key, value in pairs:
            if key in content:
                raise FileError(f"The connector file '{path}' has \"{key}\" twice in one JSON object")
            content[key] = value
        return content

    def constant(word: str) -> NoReturn:
        raise FileError(f"The connector file '{path}' holds {word}, which is not a JSON value")

    try:
        return json.loads(
            text, object_pairs_hook=unique, parse_int=NumberText, parse_float=NumberText, parse_constant=constant
        )
    except RecursionError:
        raise FileError(f"The connector file '{path}' is nested too deeply") from None


def _from_json(path: Path | str, content: dict[str, Any]) -> ConnectorFile:
    # A flat configuration may have a key "config" too, with text as its value.
    if "config" in content and (content["config"] is None or isinstance(content["config"], dict | list)):
        return _from_request(path, content)
    hint = f"; a create request has the fields {', '.join(_FIELDS)}"
    return _named(path, _config(path, content, hint))


def _from_request(path: Path | str, content: dict[str, Any]) -> ConnectorFile:
    for field in content:
        if field not in _FIELDS:
            raise FileError(f"Unrecognized field \"{field}\" at '{path}': the fields are {', '.join(_FIELDS)}")
    if not isinstance(content["config"], dict):
        raise FileError(f"The field \"config\" at '{path}' must be a JSON object")
    if content.get("name") is None:
        raise _nameless(path)
    name = _value(path, "name", content["name"])
    config = _config(path, content["config"])
    if config.setdefault("name", name) != name:
        raise FileError(
            f"Connector name configuration in 'config' doesn't match the one specified in 'name' at '{path}'"
        )
    return ConnectorFile(name, config, _state(path, content.get("initial_state")))


def _config(path: Path | str, content: Mapping[str, Any], hint: str = "") -> dict[str, str]:
    return {_whole(path, key): _value(path, key, value, hint) for key, value in content.items()}


def _value(path: Path | str, key: str, value: Any, hint: str = "") -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _whole(path, str(value))
        case None:
            raise FileError(f"The value of \"{key}\" at '{path}' is null: leave the key out, or give it a text")
        case _:
            kind = "an array" if isinstance(value, list) else "an object"
            raise FileError(
                f"The value of \"{key}\" at '{path}' is {kind}: it must be text, a number or a boolean{hint}"
            )


def _state(path: Path | str, state: Any) -> TargetState | None:
    if state is None:
        return None
    if not isinstance(state, str) or state.upper() not in INITIAL_STATES:
        shown = json.dumps(state, ensure_ascii=False)
        raise FileError(f"Invalid initial_state {shown} at '{path}': valid values are {', '.join(INITIAL_STATES)}")
    return INITIAL_STATES[state.upper()]


# --- Java properties --------------------------------------------------------------------------------------------------


def _from_properties(path: Path | str, text: str, broken: json.JSONDecodeError | None) -> ConnectorFile:
    """`broken` is what stands against the text as JSON, where it looks like JSON. Almost any text is Java properties,
    so that is the error to show when the properties make no sense either."""
    try:
        config, repeated = _properties(path, text)
        return _named(path, config, repeated)
    except FileError as error:
        if broken is None:
            raise
        raise FileError(
            f"The connector file '{path}' is not valid JSON: line {broken.lineno}, column {broken.colno}: {broken.msg}"
        ) from error


def _properties(path: Path | str, text: str) -> tuple[dict[str, str], list[str]]:
    try:
        pairs: list[tuple[str, str]] = javaproperties.loads(text, object_pairs_hook=list)
    except ValueError as error:
        raise FileError(f"The file '{path}' is not valid as Java properties: {error}") from error
    properties: dict[str, str] = {}
    repeated: dict[str, None] = {}
    for key, value in pairs:
        if key in properties:
            repeated[key] = None
        properties[_whole(path, key)] = _whole(path, value)
    return properties, [f"'{path}' gives {key} more than once: the last value counts" for key in repeated]


# --- both -------------------------------------------------------------------------------------------------------------


def _named(path: Path | str, config: dict[str, str], warnings: list[str] | None = None) -> ConnectorFile:
    if "name" not in config:
        raise _nameless(path)
    return ConnectorFile(config["name"], config, warnings=tuple(warnings or ()))


def _nameless(path: Path | str) -> FileError:
    return FileError(f"Connector configuration at '{path}' is missing the mandatory 'name' configuration")


def _whole(path: Path | str, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FileError(f"The file '{path}' holds half of a surrogate pair, which is no character: {text!a}") from None
    return text
