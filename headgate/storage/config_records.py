"""Records of the config topic: bytes, as Apache's workers write them, to values and back.

Each kind has a prefix of its keys. Prefixes are tried in the order of `_KINDS`, which is part of the format.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from headgate.java.json import dumps
from headgate.model import Config, LevelChange, RestartRequest, SessionKey, TargetState, TaskId
from headgate.storage.records import MalformedRecord, task_of, value_of


@dataclass(frozen=True, slots=True)
class ConnectorRecord:
    connector: str
    config: Config | None
    """None: the connector was deleted."""


@dataclass(frozen=True, slots=True)
class TargetStateRecord:
    connector: str
    target: TargetState | None


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """Held back until the commit."""

    task: TaskId
    config: Config


@dataclass(frozen=True, slots=True)
class CommitRecord:
    connector: str
    tasks: int


@dataclass(frozen=True, slots=True)
class TaskCountRecord:
    """KIP-618: so many tasks may have to be fenced before the next ones start."""

    connector: str
    tasks: int | None


ConfigRecord = (
    TargetStateRecord
    | ConnectorRecord
    | TaskRecord
    | CommitRecord
    | RestartRequest
    | TaskCountRecord
    | SessionKey
    | LevelChange
)

_TARGET: Final = "target-state-"
_CONNECTOR: Final = "connector-"
_TASK: Final = "task-"
_COMMIT: Final = "commit-"
_RESTART: Final = "restart-connector-"
_COUNT: Final = "tasks-fencing-"
_SESSION: Final = "session-key"
_LOGGER: Final = "logger-cluster-"


# --- writing ----------------------------------------------------------------------------------------------------------


def encode(record: ConfigRecord) -> tuple[bytes, bytes | None]:
    """Key and value; None is a tombstone."""
    key, value = _tree(record)
    return key.encode(), None if value is None else dumps(value)


def _tree(record: ConfigRecord) -> tuple[str, Mapping[str, Any] | None]:
    match record:
        case TargetStateRecord(connector, target):
            return _TARGET + connector, None if target is None else _states(target)
        case ConnectorRecord(connector, config):
            return _CONNECTOR + connector, None if config is None else {"properties": config}
        case TaskRecord(task, config):
            return f"{_TASK}{task.connector}-{task.task}", {"properties": config}
        case CommitRecord(connector, tasks):
            return _COMMIT + connector, {"tasks": tasks}
        case RestartRequest(connector, include_tasks, only_failed):
            return _RESTART + connector, {"include-tasks": include_tasks, "only-failed": only_failed}
        case TaskCountRecord(connector, count):
            return _COUNT + connector, None if count is None else {"task-count": count}
        case SessionKey(key, algorithm, created):
            text = base64.b64encode(key).decode()
            return _SESSION, {"key": text, "algorithm": algorithm, "creation-timestamp": created}
        case LevelChange(logger, level):
            return _LOGGER + logger, {"level": level}


def _states(target: TargetState) -> Mapping[str, str]:
    # Workers from before KIP-875 read "state" only: show them PAUSED, which they can obey.
    old = TargetState.PAUSED if target is TargetState.STOPPED else target
    return {"state": old.value, "state.v2": target.value}


# --- reading ----------------------------------------------------------------------------------------------------------


def decode(key: bytes | None, value: bytes | None) -> ConfigRecord:
    """Raises NotJson, MalformedRecord."""
    tree = value_of(value)
    if key is None:
        raise MalformedRecord("it has no key")
    name = key.decode(errors="replace")
    for prefix, read in _KINDS.items():
        if name == prefix or (prefix != _SESSION and name.startswith(prefix)):
            return read(name[len(prefix) :], tree)
    raise MalformedRecord("no worker writes such a key")


def _target(connector: str, tree: Any) -> ConfigRecord:
    if tree is None:
        return TargetStateRecord(connector, None)
    fields = _object(tree)
    text = fields.get("state.v2")
    if not isinstance(text, str):  # of a worker from before KIP-875, or nonsense
        text = fields.get("state")
    try:
        return TargetStateRecord(connector, TargetState(text))
    except ValueError:
        raise MalformedRecord(f"{text!r} is no target state") from None


def _connector(connector: str, tree: Any) -> ConfigRecord:
    return ConnectorRecord(connector, None if tree is None else _properties(tree))


def _task(rest: str, tree: Any) -> ConfigRecord:
    task = task_of(rest)
    if task is None:
        raise MalformedRecord("its key does not end with the number of a task")
    return TaskRecord(task, _properties(tree))


def _commit(connector: str, tree: Any) -> ConfigRecord:
    return CommitRecord(connector, _count(tree, "tasks"))


def _restart(connector: str, tree: Any) -> ConfigRecord:
    fields = _object(tree)
    return RestartRequest(connector, fields.get("include-tasks") is True, fields.get("only-failed") is True)


def _task_count(connector: str, tree: Any) -> ConfigRecord:
    return TaskCountRecord(connector, None if tree is None else _count(tree, "task-count"))


def _session_key(_: str, tree: Any) -> ConfigRecord:
    fields = _object(tree)
    key, algorithm, created = fields.get("key"), fields.get("algorithm"), fields.get("creation-timestamp")
    if not isinstance(key, str) or not isinstance(algorithm, str) or not _whole(created):
        raise MalformedRecord("it has not the three fields of a session key")
    try:
        return SessionKey(base64.b64decode(key, validate=True), algorithm, created)
    except binascii.Error as error:
        raise MalformedRecord(f"the session key is not base64: {error}") from None


def _logger(logger: str, tree: Any) -> ConfigRecord:
    level = _object(tree).get("level")
    if not isinstance(level, str):
        raise MalformedRecord("its level is no text")
    return LevelChange(logger, level)


_KINDS: Final[Mapping[str, Callable[[str, Any], ConfigRecord]]] = {
    _TARGET: _target,
    _CONNECTOR: _connector,
    _TASK: _task,
    _COMMIT: _commit,
    _RESTART: _restart,
    _COUNT: _task_count,
    _SESSION: _session_key,
    _LOGGER: _logger,
}


def _object(tree: Any) -> Mapping[str, Any]:
    if not isinstance(tree, dict):
        raise MalformedRecord(
            f"its value is {'null' if tree is None else f'of type {type(tree).__name__}'}, not an object"
        )
    return tree


def _properties(tree: Any) -> Config:
    properties = _object(tree).get("properties")
    if not isinstance(properties, dict):
        raise MalformedRecord('its "properties" are no object')
    wrong = [key for key, value in properties.items() if value is not None and not isinstance(value, str)]
    if wrong:
        raise MalformedRecord(f"its properties {', '.join(wrong)} are no texts")
    return {key: value for key, value in properties.items() if value is not None}


def _count(tree: Any, field: str) -> int:
    count = _object(tree).get(field)
    if not _whole(count) or count < 0:
        raise MalformedRecord(f'its "{field}" is no number of tasks')
    return int(count)


def _whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
