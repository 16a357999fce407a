"""Which Kafka client settings a connector may override, and whose (KIP-458)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from headgate.api.errors import ConfigError
from headgate.model import Config, ConnectorType
from headgate.runtime.connector_config import DLQ_TOPIC, TOPIC_CREATION, with_prefix
from headgate.runtime.errors import OverridesNotAllowed

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
class OverridePolicy:
    name: str = "All"
    allowed: frozenset[str] | None = None
    """None: every key."""

    @classmethod
    def parse(cls, worker: Mapping[str, Any]) -> OverridePolicy:
        """From the parsed keys of a worker file. Raises ConfigError."""
        given: str = worker[POLICY]
        name = given.removeprefix("org.apache.kafka.connect.connector.policy.")
        policies = {
            "All": None,
            "None": frozenset[str](),
            "Principal": frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"}),
            "Allowlist": frozenset(key for key in worker[ALLOWLIST] if key),
        }
        name = name.removesuffix("ConnectorClientConfigOverridePolicy")
        if name not in policies:
            raise ConfigError.invalid(POLICY, given, f"Must be one of: {', '.join(policies)}")
        return cls(name, policies[name])

    def rejection(self, key: str) -> str | None:
        """What is wrong with overriding this key; None: nothing."""
        if self.allowed is None or key in self.allowed:
            return None
        return f"The '{self.name}' policy does not allow '{key}' to be overridden in the connector configuration."

    def require(self, client: Client, config: Config) -> None:
        """Raises OverridesNotAllowed. Validation has seen it before, but under another policy perhaps."""
        rejected = [key for key in with_prefix(config, client.prefix) if self.rejection(key)]
        if rejected:
            raise OverridesNotAllowed(f"Client Config Overrides not allowed [{', '.join(rejected)}]")


def clients_of(kind: ConnectorType, config: Config, topic_creation: bool) -> list[Client]:
    """The clients that a connector's tasks need."""
    dead_letters = bool(config.get(DLQ_TOPIC, "").strip())
    if kind is ConnectorType.SOURCE:
        creates = topic_creation and any(key.startswith(TOPIC_CREATION) for key in config)
        return [Client.PRODUCER, *([Client.ADMIN] if creates or dead_letters else [])]
    return [Client.PRODUCER, Client.CONSUMER, Client.ADMIN] if dead_letters else [Client.CONSUMER]
