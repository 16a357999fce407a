"""The PostgreSQL of tests and examples: it serves, keeps its data, and ends with whoever started it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.dev.postgres import Postgres, PostgresFailed

pytestmark = pytest.mark.process

PARENT = """
import signal
from headgate.dev.postgres import Postgres
server = Postgres()
server.start()
print(server.pid, server.data, flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with Postgres() as running:
        yield running


def test_it_serves_and_says_what_is_wrong(server: Postgres) -> None:
    assert server.run("SELECT 1, 'a'; SELECT 2") == [["1", "a"], ["2"]]
    with pytest.raises(PostgresFailed, match="does not exist"):
        server.run("SELECT * FROM nothing")


def test_it_keeps_port_and_data_over_a_kill(server: Postgres) -> None:
    server.run("CREATE TABLE kept (n INT); INSERT INTO kept VALUES (7)")
    url = server.url
    server.kill()
    assert not server.running()
    server.restart()
    assert (server.url, server.run("SELECT n FROM kept")) == (url, [["7"]])


def test_a_temporary_folder_goes_with_it() -> None:
    with Postgres() as running:
        data = running.data
    assert not data.exists()
    assert not running.running()


def test_it_ends_with_its_parent(alive: Callable[[int], bool], eventually: Callable[..., None]) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, data = parent.stdout.readline().split()
        assert alive(int(pid))
        parent.send_signal(signal.SIGKILL)
    eventually(lambda: not alive(int(pid)))
    eventually(lambda: not Path(data).exists())
