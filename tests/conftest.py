"""Fixtures of all tests: one broker for all that need one."""

from __future__ import annotations

import gc
import itertools
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from headgate.dev.broker import Broker

# How long an example takes says something about the machine, not about the code.
# Half of the usual number of examples: those of columns are looked at by the million with `make same`.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
# A fifth of these: `make pure` is for every change, `make test` for what is to stay.
settings.register_profile("quick", settings.get_profile("steady"), max_examples=10)
settings.load_profile("steady")

# The JVMs of tests live for seconds or minutes: Java's second compiler would cost more time than it saves.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1")

# What a shell starts in the background ignores Ctrl-C, and so would all processes that tests start and end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Modules and tests are made by the thousand before the first test runs, and none of them is garbage.
gc.disable()
# Reports of tests stay, too, and no test needs its garbage to go at once.
gc.set_threshold(10_000, 10, 10)

_numbers = itertools.count(1)


_PURE = "not broker and not spark and not process and not clusters"
_SERVED = "(broker or spark or process) and not clusters"
_SOME_SERVED = re.compile(r"\bmark\.(broker|spark|process)\b")
_ALL_SERVED = re.compile(rf"^pytestmark = .*{_SOME_SERVED.pattern}", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What `make pure` and `make test` leave out as a whole need not be imported for that."""
    chosen = config.option.markexpr
    if chosen not in (_PURE, _SERVED) or not re.fullmatch(r"test_.*\.py", collection_path.name):
        return None
    text = collection_path.read_text()
    left_out = _ALL_SERVED.search(text) if chosen == _PURE else not _SOME_SERVED.search(text)
    return bool(left_out) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that take longest come first: processes share the files, and none shall have one left at the end."""
    items.sort(key=lambda item: [item.get_closest_marker(each) is None for each in ("spark", "broker", "process")])


def pytest_collection_finish() -> None:
    """Ten thousand tests stay until the end: the garbage collector need not look at them again and again."""
    gc.freeze()
    gc.enable()


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


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits until a condition holds, and fails the test when it does not in time."""

    def wait(condition: Callable[[], object], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not so after {seconds} s: {condition}"
            time.sleep(0.005)

    return wait


@pytest.fixture
def no_files() -> Callable[[], AbstractContextManager[None]]:
    """Within it, nothing can be opened in this process."""

    @contextmanager
    def short() -> Iterator[None]:
        files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))

    return short


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process runs; one that is dead and only not yet reaped does not."""

    def look(pid: int) -> bool:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
        return bool(state) and not state.startswith("Z")

    return look
