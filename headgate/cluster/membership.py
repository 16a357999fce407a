"""This worker as a member of the group of workers: it joins, keeps its place, leaves, and passes on who does what.

A thread of its own speaks with Kafka; what is to be decided is asked of the herder, on the herder's thread. A herder
that does not answer for `rebalance.timeout.ms` loses its place in the group until it does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol

from kafka.errors import KafkaError, RetriableError, UnknownBrokerIdError

from headgate.cluster import protocol as messages
from headgate.cluster.coordinator import Coordinator, GroupConfig, Synced, described
from headgate.cluster.heartbeat import Heartbeat
from headgate.cluster.herder_calls import Ended, HerderCalls, HerderThread, Unanswered, nothing
from headgate.cluster.leader import Election
from headgate.cluster.protocol import Assignment, Joined, MalformedMessage, MemberState
from headgate.cluster.work import Work
from headgate.log import Complaints

log = logging.getLogger(__name__)

_STEP_MS: Final = 100
_POLL_MS: Final = 500
_LEAVE_MS: Final = 3000
_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 10.0
_RENEW_S: Final = 60.0
"""A coordinator that is not found for so long is looked for with a new client, from the bootstrap servers on."""


_NOWHERE: Final = Joined("", -1, messages.Protocol.EAGER, Assignment("", "", -1))


class Member(Protocol):
    """What the group asks of the herder, one after the other, on its thread."""

    async def state(self) -> MemberState:
        """What to join with. At once: everybody waits."""
        ...

    async def lead(self, election: Election) -> Mapping[str, Assignment]:
        """What each member shall be told; within the session timeout. See `Leader.assign`."""
        ...

    async def give_up(self, work: Work | None) -> None:
        """Stops this work, or all that is held if None; returns when that is done. The member stays in the group
        meanwhile, but joins no rebalance."""
        ...

    async def take_up(self, joined: Joined) -> None:
        """Notes it and returns; starting the work takes time, in which there may be the next rebalance."""
        ...


class Membership:
    """From `start()` to `stop()`. All that is public may be used from any thread."""

    def __init__(self, config: GroupConfig, clients: Mapping[str, str], herder: HerderThread, member: Member) -> None:
        """`clients` are settings of Kafka clients by Apache's names; raises ClientConfigError when they cannot be used
        here."""
        self._config = config
        self._clients = dict(clients)
        self._calls = HerderCalls(herder, config.session_timeout_ms / 1000)
        self._member = member
        self._joined = _NOWHERE
        self._holds = False
        self._left = False
        self._again = True
        self._known = False
        self._settled = False
        self._rejoin_at: float | None = None
        self._unknown_since: float | None = None
        self._pause_s = _PAUSE_S
        self._heartbeat = Heartbeat(self._calls.ping, config.rebalance_timeout_ms / 1000)
        self._complaints = Complaints(log, f"Group {config.group_id}")
        self._commands: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._coordinator = self._connect()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)

    def start(self) -> None:
        """Begins to join."""
        self._thread.start()

    def stop(self, timeout_s: float = 10.0) -> None:
        """Leaves the group and ends; the herder is asked nothing from now on. Harmless when it has ended."""
        self._calls.end()
        self._coordinator.wake()
        if self._thread.ident is None:
            self._coordinator.end()
        else:
            self._thread.join(timeout_s)

    def request_rejoin(self) -> None:
        """Joins again, with what it has by then. For everybody that is a rebalance if this member leads, or says
        anything else of itself than the last time; or else it is only told again what it was told."""
        self._again = True
        self._do(self._rejoin)

    def leave(self, reason: str) -> Future[None]:
        """Gives its place away, until `request_rejoin()`; done when the group knows."""
        done: Future[None] = Future()

        def leave() -> None:
            self._left = True
            try:
                self._leave(reason)
            finally:
                done.set_result(None)

        self._do(leave)
        return done

    @property
    def member_id(self) -> str:
        """Empty while it has no place."""
        return self._joined.member_id

    @property
    def generation(self) -> int:
        """Of the last rebalance that was completed; -1 before."""
        return self._joined.generation

    @property
    def protocol(self) -> messages.Protocol:
        """That of the last rebalance."""
        return self._joined.protocol

    @property
    def is_leader(self) -> bool:
        return self._joined.leads

    @property
    def leader_url(self) -> str:
        """Empty before the first rebalance."""
        return self._joined.assignment.leader_url

    @property
    def in_session(self) -> bool:
        """Whether what it was given is certainly still its own: see `Coordinator.in_session`."""
        return self._coordinator.in_session and self._coordinator.member_id == self._joined.member_id

    @property
    def rebalancing(self) -> bool:
        """Whether what it was given last is about to be replaced, or it has no place at all."""
        return self._again or not self._settled or not self._joined.member_id or self._coordinator.rejoins

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._calls.ended:
            try:
                self._step()
                continue
            except Ended:
                break
            except (Unanswered, MalformedMessage, RetriableError, UnknownBrokerIdError) as error:
                self._complaints.say(described(error))
                self._calls.sleep(_PAUSE_S)
            except KafkaError as error:
                self._complaints.say(f"no place in the group, trying again: {described(error)}")
                self._start_over()
            except Exception:
                log.exception("Group %s: no place in the group, trying again", self._config.group_id)
                self._start_over()
        try:
            self._leave("the worker is stopped")
            self._obey()
        finally:
            self._coordinator.end()

    def _step(self) -> None:
        self._obey()
        self._watch()
        if self._left or self._heartbeat.lost:
            self._coordinator.poll(_POLL_MS)
            return
        self._look_for_coordinator()
        if self._rejoin_at is not None and time.monotonic() >= self._rejoin_at:
            self._rejoin_at = None
            self._rejoin()
        if not self._coordinator.rejoins:
            self._coordinator.poll(_POLL_MS)
            return
        self._settled = False
        if self._holds and not self._joined.protocol.cooperative:
            self._give_up(None)
        if not self._coordinator.joining:
            self._await(nothing)  # heartbeats end here: whoever is not awake shall not begin to join
        synced = self._coordinator.join(_STEP_MS)
        if synced is not None:
            self._pause_s = _PAUSE_S
            self._complete(synced)

    def _obey(self) -> None:
        with suppress(Empty):
            while True:
                self._commands.get_nowait()()

    def _complete(self, synced: Synced) -> None:
        rejoin_at = time.monotonic()
        try:
            assignment = messages.decode_assignment(synced.assignment)
        except MalformedMessage:
            self._coordinator.request_rejoin()
            raise
        if self._holds and not synced.protocol.cooperative:
            self._give_up(None)  # all have joined as cooperative ones, but for one that knows nothing of that
        elif assignment.revoked:
            self._give_up(assignment.revoked)
        if self._coordinator.member_id != synced.member_id:
            return  # the place was lost meanwhile; by now this work may be somebody else's
        if synced.generation == self._joined.generation:
            self._calls.sleep(
                _STEP_MS / 1000
            )  # told again what it was told: asking often does not make it another thing
        joined = self._joined = Joined(synced.member_id, synced.generation, synced.protocol, assignment)
        self._holds = True
        self._rejoin_at = rejoin_at + assignment.delay_ms / 1000 if assignment.delay_ms > 0 else None
        log.info(
            "Member %s of group %s, generation %d, led by %s",
            synced.member_id,
            self._config.group_id,
            synced.generation,
            assignment.leader_url,
        )
        self._await(lambda: self._member.take_up(joined))
        if self._again:
            self._coordinator.request_rejoin()
        self._settled = True

    def _look_for_coordinator(self) -> None:
        now = time.monotonic()
        if self._known:
            self._unknown_since = None
            return
        if self._unknown_since is None:
            self._unknown_since = now
        away_s = now - self._unknown_since
        if away_s * 1000 > self._config.heartbeat_interval_ms:
            if trouble := self._coordinator.trouble:
                self._complaints.say(f"its coordinator cannot be reached: {trouble}")
            if self._holds:
                log.warning("Group %s: without a place in the group all work is given up", self._config.group_id)
                self._give_up(None)
                self._rejoin()
        if away_s > _RENEW_S:
            self._unknown_since = now
            self._renew()

    def _watch(self) -> None:
        self._known = not self._coordinator.coordinator_unknown() and not self._coordinator.cut_off
        with suppress(Unanswered):  # a herder that is about to end keeps its place
            if self._heartbeat.check():
                if self._heartbeat.lost:
                    log.error("Group %s: the herder does not answer", self._config.group_id)
                    self._leave("the herder does not answer")
                else:
                    log.info("Group %s: the herder answers again", self._config.group_id)
        if self._joined.member_id and self._coordinator.member_id != self._joined.member_id:
            self._joined = replace(self._joined, member_id="")

    def _rejoin(self) -> None:
        self._left = False
        self._coordinator.request_rejoin()

    def _leave(self, reason: str) -> None:
        if self._coordinator.member_id:
            log.info("Leaving group %s: %s", self._config.group_id, reason)
            self._coordinator.leave(reason, _LEAVE_MS)
        self._joined = replace(self._joined, member_id="")

    def _connect(self) -> Coordinator:
        return Coordinator(self._config, self._clients, self._offer, self._lead)

    def _start_over(self) -> None:
        """Refused, perhaps not for ever: another client may be let in."""
        self._calls.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
        try:
            self._renew()
        except Exception:
            log.exception("Group %s: no new client", self._config.group_id)

    def _renew(self) -> None:
        old, new = self._coordinator, self._connect()
        new.adopt(old.member_id)
        self._coordinator = new
        old.end()

    def _do(self, command: Callable[[], None]) -> None:
        self._commands.put(command)
        self._coordinator.wake()

    # --- what the herder is asked -------------------------------------------------------------------------------------

    def _offer(self) -> list[tuple[messages.Protocol, bytes]]:
        self._again = False  # whoever wants another rebalance from now on did not mean this one
        state = self._calls.ask(self._member.state)
        return [(each, messages.encode_member(each, state)) for each in self._config.protocols]

    def _lead(
        self, protocol: messages.Protocol, generation: int, leader: str, joined: Mapping[str, bytes]
    ) -> dict[str, bytes]:
        members: dict[str, MemberState] = {}
        for member, data in joined.items():
            try:
                members[member] = messages.decode_member(data)
            except MalformedMessage as error:
                self._complaints.say(f"member {member} is not understood and gets no work: {error}")
        election = Election(protocol, generation, self._joined.generation, leader, members)
        told = self._calls.ask(lambda: self._member.lead(election))
        nothing = Assignment(leader, members[leader].url, election.offset)
        return {member: messages.encode_assignment(protocol, told.get(member, nothing)) for member in joined}

    def _give_up(self, work: Work | None) -> None:
        if work is None:
            self._holds = False
        self._await(lambda: self._member.give_up(work))

    def _await(self, order: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Until it is done; the place in the group is kept meanwhile."""
        done = self._calls.submit(order)
        done.add_done_callback(lambda _: self._coordinator.wake())
        self._calls.until(done, self._keep_place)
        try:
            done.result()
        except Exception:
            log.exception("Group %s: the herder failed", self._config.group_id)

    def _keep_place(self) -> None:
        try:
            self._watch()
            self._coordinator.poll(_POLL_MS)
        except Exception as error:
            self._complaints.say(described(error))
            self._calls.sleep(_PAUSE_S)
