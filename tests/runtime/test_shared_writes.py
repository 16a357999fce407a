"""Writes to the config topic: off the herder's thread, one after the other, and never by who does not lead."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from headgate.runtime.distributed.shared_writes import SharedWrites
from headgate.runtime.errors import ConfigWriteFailed, ConnectorNotFound


class Reign:
    """Fits `Leadership` and `Place` as far as writes need them; `journal` has what was asked of it."""

    def __init__(self) -> None:
        self.journal: list[str] = []

    async def claim_writes(self) -> None:
        self.journal.append("claim")

    async def lost(self) -> None:
        self.journal.append("lost")

    def request_rejoin(self) -> None:
        self.journal.append("rejoin")


def writes(reign: Reign, transactional: bool) -> SharedWrites:
    leadership: Any = reign
    place: Any = reign
    return SharedWrites(leadership, lambda: place, transactional)


def away() -> None:
    raise OSError("Kafka is away")


def missing() -> None:
    raise ConnectorNotFound("orders")


@pytest.mark.parametrize("transactional", [False, True])
def test_a_write_returns_what_it_found_from_another_thread(transactional: bool) -> None:
    made = writes(Reign(), transactional)
    for write in (made.write, made.lead):
        assert asyncio.run(write(threading.get_ident, "writing it to")) != threading.get_ident()


def test_with_transactions_the_leader_claims_the_topic_before_it_writes() -> None:
    reign = Reign()
    asyncio.run(writes(reign, True).lead(lambda: reign.journal.append("write"), "writing it to"))
    assert reign.journal == ["claim", "write"]


def test_without_them_there_is_nothing_to_claim_and_nothing_to_lose() -> None:
    reign = Reign()
    with pytest.raises(ConfigWriteFailed, match="Error writing it to Kafka"):
        asyncio.run(writes(reign, False).lead(away, "writing it to"))
    assert reign.journal == []


def test_a_transaction_that_fails_may_mean_that_another_one_leads() -> None:
    reign = Reign()
    with pytest.raises(ConfigWriteFailed, match="the request can be safely retried"):
        asyncio.run(writes(reign, True).lead(away, "writing it to"))
    assert reign.journal == ["claim", "lost", "rejoin"]


@pytest.mark.parametrize("transactional", [False, True])
def test_what_the_caller_did_wrong_is_said_as_it_is(transactional: bool) -> None:
    reign = Reign()
    with pytest.raises(ConnectorNotFound):
        asyncio.run(writes(reign, transactional).lead(missing, "writing it to"))
    assert "lost" not in reign.journal


def test_turns_come_one_after_the_other() -> None:
    made, journal = writes(Reign(), False), list[str]()

    async def turn(name: str) -> None:
        async with made.turn:
            journal.append(f"{name} looks")
            await asyncio.sleep(0)  # whoever could come in between would do so now
            await made.write(lambda: journal.append(f"{name} writes"), "writing it to")

    async def both() -> None:
        await asyncio.gather(turn("a"), turn("b"))

    asyncio.run(both())
    assert journal == ["a looks", "a writes", "b looks", "b writes"]
