"""Joins the parts of a worker in a group: as `assembly.py` does for one alone, with Kafka's topics for its stores."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Final

from headgate.api.errors import ConfigError
from headgate.cli.assembly import Parts
from headgate.cli.task_ports import task_ports
from headgate.cli.version import commit
from headgate.cluster.coordinator import GroupConfig
from headgate.cluster.membership import Membership
from headgate.cluster.protocol import OFFERED
from headgate.model import Config, TaskSpec
from headgate.rest.app import build_admin_app, build_app
from headgate.rest.exposition import exposition
from headgate.rest.loggers import Loggers, UnknownLevel
from headgate.rest.peers import HttpPeers
from headgate.runtime import task_spec
from headgate.runtime.config.worker_config import DISTRIBUTED
from headgate.runtime.distributed.group import GroupSettings
from headgate.runtime.distributed.herder import DistributedHerder, GroupPorts
from headgate.runtime.distributed.signatures import Signatures
from headgate.runtime.ports import OffsetStore
from headgate.storage.fencing import fence
from headgate.storage.worker_logs import WorkerLogs
from headgate.tasks.runner import ThreadRunner
from headgate.tasks.source.offsets import Shared, TaskOffsets

log = logging.getLogger(__name__)

EVERYWHERE: Final = "http://:8083"


class DistributedWorker:
    """A worker in a group. `start` returns when REST answers, which says that the worker is starting until it has read
    the internal topics and joined the group. `failed` is set, and `problem` says why, when it never will."""

    def __init__(self, raw: Mapping[str, str]) -> None:
        self._began = time.monotonic()
        self.failed = threading.Event()
        self.problem: Exception | None = None
        self._parts = parts = Parts(raw, DISTRIBUTED, (EVERYWHERE,))
        self.config, self.plugins, self.server = parts.config, parts.plugins, parts.server
        self.engine = parts.engine
        parsed = DISTRIBUTED.parse(parts.raw)
        group = _group(parsed)
        clients = {"client.id": f"connect-{parts.server.worker_id}", **parts.raw}
        self._loggers = Loggers()
        self.logs = WorkerLogs(parts.raw)
        self._peers = HttpPeers(parts.settings.peer_tls)
        self.runner = ThreadRunner(task_ports(parts.engine, self._offsets_for))
        logs = self.logs
        self.herder = DistributedHerder(
            parts.for_herder(self.runner, logs.configs, logs.statuses, self._open_offsets),
            GroupPorts(
                stores=logs,
                url=parts.server.advertised_url,
                peers=self._peers,
                join=lambda herder: Membership(group, clients, herder, herder.member),
                signatures=Signatures.parse(parsed),
                settings=GroupSettings(
                    parsed["worker.sync.timeout.ms"],
                    parsed["worker.unsync.backoff.ms"],
                    parsed["scheduled.rebalance.max.delay.ms"],
                ),
                set_level=self._set_level,
                failed=self._fail,
                fence=fence,
                prepare=self._prepare,
                transactional=parsed["exactly.once.source.support"].lower() in ("preparing", "enabled"),
            ),
        )

    def start(self) -> None:
        settings = self._parts.settings
        app = build_app(
            self.herder,
            settings,
            metrics=lambda: exposition(self.herder, self.runner.metrics),
            commit=commit(),
            loggers=self._loggers,
        )
        self.herder.start()
        self.server.start(app, build_admin_app(self.herder, settings, loggers=self._loggers))
        log.info("REST API answers after %.2f s", time.monotonic() - self._began)
        self._parts.start_engine()

    def stop(self) -> None:
        """Ends everything in order, offsets committed, the group told."""
        self.server.stop(timeout=1.0)
        self.herder.shutdown()
        self._parts.stop()
        self._peers.close()
        self.logs.close()

    def _fail(self, problem: Exception) -> None:
        self.problem = problem
        self.failed.set()

    def _prepare(self) -> None:
        self.engine.ready(lambda: self.herder.ending)

    def _open_offsets(self, connector: str, config: Config, *, to_change: bool) -> AbstractContextManager[OffsetStore]:
        topic, clients = task_spec.offsets_place(config, self.config)
        exclusive = to_change and self.config.exactly_once_sources
        return self.logs.open_offsets(topic, clients, f"{self.config.group_id}-{connector}" if exclusive else None)

    def _offsets_for(self, spec: TaskSpec) -> TaskOffsets:
        topic, clients = task_spec.offsets_place(spec.connector_config, self.config)
        own = None if topic is None else self.logs.connector_offsets(topic, clients)
        return own or Shared(self.logs.offsets)

    def _set_level(self, logger: str, level: str) -> None:
        try:
            self._loggers.set(logger, level)
        except UnknownLevel:
            log.warning("Another worker asked for log level %r, which there is none of", level)


def _group(parsed: Mapping[str, object]) -> GroupConfig:
    """Raises ConfigError."""

    def number(key: str) -> int:
        value = parsed[key]
        assert isinstance(value, int)
        return value

    try:
        return GroupConfig(
            str(parsed["group.id"]),
            OFFERED[str(parsed["connect.protocol"]).lower()],
            number("session.timeout.ms"),
            number("heartbeat.interval.ms"),
            number("rebalance.timeout.ms"),
            number("request.timeout.ms"),
            number("retry.backoff.ms"),
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error
