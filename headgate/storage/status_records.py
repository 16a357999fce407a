"""Records of the status topic: bytes, as Apache's workers write them, to values and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from headgate.java.json import dumps
from headgate.model import Health, State, Status, TaskId, Verdict
from headgate.storage.records import MalformedRecord, task_of, value_of


@dataclass(frozen=True, slots=True)
class TopicId:
    """A topic that a connector uses (KIP-558)."""

    connector: str
    topic: str


@dataclass(frozen=True, slots=True)
class TopicStatus:
    task: int
    """The task that used it first."""
    discovered_ms: int


StatusId = str | TaskId | TopicId
"""Whose it is: a connector's, by its name, or a task's, or a topic's."""
StatusValue = Status | TopicStatus

_CONNECTOR: Final = "status-connector-"
_TASK: Final = "status-task-"
_TOPIC: Final = "status-topic-"
_OF: Final = ":connector-"


def encode_key(whose: StatusId) -> bytes:
    if isinstance(whose, TaskId):
        return f"{_TASK}{whose.connector}-{whose.task}".encode()
    if isinstance(whose, TopicId):
        return f"{_TOPIC}{whose.topic}{_OF}{whose.connector}".encode()
    return f"{_CONNECTOR}{whose}".encode()


def encode(whose: StatusId, value: StatusValue | None) -> tuple[bytes, bytes | None]:
    """Key and value; None is a tombstone."""
    return encode_key(whose), None if value is None else dumps(_tree(whose, value))


def _tree(whose: StatusId, value: StatusValue) -> dict[str, Any]:
    if isinstance(value, TopicStatus):
        assert isinstance(whose, TopicId)
        fields = {"name": whose.topic, "connector": whose.connector, "task": value.task}
        return {"topic": {**fields, "discoverTimestamp": value.discovered_ms}}
    told: dict[str, Any] = {
        "state": value.state.value,
        "trace": value.trace,
        "worker_id": value.worker_id,
        "generation": value.generation,
        "version": value.version,
    }
    # Two fields more than Apache's workers write: they read what they know.
    if value.health is not None:
        told["health"] = _health_tree(value.health)
    return {**told, "again": True} if value.again else told


def _health_tree(health: Health) -> dict[str, Any]:
    """Without the figures, which are asked of the task's worker."""
    fields = {"verdict": health.verdict.value, "since": health.since_ms, "reason": health.reason}
    return {**fields, "last_error": health.last_error, "last_progress": health.last_progress_ms}


def decode(key: bytes | None, value: bytes | None) -> tuple[StatusId, StatusValue | None]:
    """None is a tombstone. Raises MalformedRecord."""
    whose = _whose((key or b"").decode(errors="replace"))
    tree = value_of(value)
    if tree is None:
        return whose, None
    try:
        return whose, _topic(tree) if isinstance(whose, TopicId) else _status(tree)
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedRecord(f"its value is not a status: {error!r}") from error


def _whose(key: str) -> StatusId:
    if key.startswith(_CONNECTOR):
        return key[len(_CONNECTOR) :]
    if key.startswith(_TASK) and (task := task_of(key[len(_TASK) :])) is not None:
        return task
    if key.startswith(_TOPIC):
        # A topic's name has no colon; a connector's may.
        topic, _, rest = key[len(_TOPIC) :].partition(":")
        if f":{rest}".startswith(_OF):
            return TopicId(rest[len(_OF) - 1 :], topic)
    raise MalformedRecord("no worker writes such a key")


def _status(tree: Any) -> Status:
    return Status(
        State(tree["state"]),
        _typed(tree["worker_id"], str),
        _optional(tree.get("trace")),
        _optional(tree.get("version")),  # not there before 4.1
        _typed(tree["generation"], int),
        _health(tree.get("health")),
        tree.get("again") is True,
    )


def _health(tree: Any) -> Health | None:
    """None also for one that a later version may write and this one cannot read: the state counts."""
    try:
        progress = tree["last_progress"]
        return Health(
            Verdict(tree["verdict"]),
            _typed(tree["since"], int),
            _optional(tree["reason"]),
            _optional(tree["last_error"]),
            None if progress is None else _typed(progress, int),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _topic(tree: Any) -> TopicStatus:
    fields = tree["topic"]
    return TopicStatus(_typed(fields["task"], int), _typed(fields["discoverTimestamp"], int))


def _optional(value: Any) -> str | None:
    text: str | None = None if value is None else _typed(value, str)
    return text


def _typed(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
