"""Kafka's side of the group: one member of protocol type `connect`, as kafka-python talks to the group's coordinator.

Everything here happens on the thread that polls. There are no threads underneath: heartbeats are sent while it polls.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kafka.coordinator.base import BaseCoordinator
from kafka.errors import KafkaError
from kafka.net.compat import KafkaNetClient
from kafka.protocol.metadata import FindCoordinatorRequest

from headgate.cluster.protocol import OFFERED, Protocol
from headgate.kafka.settings.kafka_python import for_kafka_python
from headgate.kafka.settings.translate import ClientKind, translate

_TYPE: Final = "connect"
_RECONNECT_MS: Final = 1000
_BROKER: Final = (2, 6)
"""What the coordinator is known to do; which version of each message is spoken is settled with the broker."""


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """Of the worker file; by default Apache's values."""

    group_id: str
    protocols: tuple[Protocol, ...] = OFFERED["sessioned"]
    """Most wanted first."""
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 60_000
    request_timeout_ms: int = 40_000
    retry_backoff_ms: int = 100

    def __post_init__(self) -> None:
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat.interval.ms must be less than session.timeout.ms")


@dataclass(frozen=True, slots=True)
class Synced:
    """One completed rebalance."""

    generation: int
    member_id: str
    protocol: Protocol
    assignment: bytes


def described(error: BaseException) -> str:
    """Errors of kafka-python name their class themselves."""
    kind, text = type(error).__name__, str(error)
    return text if kind in text else f"{kind}: {text}"


Offer = Callable[[], Sequence[tuple[Protocol, bytes]]]
"""What to join with, asked for each time."""
Lead = Callable[[Protocol, int, str, Mapping[str, bytes]], Mapping[str, bytes]]
"""Protocol, generation, own member id, what each member joined with -> what each is answered."""


class Coordinator(BaseCoordinator):  # type: ignore[misc]  # kafka-python has no types
    """`clients` are settings by Apache's names. Raises ClientConfigError when they cannot be used here."""

    coordinator_id: Any

    def __init__(self, config: GroupConfig, clients: Mapping[str, str], offer: Offer, lead: Lead) -> None:
        # It logs what it is about to put right by itself, at length; what lasts is raised.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        timeouts = {
            # A heartbeat without an answer must be noticed when the broker, too, notices that there was none.
            "request_timeout_ms": min(config.request_timeout_ms, config.session_timeout_ms),
            "retry_backoff_ms": config.retry_backoff_ms,
        }
        self._network: Any = KafkaNetClient(
            **for_kafka_python(translate(ClientKind.ADMIN, clients).config),
            **timeouts,
            receive_message_max_bytes=2**31 - 1,
            reconnect_backoff_max_ms=_RECONNECT_MS,
        )
        super().__init__(
            self._network,
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            max_poll_interval_ms=config.rebalance_timeout_ms,
            api_version=_BROKER,
            **timeouts,
        )
        self._offer = offer
        self._lead = lead
        self._synced: Synced | None = None
        self._synced_at = -math.inf
        self._session_s = config.session_timeout_ms / 1000
        self._trouble: BaseException | None = None
        self._out_of_reach: set[Any] = set()
        self._ask_every_s = config.heartbeat_interval_ms / 1000
        self._silence_s = (config.session_timeout_ms - config.heartbeat_interval_ms) / 1000
        self._asked_at = self._heard_at = 0.0
        self._listen_for_trouble()
        self._bootstrap = self._manager.bootstrap_async()

    # --- what kafka-python asks for -----------------------------------------------------------------------------------

    def protocol_type(self) -> str:
        return _TYPE

    def group_protocols(self) -> list[tuple[str, bytes]]:
        return [(protocol.value, state) for protocol, state in self._offer()]

    def _perform_assignment(self, leader_id: str, protocol: str, members: Sequence[Any]) -> dict[str, bytes]:
        joined = {member.member_id: bytes(member.metadata) for member in members}
        return dict(self._lead(Protocol(protocol), self._generation.generation_id, leader_id, joined))

    async def _on_join_complete_async(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        self._synced = Synced(generation, member_id, Protocol(protocol), bytes(member_assignment_bytes))
        self._synced_at = time.monotonic()

    # --- what the membership asks for ---------------------------------------------------------------------------------

    @property
    def member_id(self) -> str:
        """Empty while the broker knows nothing of this member."""
        return str(self._generation.member_id)

    @property
    def in_session(self) -> bool:
        """Whether the broker has taken it for a member within the session timeout, and so has given its place to nobody
        else. What counts is when it was asked: an answer may have lain here for as long as this process was held."""
        beat = self.heartbeat
        asked = beat.last_send if beat.last_receive >= beat.last_send else -math.inf
        return bool(self.member_id) and time.monotonic() - max(asked, self._synced_at) < self._session_s

    @property
    def trouble(self) -> str:
        """Why the last connection failed; empty when none has."""
        return described(self._trouble) if self._trouble else ""

    @property
    def cut_off(self) -> bool:
        """Whether the last connection to the group's coordinator came to nothing, or it no longer answers while this
        member joins. Then kafka-python still thinks that it has one, if only somebody on the way takes its
        connections."""
        silent = self.joining and time.monotonic() - self._heard_at > self._silence_s
        return silent or self.coordinator_id in self._out_of_reach

    @property
    def rejoins(self) -> bool:
        return bool(self.need_rejoin())

    @property
    def joining(self) -> bool:
        """Whether the broker was asked for a place and has not answered yet."""
        return self._join_task is not None and not self._join_task.is_done

    def join(self, wait_ms: int) -> Synced | None:
        """Goes on with joining. None if that takes longer: to be called again. Raises errors of kafka-python, and what
        `offer` and `lead` raise."""
        self._check_bootstrap()
        if not self.joining:
            self._hear()
        self.ensure_active_group(timeout_ms=wait_ms)
        if self.joining:
            self._ask_beside()
        synced, self._synced = self._synced, None
        return synced

    def poll(self, wait_ms: int) -> None:
        """Lets messages come and go; `wake` ends it. Raises what ended the sending of heartbeats, if anything did."""
        self._check_bootstrap()
        self._network.poll(timeout_ms=wait_ms)
        self.poll_heartbeat()

    def wake(self) -> None:
        """From any thread."""
        self._network.wakeup()

    def adopt(self, member_id: str) -> None:
        """Joins as who it was with another client."""
        self.reset_generation(member_id)

    def leave(self, reason: str, wait_ms: int) -> None:
        """And is nobody then. Makes no second attempt."""
        node = self.coordinator_id
        if node is not None:
            self.coordinator_id = self._beside
        try:
            self.maybe_leave_group(reason, timeout_ms=wait_ms)
        except KafkaError:
            self.reset_generation()
        finally:
            self.coordinator_id = node

    def end(self) -> None:
        """Without a word to the broker: see `leave`."""
        self._close_heartbeat()
        self._network.close()

    @property
    def _beside(self) -> int:
        """The coordinator by another connection: while the broker keeps a member waiting for others to join it reads
        nothing more on that one."""
        return int(str(self.coordinator_id).rpartition("-")[2])

    def _ask_beside(self) -> None:
        """Whether the coordinator can still be reached: there are no heartbeats while this member joins, which may take
        as long as the slowest member takes."""
        now = time.monotonic()
        if self.coordinator_id is None or now - self._asked_at < self._ask_every_s:
            return
        self._asked_at = now
        question = FindCoordinatorRequest(key=self.group_id, key_type=0, coordinator_keys=[self.group_id])
        try:
            self._manager.send(question, node_id=self._beside).add_callback(self._hear)
        except KafkaError:  # of who cannot be asked, silence means nothing
            self._hear()

    def _hear(self, *_: Any) -> None:
        self._heard_at = time.monotonic()

    def _listen_for_trouble(self) -> None:
        """kafka-python tries again for ever, even with a wrong password, and tells only its log."""
        connection = self._manager.get_connection

        def failed(node: Any, error: BaseException) -> None:
            self._trouble = error
            self._out_of_reach.add(node)

        def listened(node: Any, *args: Any, **named: Any) -> Any:
            made = connection(node, *args, **named)
            made.init_future.add_errback(partial(failed, node))
            made.init_future.add_callback(lambda _: self._out_of_reach.discard(node))
            return made

        self._manager.get_connection = listened

    def _check_bootstrap(self) -> None:
        """It goes on until a broker answers, unless it was refused."""
        if self._bootstrap.failed():
            raise self._bootstrap.exception
