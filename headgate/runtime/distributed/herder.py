"""The herder of a worker in a group: a command is a write to Kafka, and every worker carries out its part of it.

What only the leader may do, or only the worker that has a connector or task, raises `Elsewhere` on the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from headgate.cluster.leader import Leader
from headgate.cluster.work import Work
from headgate.model import (
    Config,
    ConnectorInfo,
    ConnectorStatus,
    ConnectorType,
    Offset,
    Partition,
    RestartRequest,
    TargetState,
    TaskId,
)
from headgate.runtime import config_rules, task_spec
from headgate.runtime import offsets as rules
from headgate.runtime.config.masking import MASKED
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.config_reconciler import ConfigReconciler
from headgate.runtime.distributed.fencing import Fence, FencingRounds
from headgate.runtime.distributed.group import GroupMembership, GroupSettings, Stores
from headgate.runtime.distributed.holdings import GroupHoldings
from headgate.runtime.distributed.leader_client import LeaderClient
from headgate.runtime.distributed.leadership import Leadership
from headgate.runtime.distributed.member import GroupMember
from headgate.runtime.distributed.preflight import ClusterPreflight
from headgate.runtime.distributed.restarts import Restarts
from headgate.runtime.distributed.shared_writes import SharedWrites
from headgate.runtime.errors import (
    AlreadyExists,
    BadRequest,
    Elsewhere,
    FencingOutdated,
    HerderError,
    OffsetsError,
    Rebalancing,
    ShuttingDown,
)
from headgate.runtime.herder import Herder
from headgate.runtime.herder_ports import HerderPorts
from headgate.runtime.ports import PeerError, Peers

log = logging.getLogger(__name__)

_FLUSH_S: Final = 5.0
_REFRESH_S: Final = 30.0
_FENCE_S: Final = 90.0
_PREPARE_S: Final = 5.0
_PENDING_S: Final = 10.0
"""So long what needs to know who has what waits for a rebalance to end."""
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPorts:
    """What the herder of a worker in a group is joined to besides."""

    stores: Stores
    url: str
    peers: Peers
    join: Callable[[DistributedHerder], GroupMembership]
    """Makes this worker's place in the group, not yet started."""
    settings: GroupSettings
    set_level: Callable[[str, str], None]
    """Sets a log level here."""
    failed: Callable[[Exception], None]
    """Is told why the worker cannot start."""
    fence: Fence
    prepare: Callable[[], None]
    """Returns when tasks can run here."""
    transactional: bool
    """The leader writes in transactions."""


class DistributedHerder(Herder):
    def __init__(self, ports: HerderPorts, group: GroupPorts) -> None:
        """`ports` has the stores of `group`."""
        super().__init__(ports, patient=True)
        self._group = group
        stores, signatures, settings = group.stores, self.config.signatures, group.settings
        self._stores = stores
        self._shared = stores.configs
        self._statuses = stores.statuses
        self.leader = Leader(settings.max_delay_ms)
        self.holdings = GroupHoldings(self, stores.configs, self.board, self.worker, self.actor, stores.statuses)
        self.config_reconciler = ConfigReconciler(
            self, stores.configs, self.holdings, lambda offset: self.member.rebalance(offset), group.set_level
        )
        self.leadership = Leadership(self, stores, signatures, lambda: self.membership)
        self._writes = SharedWrites(self.leadership, lambda: self.membership, group.transactional)
        self._restarts = Restarts(stores, self._writes)
        self._leader_client = LeaderClient(group.peers, stores.configs, signatures, lambda: self.membership)
        self.member = GroupMember(
            self,
            group.url,
            stores.configs,
            stores.statuses,
            self.holdings,
            self.config_reconciler,
            self.leader,
            lambda: self.membership,
            self.leadership.after_rebalance,
            settings,
        )
        self._fencing = FencingRounds(
            stores.configs, group.fence, self._clients_of, self.actor.type_of, self._writes.lead, self.config.group_id
        )
        self.worker.preflight = ClusterPreflight(
            stores.configs, self._fence_anywhere, self.holdings.has, lambda: self.membership.in_session
        )
        self.membership: GroupMembership = group.join(self)

    # --- from start to end --------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.spawn(self._start_up(), "starting")

    async def _start_up(self) -> None:
        try:
            with self.stages.doing("reading the internal topics"):
                await in_thread(lambda: self._stores.start(self.config_reconciler.on_change), "read-topics")
        except Exception as error:
            self._group.failed(error)
            return
        self.config_reconciler.start()
        await self._prepare_engine()
        if self.ending:
            return
        self.membership.start()
        with self.stages.doing("joining the group of workers"):
            await self.member.settled.wait()
        self.ready = True
        log.info("This worker has joined the group and is ready")

    async def _prepare_engine(self) -> None:
        """Who has no engine for tasks is given none: others would have to give theirs up, and all would wait."""
        with self.stages.doing("starting the engine that runs its tasks"):
            while not self.ending:
                try:
                    await in_thread(self._group.prepare, "prepare")
                    return
                except Exception as error:
                    log.error("This worker does not join the group yet: %s", error)
                    await asyncio.sleep(_PREPARE_S)

    async def _shutdown(self) -> None:
        with self.stages.doing("shutting down"):
            await self._leader_client.take_leave()
            await self.holdings.shut_down()
            await in_thread(lambda: self._statuses.flush(_FLUSH_S), "flush-statuses")
            await in_thread(self.membership.stop, "leave-group")

    async def noop(self) -> None:
        """Returns when this worker has its place in the group: who has none can do nothing that is asked of it."""
        with self.stages.doing("waiting for its place in the group of workers"):
            await self.member.settled.wait()

    def group_generation(self) -> int:
        return self.membership.generation

    def url_of(self, worker_id: str) -> str | None:
        return None if worker_id == self.board.worker_id else f"{urlsplit(self._group.url).scheme}://{worker_id}"

    def task_generation(self, connector: str) -> int:
        return self._shared.state().generations.get(connector, 0)

    # --- who may do it ------------------------------------------------------------------------------------------------

    def _require_leader(self) -> None:
        if not self.membership.is_leader:
            raise Elsewhere("" if self.membership.leader_url == self._group.url else self.membership.leader_url)

    def _require_owner(self, what: str | TaskId) -> None:
        if self.holdings.has(what):
            return
        self._require_leader()
        url = self.leader.owner(what)
        raise Elsewhere(url if url is not None and url != self._group.url else "")

    async def _await_settled(self) -> None:
        """Returns when who does what is not about to change. Raises Rebalancing."""
        try:
            async with asyncio.timeout(_PENDING_S):
                while self.member.pending:
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            raise Rebalancing from None

    # --- configs ------------------------------------------------------------------------------------------------------

    async def create(self, name: str, config: Mapping[str, str | None], initial: TargetState | None) -> ConnectorInfo:
        valid = await self.require_valid(config)
        async with self._writes.turn:
            self._require_leader()
            if self.configs.view().get(name) is not None:
                raise AlreadyExists(name)
            await self._writes.lead(
                lambda: self.configs.put_connector(name, valid, initial), "writing connector configuration to"
            )
        return ConnectorInfo(name, valid, (), self._type(valid))

    async def put_config(self, name: str, config: Mapping[str, str | None]) -> tuple[bool, ConnectorInfo]:
        if MASKED in config.values():  # what it stands for, the leader knows first
            self._require_leader()
        valid = await self.require_valid(config)
        async with self._writes.turn:
            self._require_leader()
            return await self._replace(name, valid)

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        self._require_leader()
        async with self._writes.turn:
            merged = config_rules.patched(self.configs.view().require(name), changes)
            config_rules.check_name(name, merged)
            valid = await self.require_valid(merged)
            self._require_leader()
            _, info = await self._replace(name, valid)
            return info

    async def _replace(self, name: str, config: Config) -> tuple[bool, ConnectorInfo]:
        known = self.configs.view().get(name)
        await self._writes.lead(lambda: self.configs.put_connector(name, config), "writing connector configuration to")
        tasks = known.task_ids if known is not None else ()
        return known is None, ConnectorInfo(name, config, tasks, self._type(config))

    async def delete(self, name: str) -> None:
        async with self._writes.turn:
            self._require_leader()
            self.configs.view().require(name)
            await self._writes.lead(
                lambda: self.configs.remove_connector(name), "removing connector configuration from"
            )

    async def put_task_configs(self, name: str, configs: Sequence[Config]) -> None:
        self._require_leader()
        await self._write_tasks(name, configs)

    async def _write_tasks(self, name: str, configs: Sequence[Config]) -> None:
        async with self._writes.turn:
            if configs and self.configs.view().require(name).target is TargetState.STOPPED:
                await self._catch_up()  # whoever asks may have read of a resume that has not come here yet
            connector = self.configs.view().require(name)
            if configs and connector.target is TargetState.STOPPED:
                raise BadRequest(f"Cannot submit non-empty set of task configs for stopped connector {name}")
            await self._writes.lead(lambda: self.configs.put_tasks(name, configs), "writing task configurations to")

    async def publish(self, name: str, configs: tuple[Config, ...]) -> None:
        """Written by the leader."""
        if self.membership.is_leader:
            await self._write_tasks(name, configs)
        else:
            await self._leader_client.publish(name, configs)

    # --- KIP-52, KIP-875: what is wanted of a connector ---------------------------------------------------------------

    async def pause(self, name: str) -> None:
        await self._put_target(name, TargetState.PAUSED)

    async def resume(self, name: str) -> None:
        await self._put_target(name, TargetState.STARTED)

    async def _put_target(self, name: str, target: TargetState) -> None:
        """Any worker may. Written also when it seems to be so already: what another worker has just been told may not
        have come here yet."""
        self.configs.view().require(name)
        await self._writes.write(lambda: self.configs.put_target_state(name, target), "writing target state to")

    async def stop(self, name: str) -> None:
        self.configs.view().require(name)
        self._require_leader()
        async with self._writes.turn:
            await self._catch_up()  # another worker may just have been told to resume it
            connector = self.configs.view().require(name)
            if connector.target is TargetState.STOPPED and not connector.tasks:
                return
            # Empty tasks first: a crash in between leaves a running connector without tasks, not a lie.
            if not connector.never_resumed:
                await self._writes.lead(lambda: self.configs.put_tasks(name, ()), "writing task configurations to")
            await self._put_target(name, TargetState.STOPPED)

    # --- KIP-52, KIP-745: restarts ------------------------------------------------------------------------------------

    async def restart(self, request: RestartRequest) -> ConnectorStatus | None:
        name = request.connector
        await self._await_settled()
        self.configs.view().require(name)
        if request.forceful:
            self._require_owner(name)
            await self._catch_up()  # a plan may just have been asked for
            with self.holdings.restarting(Work.just(name)):
                await self.holdings.restart_connector(name)
            return None
        self._require_leader()
        return await self._restarts.request(lambda: self.restart_plan(request))

    async def restart_task(self, task: TaskId) -> None:
        await self._await_settled()
        self.configs.view().require_task(task)
        self._require_owner(task)
        await self._catch_up()  # a plan may just have been asked for
        with self.holdings.restarting(Work.just(task)):
            await self.holdings.restart_task(task)

    # --- KIP-875: offsets ---------------------------------------------------------------------------------------------

    async def alter_offsets(self, name: str, offsets: Sequence[tuple[Partition | None, Offset | None]]) -> str:
        await self._prepare_offsets(name)
        return await super().alter_offsets(name, offsets)

    async def reset_offsets(self, name: str) -> str:
        await self._prepare_offsets(name)
        return await super().reset_offsets(name)

    async def _prepare_offsets(self, name: str) -> None:
        await self._await_settled()
        self._require_leader()
        await self._catch_up()
        connector = self.configs.view().require(name)
        if self.config.exactly_once_sources and self.actor.type_of(name) is ConnectorType.SOURCE:
            rules.require_stopped(connector)
            try:
                await self.fence(name)
            except Exception as error:
                log.error("Older tasks of connector %s could not be fenced: %s", name, error)
                raise OffsetsError(
                    "Failed to perform zombie fencing for source connector prior to modifying offsets"
                ) from error

    async def _catch_up(self) -> None:
        try:
            await in_thread(lambda: self._shared.refresh(_REFRESH_S), "catch-up")
        except Exception as error:
            raise HerderError(f"The config topic could not be read to its end: {error}") from error

    # --- KIP-558: topics ----------------------------------------------------------------------------------------------

    def topics_of(self, name: str) -> Iterable[str]:
        return self._statuses.topics(name)

    def forget_topics(self, name: str) -> None:
        self._statuses.remove_topics(name)

    def _knows_topic(self, name: str, topic: str) -> bool:
        return not self.config.topic_tracking or self._statuses.has_topic(name, topic)

    def _on_topic(self, task: TaskId, topic: str) -> None:
        if self.configs.view().get(task.connector) is not None:  # of one that was deleted they were just forgotten
            self._statuses.put_topic(task.connector, topic, task.task)

    # --- among workers ------------------------------------------------------------------------------------------------

    @property
    def proofs(self) -> LeaderClient:
        return self._leader_client

    async def set_level_everywhere(self, logger: str, level: str) -> bool:
        await self._writes.write(lambda: self._shared.put_logger_level(logger, level), "writing logger level to")
        return True

    async def took_leave(self, member: str) -> None:
        self._require_leader()
        log.info("Member %s takes its leave: its work will not wait for it", member)
        self.leader.took_leave(member)

    # --- KIP-618: fencing ---------------------------------------------------------------------------------------------

    async def fence(self, name: str) -> None:
        self._require_leader()
        await self._fencing.run(name)

    def _fence_anywhere(self, name: str) -> None:
        """From a task's thread: by this worker if it leads, else by the leader. Raises PeerError."""
        if self.membership.is_leader:
            try:
                self.submit(lambda: self.fence(name)).result(_FENCE_S)
            except ShuttingDown:
                raise
            except Exception as error:
                status = 409 if isinstance(error, FencingOutdated | Elsewhere) else 500
                raise PeerError(f"{type(error).__name__}: {error}", status) from error
        else:
            self._leader_client.fence(name)

    async def _clients_of(self, name: str) -> Config:
        """For the cluster that a source writes to."""
        config = (await self._secrets.look_up(self.configs.view().require(name).config)).config
        return {"bootstrap.servers": self.config.bootstrap_servers, **task_spec.offsets_place(config, self.config)[1]}
