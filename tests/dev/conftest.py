import subprocess
import time
from collections.abc import Callable

import pytest


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Waits until a condition holds, and fails the test when it does not in time."""

    def wait(condition: Callable[[], object], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not so after {seconds} s: {condition}"
            time.sleep(0.02)

    return wait


@pytest.fixture
def alive() -> Callable[[int], bool]:
    """Whether a process runs; one that is dead and only not yet reaped does not."""

    def look(pid: int) -> bool:
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()
        return bool(state) and not state.startswith("Z")

    return look
