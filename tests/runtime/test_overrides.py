from __future__ import annotations

import pytest

from headgate.api import ConfigError
from headgate.model import ConnectorType
from headgate.runtime.errors import OverridesNotAllowed
from headgate.runtime.overrides import ALLOWLIST, POLICY, Client, OverridePolicy, clients_of

APACHE = "org.apache.kafka.connect.connector.policy."
SOURCE, SINK = ConnectorType.SOURCE, ConnectorType.SINK
LOGIN = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")


def policy(name: str, *allowed: str) -> OverridePolicy:
    return OverridePolicy.parse({POLICY: name, ALLOWLIST: list(allowed)})


@pytest.mark.parametrize(
    "form", ["{}", "{}ConnectorClientConfigOverridePolicy", APACHE + "{}ConnectorClientConfigOverridePolicy"]
)
@pytest.mark.parametrize(
    ("name", "listed", "allowed", "rejected"),
    [
        ("All", (), ("acks", *LOGIN), ()),
        ("None", (), (), ("acks", *LOGIN)),
        ("Principal", (), LOGIN, ("acks", "sasl.login.class")),
        ("Allowlist", ("acks",), ("acks",), ("linger.ms", *LOGIN)),
        ("Allowlist", (), (), ("acks", *LOGIN)),
    ],
)
def test_what_a_policy_allows(
    form: str, name: str, listed: tuple[str, ...], allowed: tuple[str, ...], rejected: tuple[str, ...]
) -> None:
    made = policy(form.format(name), *listed)
    assert [made.rejection(key) for key in allowed] == [None] * len(allowed)
    for key in rejected:
        assert made.rejection(key) == (
            f"The '{name}' policy does not allow '{key}' to be overridden in the connector configuration."
        )


@pytest.mark.parametrize("name", ["all", "Some", "com.acme.MyPolicy", ""])
def test_a_policy_that_is_none(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {name} for configuration {POLICY}: Must be one of: All, "):
        policy(name)


def test_a_violation_names_its_keys() -> None:
    config = {"producer.override.acks": "1", "producer.override.linger.ms": "5", "consumer.override.x": "y"}
    with pytest.raises(OverridesNotAllowed, match=r"^Client Config Overrides not allowed \[acks, linger.ms\]$"):
        policy("None").require(Client.PRODUCER, config)
    policy("None").require(Client.ADMIN, config)
    policy("All").require(Client.PRODUCER, config)


@pytest.mark.parametrize(
    ("kind", "config", "clients"),
    [
        (SOURCE, {}, ["producer"]),
        (SOURCE, {"topic.creation.default.partitions": "1"}, ["producer", "admin"]),
        (SOURCE, {"topic.creation.groups": ""}, ["producer", "admin"]),
        (SOURCE, {"errors.deadletterqueue.topic.name": "d"}, ["producer", "admin"]),
        (SINK, {}, ["consumer"]),
        (SINK, {"errors.deadletterqueue.topic.name": " "}, ["consumer"]),
        (SINK, {"errors.deadletterqueue.topic.name": "d"}, ["producer", "consumer", "admin"]),
        (SINK, {"topic.creation.groups": ""}, ["consumer"]),
    ],
)
def test_which_clients_a_connector_uses(kind: ConnectorType, config: dict[str, str], clients: list[str]) -> None:
    assert [client.value for client in clients_of(kind, config, topic_creation=True)] == clients


def test_no_admin_client_where_the_worker_creates_no_topics() -> None:
    assert clients_of(SOURCE, {"topic.creation.groups": ""}, topic_creation=False) == [Client.PRODUCER]
