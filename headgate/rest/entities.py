"""JSON bodies: requests into frozen records, records into responses with the fields in Kafka Connect's order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from headgate.api.config import Key, text_of
from headgate.model import (
    INITIAL_STATES,
    Config,
    ConnectorInfo,
    ConnectorStatus,
    Health,
    NumberText,
    Offset,
    Partition,
    State,
    Status,
    TargetState,
    TaskId,
    Verdict,
)
from headgate.runtime.config.masking import MASKED
from headgate.runtime.config.validation import ConfigInfo, ConfigInfos
from headgate.runtime.config_rules import check_name
from headgate.runtime.errors import BadRequest
from headgate.runtime.plugins import Found
from headgate.runtime.verdict import at

# Kafka Connect trims names as Java does: everything up to the blank, and nothing beyond it.
_TRIMMED: Final = "".join(map(chr, range(0x21)))


@dataclass(frozen=True, slots=True)
class CreateRequest:
    name: str
    config: Mapping[str, str | None]
    initial_state: TargetState | None

    @classmethod
    def parse(cls, raw: object) -> CreateRequest:
        fields = _fields(raw, "request body", ("name", "config", "initial_state"))
        initial = _initial_state(fields.get("initial_state"))
        name = fields.get("name")
        if name is None:
            name = ""  # Judged with the rest of the configuration, which has a message for it.
        elif not _is_text(name):
            raise BadRequest(f'"name" must be a string, not {_kind(name)}')
        name = name.strip(_TRIMMED)
        if fields.get("config") is None:
            raise BadRequest('"config" is missing: expected an object with the connector\'s configuration')
        return cls(name, named(name, parse_config(fields["config"], '"config"')), initial)


@dataclass(frozen=True, slots=True)
class OffsetsRequest:
    offsets: tuple[tuple[Partition | None, Offset | None], ...]

    @classmethod
    def parse(cls, raw: object) -> OffsetsRequest:
        entries = _fields(raw, "request body", ("offsets",)).get("offsets")
        if entries is None or entries == []:
            raise BadRequest("Partitions / offsets need to be provided for an alter offsets request")
        if not isinstance(entries, list):
            raise BadRequest(f'"offsets" must be an array, not {_kind(entries)}')
        return cls(tuple(_offset_entry(entry, f'"offsets"[{number}]') for number, entry in enumerate(entries)))


def parse_config(raw: object, where: str = "request body") -> dict[str, str | None]:
    """A flat configuration as text: `5` is "5", `true` is "true", null stays for validation to judge."""
    if not isinstance(raw, dict):
        raise BadRequest(f"{where} must be an object of configuration keys and values, not {_kind(raw)}")
    for key, value in raw.items():
        if isinstance(value, dict | list):
            raise BadRequest(
                f'{where}: the value of "{key}" must be a string, a number or a boolean, not {_kind(value)}'
            )
    return {key: _text(value) for key, value in raw.items()}


def parse_task_configs(raw: object) -> list[Config]:
    if not isinstance(raw, list):
        raise BadRequest(f"request body must be an array of task configurations, not {_kind(raw)}")
    return [cast(Config, parse_config(entry, f"request body[{number}]")) for number, entry in enumerate(raw)]


def parse_level(raw: object) -> str:
    if not isinstance(raw, dict):
        raise BadRequest(f"request body must be an object with a level, not {_kind(raw)}")
    level = raw.get("level")
    if level is None:
        raise BadRequest("Desired 'level' parameter was not specified in request.")
    if isinstance(level, dict | list):
        raise BadRequest(f'"level" must be a string, not {_kind(level)}')
    return _text(level) or ""


def named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """The configuration with the connector's name in it. Raises BadRequest if it has another one."""
    check_name(name, config)
    return {**config, "name": name}


def connector_info(info: ConnectorInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "config": dict(info.config),
        "tasks": [_task_id(task) for task in info.tasks],
        "type": info.type.value,
    }


def task_config(task: TaskId, config: Config) -> dict[str, Any]:
    return {"id": _task_id(task), "config": dict(config)}


def connector_status(status: ConnectorStatus, with_health: bool = True) -> dict[str, Any]:
    """Without health where Apache's workers pass the answer on: they know no such field and refuse it."""
    return {
        "name": status.name,
        "connector": _state(status.connector, with_health),
        "tasks": [task_status(task.id, task.status, with_health) for task in status.tasks],
        "type": status.type.value,
    }


def task_status(number: int, status: Status, with_health: bool = True) -> dict[str, Any]:
    return {"id": number, **_state(status, with_health)}


def connector_health(status: ConnectorStatus) -> dict[str, Any]:
    """For a list of connectors; `health` stands where it does in a status."""
    tasks = [{"id": task.id, "health": _health(task.status.health)} for task in status.tasks]
    return {**(_health(status.connector.health) or {"verdict": None}), "tasks": tasks}


def _health(health: Health | None) -> dict[str, Any] | None:
    if health is None:
        return None
    progress, rate = health.last_progress_ms, health.rate
    return {
        "verdict": health.verdict.value,
        "since": at(health.since_ms),
        "reason": health.reason,
        "last_error": health.last_error,
        "last_progress": None if progress is None else at(progress),
        "lag": health.lag,
        "rate": None if rate is None else round(rate, 2),
    }


def parse_healths(connector: str, body: Any) -> Iterator[tuple[TaskId, Health]]:
    """Of the tasks in what another worker said, as far as it can be read."""
    tasks = body.get("tasks") if isinstance(body, dict) else None
    for task in tasks if isinstance(tasks, list) else ():
        with suppress(KeyError, TypeError, ValueError):
            said = task["health"]
            progress = said["last_progress"]
            yield TaskId(connector, task["id"]), Health(
                Verdict(said["verdict"]), _ms(said["since"]), said["reason"], said["last_error"],
                None if progress is None else _ms(progress), said["lag"], said["rate"],
            )  # fmt: skip


def _ms(text: str) -> int:
    return round(dt.datetime.fromisoformat(text).timestamp() * 1000)


def offsets(entries: Sequence[tuple[Partition | None, Offset | None]]) -> dict[str, Any]:
    def shown(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return None if value is None else dict(value)

    return {"offsets": [{"partition": shown(partition), "offset": shown(offset)} for partition, offset in entries]}


def plugin(found: Found) -> dict[str, Any]:
    described = {"class": found.name, "type": found.kind.value}
    return described if found.version is None else {**described, "version": found.version}


def definition(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type.value,
        "required": key.required,
        "default_value": text_of(key.type, key.default),
        "importance": key.importance.value,
        "documentation": key.doc,
        "group": key.group,
        "order_in_group": key.order,
        "width": key.width.value,
        "display_name": key.display_name or key.name,
        "dependents": list(key.dependents),
    }


def config_infos(infos: ConfigInfos, hidden: Collection[str] = ()) -> dict[str, Any]:
    """`hidden`: keys whose values are not shown."""
    return {
        "name": infos.name,
        "error_count": infos.error_count,
        "groups": list(infos.groups),
        "configs": [_config_info(info, hidden) for info in infos.configs],
        "unknown_keys": [{"name": each.name, "did_you_mean": each.did_you_mean} for each in infos.unknown_keys],
    }


def _config_info(info: ConfigInfo, hidden: Collection[str]) -> dict[str, Any]:
    def shown(value: object) -> str | None:
        if info.key is not None:
            return text_of(info.key.type, value)
        return None if value is None else str(value)

    value = info.value
    return {
        "definition": None if info.key is None else definition(info.key),
        "value": None
        if value is None
        else {
            "name": value.name,
            "value": MASKED if value.name in hidden else shown(value.value),
            "recommended_values": [shown(each) for each in value.recommended_values],
            "errors": list(value.errors),
            "visible": value.visible,
        },
    }


def _state(status: Status, with_health: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"state": status.state.value, "worker_id": status.worker_id, "version": status.version}
    if with_health and status.health is not None:
        shown["health"] = _health(status.health)
    # KIP-745: what is being restarted has no failure to show any more.
    if status.trace and status.state is not State.RESTARTING:
        shown["trace"] = status.trace
    return shown


def _task_id(task: TaskId) -> dict[str, Any]:
    return {"connector": task.connector, "task": task.task}


def _fields(raw: object, where: str, known: Collection[str]) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise BadRequest(f"{where} must be an object, not {_kind(raw)}")
    unknown = [f'"{field}"' for field in raw if field not in known]
    if unknown:
        raise BadRequest(f"{where} has unknown fields: {', '.join(unknown)}; known fields are {', '.join(known)}")
    return raw


def _initial_state(raw: object) -> TargetState | None:
    if raw is None:
        return None
    found = INITIAL_STATES.get(raw.upper()) if isinstance(raw, str) else None
    if found is None:
        raise BadRequest(f'"initial_state" must be one of {", ".join(INITIAL_STATES)} (in any case), not {_shown(raw)}')
    return found


def _offset_entry(raw: object, where: str) -> tuple[Partition | None, Offset | None]:
    entry = _fields(raw, where, ("partition", "offset"))
    if "partition" not in entry:
        raise BadRequest(f"{where} has no partition: an entry needs a partition")
    return _map(entry["partition"], f"{where}.partition"), _map(entry.get("offset"), f"{where}.offset")


def _map(raw: object, where: str) -> dict[str, Any] | None:
    if raw is None or isinstance(raw, dict):
        return _plain(raw)  # type: ignore[no-any-return]
    raise BadRequest(f"{where} must be an object or null, not {_kind(raw)}")


def _plain(value: Any) -> Any:
    """With numbers as Python's: offsets are values, not text."""
    if isinstance(value, NumberText):
        return value.value()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not isinstance(value, NumberText)


def _text(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else str(value)


def _shown(value: object) -> str:
    return f'"{value}"' if _is_text(value) else _kind(value)


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case NumberText():
            return "a number"
        case str():
            return "a string"
        case dict():
            return "an object"
    return "an array"
