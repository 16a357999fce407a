"""HerderCalls: what the herder is asked from another thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class HerderThread(Protocol):
    """The herder's thread."""

    def submit(self, command: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]: ...


class Ended(Exception):
    """There is nothing left to ask."""


class Unanswered(Exception):
    """The herder did not say what it was asked."""


class HerderCalls:
    """All of it by one thread, but for `end`, which ends whatever it waits for."""

    def __init__(self, herder: HerderThread, patience_s: float) -> None:
        self._herder = herder
        self._patience_s = patience_s
        self._ended: Future[None] = Future()

    @property
    def ended(self) -> bool:
        return self._ended.done()

    def end(self) -> None:
        """From any thread."""
        if not self._ended.done():
            self._ended.set_result(None)

    def sleep(self, seconds: float) -> None:
        wait([self._ended], seconds)

    def submit(self, question: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Raises Unanswered when the herder takes no more."""
        try:
            return self._herder.submit(question)
        except Exception as error:
            raise Unanswered(f"the herder takes no more questions: {error!r}") from error

    def ping(self) -> Future[None]:
        """Only whether anybody is there."""
        return self.submit(nothing)

    def ask(self, question: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Waits for the answer, and for nothing else. Raises Unanswered, Ended."""
        answer = self.submit(question)
        either: list[Future[Any]] = [answer, self._ended]
        wait(either, self._patience_s, FIRST_COMPLETED)
        if self.ended:
            raise Ended
        if not answer.done():
            answer.cancel()
            raise Unanswered(f"the herder did not answer within {self._patience_s:.0f} s")
        try:
            return answer.result()
        except Exception as error:
            raise Unanswered(f"the herder failed with {error!r}") from error

    def until(self, answer: Future[Any], meanwhile: Callable[[], None]) -> None:
        """However long it takes; `meanwhile` is called again and again. Raises Ended."""
        while not answer.done():
            if self.ended:
                raise Ended
            meanwhile()


async def nothing() -> None:
    """For who only wants to hear whether somebody is there."""
