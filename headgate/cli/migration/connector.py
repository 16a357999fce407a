"""One connector, checked: whether Headgate has its plugins, and what validation says of its configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headgate.api.config import PASSWORD
from headgate.cli.migration.findings import Problem
from headgate.cli.migration.hiding import hide_secrets, shown, without
from headgate.cli.migration.worker import CheckedWorker
from headgate.kafka.settings import ClientKind, translate
from headgate.model import Config, ConnectorType
from headgate.runtime.config.client_check import ClientCheck
from headgate.runtime.config.connector_config import CONNECTOR_CLASS, CONVERTERS, steps
from headgate.runtime.config.secrets import Variable, parse
from headgate.runtime.config.unknown_keys import told
from headgate.runtime.config.validation import ConfigInfos
from headgate.runtime.config.validator import Validator
from headgate.runtime.connector import in_thread
from headgate.runtime.errors import BadRequest, ProviderFailed
from headgate.runtime.offsets import type_of
from headgate.runtime.plugins import CONNECTORS, PluginKind, Plugins

_PATIENCE_S: Final = 30.0
"""For a plugin's own validation, which may look at what it connects to."""

_STOP: Final = "Until then stop the connector, or delete it if it is not needed."
_INSTALL: Final = (
    "Install a package that brings it, or write it in Python, with this name among its `aliases`, and put it into a"
    " folder of plugin.path (docs/connectors.md)."
)


@dataclass(frozen=True, slots=True)
class Checked:
    type: ConnectorType
    config: Config
    """With its secrets in place, where they could be looked up: not to be shown."""
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


class ConnectorCheck:
    """Runs plugin code, as validation over REST does."""

    def __init__(self, plugins: Plugins, worker: CheckedWorker, patience: float = _PATIENCE_S) -> None:
        self._plugins = plugins
        self._worker = worker
        self._patience = patience
        clients = ClientCheck(worker.config, lambda kind, config: translate(ClientKind(kind), config))
        self._validator = Validator(plugins, worker.config.raw, worker.secrets, clients, sandbox=worker.config.sandbox)

    def check(self, config: Config) -> Checked:
        hide_secrets(config)
        problems: list[Problem] = []
        notes: list[str] = []
        resolved = self._resolved(config, problems, notes)
        hide_secrets(resolved)
        lost = self._missing_classes(resolved, problems)
        if CONNECTOR_CLASS not in lost:
            self._validate(config, lost, problems, notes)
        return Checked(self._type(resolved), resolved, tuple(problems), tuple(notes))

    def _type(self, config: Config) -> ConnectorType:
        found = self._plugins.connector_type(config.get(CONNECTOR_CLASS))
        return type_of(config) if found is ConnectorType.UNKNOWN else found

    # --- values from elsewhere ----------------------------------------------------------------------------------------

    def _resolved(self, config: Config, problems: list[Problem], notes: list[str]) -> Config:
        used = {
            key: {each.provider for each in parse(value) if isinstance(each, Variable)} for key, value in config.items()
        }
        for alias in sorted(set().union(*used.values())):
            keys = ", ".join(key for key, found in used.items() if alias in found)
            if alias in self._worker.lost_providers:
                problems.append(
                    Problem(f"{keys}: config provider {alias} is not available here.", f"See the worker file. {_STOP}")
                )
            elif alias not in self._worker.providers:
                notes.append(f"{keys}: the worker file has no config provider {alias}, so the text stays as it is")
        try:
            return self._worker.secrets.resolve(config).config
        except ProviderFailed as error:
            where = "Make it available on the machine where Headgate shall run, and check again there."
            problems.append(Problem(f"A value could not be looked up: {shown(str(error))}", where))
            return config

    # --- classes ------------------------------------------------------------------------------------------------------

    def _missing_classes(self, config: Config, problems: list[Problem]) -> set[str]:
        """The keys whose classes are not there."""
        lost: dict[str, Problem] = {}
        for key, name, kinds in _classes(config):
            found = self._plugins.get(name, *kinds)
            if not name:
                lost[key] = Problem(f"{key} is not set: no worker can run it.", "Set it, or delete the connector.")
            elif found is None:
                lost[key] = Problem(f"{key}: {name} is not installed here.", f"{_INSTALL} {_STOP}")
            elif (reason := found.cls.unavailable()) is not None:
                lost[key] = Problem(f"{key}: {name} cannot be used here.", f"{reason} {_STOP}")
        for key, name in self._worker.lost_converters.items():
            if not config.get(key):
                lost[key] = Problem(f"{key}: {name}, the worker's, is not installed here.", "See the worker file.")
        problems += lost.values()
        return set(lost)

    # --- validation ---------------------------------------------------------------------------------------------------

    def _validate(self, config: Config, lost: set[str], problems: list[Problem], notes: list[str]) -> None:
        try:
            infos = asyncio.run(self._in_time(config))
        except TimeoutError:
            problems.append(
                Problem(
                    f"Its class did not finish the validation within {self._patience:g} s.",
                    "See whether what it connects to can be reached from here.",
                )
            )
            return
        except BadRequest as error:
            if not any(each.what.startswith("A value could not be looked up") for each in problems):
                problems.append(Problem(shown(str(error)), f"Change its configuration. {_STOP}"))
            return
        except Exception as error:  # whatever a plugin raises
            remedy = f"This is the plugin's: see its documentation. {_STOP}"
            problems.append(Problem(f"Its class failed in validation: {shown(_first_line(repr(error)))}", remedy))
            return
        problems += _errors(infos, config, lost)
        if infos.unknown_keys:
            notes.append(f"nobody reads these of its keys: {told(infos.unknown_keys)}")

    async def _in_time(self, config: Config) -> ConfigInfos:
        return await asyncio.wait_for(in_thread(lambda: self._validator.validate(config), "validate"), self._patience)


def _classes(config: Config) -> Iterator[tuple[str, str, tuple[PluginKind, ...]]]:
    yield CONNECTOR_CLASS, config.get(CONNECTOR_CLASS, "").strip(), CONNECTORS
    for prefix, kind in steps(config).items():
        yield f"{prefix}type", config.get(f"{prefix}type", "").strip(), (kind,)
    for key, kind in CONVERTERS.items():
        if config.get(key, "").strip():
            yield key, config[key].strip(), (kind,)


def _errors(infos: ConfigInfos, config: Config, lost: set[str]) -> Iterator[Problem]:
    """Each text once, with all keys that it is told of."""
    hide_secrets(
        config, [info.key.name for info in infos.configs if info.key is not None and info.key.type is PASSWORD]
    )
    told_of: dict[str, list[str]] = {}
    for value in (info.value for info in infos.configs if info.value is not None):
        if value.name not in lost:
            for error in value.errors:
                told_of.setdefault(without(error, value.name, config.get(value.name)), []).append(value.name)
    for text, keys in told_of.items():
        yield Problem(text, f"Change {' or '.join(dict.fromkeys(keys))} of the connector. {_STOP}")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
