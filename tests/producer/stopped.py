"""A broker that is stopped for a while: it keeps its connections and says nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from headgate.dev.broker import Broker

_PATIENCE_S: Final = 10.0


@contextmanager
def stopped(broker: Broker) -> Iterator[None]:
    """Nothing of the broker runs inside the block.

    The signal alone does not make it so: `kill` returns before the threads of the JVM have heard of it, on a busy
    machine by tens of milliseconds. What is sent in this time is still taken, and answered."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while running := _running(broker.pid):
            assert time.monotonic() < deadline, f"{running} threads of the broker did not stop"
            time.sleep(0.001)
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def _running(pid: int) -> int:
    """How many threads are not stopped; where there is no /proc to tell, the signal is trusted."""
    running = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            # After the name, which is in brackets and may contain anything.
            state = thread.read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue  # it has ended meanwhile
        running += state != "T"
    return running
