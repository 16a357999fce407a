"""Validates the client settings that a connector overrides: whether they are allowed, and whether they can be done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from headgate.api.config import ConfigValue
from headgate.api.errors import ConfigError
from headgate.log import HIDDEN
from headgate.model import Config, ConnectorType, TaskId
from headgate.runtime import task_spec
from headgate.runtime.config.connector_config import NAME, with_prefix
from headgate.runtime.config.overrides import Client, clients_of
from headgate.runtime.config.validation import ConfigInfo
from headgate.runtime.config.worker_config import WorkerConfig

TryClient = Callable[[str, Config], object]
"""Takes `producer`, `consumer` or `admin` and settings by Apache's names; raises ValueError where they cannot be done.
What it is made of is not the runtime's affair."""

_PASSWORDS: Final = ("password", "sasl.jaas.config", "ssl.keystore.key", "client.secret")


@dataclass(frozen=True, slots=True)
class ClientCheck:
    worker: WorkerConfig
    try_client: TryClient = lambda kind, config: None

    def infos(self, kind: ConnectorType, config: Config) -> list[ConfigInfo]:
        """Every override of a client that the connector uses. They have no definitions: those are the client's."""
        clients = clients_of(kind, config, self.worker.topic_creation)
        return [ConfigInfo(None, value) for client in clients for value in self._values(client, kind, config)]

    def _values(self, client: Client, kind: ConnectorType, config: Config) -> Iterable[ConfigValue]:
        given = with_prefix(config, client.prefix)
        values = {key: ConfigValue(client.prefix + key, _shown(key, text)) for key, text in given.items()}
        rejections = self.worker.overrides.rejections(client, kind, config)
        for key, text in given.items():
            if key in rejections:
                values[key].errors.append(rejections[key])
            else:
                self._try(client, {key: text}, values[key])
        if given and not any(value.errors for value in values.values()):
            # Some settings are wrong only together: tell it where the message points to.
            problem = ConfigValue("")
            self._try(client, self._whole(client, config), problem)
            for text in problem.errors:
                blamed = next((key for key in given if key in text), next(iter(given)))
                values[blamed].errors.append(text)
        return values.values()

    def _try(self, client: Client, settings: Config, found: ConfigValue) -> None:
        try:
            self.try_client(client.value, settings)
        except ValueError as error:
            if len(settings) == 1 and found.name:
                found.errors.append(str(ConfigError.invalid(found.name, found.value, str(error))))
            else:
                found.errors.append(str(error))

    def _whole(self, client: Client, config: Config) -> Config:
        task = TaskId(config.get(NAME, ""), 0)
        match client:
            case Client.PRODUCER:
                return task_spec.producer_config(task, config, self.worker)
            case Client.CONSUMER:
                return task_spec.consumer_config(task, config, self.worker)
            case Client.ADMIN:
                return task_spec.admin_config(task.connector, config, self.worker, task)


def _shown(key: str, text: str) -> str:
    return HIDDEN if key.endswith(_PASSWORDS) else text
