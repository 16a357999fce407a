"""HerderPorts: all that a herder of either mode is joined to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from headgate.model import Config, EngineUnavailable
from headgate.runtime.config.client_check import TryClient
from headgate.runtime.config.secrets import Secrets
from headgate.runtime.config.validator import TryStep
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.plugins import Plugins
from headgate.runtime.ports import ConfigStore, GroupOffsets, OffsetStore, OpenOffsets, StatusStore, TaskRunner


def no_session() -> Any:
    raise EngineUnavailable("This worker has no Spark")


@dataclass(frozen=True, slots=True, kw_only=True)
class HerderPorts:
    config: WorkerConfig
    plugins: Plugins
    configs: ConfigStore
    statuses: StatusStore
    open_offsets: OpenOffsets
    groups: GroupOffsets
    runner: TaskRunner
    worker_id: str
    cluster_id: Callable[[], str | None] = lambda: None
    secrets: Secrets = field(default_factory=Secrets)
    try_client: TryClient = lambda kind, config: None
    try_step: TryStep = lambda cls, settings: {}
    session: Callable[[], Any] = no_session
    """The SparkSession, for connectors; waits for it. From any thread."""
    trouble: Callable[[], str | None] = lambda: None
    """What is wrong with the stores, in words for people; None: nothing. From any thread."""


def offsets_in(store: OffsetStore) -> OpenOffsets:
    """Those of every connector are in this one."""

    def opened(
        connector: str, config: Config, *, to_change: bool, at_once: bool = False
    ) -> AbstractContextManager[OffsetStore]:
        return nullcontext(store)

    return opened
