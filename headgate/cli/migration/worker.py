"""The worker file, checked for what a Headgate worker would make of it. Kafka is not asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headgate.access.logins import Logins
from headgate.api.errors import ConfigError
from headgate.cli.migration.findings import Problem, WorkerFinding
from headgate.cli.migration.hiding import hide_secrets, shown, without
from headgate.cluster.coordinator import GroupConfig
from headgate.kafka.settings import ClientConfigError, ClientKind, translate
from headgate.model import Config
from headgate.rest.listeners import ListenerError
from headgate.rest.settings import RestSettings
from headgate.runtime.config.connector_config import CONVERTERS, aliases
from headgate.runtime.config.overrides import POLICY
from headgate.runtime.config.secrets import Secrets
from headgate.runtime.config.worker_config import (
    DISTRIBUTED,
    SIMPLE_HEADER_CONVERTER,
    WITHOUT_EFFECT,
    WorkerConfig,
    unknown_keys,
)
from headgate.runtime.errors import ProviderFailed
from headgate.runtime.plugins import Plugins
from headgate.storage.internal_topics import InternalTopicError, InternalTopics

NEEDED: Final = (
    "bootstrap.servers",
    "group.id",
    "config.storage.topic",
    "offset.storage.topic",
    "status.storage.topic",
)
"""Without these there is nothing to read."""

_INTERNAL: Final = ("internal.key.converter.", "internal.value.converter.")
_JSON: Final = "org.apache.kafka.connect.json.JsonConverter"


class NotAWorkerFile(Exception):
    """Keys that a distributed worker must have are missing; the message names them."""


@dataclass(frozen=True, slots=True)
class CheckedWorker:
    finding: WorkerFinding
    config: WorkerConfig
    """What can be used of the file, with its secrets in place."""
    secrets: Secrets
    """Of the providers that there are."""
    providers: frozenset[str]
    """Aliases of all that the file names."""
    lost_providers: frozenset[str]
    """Aliases of those that are not to be had here."""
    lost_converters: Mapping[str, str]
    """Keys of the worker's converters that are not installed here, with their classes."""


def check_worker(raw: Config, plugins: Plugins) -> CheckedWorker:
    """Raises NotAWorkerFile."""
    hide_secrets(raw)
    missing = [key for key in NEEDED if not raw.get(key, "").strip()]
    if missing:
        raise NotAWorkerFile(f"lacks {', '.join(missing)}, which the file of a distributed worker has")
    problems: list[Problem] = []
    secrets, lost = _providers(raw, plugins, problems)
    try:
        resolved: Config = secrets.resolve(raw, DISTRIBUTED.names).config
    except ProviderFailed as error:
        resolved = raw
        problems.append(
            Problem(
                f"A config provider of the worker file failed: {shown(str(error))}",
                "Make what it looks up available on the machine where Headgate shall run, and check again there.",
            )
        )
    hide_secrets(resolved)
    usable = _usable(resolved, problems)
    lost_converters = _converters(usable, plugins, problems)
    config = _config(usable, plugins, problems)
    without_effect = {key: why for key in raw if (why := _without_effect(key))} | _clients(config, problems)
    _rest(usable, problems)
    _logins(usable, problems)
    _group(usable, problems)
    unknown = {told.partition(" (")[0]: told for told in unknown_keys(raw, DISTRIBUTED)}
    finding = WorkerFinding(
        known=tuple(key for key in raw if key not in without_effect and key not in unknown),
        without_effect=without_effect,
        unknown=tuple(unknown.values()),
        problems=tuple(problems),
        notes=tuple(_notes(raw, plugins)),
    )
    named = frozenset(aliases(raw, "config.providers"))
    return CheckedWorker(finding, config, secrets, named, frozenset(lost), lost_converters)


def _without_effect(key: str) -> str | None:
    if key.startswith(_INTERNAL):
        key = key[: key.index("converter.") + len("converter")]
    return WITHOUT_EFFECT.get(key)


# --- what the file names ----------------------------------------------------------------------------------------------


def _providers(raw: Config, plugins: Plugins, problems: list[Problem]) -> tuple[Secrets, list[str]]:
    """One by one: what one provider cannot do does not keep the others from being used."""
    lost = []
    for alias in aliases(raw, "config.providers"):
        try:
            Secrets.of({**raw, "config.providers": alias}, plugins).close()
        except ConfigError as error:
            lost.append(alias)
            remedy = (
                "Install it or write it in Python as a headgate.api.ConfigProvider, or keep these values elsewhere."
            )
            problems.append(Problem(f"Config provider {alias}: {_short(shown(str(error)))}", remedy))
    found = [alias for alias in aliases(raw, "config.providers") if alias not in lost]
    return Secrets.of({**raw, "config.providers": ",".join(found)}, plugins), lost


def _short(text: str) -> str:
    """Without the list of all that there is instead."""
    return text.partition(" Failed to find any class")[0]


def _usable(resolved: Config, problems: list[Problem]) -> Config:
    """The file without what is wrong in it, so that the rest can be looked at."""
    usable = dict(resolved)
    for value in DISTRIBUTED.validate(resolved):
        if value.errors:
            usable.pop(value.name, None)
            told = without(value.errors[0], value.name, resolved.get(value.name))
            problems.append(Problem(told, f"Set {value.name} in the worker file."))
    try:
        InternalTopics.of(usable)
    except InternalTopicError as error:
        problems.append(Problem(shown(str(error)), "Change this key in the worker file."))
        usable = {key: value for key, value in usable.items() if not key.endswith(("replication.factor", "partitions"))}
    for key in ("key.converter", "value.converter"):
        usable.setdefault(key, _JSON)
    return usable


def _converters(usable: Config, plugins: Plugins, problems: list[Problem]) -> dict[str, str]:
    lost = {}
    for key, kind in CONVERTERS.items():
        name = usable.get(key) or SIMPLE_HEADER_CONVERTER
        found = plugins.get(name, kind)
        if found is None:
            lost[key] = name
            problems.append(Problem(f"{key}: {name} is not installed here.", f"Install it, or change {key}."))
        elif (reason := found.cls.unavailable()) is not None:
            problems.append(Problem(f"{key}: {name} cannot be used here.", reason))
    return lost


def _config(usable: Config, plugins: Plugins, problems: list[Problem]) -> WorkerConfig:
    try:
        return WorkerConfig.parse(usable, DISTRIBUTED, plugins)
    except ConfigError as error:  # a class that is not there, or keys that do not go together
        problems.append(Problem(shown(str(error)), "Change this key in the worker file, or install what it names."))
    lost = ("inter.worker.", "headgate.")
    rest = {key: value for key, value in usable.items() if key != POLICY and not key.startswith(lost)}
    return WorkerConfig.parse(rest, DISTRIBUTED, plugins)


def _clients(config: WorkerConfig, problems: list[Problem]) -> dict[str, str]:
    """The settings of connectors' clients that have no meaning here."""
    ignored: dict[str, str] = {}
    for kind in ClientKind:
        prefix = f"{kind.value}."
        settings = {key: value for key, value in config.prefixed(prefix).items() if not key.startswith("listeners")}
        try:
            translated = translate(kind, settings)
        except ClientConfigError as error:
            problems.append(Problem(f"{prefix}*: {shown(str(error))}", f"Change {prefix}* in the worker file."))
        else:
            ignored |= {prefix + key: "a setting of Java's clients" for key in translated.ignored}
    return ignored


def _rest(usable: Config, problems: list[Problem]) -> None:
    try:
        RestSettings.parse(usable)
    except (ConfigError, ListenerError) as error:
        problems.append(Problem(shown(str(error)), "Change this key of the REST API in the worker file."))


def _logins(usable: Config, problems: list[Problem]) -> None:
    try:
        logins = Logins.of(DISTRIBUTED.parse(usable), os.environ)
    except ConfigError as error:
        problems.append(Problem(shown(str(error)), "A worker does not start like that: docs/access.md has the logins."))
    else:
        if logins is not None:
            logins.close()


def _group(usable: Config, problems: list[Problem]) -> None:
    parsed = DISTRIBUTED.parse(usable)
    session, heartbeat = parsed["session.timeout.ms"], parsed["heartbeat.interval.ms"]
    try:
        GroupConfig(parsed["group.id"], session_timeout_ms=session, heartbeat_interval_ms=heartbeat)
    except ValueError as error:
        problems.append(Problem(shown(str(error)), "Change this key in the worker file."))


# --- what is worth knowing --------------------------------------------------------------------------------------------


def _notes(raw: Config, plugins: Plugins) -> Iterator[str]:
    for broken in plugins.broken:
        yield f"A plugin could not be loaded: {shown(broken.where)} ({shown(broken.reason)})"
    archives = [folder for folder in _folders(raw) if _has_archives(folder)]
    if archives:
        yield f"Java archives are not used here: {', '.join(map(str, archives))} of plugin.path"


def _folders(raw: Config) -> list[Path]:
    return [Path(each).expanduser() for each in DISTRIBUTED["plugin.path"].parse(raw.get("plugin.path")) or () if each]


def _has_archives(folder: Path) -> bool:
    try:
        return any(True for pattern in ("*.jar", "*/*.jar", "*/*/*.jar") for _ in folder.glob(pattern))
    except OSError:
        return False
