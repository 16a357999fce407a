"""Roster: who is in a group of workers, asked from outside, without joining it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    GroupIdNotFoundError,
    KafkaError,
    NotCoordinatorError,
    for_code,
)
from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from headgate.cluster.protocol import MalformedMessage, decode_member
from headgate.kafka.settings.kafka_python import for_kafka_python
from headgate.kafka.settings.translate import ClientKind, translate

_GROUP: Final = 0
"""A coordinator of a group, not of transactions."""
_VERSION: Final = 3
"""Of the question for one coordinator, which all brokers answer."""
_TYPE: Final = "connect"
_PASSING: Final = (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
_PAUSE_S: Final = 0.2


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
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what lasts is raised
    deadline = time.monotonic() + timeout

    def left() -> int:
        return max(round((deadline - time.monotonic()) * 1000), 1)

    settings = for_kafka_python(translate(ClientKind.ADMIN, clients).config)
    network: Any = None
    try:
        network = KafkaNetClient(**settings, request_timeout_ms=left(), receive_message_max_bytes=2**31 - 1)
        network.check_version(timeout_ms=left())
        while True:
            try:
                return _asked(network, group, left)
            except _PASSING:
                if time.monotonic() + _PAUSE_S > deadline:
                    raise
            time.sleep(_PAUSE_S)
    except KafkaError as error:
        raise RosterUnknown(f"Kafka did not tell who is in group {group}: {error}") from error
    finally:
        if network is not None:
            with suppress(Exception):
                network.close()


def _asked(network: Any, group: str, left: Callable[[], int]) -> Roster:
    search = FindCoordinatorRequest(key=group, key_type=_GROUP, max_version=_VERSION)
    coordinator = network.send_and_receive(network.least_loaded_node(), search, timeout_ms=left())
    _raise(coordinator.error_code)
    question = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
    (found,) = network.send_and_receive(coordinator.node_id, question, timeout_ms=left()).groups
    if found.error_code == GroupIdNotFoundError.errno:
        return Roster("")
    _raise(found.error_code)
    return Roster(found.protocol_type, tuple(map(_present, found.members)))


def _raise(code: int) -> None:
    if code:
        raise for_code(code)()


def _present(member: Any) -> RosterMember:
    url = None
    with suppress(MalformedMessage):
        url = decode_member(bytes(member.member_metadata)).url or None
    return RosterMember(member.member_id, member.client_id, member.client_host.lstrip("/"), url)
