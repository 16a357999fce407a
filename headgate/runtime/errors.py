"""Errors of the control plane, named by what is wrong. They know no status codes: `rest/errors.py` does."""

from __future__ import annotations

from headgate.model import TaskId


class HerderError(Exception):
    """Base of all below; the message is meant for the user."""


class ConnectorNotFound(HerderError):
    def __init__(self, name: str, message: str | None = None) -> None:
        super().__init__(message or f"Connector {name} not found")
        self.connector = name


class TaskNotFound(HerderError):
    def __init__(self, task: TaskId, message: str | None = None) -> None:
        super().__init__(message or f"Unknown task: {task}")
        self.task = task


class StatusNotFound(HerderError):
    """There is no status for this connector or task."""


class PluginNotFound(HerderError):
    """No plugin of this name."""


class AlreadyExists(HerderError):
    def __init__(self, name: str) -> None:
        super().__init__(f"Connector {name} already exists")


class BadRequest(HerderError):
    """The caller's mistake: change the request."""


class InvalidConfig(BadRequest):
    """The configuration was refused by validation; the message lists all errors."""


class NotStopped(BadRequest):
    def __init__(self, name: str) -> None:
        super().__init__(
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the"
            f" specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
        )


class AlreadyRestarting(HerderError):
    """Somebody else is restarting it: wait for that restart to end."""

    @classmethod
    def of(cls, what: str | TaskId) -> AlreadyRestarting:
        return cls(f"{'Task' if isinstance(what, TaskId) else 'Connector'} {what} is already being restarted")


class Forbidden(HerderError):
    """Switched off in the worker's configuration."""


class StartFailed(HerderError):
    """The connector or task did not start; its status has the trace."""


class TooManyTasks(HerderError):
    """The connector generated more tasks than `tasks.max` allows."""


class ProviderFailed(HerderError):
    """A config provider could not look up a value; the message is its own."""


class OverridesNotAllowed(HerderError):
    """The worker's policy does not allow a connector's client settings."""


class OffsetsError(HerderError):
    """Offsets could not be read or changed."""


class Superseded(HerderError):
    """A newer request for the same connector replaced this one before it was carried out."""


class Elsewhere(HerderError):
    """Another worker has to do this: the leader, or the one that has the connector or task."""

    def __init__(self, url: str) -> None:
        """`url`: of that worker; empty while nobody knows which one it is."""
        super().__init__("Cannot complete request because of a conflicting operation (e.g. worker rebalance)")
        self.url = url


class LeaderUnknown(HerderError):
    """Another worker has to do this, and nobody knows which one it is: ask again in a moment."""

    def __init__(self) -> None:
        super().__init__(
            "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was underway."
        )


class Rebalancing(HerderError):
    """Who does what is about to change: ask again in a moment."""

    def __init__(self) -> None:
        super().__init__(
            "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent config"
            " change)"
        )


class FencingOutdated(HerderError):
    """The connector has other tasks by now: ask again."""


class ConfigWriteFailed(HerderError):
    """Kafka has not taken it, or has not said so in time: ask again."""


class InvalidSignature(HerderError):
    """A request that only workers of the group may make did not come from one (KIP-507), or its key is an old one."""

    def __init__(self, message: str = "Internal request contained invalid signature.") -> None:
        super().__init__(message)


class NoSessionKey(HerderError):
    """Whether a request comes from a worker of the group cannot be told yet: ask again in a moment."""

    def __init__(self) -> None:
        super().__init__(
            "This worker is still starting up and has not been able to read a session key from the config topic yet"
        )


class ShuttingDown(HerderError):
    def __init__(self) -> None:
        super().__init__("Worker is shutting down")


class RequestTimeout(HerderError):
    """The herder did not get to the end of the request in time; the message says what it is doing."""
