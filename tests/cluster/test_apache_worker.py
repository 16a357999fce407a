"""One group of our workers and Apache's: each understands the other, whoever leads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from apache_worker import ApacheWorker, fetched
from group_node import Configs, Node, describe, settled

from headgate.cluster.leader import Election
from headgate.cluster.protocol import (
    Assignment,
    Protocol,
    decode_assignment,
    decode_member,
    encode_assignment,
    encode_member,
)
from headgate.cluster.work import NOTHING
from headgate.dev.broker import Broker
from headgate.model import TaskId

pytestmark = [
    pytest.mark.broker,
    pytest.mark.skipif(not fetched(), reason="the jars of Apache Kafka Connect are not in the cache: make bench"),
]

Eventually = Callable[..., None]


class Follower(Node):
    """Reads no configs of its own: it takes those that Apache's worker reports for granted."""

    async def lead(self, election: Election) -> Mapping[str, Assignment]:
        self.configs.offset = election.offset
        return await super().lead(election)


def places(worker: ApacheWorker, name: str) -> dict[str, str]:
    """Where the connector and its tasks run, as far as they do."""
    status: dict[str, Any] = worker.get(f"connectors/{name}/status") or {"connector": {}, "tasks": []}
    parts = {name: status["connector"], **{f"{name}-{task['id']}": task for task in status["tasks"]}}
    return {part: each["worker_id"] for part, each in parts.items() if each.get("state") == "RUNNING"}


def test_a_group_with_a_worker_of_apaches(
    broker: Broker, unique: Callable[[str], str], tmp_path: Path, eventually: Eventually
) -> None:
    group, configs = unique("mixed-cluster"), Configs(offset=0)
    names = ["lines-a", "lines-b"]
    (tmp_path / "lines.txt").write_text("one line\n")
    ours = Follower("ours", group, {"bootstrap.servers": broker.bootstrap}, configs, max_delay_ms=500)
    with ours.loop_only():
        with ApacheWorker(broker.bootstrap, group, tmp_path) as apache:
            for name in names:
                config = {"connector.class": "FileStreamSource", "file": str(tmp_path / "lines.txt"), "topic": name}
                apache.create(name, config)
            eventually(lambda: all(len(places(apache, name)) == 2 for name in names))

            # Apache's leads: ours is told what to take up.
            ours.membership.start()
            eventually(lambda: len(ours.held.connectors) == len(ours.held.tasks) == 1)
            assert ours.membership.leader_url == apache.url
            assert ours.membership.protocol is Protocol.SESSIONED
            assert not ours.membership.is_leader
            found = describe(broker.bootstrap, group)
            assert (found.protocol_type, found.protocol_data) == ("connect", "sessioned")
            (theirs,) = (member for member in found.members if member.member_id != ours.membership.member_id)
            state = decode_member(bytes(theirs.member_metadata))
            assert (state.url, theirs.client_id) == (apache.url, f"connect-{apache.id}")
            assert state.held is not None
            assert (len(state.held.assigned.connectors), len(state.held.assigned.tasks)) == (1, 1)
            assert encode_member(Protocol.SESSIONED, state) == bytes(theirs.member_metadata)
            told = decode_assignment(bytes(theirs.member_assignment))
            assert told.leader == theirs.member_id
            assert encode_assignment(Protocol.SESSIONED, told) == bytes(theirs.member_assignment)

            for name in names:
                configs.create(name, tasks=1)
            assert ours.held - configs.configured == NOTHING
            # Apache's leaves: ours leads, and does everything.
        eventually(lambda: settled([ours]))
        before = len(ours.elections)
        with ApacheWorker(broker.bootstrap, group, tmp_path) as apache:
            # Ours leads: Apache's does what it is told.
            eventually(lambda: len(ours.held.connectors) == len(ours.held.tasks) == 1)
            given = configs.configured - ours.held
            expected = {*given.connectors, *map(str, given.tasks)}
            eventually(
                lambda: (
                    expected == {part for name in names for part, at in places(apache, name).items() if at == apache.id}
                )
            )
            assert apache.url in {state.url for state in ours.elections[before].members.values()}
            there: list[str | TaskId] = [*given.connectors, *given.tasks]
            assert {ours.leader.owner(each) for each in there} == {apache.url}
