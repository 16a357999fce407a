import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.dev.guarded import GuardedProcess
from headgate.jars.lock import FileLock

pytestmark = pytest.mark.process

SLEEP = ["/bin/sh", "-c", "while :; do sleep 0.1; done"]
STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"]
PARENT = """
import os, signal, sys
from pathlib import Path
from headgate.dev.guarded import GuardedProcess
from headgate.jars.lock import FileLock
folder = Path(sys.argv[1])
lock = FileLock(folder / "lock")
lock.acquire(wait=False)
process = GuardedProcess(sys.argv[3:], console=folder.parent / "console", grace=5, lock=lock.fileno(), leftover=folder)
if sys.argv[2] == "fork" and os.fork() == 0:
    signal.pause()
print(process.pid, flush=True)
signal.pause()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[FileLock]:
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire(wait=False)
    yield lock
    lock.release()


def test_it_stops_when_asked(tmp_path: Path, lock: FileLock, alive: Callable[[int], bool]) -> None:
    process = GuardedProcess(SLEEP, console=tmp_path / "console", grace=10, lock=lock.fileno())
    assert alive(process.pid)
    assert not process.wait(0.01)
    process.stop()
    assert not alive(process.pid)
    assert process.ended()
    process.stop()


def test_one_that_does_not_stop_is_killed(
    tmp_path: Path, lock: FileLock, alive: Callable[[int], bool], eventually: Callable[..., None]
) -> None:
    process = GuardedProcess(STUBBORN, console=tmp_path / "console", grace=0.3, lock=lock.fileno())
    eventually(lambda: "ready" in (tmp_path / "console").read_text())
    process.stop()
    assert not alive(process.pid)


def test_its_own_end_is_seen(tmp_path: Path, lock: FileLock) -> None:
    process = GuardedProcess(["/bin/sh", "-c", "echo over"], console=tmp_path / "console", grace=10, lock=lock.fileno())
    assert process.wait(10)
    process.kill()
    assert (tmp_path / "console").read_text() == "over\n"


def test_a_command_that_is_not_there_is_an_error(tmp_path: Path, lock: FileLock) -> None:
    with pytest.raises(OSError, match="nothing-here could not be started"):
        GuardedProcess(["/nothing-here"], console=tmp_path / "console", grace=10, lock=lock.fileno())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a process to its parent")
def test_it_ends_even_with_its_watchdog(
    tmp_path: Path, lock: FileLock, alive: Callable[[int], bool], eventually: Callable[..., None]
) -> None:
    process = GuardedProcess(SLEEP, console=tmp_path / "console", grace=10, lock=lock.fileno())
    os.kill(process._watchdog.pid, signal.SIGKILL)
    eventually(lambda: not alive(process.pid))
    process.stop()


@pytest.mark.parametrize("line", ["held by the parent alone", "fork"])
def test_nothing_is_left_when_its_parent_is_killed(
    tmp_path: Path, line: str, alive: Callable[[int], bool], eventually: Callable[..., None]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    script = [sys.executable, "-c", PARENT, str(folder), line, *SLEEP]
    with subprocess.Popen(script, stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        assert not FileLock(folder / "lock").acquire(wait=False)
        parent.kill()
        eventually(lambda: not alive(pid))
        eventually(lambda: not folder.exists())
        if line == "fork":
            os.killpg(parent.pid, signal.SIGKILL)  # the forked one, which held the line open all the time
