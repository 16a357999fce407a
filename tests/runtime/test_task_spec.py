from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from runtime_fakes import WORKER_FILE, ScriptedSinkConnector, ScriptedSourceConnector

from headgate.api import Predicate, Record, Transform
from headgate.model import ConnectorType, PluginRef, PluginSpec, StepSpec, TargetState, TaskId
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.converters.string import StringConverter
from headgate.runtime import task_spec
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.errors import OverridesNotAllowed, PluginNotFound
from headgate.runtime.plugins import Plugins


class Mask(Transform[Record]):
    def apply(self, record: Record) -> Record | None:
        return record


class Has(Predicate[Record]):
    def test(self, record: Record) -> bool:
        return True


PLUGINS = Plugins(
    [
        ScriptedSourceConnector, ScriptedSinkConnector, StringConverter, JsonConverter, SimpleHeaderConverter, Mask, Has
    ]
)  # fmt: skip
TASK = TaskId("orders", 3)
STRING = PluginRef("headgate.pipeline.converters.string", "StringConverter")
JSON = PluginRef("headgate.pipeline.converters.json", "JsonConverter")


def worker(**more: str) -> WorkerConfig:
    return WorkerConfig.parse({**WORKER_FILE, **{key.replace("_", "."): value for key, value in more.items()}})


def test_all_that_a_runner_needs() -> None:
    connector = {"name": "orders", "connector.class": "ScriptedSource", "errors.tolerance": "all"}
    config = {"part": "3"}
    spec = task_spec.build(TASK, connector, config, TargetState.PAUSED, worker(offset_flush_interval_ms="7"), PLUGINS)
    assert (spec.id, spec.type, spec.version) == (TASK, ConnectorType.SOURCE, "7.1")
    assert spec.task_class is ScriptedSourceConnector.task_class
    assert (spec.config, spec.connector_config, spec.target_state) == (config, connector, TargetState.PAUSED)
    assert (spec.flush_interval_ms, spec.flush_timeout_ms) == (7, 5000)
    assert (spec.chain.task, spec.chain.type) == (TASK, ConnectorType.SOURCE)
    assert spec.chain.errors == {"errors.tolerance": "all"}
    assert spec.chain.steps == ()


def test_a_class_that_is_not_there() -> None:
    with pytest.raises(PluginNotFound):
        task_spec.build(TASK, {"connector.class": "Gone"}, {}, TargetState.STARTED, worker(), PLUGINS)


def test_settings_that_the_policy_does_not_allow() -> None:
    """Validation comes first, but the policy may have changed since."""
    connector = {"connector.class": "ScriptedSource", "producer.override.acks": "1", "consumer.override.x": "y"}
    strict = worker(connector_client_config_override_policy="None")
    with pytest.raises(OverridesNotAllowed, match=r"^Client Config Overrides not allowed \[acks\]$"):
        task_spec.build(TASK, connector, {}, TargetState.STARTED, strict, PLUGINS)
    del connector["producer.override.acks"]  # what a source does not use is nobody's concern
    assert task_spec.build(TASK, connector, {}, TargetState.STARTED, strict, PLUGINS)


def test_topics_are_created_by_sources_only() -> None:
    creation = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}

    def groups(kind: str, settings: WorkerConfig) -> list[str]:
        connector = {"connector.class": kind, **creation}
        spec = task_spec.build(TASK, connector, {}, TargetState.STARTED, settings, PLUGINS)
        return [group.name for group in spec.topic_groups]

    assert groups("ScriptedSource", worker()) == ["default"]
    assert groups("ScriptedSource", worker(topic_creation_enable="false")) == []
    assert groups("ScriptedSink", worker()) == []


class TestConverters:
    def test_the_workers_with_the_workers_keys(self) -> None:
        connector = {"value.converter.converter.encoding": "ASCII"}
        spec = task_spec.converter("value.converter", connector, worker(), PLUGINS)
        assert spec == PluginSpec(STRING, {"converter.encoding": "UTF-8"})

    def test_the_connectors_with_the_connectors_keys_only(self) -> None:
        connector = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
        spec = task_spec.converter("value.converter", connector, worker(), PLUGINS)
        assert spec == PluginSpec(JSON, {"schemas.enable": "false"})

    def test_headers_have_one_if_nobody_says_so(self) -> None:
        simple = PluginRef("headgate.pipeline.converters.simple_header", "SimpleHeaderConverter")
        assert task_spec.converter("header.converter", {}, worker(), PLUGINS) == PluginSpec(simple, {})
        chosen = task_spec.converter("header.converter", {}, worker(header_converter="StringConverter"), PLUGINS)
        assert chosen == PluginSpec(STRING, {})

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(PluginNotFound):
            task_spec.converter("key.converter", {"key.converter": "Gone"}, worker(), PLUGINS)


class TestSteps:
    CONFIG = {
        "transforms": "b, a",
        "transforms.a.type": "Mask",
        "transforms.a.fields": "x",
        "transforms.b.type": "Mask",
        "transforms.b.predicate": "p",
        "transforms.b.negate": " TRUE ",
        "transforms.b.plugin.version": "1",
        "predicates": "p",
        "predicates.p.type": "Has",
        "predicates.p.name": "n",
    }

    def test_they_are_in_order_with_their_own_keys(self) -> None:
        chain = task_spec.chain(TASK, ConnectorType.SINK, self.CONFIG, worker(), PLUGINS)
        mask, has = PluginRef(__name__, "Mask"), PluginRef(__name__, "Has")
        assert chain.steps == (
            StepSpec("b", PluginSpec(mask, {}), PluginSpec(has, {"name": "n"}), negate=True),
            StepSpec("a", PluginSpec(mask, {"fields": "x"}), None, negate=False),
        )

    def test_one_that_is_not_there(self) -> None:
        with pytest.raises(PluginNotFound):
            task_spec.chain(TASK, ConnectorType.SINK, {"transforms": "t"}, worker(), PLUGINS)


class TestClients:
    """Low to high: ours, the worker's, the connector's."""

    def test_a_producer(self) -> None:
        ours = task_spec.producer_config(TASK, {}, worker())
        assert ours["bootstrap.servers"] == "broker:9092"
        assert ours["client.id"] == "connector-producer-orders-3"
        assert ours["acks"] == "all"
        assert ours["delivery.timeout.ms"] == "2147483647"
        settings = worker(producer_linger_ms="5", producer_acks="1")
        connector = {"producer.override.acks": "0", "producer.override.bootstrap.servers": "far:9092", "acks": "no"}
        chosen = task_spec.producer_config(TASK, connector, settings)
        assert (chosen["linger.ms"], chosen["acks"], chosen["bootstrap.servers"]) == ("5", "0", "far:9092")

    @pytest.mark.parametrize(
        ("overrides", "room"),
        [
            ({}, 5_000_000),
            ({"max.request.size": "2000000"}, 5_000_000),
            ({"max.request.size": "9000000"}, 18_000_000),
            ({"message.max.bytes": " 9000000 "}, 18_000_000),
            ({"max.request.size": "many"}, 5_000_000),
            ({"buffer.memory": "7"}, 7),
        ],
    )
    def test_a_producer_has_the_room_of_a_task_and_for_two_records(self, overrides: dict[str, str], room: int) -> None:
        connector = {f"producer.override.{key}": value for key, value in overrides.items()}
        chosen = task_spec.producer_config(TASK, connector, replace(worker(), buffer_bytes=5_000_000))
        assert chosen["buffer.memory"] == str(room)

    def test_a_consumer(self) -> None:
        assert task_spec.consumer_config(TASK, {}, worker()) == {
            "bootstrap.servers": "broker:9092",
            "client.id": "connector-consumer-orders-3",
            "group.id": "connect-orders",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
        settings = worker(consumer_group_id="theirs", consumer_fetch_min_bytes="9")
        chosen = task_spec.consumer_config(TASK, {"consumer.override.group.id": "mine"}, settings)
        assert (chosen["group.id"], chosen["fetch.min.bytes"]) == ("mine", "9")
        by_pattern = task_spec.consumer_config(TASK, {"topics.regex": "a.*"}, worker())
        assert by_pattern["allow.auto.create.topics"] == "false"  # a topic that was deleted stays deleted

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ({}, ("6000", "2000")),
            ({"consumer.override.heartbeat.interval.ms": "500"}, ("6000", "500")),
            ({"consumer.override.heartbeat.interval.ms": "5000"}, ("6000", "2000")),
            ({"consumer.override.heartbeat.interval.ms": "often"}, ("6000", "often")),
            ({"consumer.override.session.timeout.ms": "45000"}, ("45000", None)),
            ({"consumer.override.group.protocol": "Consumer"}, (None, None)),
        ],
    )
    def test_a_consumer_counts_as_gone_when_its_worker_does(
        self, given: dict[str, str], expected: tuple[str | None, str | None]
    ) -> None:
        in_group = replace(worker(), session_timeout_ms=6000)
        chosen = task_spec.consumer_config(TASK, given, in_group)
        assert (chosen.get("session.timeout.ms"), chosen.get("heartbeat.interval.ms")) == expected
        by_worker = {key.replace(".override", ""): value for key, value in given.items()}
        of_all = replace(WorkerConfig.parse({**WORKER_FILE, **by_worker}), session_timeout_ms=6000)
        assert task_spec.consumer_config(TASK, {}, of_all) == chosen

    def test_an_admin_client_also_inherits_how_to_reach_the_brokers(self) -> None:
        settings = worker(security_protocol="SSL", ssl_truststore_location="/t", admin_retries="7", client_id="mine")
        chosen = task_spec.admin_config("orders", {"admin.override.retries": "8"}, settings, TASK)
        assert chosen == {
            "bootstrap.servers": "broker:9092",
            "client.id": "connector-adminclient-orders-3",
            "security.protocol": "SSL",
            "ssl.truststore.location": "/t",
            "retries": "8",
        }
        assert task_spec.admin_config("orders", {}, worker())["client.id"] == "connector-worker-adminclient-orders"


class Eager(ScriptedSourceConnector):
    @classmethod
    def leading_transforms(cls, config: Mapping[str, str]) -> Sequence[tuple[str, Mapping[str, str]]]:
        return [("Mask", {"fields": config["hide"]})]


def test_a_source_may_have_transforms_of_its_own_before_those_of_the_user() -> None:
    plugins = Plugins([Eager, StringConverter, JsonConverter, SimpleHeaderConverter, Mask])
    connector = {"connector.class": "Eager", "hide": "a", "transforms": "m", "transforms.m.type": "Mask"}
    steps = task_spec.build(TASK, connector, {}, TargetState.STARTED, worker(), plugins).chain.steps
    assert [(step.alias, step.transform.config) for step in steps] == [("Mask", {"fields": "a"}), ("m", {})]


def test_the_cluster_that_records_go_to_is_that_of_the_producer() -> None:
    settings = worker(producer_security_protocol="SSL", producer_linger_ms="7", admin_security_protocol="PLAINTEXT")
    config = {"producer.override.sasl.mechanism": "PLAIN", "producer.override.client.id": "x"}
    known = {"bootstrap.servers": settings.bootstrap_servers, "security.protocol": "SSL"}
    assert task_spec.cluster_config({}, settings) == known
    assert task_spec.cluster_config(config, settings) == {**known, "sasl.mechanism": "PLAIN"}
    elsewhere = {"producer.override.bootstrap.servers": "far:9092"}
    assert task_spec.cluster_config(elsewhere, settings)["bootstrap.servers"] == "far:9092"
