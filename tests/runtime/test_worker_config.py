from __future__ import annotations

import pytest

from headgate.api import ConfigError
from headgate.runtime.config.overrides import Listed
from headgate.runtime.config.worker_config import DISTRIBUTED, STANDALONE, WorkerConfig, unknown_keys
from headgate.sandbox import Sandbox

REQUIRED = {
    "bootstrap.servers": "a:1, b:2",
    "key.converter": "K",
    "value.converter": "V",
    "offset.storage.file.filename": "/f",
}
CLUSTER = {
    "bootstrap.servers": "a:1",
    "key.converter": "K",
    "value.converter": "V",
    "group.id": "g",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


def test_what_must_be_there_is_enough() -> None:
    config = WorkerConfig.parse(REQUIRED)
    assert config == WorkerConfig(
        raw=REQUIRED,
        plugin_path=(),
        graceful_timeout_s=5.0,
        flush_interval_ms=60000,
        flush_timeout_ms=5000,
        topic_tracking=True,
        topic_tracking_reset=True,
        bootstrap_servers="a:1,b:2",
        sandbox=Sandbox.of(REQUIRED),
    )


@pytest.mark.parametrize("key", list(REQUIRED))
def test_what_must_be_there_is_asked_for(key: str) -> None:
    with pytest.raises(ConfigError, match=f'^Missing required configuration "{key}" which has no default value.$'):
        WorkerConfig.parse({name: value for name, value in REQUIRED.items() if name != key})


def test_what_is_set_is_read() -> None:
    config = WorkerConfig.parse(
        {
            **REQUIRED,
            "plugin.path": "/a, ~/b",
            "task.shutdown.graceful.timeout.ms": "250",
            "offset.flush.interval.ms": "10",
            "offset.flush.timeout.ms": "20",
            "topic.tracking.enable": "false",
            "topic.tracking.allow.reset": "FALSE",
        }
    )
    assert config.plugin_path == ("/a", "~/b")
    assert (config.graceful_timeout_s, config.flush_interval_ms, config.flush_timeout_ms) == (0.25, 10, 20)
    assert (config.topic_tracking, config.topic_tracking_reset) == (False, False)


@pytest.mark.parametrize(
    ("key", "value"),
    [("offset.flush.interval.ms", "0"), ("offset.flush.timeout.ms", "x"), ("topic.tracking.enable", "1")],
)
def test_what_is_wrong_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"Invalid value {value} for configuration {key}: "):
        WorkerConfig.parse({**REQUIRED, key: value})


def test_keys_below_a_prefix() -> None:
    config = WorkerConfig.parse({**REQUIRED, "producer.linger.ms": "5", "producerx": "no"})
    assert config.prefixed("producer.") == {"linger.ms": "5"}


def test_who_may_override_what() -> None:
    assert WorkerConfig.parse(REQUIRED).overrides.policy == Listed("All")
    keys = {"connector.client.config.override.policy": "Allowlist"}
    assert WorkerConfig.parse({**REQUIRED, **keys}).overrides.policy == Listed("Allowlist", frozenset())
    keys["connector.client.config.override.allowlist"] = "acks, linger.ms"
    chosen = WorkerConfig.parse({**REQUIRED, **keys}).overrides.policy
    assert chosen == Listed("Allowlist", frozenset({"acks", "linger.ms"}))
    with pytest.raises(ConfigError, match="Must be one of"):
        WorkerConfig.parse({**REQUIRED, "connector.client.config.override.policy": "Some"})


@pytest.mark.parametrize(("value", "enabled"), [("disabled", False), ("preparing", False), ("Enabled", True)])
def test_exactly_once_sources(value: str, enabled: bool) -> None:
    assert (
        WorkerConfig.parse({**CLUSTER, "exactly.once.source.support": value}, DISTRIBUTED).exactly_once_sources
        is enabled
    )
    assert not WorkerConfig.parse(REQUIRED).exactly_once_sources


def test_later_changes_of_the_file_are_not_seen() -> None:
    raw = dict(REQUIRED)
    config = WorkerConfig.parse(raw)
    raw.clear()
    assert config.raw == REQUIRED


DEFAULTS = {
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
    "task.shutdown.graceful.timeout.ms": 5000,
    "offset.flush.interval.ms": 60000,
    "offset.flush.timeout.ms": 5000,
    "plugin.path": None,
    "admin.listeners": None,
    "access.control.allow.origin": "",
    "response.http.headers.config": "",
    "topic.creation.enable": True,
    "metrics.sample.window.ms": 30000,
    "metrics.num.samples": 2,
}
CLUSTER_DEFAULTS = {
    "config.storage.replication.factor": 3,
    "offset.storage.partitions": 25,
    "status.storage.partitions": 5,
    "exactly.once.source.support": "disabled",
    "session.timeout.ms": 10000,
    "heartbeat.interval.ms": 3000,
    "rebalance.timeout.ms": 60000,
    "scheduled.rebalance.max.delay.ms": 300000,
    "connect.protocol": "sessioned",
}


def test_the_defaults_are_apaches() -> None:
    parsed = STANDALONE.parse(REQUIRED)
    assert {key: parsed[key] for key in DEFAULTS} == DEFAULTS
    parsed = DISTRIBUTED.parse(CLUSTER)
    assert {key: parsed[key] for key in DEFAULTS} == DEFAULTS
    assert {key: parsed[key] for key in CLUSTER_DEFAULTS} == CLUSTER_DEFAULTS


def test_a_cluster_can_be_configured_too() -> None:
    assert WorkerConfig.parse(CLUSTER, DISTRIBUTED).bootstrap_servers == "a:1"
    assert WorkerConfig.parse(CLUSTER, DISTRIBUTED).session_timeout_ms == 10000
    with pytest.raises(ConfigError, match="must be one of"):
        WorkerConfig.parse({**CLUSTER, "connect.protocol": "greedy"}, DISTRIBUTED)
    assert WorkerConfig.parse({**CLUSTER, "exactly.once.source.support": "ENABLED"}, DISTRIBUTED)


class TestUnknownKeys:
    @pytest.mark.parametrize(
        ("key", "guess"),
        [
            ("listners", "listeners"),
            ("plugin.paths", "plugin.path"),
            ("offset.flush.intervall.ms", "offset.flush.interval.ms"),
            ("bootstrap.server", "bootstrap.servers"),
            ("key.convertor", "key.converter"),
            ("listeenrs", "listeners"),
        ],
    )
    def test_a_key_that_is_almost_right(self, key: str, guess: str) -> None:
        assert unknown_keys({key: "x"}, STANDALONE) == [f"{key} (did you mean {guess}?)"]

    def test_a_key_that_is_like_no_other(self) -> None:
        assert unknown_keys({"zzz": "x"}, STANDALONE) == ["zzz"]

    @pytest.mark.parametrize(
        "key",
        [
            "spark.master", "producer.linger.ms", "consumer.max.poll.records", "admin.retries", "value.converter.x",
            "ssl.protocol", "sasl.mechanism", "security.protocol", "config.providers", "plugin.discovery", "group.id",
            "status.storage.topic", "inter.worker.key.size", "offset.storage.file.filename", "header.converter.x",
            "listeners.https.ssl.key.password", "client.dns.lookup", "rest.extension.classes",
            "headgate.residents.anything",
        ],
    )  # fmt: skip
    def test_keys_that_somebody_reads_or_apache_knows(self, key: str) -> None:
        assert unknown_keys({key: "x"}, STANDALONE) == []

    def test_every_declared_key_is_known(self) -> None:
        assert unknown_keys(dict.fromkeys([*STANDALONE.names, *DISTRIBUTED.names], "x"), STANDALONE) == []

    def test_they_come_in_the_order_of_the_file(self) -> None:
        assert unknown_keys({"zz": "", "listeners": "", "yy": ""}, STANDALONE) == ["zz", "yy"]


def test_a_slip_in_a_key_that_confines_connectors_is_told() -> None:
    assert unknown_keys({"headgate.sandbx": "strict"}, STANDALONE) == [
        "headgate.sandbx (did you mean headgate.sandbox?)"
    ]
    assert unknown_keys({"headgate.residents.max": "1", "headgate.spark.ui.host": "x"}, STANDALONE) == []
