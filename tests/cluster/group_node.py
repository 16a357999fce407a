"""A worker reduced to its place in the group: it holds work, and does nothing with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from headgate.cluster.coordinator import GroupConfig
from headgate.cluster.leader import Election, Leader
from headgate.cluster.membership import Membership
from headgate.cluster.protocol import OFFERED, Assignment, Joined, MemberState
from headgate.cluster.work import NOTHING, Work, union
from headgate.model import TaskId
from headgate.runtime.loop import HerderLoop


@dataclass
class Configs:
    """What all nodes know."""

    configured: Work = NOTHING
    offset: int = 1

    def create(self, connector: str, tasks: int = 0) -> None:
        self.configured |= Work.of([connector], (TaskId(connector, number) for number in range(tasks)))
        self.offset += 1


@dataclass
class Node:
    name: str
    group: str
    clients: Mapping[str, str]
    configs: Configs
    connect_protocol: str = "sessioned"
    max_delay_ms: int = 300_000
    timeouts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.url = f"http://{self.name}/"
        self.held = NOTHING
        self.all_joined: list[Joined] = []
        self.given_up: list[Work | None] = []
        self.elections: list[Election] = []
        self.before_state: Callable[[], None] = lambda: None
        self.before_lead: Callable[[], None] = lambda: None
        self.may_give_up = asyncio.Event()
        self.may_give_up.set()
        self.leader = Leader(self.max_delay_ms)
        self.loop = HerderLoop()
        given: dict[str, Any] = {
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 300,
            "rebalance_timeout_ms": 20_000,
        }
        config = replace(
            GroupConfig(self.group, OFFERED[self.connect_protocol], retry_backoff_ms=50), **{**given, **self.timeouts}
        )
        clients = {"client.id": f"connect-{self.name}", **self.clients}
        self.membership = Membership(config, clients, self.loop, self)

    def __enter__(self) -> Self:
        self.loop.start()
        self.membership.start()
        return self

    @contextmanager
    def loop_only(self) -> Iterator[None]:
        """Joins later, or not at all."""
        self.loop.start()
        try:
            yield
        finally:
            self.stop()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.membership.stop()

        async def nothing() -> None:
            return None

        self.loop.end(nothing, 5)

    # --- what the group asks for --------------------------------------------------------------------------------------

    async def state(self) -> MemberState:
        self.before_state()
        held = None
        if self.all_joined:
            last = self.all_joined[-1].assignment
            held = Assignment(last.leader, last.leader_url, last.offset, self.held)
        return MemberState(self.url, self.configs.offset, held)

    async def lead(self, election: Election) -> Mapping[str, Assignment]:
        self.before_lead()
        self.elections.append(election)
        return self.leader.assign(election, self.configs.offset, self.configs.configured)

    async def give_up(self, work: Work | None) -> None:
        await self.may_give_up.wait()
        self.given_up.append(work)
        self.held = NOTHING if work is None else self.held - work

    async def take_up(self, joined: Joined) -> None:
        self.all_joined.append(joined)
        self.held = (self.held if joined.protocol.cooperative else NOTHING) | joined.assignment.assigned
        if joined.assignment.revoked:
            self.membership.request_rejoin()


def settled(nodes: Sequence[Node]) -> bool:
    """Whether they are one group in which all is done, by one each."""
    places = [node.membership for node in nodes]
    return (
        not any(place.rebalancing for place in places)
        and len({place.generation for place in places}) == 1
        and sum(place.is_leader for place in places) == 1
        and sum(len(list(node.held)) for node in nodes) == len(list(nodes[0].configs.configured))
        and union(node.held for node in nodes) == nodes[0].configs.configured
    )


def describe(bootstrap: str, group: str) -> Any:
    """The group as the broker sees it: protocol_type, protocol_data, group_state, members."""
    from kafka.net.compat import KafkaNetClient
    from kafka.protocol.admin import DescribeGroupsRequest

    client = KafkaNetClient(bootstrap_servers=bootstrap)
    try:
        client.check_version(timeout_ms=10_000)
        node = client.least_loaded_node()
        request = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
        return client.send_and_receive(node, request, timeout_ms=10_000).groups[0]
    finally:
        client.close()


def members(bootstrap: str, group: str) -> list[str]:
    return [member.member_id for member in describe(bootstrap, group).members]
