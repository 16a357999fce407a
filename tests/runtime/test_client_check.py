from __future__ import annotations

import pytest
from runtime_fakes import WORKER_FILE

from headgate.kafka.settings import ClientKind, translate
from headgate.model import Config, ConnectorType
from headgate.runtime.config.client_check import ClientCheck
from headgate.runtime.config.worker_config import WorkerConfig

SOURCE, SINK = ConnectorType.SOURCE, ConnectorType.SINK


def checked(kind: ConnectorType, config: dict[str, str], **worker: str) -> dict[str, tuple[str, list[str]]]:
    raw = {**WORKER_FILE, **{key.replace("_", "."): value for key, value in worker.items()}}
    check = ClientCheck(WorkerConfig.parse(raw), lambda client, settings: translate(ClientKind(client), settings))
    infos = check.infos(kind, {"name": "orders", **config})
    assert all(info.key is None for info in infos)
    return {info.value.name: (info.value.value, info.value.errors) for info in infos if info.value}


def test_overrides_are_shown_in_the_order_of_clients() -> None:
    config = {
        "admin.override.retries": "3",
        "consumer.override.fetch.min.bytes": "7",
        "producer.override.acks": "1",
        "errors.deadletterqueue.topic.name": "d",
        "other": "x",
    }
    assert list(checked(SINK, config).items()) == [
        ("producer.override.acks", ("1", [])),
        ("consumer.override.fetch.min.bytes", ("7", [])),
        ("admin.override.retries", ("3", [])),
    ]


def test_clients_that_are_not_used_are_not_looked_at() -> None:
    config = {"consumer.override.fetch.min.bytes": "no number", "admin.override.x": "y"}
    assert checked(SOURCE, config, connector_client_config_override_policy="None") == {}


def test_what_the_policy_rejects() -> None:
    config = {"producer.override.acks": "1", "producer.override.linger.ms": "none"}
    found = checked(
        SOURCE,
        config,
        connector_client_config_override_policy="Allowlist",
        connector_client_config_override_allowlist="acks, client.id",
    )
    rejection = "The 'Allowlist' policy does not allow 'linger.ms' to be overridden in the connector configuration."
    assert found == {"producer.override.acks": ("1", []), "producer.override.linger.ms": ("none", [rejection])}


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("linger.ms", "soon", "linger.ms must be a whole number, not 'soon'."),
        ("acks", "some", "Kafka's client refuses this configuration"),
        ("partitioner.class", "com.acme.Mine", "a Java class, which cannot run here"),
        ("ssl.cipher.suites", "TLS_AES_128", "Java's names of cipher suites"),
    ],
)
def test_a_value_that_cannot_be_done(key: str, value: str, reason: str) -> None:
    ((name, (shown, errors)),) = checked(SOURCE, {f"producer.override.{key}": value}).items()
    assert (name, shown) == (f"producer.override.{key}", value)
    (error,) = errors
    assert error.startswith(f"Invalid value {value} for configuration {name}: ")
    assert reason in error


def test_values_that_are_wrong_only_together() -> None:
    config = {
        "producer.override.client.id": "x",
        "producer.override.security.protocol": "SASL_PLAINTEXT",
        "producer.override.sasl.jaas.config": "com.acme.Login required;",
    }
    found = checked(SOURCE, config)
    assert found["producer.override.client.id"] == ("x", [])
    (error,) = found["producer.override.sasl.jaas.config"][1]
    assert "com.acme.Login, a Java class, which cannot run here" in error


def test_the_workers_settings_count_too() -> None:
    config = {"producer.override.sasl.jaas.config": "com.acme.Login required;"}
    assert checked(SOURCE, config)["producer.override.sasl.jaas.config"][1] == []
    found = checked(SOURCE, config, producer_security_protocol="SASL_SSL")
    assert len(found["producer.override.sasl.jaas.config"][1]) == 1


@pytest.mark.parametrize(
    "key", ["sasl.jaas.config", "ssl.key.password", "ssl.keystore.key", "sasl.oauthbearer.client.secret"]
)
def test_passwords_are_not_shown(key: str) -> None:
    assert checked(SOURCE, {f"producer.override.{key}": "x"})[f"producer.override.{key}"][0] == "[hidden]"


def test_what_nobody_tries_is_fine() -> None:
    config: Config = {"name": "a", "producer.override.acks": "some"}
    (info,) = ClientCheck(WorkerConfig.parse(WORKER_FILE)).infos(SOURCE, config)
    assert info.value is not None
    assert info.value.errors == []
