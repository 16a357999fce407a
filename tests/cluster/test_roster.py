"""Who is in a group, asked from outside."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest
from group_node import Configs, Node

from headgate.cluster.roster import Roster, RosterUnknown, roster
from headgate.dev.broker import Broker
from headgate.kafka.settings import ClientConfigError


@pytest.mark.broker
def test_workers_are_told_and_the_group_is_left_alone(
    broker: Broker, unique: Callable[[str], str], eventually: Callable[..., None]
) -> None:
    group, clients = unique("roster"), {"bootstrap.servers": broker.bootstrap}
    node = Node("ours", group, clients, Configs())
    with node.loop_only():
        node.membership.start()
        eventually(lambda: node.all_joined)
        for _ in range(3):
            found = roster(group, clients, 10)
            (member,) = found.members
            assert (found.protocol_type, member.url, member.client_id) == ("connect", "http://ours/", "connect-ours")
            assert member.id == node.membership.member_id
            assert not found.of_others
        assert len(node.all_joined) == 1


@pytest.mark.broker
def test_a_group_that_does_not_exist_has_no_members(broker: Broker, unique: Callable[[str], str]) -> None:
    assert roster(unique("nobody"), {"bootstrap.servers": broker.bootstrap}, 10) == Roster("")


@pytest.mark.process
def test_kafka_that_does_not_answer_is_not_waited_for_longer_than_asked() -> None:
    began = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(RosterUnknown, match="who is in group g"):
            roster("g", {"bootstrap.servers": address}, 1)
    assert time.monotonic() - began < 10


def test_settings_that_a_worker_could_not_join_with() -> None:
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}
    with pytest.raises(ClientConfigError, match="GSSAPI"):
        roster("g", {"bootstrap.servers": "127.0.0.1:1", **login}, 1)


def test_groups_of_consumers_are_others() -> None:
    assert Roster("consumer").of_others
    assert not Roster("").of_others
