"""LeaderClient: what this worker asks of the leader and others, with the signature that proves who asks (KIP-507)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from headgate.cluster.protocol import Protocol
from headgate.model import Config
from headgate.runtime.connector import in_thread
from headgate.runtime.distributed.group import GroupMembership, SharedConfigs
from headgate.runtime.distributed.signatures import ALGORITHM, WHOLE, Signatures, TakenOnce
from headgate.runtime.errors import HerderError
from headgate.runtime.ports import PeerError, PeerRequest, Peers, Signer

log = logging.getLogger(__name__)

_FAREWELL_S: Final = 3.0


@dataclass(eq=False)
class LeaderClient:
    """May be used from any thread, but for what is awaited."""

    _peers: Peers
    _configs: SharedConfigs
    _signatures: Signatures
    _membership: Callable[[], GroupMembership]
    _taken: TakenOnce = field(default_factory=TakenOnce)

    def check(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        """Of a request that only workers may make; whether it was signed. Raises what `Signatures.verify` raises."""
        signed = self._signatures.strict or self._membership().protocol is Protocol.SESSIONED
        if signed:
            self._verify(self._signatures, asked, headers)
        return signed

    def sign(self, asked: PeerRequest) -> Mapping[str, str]:
        """Headers for a request that is passed on; none in a group that does not sign. Apache's signature, over the
        body alone, would be good for other requests too."""
        try:
            sign = self._signer()
        except PeerError:
            sign = None
        made = {} if sign is None else sign(asked)
        return {name: value for name, value in made.items() if name in (ALGORITHM, WHOLE)}

    def vouches(self, asked: PeerRequest, headers: Mapping[str, str]) -> bool:
        """Whether a worker has signed this just now."""
        if self._membership().protocol is not Protocol.SESSIONED:
            return False
        try:
            self._verify(replace(self._signatures, strict=True), asked, headers)
        except HerderError as error:
            log.warning("%s %s says for whom it was passed on, but not by a signature: %s", *asked[:2], error)
            return False
        return True

    def _verify(self, signatures: Signatures, asked: PeerRequest, headers: Mapping[str, str]) -> None:
        now_ms = _now_ms()
        once = signatures.verify(asked, headers, self._configs.state().session_key, now_ms)
        if once is not None:
            self._taken.take(once, now_ms)

    def _signer(self) -> Signer | None:
        if self._membership().protocol is not Protocol.SESSIONED:
            return None
        key = self._configs.state().session_key
        if key is None:
            raise PeerError("there is no session key yet to sign a request to the leader with")
        return lambda asked: self._signatures.sign(key, asked, _now_ms())

    async def publish(self, name: str, configs: tuple[Config, ...]) -> None:
        """New task configs, for the leader to write. Raises HerderError."""
        url = self._membership().leader_url
        try:
            sign = self._signer()
            await in_thread(lambda: self._peers.put_task_configs(url, name, configs, sign), "publish-tasks")
        except PeerError as error:
            raise HerderError(f"The leader at {url} did not take them: {error}") from error

    def fence(self, name: str) -> None:
        """Asks for a round of fencing. Blocks; raises PeerError."""
        self._peers.fence(self._membership().leader_url, name, self._signer())

    async def take_leave(self) -> None:
        """So that nobody waits for this worker's return. Who leads need not tell: a new leader begins anew."""
        membership = self._membership()
        member, url = membership.member_id, membership.leader_url
        if not member or not url or membership.is_leader:
            return
        with suppress(TimeoutError, PeerError):
            sign = self._signer()
            farewell = in_thread(lambda: self._peers.take_leave(url, member, sign), "take-leave")
            await asyncio.wait_for(farewell, _FAREWELL_S)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
