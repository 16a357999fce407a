"""Fixtures of the tests with a schema registry."""

from __future__ import annotations

from collections.abc import Iterator

import certifi
import pytest
from registry_stand_in import StandIn

from headgate.pipeline.columns import json_groups, reading


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Each client reads all that it would trust, which takes longer than most tests; here, the first must do."""
    end = "-----END CERTIFICATE-----\n"
    file = tmp_path_factory.mktemp("ca") / "one.pem"
    with open(certifi.where(), encoding="utf-8") as known:
        file.write_text(known.read().partition(end)[0] + end)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(file))
        yield


@pytest.fixture
def few_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns, however few there are."""
    for each in (reading, json_groups):
        monkeypatch.setattr(each, "FEWEST", 1)


@pytest.fixture
def registry() -> Iterator[StandIn]:
    running = StandIn()
    yield running
    running.close()


@pytest.fixture(scope="session")
def shared_registry() -> Iterator[StandIn]:
    """For property tests, which look at no subject."""
    running = StandIn()
    yield running
    running.close()
