"""Joins the parts of a worker in a group: as `assembly.py` does for one alone, with Kafka's topics for its stores."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from headgate.api.errors import ConfigError
from headgate.cli.assembly import AnyWorker
from headgate.cli.task_ports import task_ports
from headgate.cluster.coordinator import GroupConfig
from headgate.cluster.membership import Membership
from headgate.cluster.protocol import OFFERED
from headgate.metrics import GroupFigures
from headgate.model import Config, TaskSpec
from headgate.rest.loggers import UnknownLevel
from headgate.rest.peers import HttpPeers
from headgate.runtime import task_spec
from headgate.runtime.config.worker_config import DISTRIBUTED
from headgate.runtime.distributed.group import GroupSettings
from headgate.runtime.distributed.herder import DistributedHerder, GroupPorts
from headgate.runtime.ports import OffsetStore
from headgate.storage.transactional_writer import fence
from headgate.storage.worker_logs import WAIT_S, WorkerLogs
from headgate.tasks.runner import ThreadRunner
from headgate.tasks.source.offsets import Shared, TaskOffsets

log = logging.getLogger(__name__)

EVERYWHERE: Final = "http://:8083"


class DistributedWorker(AnyWorker):
    """A worker in a group. REST says that the worker is starting until it has read the internal topics and joined the
    group. `failed` is set, and `problem` says why, when it never will."""

    herder: DistributedHerder
    without_kafka = f"and this worker ends with exit code 2 if it does not within {WAIT_S:.0f} s"

    def __init__(self, raw: Mapping[str, str], own: Sequence[Path] = ()) -> None:
        super().__init__(raw, DISTRIBUTED, EVERYWHERE, own)
        self.failed = threading.Event()
        self.problem: Exception | None = None
        parsed = DISTRIBUTED.parse(self.raw)
        group = _group(parsed)
        clients = {"client.id": f"connect-{self.server.worker_id}", **self.raw}
        self.logs = logs = WorkerLogs(self.raw)
        self._peers = HttpPeers(self.settings.peer_tls)
        self.runner = ThreadRunner(task_ports(self.engine, self._offsets_for, self.config.sandbox))
        self.herder = DistributedHerder(
            replace(self._for_herder(logs.configs, logs.statuses, self._open_offsets), trouble=logs.trouble),
            GroupPorts(
                stores=logs,
                url=self.server.advertised_url,
                peers=self._peers,
                join=lambda herder: Membership(group, clients, herder, herder.member),
                settings=GroupSettings(
                    parsed["worker.sync.timeout.ms"],
                    parsed["worker.unsync.backoff.ms"],
                    parsed["scheduled.rebalance.max.delay.ms"],
                ),
                set_level=self._set_level,
                failed=self._fail,
                fence=fence,
                prepare=lambda: self.engine.ready(lambda: self.herder.ending),
                transactional=parsed["exactly.once.source.support"].lower() in ("preparing", "enabled"),
            ),
        )

    def group_figures(self) -> GroupFigures:
        return self.herder.member.figures()

    def stop(self) -> None:
        """The group is told."""
        super().stop()
        self._peers.close()
        self.logs.close()

    def _fail(self, problem: Exception) -> None:
        self.problem = problem
        self.failed.set()

    def _open_offsets(
        self, connector: str, config: Config, *, to_change: bool, at_once: bool = False
    ) -> AbstractContextManager[OffsetStore]:
        topic, clients = task_spec.offsets_place(config, self.config)
        exclusive = to_change and self.config.exactly_once_sources
        own_id = f"{self.config.group_id}-{connector}" if exclusive else None
        return self.logs.open_offsets(topic, clients, own_id, at_once=at_once)

    def _offsets_for(self, spec: TaskSpec) -> TaskOffsets:
        topic, clients = task_spec.offsets_place(spec.connector_config, self.config)
        own = None if topic is None else self.logs.connector_offsets(topic, clients)
        return own or Shared(self.logs.offsets)

    def _set_level(self, logger: str, level: str) -> None:
        try:
            self._loggers.set(logger, level)
        except UnknownLevel:
            log.warning("Another worker asked for log level %r, which there is none of", level)


def _group(parsed: Mapping[str, Any]) -> GroupConfig:
    """Raises ConfigError."""
    try:
        return GroupConfig(
            parsed["group.id"],
            OFFERED[parsed["connect.protocol"].lower()],
            parsed["session.timeout.ms"],
            parsed["heartbeat.interval.ms"],
            parsed["rebalance.timeout.ms"],
            parsed["request.timeout.ms"],
            parsed["retry.backoff.ms"],
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error
