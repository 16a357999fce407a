"""Roster: who is in a group of workers, asked from outside, without joining it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from kafka.protocol.admin import DescribeGroupsRequest

from headgate.backoff import Backoff
from headgate.cluster.protocol import MalformedMessage, decode_member
from headgate.kafka.asking import ask_for
from headgate.kafka.groups import ask_coordinator, check
from headgate.kafka.settings.translate import ClientKind, translate

_TYPE: Final = "connect"


class RosterUnknown(Exception):
    """Kafka does not tell; the message says why."""


@dataclass(frozen=True, slots=True)
class RosterMember:
    """One member."""

    id: str
    client_id: str
    host: str
    url: str | None
    """Where its REST API is; None if it does not say."""


@dataclass(frozen=True, slots=True)
class Roster:
    protocol_type: str
    """`connect` for workers; empty if the group does not exist or has never had members."""
    members: tuple[RosterMember, ...] = ()

    @property
    def of_others(self) -> bool:
        """Whether the group is not one of workers: none can join it."""
        return self.protocol_type not in ("", _TYPE)


def roster(group: str, clients: Mapping[str, str], timeout: float) -> Roster:
    """`clients` are settings by Apache's names. Raises RosterUnknown, and ClientConfigError where a worker with these
    settings could not join either."""
    config = translate(ClientKind.ADMIN, clients).config
    try:
        return ask_for(timeout, lambda left: _asked(config, group, left), Backoff(0.2))
    except KafkaException as error:
        raise RosterUnknown(f"Kafka did not tell who is in group {group}: {error.args[0].str()}") from error


def _asked(config: Mapping[str, Any], group: str, seconds: float) -> Roster:
    question = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
    (found,) = ask_coordinator(config, group, question, seconds).groups
    if found.error_code == KafkaError.GROUP_ID_NOT_FOUND:
        return Roster("")
    check(found.error_code)
    return Roster(found.protocol_type, tuple(map(_present, found.members)))


def _present(member: Any) -> RosterMember:
    url = None
    with suppress(MalformedMessage):
        url = decode_member(bytes(member.member_metadata)).url or None
    return RosterMember(member.member_id, member.client_id, member.client_host.lstrip("/"), url)
