"""What other users of the machine can read of a worker's Spark, and where they can reach it."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from harness import WATCHED, await_
from pyspark import SparkContext

from headgate.cli.assembly import StandaloneWorker

pytestmark = pytest.mark.spark

SECRET = WATCHED["spark.hadoop.fs.s3a.secret.key"].encode()
LISTENS = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
"""As the kernel writes it: IPv4, IPv6, and the one in the other."""


def descendants(pid: int) -> list[Path]:
    """The process, its children, and theirs."""
    parents: dict[str, str] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                parents[each.name] = (each / "stat").read_text().rpartition(") ")[2].split()[1]
            except OSError:
                continue  # it has ended meanwhile
    found = [str(pid)]
    for known in found:
        found += [child for child, parent in parents.items() if parent == known]
    return [Path("/proc", each) for each in found]


@pytest.fixture
def processes(worker: StandaloneWorker) -> list[Path]:
    """The JVM, the daemon that it has started for Python code, and a resident at least."""
    worker.engine.ready()
    pid = worker.engine.pid()
    assert pid is not None
    residents = worker.engine._residents._pool.residents
    await_(lambda: any(each.there for each in list(residents.values())), "a resident", 60)
    return descendants(pid)


def test_no_setting_is_in_a_command_line_or_an_environment(worker: StandaloneWorker, processes: list[Path]) -> None:
    for each in processes:
        with suppress(ProcessLookupError, FileNotFoundError):  # it has ended meanwhile
            assert SECRET not in (each / "cmdline").read_bytes()
            assert SECRET not in (each / "environ").read_bytes()
    conf = worker.engine.session().sparkContext.getConf()
    assert conf.get("spark.hadoop.fs.s3a.secret.key") == SECRET.decode()
    assert b"-Xmx2g" in (processes[0] / "cmdline").read_bytes(), "what the JVM itself is started with is read, too"


def opened(process: Path) -> Iterator[str]:
    with suppress(OSError):  # it has ended meanwhile
        for each in os.listdir(process / "fd"):
            with suppress(OSError):  # it was closed meanwhile
                yield os.readlink(process / "fd" / each)


def sockets(processes: list[Path]) -> set[str]:
    """By their inodes."""
    return {file[8:-1] for each in processes for file in opened(each) if file.startswith("socket:[")}


def rows(kind: str) -> list[list[str]]:
    return [line.split() for line in Path("/proc/net", kind).read_text().splitlines()[1:]]


def test_whatever_listens_does_so_for_this_machine_alone(processes: list[Path]) -> None:
    own = sockets(processes)
    listening = [row[1].rpartition(":")[0] for row in rows("tcp") + rows("tcp6") if row[3] == LISTENS and row[9] in own]
    assert len(listening) >= 3, "py4j, the driver, the UI"
    assert [each for each in listening if each not in LOOPBACK] == []


def test_what_is_temporary_is_where_nobody_else_may_look(worker: StandaloneWorker, processes: list[Path]) -> None:
    own = sockets([*processes, Path("/proc/self")])
    bound = [Path(row[7]) for row in rows("unix") if len(row) > 7 and row[6] in own and row[7].endswith(".sock")]
    (folder,) = worker.engine._folders
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {each.parent for each in bound} == {folder}
    assert list(folder.glob("blockmgr-*")), "what Spark does not hold in memory"
    assert not list(folder.glob("*.properties")), "its settings"


def test_the_ui_answers_whoever_is_on_this_machine(worker: StandaloneWorker) -> None:
    url = worker.engine.session().sparkContext.uiWebUrl
    assert url is not None
    with urlopen(url, timeout=30) as answer:
        assert answer.status == 200


def test_who_does_not_know_sparks_token_gets_nothing_out_of_py4j(worker: StandaloneWorker) -> None:
    worker.engine.ready()
    gateway: Any = SparkContext._gateway
    parameters = gateway.gateway_parameters
    assert parameters.address == "127.0.0.1"

    def asked(*commands: str) -> list[str]:
        with socket.create_connection((parameters.address, parameters.port), 30) as stranger, suppress(ConnectionError):
            for command in commands:
                stranger.sendall(command.encode())
            with stranger.makefile("rb") as lines:
                return [line.decode() for _, line in zip(commands, lines, strict=False)]
        return []  # it has hung up

    ask = "c\nz:java.lang.System\ngetProperty\nsuser.name\ne\n"
    for told in (asked(ask), asked("A\nnobody's\n", ask)):
        assert [line for line in told if not line.startswith("!x")] == [], "an error, or nothing"
    token, answer = asked(f"A\n{parameters.auth_token}\n", ask)
    assert (token.startswith("!y"), answer.startswith("!ys")) == (True, True), "Java's text, for who knows it"
