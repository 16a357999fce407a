"""Fetches go on when a broker was away, asks to wait, or wants to know who is there."""

from __future__ import annotations

import gc
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from fetch_support import Doors, create, produce, settings_of
from test_client_settings import CERTIFICATE, KEY
from wire_support import ALL

from headgate.jars.find import find_java
from headgate.jars.jars import KAFKA_BROKER, fetch
from headgate.kafka.fetch.fetcher import Fetcher, Silent
from headgate.kafka.settings import ClientKind, translate
from headgate.model import TopicPartition

# kafka-python leaves the socket of an attempt that was refused to the garbage collector.
pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

JAAS = 'org.apache.kafka.common.security.{} required username="alice" password="wonder,\\"land\\"";'


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def large(doors: Doors, unique: Callable[[str], str]) -> TopicPartition:
    """A topic that takes three fetches."""
    where = create(doors.broker, unique("large"))
    produce(doors.broker, where, *[b"%4d" % at + os.urandom(10_000) for at in range(1000)])
    return where


def test_a_broker_that_is_restarted_in_between(doors: Doors, large: TopicPartition) -> None:
    tables = []
    with Fetcher(settings_of(doors.broker), 30.0) as fetcher:
        for table, _ in fetcher.read(large, 0, 1000, ALL):
            tables.append(table)
            if len(tables) == 1:
                doors.broker.restart()
    assert pa.concat_tables(tables)["offset"].to_pylist() == list(range(1000))


def test_a_broker_that_is_not_there_is_silent(doors: Doors) -> None:
    nobody = {"bootstrap.servers": "127.0.0.1:1"}
    began = time.monotonic()
    with Fetcher(nobody, 1.0) as fetcher, pytest.raises(Silent, match="Unable to bootstrap"):
        list(fetcher.read(TopicPartition("any", 0), 0, 1, ALL))
    assert time.monotonic() - began < 5


def test_a_quota_is_waited_for_however_long_it_takes(doors: Doors, large: TopicPartition) -> None:
    """A broker that asks to wait is not silent: the patience here is less than what a fetch costs by this quota."""
    order = ["--alter", "--add-config", "consumer_byte_rate=2500000", "--entity-type", "clients"]
    command = [str(find_java()), "-cp", os.pathsep.join(map(str, fetch(KAFKA_BROKER))), "kafka.admin.ConfigCommand"]
    command += ["--bootstrap-server", doors.broker.bootstrap, *order, "--entity-name", large.topic]
    subprocess.run(command, check=True, capture_output=True)
    settings = {**settings_of(doors.broker), "client.id": large.topic}
    began = time.monotonic()
    with Fetcher(settings, 1.0) as fetcher:
        found = [
            offset for table, _ in fetcher.read(large, 0, 1000, ["offset"]) for offset in table["offset"].to_pylist()
        ]
    assert found == list(range(1000))
    assert time.monotonic() - began > 1


# --- who is there -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def where(doors: Doors) -> TopicPartition:
    where = create(doors.broker, "behind-doors")
    produce(doors.broker, where, b"one", b"two")
    return where


@pytest.fixture(scope="module")
def alice(doors: Doors) -> None:
    """Known by SCRAM too."""
    admin = AdminClient({"bootstrap.servers": doors.broker.bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        known = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), b'wonder,"land"')
        admin.alter_user_scram_credentials([known])["alice"].result(10)


def values(where: TopicPartition, **consumer: Any) -> list[bytes]:
    """Read with a consumer's settings by their Java names."""
    named = {key.replace("_", "."): value for key, value in consumer.items()}
    with Fetcher(translate(ClientKind.CONSUMER, named).config, 5.0) as fetcher:
        return [value for table, _ in fetcher.read(where, 0, 2, ALL) for value in table["value"].to_pylist()]


@pytest.mark.usefixtures("alice")
@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
def test_a_login(doors: Doors, where: TopicPartition, mechanism: str, module: str) -> None:
    found = values(
        where,
        bootstrap_servers=doors.login,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_jaas_config=JAAS.format(module),
    )
    assert found == [b"one", b"two"]


def test_a_certificate_on_both_sides(doors: Doors, where: TopicPartition, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (tmp_path / "client.pem").write_text(CERTIFICATE + KEY)
    found = values(
        where,
        bootstrap_servers=doors.tls,
        security_protocol="SSL",
        ssl_truststore_location=str(tmp_path / "ca.pem"),
        ssl_truststore_type="PEM",
        ssl_keystore_location=str(tmp_path / "client.pem"),
        ssl_keystore_type="PEM",
        ssl_endpoint_identification_algorithm="",
    )
    assert found == [b"one", b"two"]


def test_without_a_login_nothing_is_read(doors: Doors, where: TopicPartition) -> None:
    with Fetcher({"bootstrap.servers": doors.login}, 1.0) as fetcher, pytest.raises(Silent):
        list(fetcher.read(where, 0, 2, ALL))
