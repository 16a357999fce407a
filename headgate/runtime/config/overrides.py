"""Which Kafka client settings a connector may override, and whose (KIP-458)."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from typing import Any, Final

from headgate.api.errors import ConfigError
from headgate.api.override_policy import OverridePolicy, OverrideRequest
from headgate.model import Config, ConnectorType
from headgate.runtime.config.connector_config import CONNECTOR_CLASS, DLQ_TOPIC, NAME, TOPIC_CREATION, with_prefix
from headgate.runtime.errors import OverridesNotAllowed, PluginNotFound
from headgate.runtime.plugins import GROUP, PluginKind, Plugins

log = logging.getLogger(__name__)

POLICY: Final = "connector.client.config.override.policy"
ALLOWLIST: Final = "connector.client.config.override.allowlist"


class Client(Enum):
    """In the order of validation results."""

    PRODUCER = "producer"
    CONSUMER = "consumer"
    ADMIN = "admin"

    @property
    def prefix(self) -> str:
        return f"{self.value}.override."


@dataclass(frozen=True, slots=True)
class Listed(OverridePolicy):
    """Apache's policies: each is a list of keys."""

    name: str = "All"
    allowed: frozenset[str] | None = None
    """None: every key."""

    def rejections(self, request: OverrideRequest) -> Mapping[str, str]:
        if self.allowed is None:
            return {}
        return {
            key: f"The '{self.name}' policy does not allow '{key}' to be overridden in the connector configuration."
            for key in request.overrides
            if key not in self.allowed
        }


@dataclass(frozen=True, slots=True)
class Overrides:
    """The worker's policy, as the runtime asks it."""

    policy: OverridePolicy = Listed()

    @classmethod
    def parse(cls, worker: Mapping[str, Any], raw: Config, plugins: Plugins | None = None) -> Overrides:
        """From the keys of a worker file, parsed and as they stand. Raises ConfigError."""
        given: str = worker[POLICY].strip()
        name = given.removeprefix("org.apache.kafka.connect.connector.policy.")
        lists = {
            "All": None,
            "None": frozenset[str](),
            "Principal": frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"}),
            "Allowlist": frozenset(key for key in worker[ALLOWLIST] if key),
        }
        name = name.removesuffix("ConnectorClientConfigOverridePolicy")
        if name in lists:
            return cls(Listed(name, lists[name]))
        try:
            policy = _found(given, plugins)()
        except Exception as error:
            others = f"Must be one of: {', '.join(lists)}, or the name of a Python class, a headgate.api.OverridePolicy"
            raise ConfigError.invalid(POLICY, given, f"{others}. {type(error).__name__}: {error}") from error
        try:
            policy.configure(raw)
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(f"Policy {given} ({POLICY}) cannot be configured: {error}") from error
        return cls(policy)

    def rejections(self, client: Client, kind: ConnectorType, config: Config) -> Mapping[str, str]:
        """What is wrong with the overrides of this client, by the client's own keys."""
        overrides = with_prefix(config, client.prefix)
        if not overrides:
            return {}
        request = OverrideRequest(
            client.value, overrides, config.get(NAME, ""), kind, config.get(CONNECTOR_CLASS, "").strip()
        )
        try:
            found = self.policy.rejections(request)
            return {key: str(found[key]) for key in overrides if key in found}
        except Exception as error:
            log.exception("The policy for client overrides failed")
            problem = f"The policy {type(self.policy).__qualname__} failed: {type(error).__name__}: {error}"
            return dict.fromkeys(overrides, problem)

    def require(self, client: Client, kind: ConnectorType, config: Config) -> None:
        """Raises OverridesNotAllowed. Validation has seen it before, but under another policy perhaps."""
        rejected = self.rejections(client, kind, config)
        if rejected:
            raise OverridesNotAllowed(f"Client Config Overrides not allowed [{', '.join(rejected)}]")


def _found(name: str, plugins: Plugins | None) -> type[OverridePolicy]:
    """A plugin by any of its names or that of its entry point, or a class by its dotted name."""
    cls: Any
    try:
        cls = (plugins or Plugins(())).find(name, PluginKind.OVERRIDE_POLICY).cls
    except PluginNotFound:
        module, _, wanted = name.rpartition(".")
        entries = metadata.entry_points(group=GROUP, name=name)
        if entries:
            cls = next(iter(entries)).load()
        elif module:
            cls = getattr(importlib.import_module(module), wanted)
        else:
            raise
    if not (inspect.isclass(cls) and issubclass(cls, OverridePolicy)):
        raise TypeError(f"{cls!r} is not a headgate.api.OverridePolicy")
    return cls


def clients_of(kind: ConnectorType, config: Config, topic_creation: bool) -> list[Client]:
    """The clients that a connector's tasks need."""
    dead_letters = bool(config.get(DLQ_TOPIC, "").strip())
    if kind is ConnectorType.SOURCE:
        creates = topic_creation and any(key.startswith(TOPIC_CREATION) for key in config)
        return [Client.PRODUCER, *([Client.ADMIN] if creates or dead_letters else [])]
    return [Client.PRODUCER, Client.CONSUMER, Client.ADMIN] if dead_letters else [Client.CONSUMER]
