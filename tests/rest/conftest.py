from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from rest_fakes import FakeHerder
from starlette.testclient import TestClient
from straight_client import StraightClient

from headgate.rest.app import build_app
from headgate.rest.loggers import Loggers
from headgate.rest.settings import RestSettings


@pytest.fixture
def herder() -> FakeHerder:
    return FakeHerder("a")


@pytest.fixture
def manager() -> logging.Manager:
    """Loggers of a process that is not ours, so that no test changes the levels of its own."""
    root = logging.RootLogger(logging.INFO)
    return logging.Manager(root)


@pytest.fixture
def open_client(herder: FakeHerder, manager: logging.Manager) -> Callable[..., TestClient]:
    """Makes a client of an application with the given settings."""

    def make(settings: RestSettings | None = None) -> TestClient:
        app = build_app(
            herder.as_herder(), settings or RestSettings(), metrics=lambda: b"up 1\n", loggers=Loggers(manager)
        )
        return StraightClient(app, base_url="http://worker:8083")

    return make


@pytest.fixture
def client(open_client: Callable[..., TestClient]) -> TestClient:
    return open_client()


@pytest.fixture(scope="session")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=127.0.0.1"]
    try:
        subprocess.run(
            [*command, "-addext", "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("no openssl on this machine")
    both = folder / "both.pem"
    both.write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return both
