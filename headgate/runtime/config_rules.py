"""Rules for configs, pure: what a patch makes of one, and whether task configs are to be published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.model import Config
from headgate.runtime.errors import BadRequest, TooManyTasks
from headgate.runtime.view import ClusterView, ConnectorView


def patched(connector: ConnectorView, changes: Mapping[str, str | None]) -> Config:
    merged: dict[str, str | None] = {**connector.config, **changes}
    return {key: value for key, value in merged.items() if value is not None}


def task_configs_differ(view: ClusterView, name: str, configs: Sequence[Config], limit: int) -> bool:
    """Whether what the connector generated is to be published. `limit` < 0: any number. Raises TooManyTasks."""
    connector = view.require(name)
    check_task_count(name, len(configs), limit)
    return tuple(configs) != connector.tasks or connector.applied != connector.config


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
    given = config.get("name")
    if given is not None and given != name:
        raise BadRequest(f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})")
