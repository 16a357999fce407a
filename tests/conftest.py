"""Fixtures of all tests: one broker for all that need one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from headgate.dev.broker import Broker

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A real broker of its own for this run, on a free port, gone afterwards."""
    with Broker() as running:
        yield running


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Names that no other test uses: tests share a broker and a worker."""
    number = next(_numbers)
    return lambda name: f"{name}-{number}"
