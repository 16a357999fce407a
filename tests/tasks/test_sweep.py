"""What ends together is swept up once, soon, and without anybody's help."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator

import pytest

from headgate.tasks.sweep import Sweep


class Knot:
    """Holds itself, as a loop does whose parts call back."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def _nobody_else_collects() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_what_holds_itself_goes_soon(eventually: Callable[..., None]) -> None:
    left = weakref.ref(Knot())
    assert left() is not None
    Sweep(0.01).soon()
    eventually(lambda: left() is None)


def test_many_at_once_are_one_look_and_later_ones_another(
    eventually: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: looks.append(1))
    sweep = Sweep(0.05)
    for _ in range(100):
        sweep.soon()
    eventually(lambda: len(looks) == 1)
    sweep.soon()
    eventually(lambda: len(looks) == 2)
