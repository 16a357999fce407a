"""A child process behind its watchdog."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from headgate.dev import watchdog


class GuardedProcess:
    """A process that ends at the latest when this one does, however this one ends; see `watchdog`.

    It has a session of its own, so a Ctrl-C in the terminal does not reach it: clients of a broker still want to
    commit before the broker goes. Its output goes to `console`. When this process vanishes without an order, the folder
    `leftover` is removed afterwards. `lock` is an open file that stays open for as long as the process lives.
    OSError when it cannot be started."""

    def __init__(
        self, command: Sequence[str], *, console: Path, grace: float, lock: int, leftover: Path | None = None
    ) -> None:
        guard = [sys.executable, "-I", "-S", watchdog.__file__, str(os.getpid()), str(grace), str(leftover or "")]
        with console.open("wb") as output:
            self._watchdog = subprocess.Popen(  # noqa: S603 - the command of whoever starts it, and no shell
                [*guard, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                bufsize=0,
                start_new_session=True,
                pass_fds=[lock],
            )
        answer = _pipe(self._watchdog.stdout).readline()
        if not answer:
            self.stop()
            raise OSError(f"{command[0]} could not be started; {console} says why")
        self.pid = int(answer)

    def ended(self) -> bool:
        return self._watchdog.poll() is not None

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it has ended, by itself or not, within `seconds`."""
        try:
            self._watchdog.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """SIGTERM, after the grace SIGKILL; returns when it has ended."""
        self._order(b"s")

    def kill(self) -> None:
        """SIGKILL; returns when it has ended."""
        self._order(b"k")

    def _order(self, order: bytes) -> None:
        # Through the watchdog, whose child it is: only there is the pid sure not to be someone else's by now.
        line = _pipe(self._watchdog.stdin)
        if not line.closed:
            try:
                line.write(order)
            except BrokenPipeError:
                pass  # ended by itself
            finally:
                line.close()
                _pipe(self._watchdog.stdout).close()
        self._watchdog.wait()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
