"""Stands between a broker and the process that started it, so that neither kill -9 nor a crash leaves a JVM behind.

Run as a script: `python -I -S watchdog.py PARENT GRACE LEFTOVER COMMAND...`, with the standard library
only, so that it is there in a moment. It starts COMMAND with its own standard error for output and writes the pid of
it to standard output. Standard input is the line to the parent: `s` stops the JVM (SIGTERM, after GRACE seconds
SIGKILL), `k` kills it. When the line breaks the parent is gone: the JVM is stopped and the folder LEFTOVER, if any, is
removed. It ends when the JVM has ended, never before.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from types import FrameType
from typing import Final

GLANCE_SECONDS: Final = 0.2


def main(parent: int, grace: float, leftover: str, command: list[str]) -> None:
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGHUP, _leave)
    jvm = subprocess.Popen(  # noqa: S603 - the command that Guarded was given, and no shell
        command, stdin=subprocess.DEVNULL, stdout=2, stderr=2, preexec_fn=_die_with_watchdog
    )
    gone = False
    try:
        print(jvm.pid, flush=True)
        order = _await_order(jvm, parent)
        gone = order == b""
        if order == b"k":
            jvm.kill()
    finally:
        _stop(jvm, grace)
        if gone and leftover:
            shutil.rmtree(leftover, ignore_errors=True)


def _await_order(jvm: "subprocess.Popen[bytes]", parent: int) -> bytes | None:
    """The parent's order, nothing (`b""`) when the parent is gone, None when the JVM has ended by itself."""
    while jvm.poll() is None:
        if select.select([0], [], [], GLANCE_SECONDS)[0]:
            return os.read(0, 1)
        # The line stays whole after the parent's death for as long as a process that the parent forked holds a copy.
        if os.getppid() != parent:
            return b""
    return None


def _stop(jvm: "subprocess.Popen[bytes]", grace: float) -> None:
    jvm.terminate()  # does nothing when it has ended already
    try:
        jvm.wait(grace)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _die_with_watchdog() -> None:
    # Linux can do the same for the watchdog itself. It is bound to the thread that forks; here there is only one.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, int(signal.SIGKILL), 0, 0, 0)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:])
