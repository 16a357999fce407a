from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import pytest

from headgate.api import ConfigError, OverridePolicy, OverrideRequest
from headgate.model import ConnectorType
from headgate.runtime.config.overrides import ALLOWLIST, POLICY, Client, Overrides, clients_of
from headgate.runtime.errors import OverridesNotAllowed
from headgate.runtime.plugins import Plugins

APACHE = "org.apache.kafka.connect.connector.policy."
SOURCE, SINK = ConnectorType.SOURCE, ConnectorType.SINK
LOGIN = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")


def policy(name: str, *allowed: str, raw: Mapping[str, str] | None = None, plugins: Plugins | None = None) -> Overrides:
    return Overrides.parse({POLICY: name, ALLOWLIST: list(allowed)}, raw or {}, plugins)


def rejected_of(overrides: Overrides, *keys: str) -> Mapping[str, str]:
    config = {f"producer.override.{key}": "x" for key in keys}
    return overrides.rejections(Client.PRODUCER, SOURCE, {"name": "orders", "connector.class": "Orders ", **config})


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
    assert rejected_of(made, *allowed) == {}
    assert rejected_of(made, *allowed, *rejected) == {
        key: f"The '{name}' policy does not allow '{key}' to be overridden in the connector configuration."
        for key in rejected
    }


@pytest.mark.parametrize(
    "name", ["all", "Some", "com.acme.MyPolicy", "", "test_overrides.Nothing", "test_overrides.SOURCE", "..", "a."]
)
def test_a_policy_that_is_none(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {name} for configuration {POLICY}: Must be one of: All, "):
        policy(name)


def test_a_violation_names_its_keys() -> None:
    config = {"producer.override.acks": "1", "producer.override.linger.ms": "5", "consumer.override.x": "y"}
    with pytest.raises(OverridesNotAllowed, match=r"^Client Config Overrides not allowed \[acks, linger.ms\]$"):
        policy("None").require(Client.PRODUCER, SOURCE, config)
    policy("None").require(Client.ADMIN, SOURCE, config)
    policy("All").require(Client.PRODUCER, SOURCE, config)


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


# --- policies of others -----------------------------------------------------------------------------------------------


class Thrifty(OverridePolicy):
    """Allows connectors of one team what costs nothing."""

    seen: list[OverrideRequest] = []

    def configure(self, worker: Mapping[str, str]) -> None:
        self.team = worker["acme.team"]
        if self.team == "nobody":
            raise RuntimeError("no team")
        if self.team == "":
            raise ConfigError("acme.team is empty")

    def rejections(self, request: OverrideRequest) -> Mapping[str, str]:
        self.seen.append(request)
        if request.connector == "broken":
            raise ZeroDivisionError("a bug")
        return {"acks": f"{self.team} pays for acks", "compression.type": "not asked for"}


class Abstract(OverridePolicy):
    pass


RAW = {"acme.team": "sales"}


@pytest.mark.parametrize(
    ("name", "plugins"),
    [
        (f"{__name__}.Thrifty", None),
        (f" {__name__}.Thrifty ", Plugins([Thrifty])),
        ("Thrifty", Plugins([Thrifty])),
    ],
)
def test_a_class_of_ones_own(name: str, plugins: Plugins | None) -> None:
    made = policy(name, raw=RAW, plugins=plugins)
    Thrifty.seen.clear()
    assert rejected_of(made, "acks", "linger.ms") == {"acks": "sales pays for acks"}
    request = OverrideRequest("producer", {"acks": "x", "linger.ms": "x"}, "orders", SOURCE, "Orders")
    assert Thrifty.seen == [request]
    with pytest.raises(OverridesNotAllowed, match=r"not allowed \[acks\]$"):
        made.require(Client.PRODUCER, SOURCE, {"producer.override.acks": "1"})
    assert rejected_of(made) == {}
    assert len(Thrifty.seen) == 2, "nobody asks when nothing is overridden"


def test_the_name_of_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = metadata.EntryPoint("acme-thrifty", f"{__name__}:Thrifty", "headgate.plugins")
    monkeypatch.setattr(metadata, "entry_points", lambda **wanted: [entry] if wanted["name"] == entry.name else [])
    assert isinstance(policy("acme-thrifty", raw=RAW).policy, Thrifty)


def test_a_policy_that_fails_allows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    made = policy(f"{__name__}.Thrifty", raw=RAW)
    config = {"name": "broken", "producer.override.acks": "1", "producer.override.linger.ms": "1"}
    problem = "The policy Thrifty failed: ZeroDivisionError: a bug"
    assert made.rejections(Client.PRODUCER, SOURCE, config) == {"acks": problem, "linger.ms": problem}
    assert "a bug" in caplog.text


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("Thrifty", {"acme.team": "nobody"}, r"Policy .*Thrifty \(connector.client.* cannot be configured: no team"),
        ("Thrifty", {"acme.team": ""}, "^acme.team is empty$"),
        ("Abstract", RAW, "Must be one of.*Can't instantiate abstract class Abstract"),
        ("pytest", RAW, "is not a headgate.api.OverridePolicy"),
        ("Absent", RAW, "has no attribute 'Absent'"),
    ],
)
def test_a_class_that_cannot_be_used_stops_the_worker(name: str, raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        policy(f"{__name__}.{name}", raw=raw)
