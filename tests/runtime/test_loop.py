from __future__ import annotations

import asyncio
import gc
import logging
import re
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest
from runtime_fakes import PATIENCE_S, eventually

from headgate.runtime.errors import BadRequest, RequestTimeout, ShuttingDown
from headgate.runtime.loop import HerderLoop


async def nothing() -> None:
    pass


@pytest.fixture
def loop() -> Iterator[HerderLoop]:
    loop = HerderLoop()
    loop.start()
    yield loop
    loop.end(nothing, timeout=5)


def test_a_command_runs_on_the_herders_thread_and_gives_its_result(loop: HerderLoop) -> None:
    async def command() -> str:
        return threading.current_thread().name

    assert loop.submit(command).result(PATIENCE_S) == "herder"
    assert asyncio.run(loop.call(command)) == "herder"


def test_what_a_command_raises_reaches_the_caller(loop: HerderLoop) -> None:
    async def command() -> None:
        raise BadRequest("no")

    with pytest.raises(BadRequest, match=r"^no$"):
        asyncio.run(loop.call(command))


def test_a_call_is_posted_to_the_herders_thread(loop: HerderLoop) -> None:
    names: list[str] = []
    loop.post(lambda: names.append(threading.current_thread().name))
    eventually(lambda: names == ["herder"])


class TestTimeout:
    def test_a_call_that_takes_too_long_goes_on_without_the_caller(self, loop: HerderLoop) -> None:
        done = threading.Event()

        async def command() -> None:
            await asyncio.sleep(0.05)
            done.set()

        with pytest.raises(RequestTimeout, match=r"^Request timed out$"):
            asyncio.run(loop.call(command, timeout=0.001))
        assert done.wait(PATIENCE_S)

    def test_the_caller_is_told_what_is_going_on(self, loop: HerderLoop) -> None:
        async def command() -> None:
            async with loop.exclusive("orders", "polishing connector"):
                await asyncio.sleep(0.2)

        pattern = r"^Request timed out\. The worker is currently polishing connector orders, which began at \S+Z\.$"
        with pytest.raises(RequestTimeout, match=pattern):
            asyncio.run(loop.call(command, timeout=0.05))

    def test_the_caller_is_told_what_was_done_last(self, loop: HerderLoop) -> None:
        async def earlier() -> None:
            async with loop.exclusive("orders", "polishing connector"):
                pass

        loop.submit(earlier).result(PATIENCE_S)
        with pytest.raises(RequestTimeout) as raised:
            asyncio.run(loop.call(lambda: asyncio.sleep(0.2), timeout=0.001))
        assert re.fullmatch(
            r"Request timed out\. The last operation the worker completed was polishing connector orders, which began"
            r" at \S+Z and completed at \S+Z\.",
            str(raised.value),
        )

    def test_a_failure_after_the_caller_has_gone_disturbs_nobody(
        self, loop: HerderLoop, caplog: pytest.LogCaptureFixture
    ) -> None:
        caller_has_gone, failed = threading.Event(), threading.Event()

        async def command() -> None:
            while not caller_has_gone.is_set():
                await asyncio.sleep(0.001)
            failed.set()
            raise BadRequest("too late")

        async def impatient() -> None:
            with pytest.raises(RequestTimeout):
                await loop.call(command, timeout=0.001)
            caller_has_gone.set()
            while not failed.is_set():
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)  # so that this loop hears of it

        asyncio.run(impatient())
        gc.collect()
        assert "never retrieved" not in caplog.text


class TestExclusive:
    def test_commands_for_one_connector_queue_up_and_others_pass(self, loop: HerderLoop) -> None:
        seen: list[str] = []
        release = threading.Event()

        async def command(name: str, what: str, wait: bool = False) -> None:
            async with loop.exclusive(name, "doing"):
                seen.append(what)
                while wait and not release.is_set():
                    await asyncio.sleep(0.001)

        first = loop.submit(lambda: command("a", "a1", wait=True))
        second = loop.submit(lambda: command("a", "a2"))
        loop.submit(lambda: command("b", "b1")).result(PATIENCE_S)
        assert (seen, second.done()) == (["a1", "b1"], False)
        release.set()
        first.result(PATIENCE_S)
        second.result(PATIENCE_S)
        assert seen == ["a1", "b1", "a2"]

    def test_a_command_that_fails_lets_the_next_one_in(self, loop: HerderLoop) -> None:
        async def failing() -> None:
            async with loop.exclusive("a", "doing"):
                raise BadRequest("no")

        for _ in range(2):
            with pytest.raises(BadRequest):
                loop.submit(failing).result(PATIENCE_S)

    def test_nothing_is_kept_of_a_name_that_nobody_uses(self, loop: HerderLoop) -> None:
        async def command(name: str) -> int:
            async with loop.exclusive(name, "doing"):
                return len(loop._locks)

        assert [loop.submit(lambda: command(name)).result(PATIENCE_S) for name in "abca"] == [1] * 4  # noqa: B023
        assert loop._locks == {}

    def test_who_runs_out_of_patience_gives_up_on_who_is_in_the_way(self, loop: HerderLoop) -> None:
        given_up = threading.Event()

        async def hanging() -> None:
            async with loop.exclusive("a", "hanging"):
                while not given_up.is_set():
                    await asyncio.sleep(0.001)

        async def ending() -> str:
            async with loop.exclusive("a", "ending", 0.02, given_up.set):
                return "in"

        loop.submit(hanging)
        assert loop.submit(ending).result(PATIENCE_S) == "in"
        assert given_up.is_set()

    def test_who_need_not_wait_gives_up_on_nobody(self, loop: HerderLoop) -> None:
        given_up = threading.Event()

        async def ending() -> None:
            async with loop.exclusive("a", "ending", 0.02, given_up.set):
                await asyncio.sleep(0.05)

        loop.submit(ending).result(PATIENCE_S)
        assert not given_up.is_set()


class TestSpawn:
    def test_an_error_is_logged_with_what_was_being_done(
        self, loop: HerderLoop, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def failing(error: Exception) -> None:
            raise error

        with caplog.at_level(logging.ERROR):
            loop.post(lambda: loop.spawn(failing(BadRequest("not so")), "pausing connector a"))
            loop.post(lambda: loop.spawn(failing(KeyError("x")), "pausing connector b"))
            eventually(lambda: len(caplog.records) == 2)
        known, unknown = caplog.records
        assert (known.getMessage(), known.exc_info) == ("Failed pausing connector a: not so", None)
        assert unknown.getMessage() == "Failed pausing connector b"
        assert unknown.exc_info is not None


class TestEnd:
    def test_the_last_command_runs_and_then_none(self, loop: HerderLoop) -> None:
        done: list[str] = []

        async def last() -> None:
            await asyncio.sleep(0.01)
            done.append("last")

        loop.end(last, timeout=5)
        assert done == ["last"]
        with pytest.raises(ShuttingDown, match=r"^Worker is shutting down$"):
            loop.submit(nothing)
        loop.post(lambda: done.append("never"))
        loop.end(last, timeout=5)
        assert done == ["last"]

    def test_commands_are_refused_from_the_beginning_of_the_end(self, loop: HerderLoop) -> None:
        refused: list[bool] = []

        async def last() -> None:
            await asyncio.sleep(0.01)
            try:
                loop.submit(nothing)
            except ShuttingDown:
                refused.append(True)

        loop.end(last, timeout=5)
        assert refused == [True]

    def test_one_that_takes_too_long_is_left_behind(self, loop: HerderLoop, caplog: pytest.LogCaptureFixture) -> None:
        loop.end(lambda: asyncio.sleep(60), timeout=0.05)
        assert "The worker did not shut down within 0 s; what still runs is left behind" in caplog.text

    def test_commands_that_have_not_ended_are_cancelled(self, loop: HerderLoop) -> None:
        waiting = loop.submit(lambda: asyncio.sleep(60))
        loop.end(nothing, timeout=5)
        with pytest.raises(CancelledError):
            waiting.result(PATIENCE_S)
