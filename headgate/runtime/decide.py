"""Pure decisions: what a command or an event means, given the view. The herder carries the answers out, in order.

Actions are plain values; tests compare them. `Regenerate` and `Start` have outcomes which come back as new decisions
(`on_task_configs`), so that no decision needs to know the future.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headgate.model import Config, TargetState
from headgate.runtime.errors import BadRequest, TooManyTasks
from headgate.runtime.view import ClusterView, ConnectorView


@dataclass(frozen=True, slots=True)
class WriteConfig:
    connector: str
    config: Config
    target: TargetState | None = None


@dataclass(frozen=True, slots=True)
class RemoveConfig:
    connector: str


@dataclass(frozen=True, slots=True)
class WriteTarget:
    connector: str
    target: TargetState


@dataclass(frozen=True, slots=True)
class WriteTasks:
    connector: str
    configs: tuple[Config, ...]


@dataclass(frozen=True, slots=True)
class StopTasks:
    """Stop all tasks of the connector and wait for them; their statuses go with them if `forget`."""

    connector: str
    forget: bool = True


@dataclass(frozen=True, slots=True)
class StartTasks:
    connector: str


@dataclass(frozen=True, slots=True)
class SwitchTasks:
    """Tell the running tasks that the target state changed."""

    connector: str


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Stop the connector instance and wait for it."""

    connector: str
    forget: bool = False


@dataclass(frozen=True, slots=True)
class Apply:
    """Bring the connector instance, a new one if there is none, to this state; None: to its target state."""

    connector: str
    state: TargetState | None = None


@dataclass(frozen=True, slots=True)
class Regenerate:
    """Ask the connector for its task configs, if it is started: one that is paused or stopped makes none (KIP-875)."""

    connector: str


Action = (
    WriteConfig
    | RemoveConfig
    | WriteTarget
    | WriteTasks
    | StopTasks
    | StartTasks
    | SwitchTasks
    | Shutdown
    | Apply
    | Regenerate
)


def on_create(name: str, config: Config, target: TargetState | None) -> list[Action]:
    return [WriteConfig(name, config, target), Apply(name), Regenerate(name)]


def on_config(view: ClusterView, name: str, config: Config) -> list[Action]:
    """A new config for a connector that exists: its tasks run on until there are new task configs."""
    view.require(name)
    return [Shutdown(name), WriteConfig(name, config), Apply(name), Regenerate(name)]


def patched(connector: ConnectorView, changes: Mapping[str, str | None]) -> Config:
    merged: dict[str, str | None] = {**connector.config, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def on_delete(view: ClusterView, name: str) -> list[Action]:
    view.require(name)
    return [StopTasks(name), WriteTasks(name, ()), Shutdown(name, forget=True), RemoveConfig(name)]


def on_pause(view: ClusterView, name: str) -> list[Action]:
    was = view.require(name).target
    if was is TargetState.PAUSED:
        return []
    if was is TargetState.STOPPED:
        # KIP-875 sees no difference to resuming: it is started and makes its tasks, which come up paused.
        started = Apply(name, TargetState.STARTED)
        return [WriteTarget(name, TargetState.PAUSED), started, Regenerate(name), Apply(name)]
    return [WriteTarget(name, TargetState.PAUSED), SwitchTasks(name), Apply(name)]


def on_resume(view: ClusterView, name: str) -> list[Action]:
    if view.require(name).target is TargetState.STARTED:
        return []
    return [WriteTarget(name, TargetState.STARTED), SwitchTasks(name), Apply(name), Regenerate(name)]


def on_stop(view: ClusterView, name: str) -> list[Action]:
    if view.require(name).target is TargetState.STOPPED:
        return []
    # Empty tasks first: a crash in between leaves a running connector without tasks; the reverse would be a lie.
    return [StopTasks(name), WriteTasks(name, ()), WriteTarget(name, TargetState.STOPPED), Apply(name)]


def on_restart(view: ClusterView, name: str) -> list[Action]:
    """KIP-52: the connector instance alone."""
    view.require(name)
    return [Shutdown(name), Apply(name), Regenerate(name)]


def task_configs_differ(view: ClusterView, name: str, configs: Sequence[Config], limit: int) -> bool:
    """Whether what the connector generated is to be published. `limit` < 0: any number. Raises TooManyTasks."""
    connector = view.require(name)
    check_task_count(name, len(configs), limit)
    return tuple(configs) != connector.tasks or connector.applied != connector.config


def on_task_configs(name: str, configs: Sequence[Config]) -> list[Action]:
    return [StopTasks(name), WriteTasks(name, tuple(configs)), StartTasks(name)]


def check_task_count(name: str, count: int, limit: int) -> None:
    if 0 <= limit < count:
        raise TooManyTasks(
            f"The connector {name} has generated {count} tasks, which is greater than {limit}, the maximum number of"
            " tasks it is configured to create. This behaviour should be considered a bug and is disallowed. If"
            " necessary, it can be permitted by reconfiguring the connector with 'tasks.max.enforce' set to false;"
            " however, this option will be removed in a future release of Kafka Connect."
        )


def check_name(name: str, config: Mapping[str, str | None]) -> None:
    """A config may leave its name out, but not contradict it."""
    given = config.get("name", name)
    if given != name:
        raise BadRequest(f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")
