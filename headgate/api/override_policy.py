"""OverridePolicy: which settings of its Kafka clients a connector may override."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.api.plugin import Plugin
from headgate.model import ConnectorType


@dataclass(frozen=True, slots=True)
class OverrideRequest:
    """What a connector wants of one of its clients."""

    client: str
    """`producer`, `consumer` or `admin`."""
    overrides: Mapping[str, str]
    """By the client's own keys: `acks`, where the connector has `producer.override.acks`."""
    connector: str
    connector_type: ConnectorType
    connector_class: str
    """As the connector's configuration names it."""


class OverridePolicy(Plugin, ABC):
    """Says no to overrides. The worker file names it with `connector.client.config.override.policy`: one for all
    connectors, built when the worker starts."""

    def configure(self, worker: Mapping[str, str]) -> None:
        """Called once, before anything else, with the whole worker file. What it raises stops the worker."""

    @abstractmethod
    def rejections(self, request: OverrideRequest) -> Mapping[str, str]:
        """Why an override is not allowed, by its key; what is not in here is. Asked when a connector is validated, and
        again when a task starts.

        Must not block, and may be called from several threads at once. If it raises, nothing is allowed."""
