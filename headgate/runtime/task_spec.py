"""Builds a TaskSpec: all that a task runner must know, from the connector's, the task's and the worker's configs."""

from __future__ import annotations

from dataclasses import replace

from headgate.api.connector import Connector, SourceConnector
from headgate.model import (
    SINK_GROUP_PREFIX,
    Boundary,
    ChainSpec,
    Config,
    ConnectorType,
    PluginSpec,
    StepSpec,
    TargetState,
    TaskId,
    TaskSpec,
    TopicGroup,
    TransactionSpec,
)
from headgate.runtime.config import reaches
from headgate.runtime.config.connector_config import (
    BOUNDARY,
    BOUNDARY_INTERVAL,
    CONNECTOR_CLASS,
    CONVERTERS,
    OFFSETS_TOPIC,
    TOPICS_REGEX,
    aliases,
    with_prefix,
)
from headgate.runtime.config.overrides import clients_of
from headgate.runtime.config.topic_creation import topic_groups
from headgate.runtime.config.worker_config import SIMPLE_HEADER_CONVERTER, WorkerConfig
from headgate.runtime.plugins import PluginKind, Plugins


def build(
    task: TaskId, connector: Config, config: Config, target: TargetState, worker: WorkerConfig, plugins: Plugins
) -> TaskSpec:
    """From configs without variables. Raises PluginNotFound when a class named in them is not there, ConfigError and
    OverridesNotAllowed."""
    found = plugins.find_connector(connector.get(CONNECTOR_CLASS, ""))
    reaches.require(connector, plugins, worker.sandbox)
    kind = found.connector_type
    for client in clients_of(kind, connector, worker.topic_creation):
        worker.overrides.require(client, kind, connector)
    made = chain(task, kind, connector, worker, plugins)
    return TaskSpec(
        id=task,
        task_class=found.connector.task_class_for(connector),
        type=kind,
        version=found.version,
        config=config,
        connector_config=connector,
        chain=replace(made, steps=(*_leading(found.connector, connector, plugins), *made.steps)),
        target_state=target,
        producer=producer_config(task, connector, worker),
        consumer=consumer_config(task, connector, worker),
        admin=admin_config(task.connector, connector, worker, task),
        cluster=cluster_config(connector, worker),
        flush_interval_ms=worker.flush_interval_ms,
        flush_timeout_ms=worker.flush_timeout_ms,
        buffer_bytes=worker.buffer_bytes,
        topic_groups=topic_creation(kind, connector, worker),
        transaction=transaction(task, kind, connector, worker),
    )


def transaction(task: TaskId, kind: ConnectorType, config: Config, worker: WorkerConfig) -> TransactionSpec | None:
    """KIP-618: of every source, once the worker has exactly-once support for them."""
    if kind is not ConnectorType.SOURCE or not worker.exactly_once_sources:
        return None
    return TransactionSpec(
        id=f"{worker.group_id}-{task}",
        boundary=Boundary(config.get(BOUNDARY, "poll").strip()),
        interval_ms=int(config.get(BOUNDARY_INTERVAL) or worker.flush_interval_ms),
    )


def offsets_place(config: Config, worker: WorkerConfig) -> tuple[str | None, Config]:
    """The topic of a source's offsets, None: the worker's; and the settings of clients for the cluster it is on. What
    is written in the transactions of a task can only be where the task's records are."""
    shared = worker.raw.get("offset.storage.topic") if worker.exactly_once_sources else None
    topic = config.get(OFFSETS_TOPIC) or shared
    clients = {**worker.prefixed("producer."), **with_prefix(config, "producer.override.")}
    return topic, {key: value for key, value in clients.items() if key not in _OF_TASKS}


def topic_creation(kind: ConnectorType, config: Config, worker: WorkerConfig) -> tuple[TopicGroup, ...]:
    """Raises ConfigError."""
    return topic_groups(config) if kind is ConnectorType.SOURCE and worker.topic_creation else ()


def chain(task: TaskId, kind: ConnectorType, config: Config, worker: WorkerConfig, plugins: Plugins) -> ChainSpec:
    predicates = {
        alias: _plugin(f"predicates.{alias}", config, PluginKind.PREDICATE, plugins)
        for alias in aliases(config, "predicates")
    }
    steps = []
    for alias in aliases(config, "transforms"):
        prefix = f"transforms.{alias}"
        guard = config.get(f"{prefix}.predicate")
        negate = config.get(f"{prefix}.negate", "false").strip().lower() == "true"
        predicate = predicates[guard] if guard else None
        steps.append(StepSpec(alias, _plugin(prefix, config, PluginKind.TRANSFORMATION, plugins), predicate, negate))
    return ChainSpec(
        task=task,
        type=kind,
        key_converter=converter("key.converter", config, worker, plugins),
        value_converter=converter("value.converter", config, worker, plugins),
        header_converter=converter("header.converter", config, worker, plugins),
        steps=tuple(steps),
        errors={key: value for key, value in config.items() if key.startswith("errors.")},
    )


def converter(key: str, config: Config, worker: WorkerConfig, plugins: Plugins) -> PluginSpec:
    """The connector's own converter with its keys only, else the worker's with the worker's keys."""
    source = config if config.get(key) else worker.raw
    name = source.get(key) or SIMPLE_HEADER_CONVERTER
    found = plugins.find(name, CONVERTERS[key])
    return PluginSpec(found.ref, with_prefix(source, f"{key}."))


def _leading(connector: type[Connector], config: Config, plugins: Plugins) -> tuple[StepSpec, ...]:
    """What a source itself has its records go through."""
    named = connector.leading_transforms(config) if issubclass(connector, SourceConnector) else ()
    return tuple(
        StepSpec(name, PluginSpec(plugins.find(name, PluginKind.TRANSFORMATION).ref, own)) for name, own in named
    )


_OF_TASKS = ("client.id", "transactional.id")
_FRAMEWORK_KEYS = ("type", "plugin.version", "predicate", "negate")


def _plugin(prefix: str, config: Config, kind: PluginKind, plugins: Plugins) -> PluginSpec:
    found = plugins.find(config.get(f"{prefix}.type", ""), kind)
    settings = with_prefix(config, f"{prefix}.")
    return PluginSpec(found.ref, {key: value for key, value in settings.items() if key not in _FRAMEWORK_KEYS})


# --- Kafka clients, by Apache's names; low to high: ours, the worker's, the connector's -------------------------------


def producer_config(task: TaskId, config: Config, worker: WorkerConfig) -> Config:
    given = {**worker.prefixed("producer."), **with_prefix(config, "producer.override.")}
    return {
        "bootstrap.servers": worker.bootstrap_servers,
        "client.id": f"connector-producer-{task}",
        "acks": "all",
        "enable.idempotence": "true",
        "delivery.timeout.ms": str(2**31 - 1),
        "buffer.memory": str(_room(given, worker)),
        **given,
    }


def _room(given: Config, worker: WorkerConfig) -> int:
    """Of a producer, for what is on its way: librdkafka would take a gigabyte. What is larger would never go."""
    largest = given.get("max.request.size", given.get("message.max.bytes", "")).strip()
    return max(worker.buffer_bytes, 2 * int(largest) if largest.isdecimal() else 0)


_REACHING = ("bootstrap.servers", "client.dns.lookup", "security.protocol", "sasl.", "ssl.")


def cluster_config(config: Config, worker: WorkerConfig) -> Config:
    """What any client needs to reach the cluster that a source's producers write to."""
    producers = {**worker.prefixed("producer."), **with_prefix(config, "producer.override.")}
    reaching = {key: value for key, value in producers.items() if key.startswith(_REACHING)}
    return {"bootstrap.servers": worker.bootstrap_servers, **reaching}


def consumer_config(task: TaskId, config: Config, worker: WorkerConfig) -> Config:
    given = {**worker.prefixed("consumer."), **with_prefix(config, "consumer.override.")}
    return {
        "bootstrap.servers": worker.bootstrap_servers,
        "client.id": f"connector-consumer-{task}",
        "group.id": f"{SINK_GROUP_PREFIX}{task.connector}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        # A pattern means topics that are there: to ask for one that was deleted is not to make it anew.
        **({"allow.auto.create.topics": "false"} if config.get(TOPICS_REGEX) else {}),
        **given,
        **_session(given, worker.session_timeout_ms),
    }


_HEARTBEAT_MS = 3000


def _session(given: Config, worker_ms: int | None) -> Config:
    """A sink's consumer counts as gone when its worker does: else whoever takes over would wait for the dead one's
    place in the group. Not where somebody chose otherwise, nor where the brokers decide (KIP-848)."""
    chosen = "session.timeout.ms" in given or given.get("group.protocol", "").strip().lower() == "consumer"
    if worker_ms is None or chosen:
        return {}
    heartbeat = given.get("heartbeat.interval.ms", str(_HEARTBEAT_MS)).strip()
    if heartbeat.isdecimal():  # what is no number the client will say
        heartbeat = str(min(int(heartbeat), worker_ms // 3))
    return {"session.timeout.ms": str(worker_ms), "heartbeat.interval.ms": heartbeat}


_ADMIN_INHERITS = ("security.protocol", "sasl.", "ssl.", "client.dns.lookup", "request.timeout.ms")


def admin_config(name: str, config: Config, worker: WorkerConfig, task: TaskId | None = None) -> Config:
    inherited = {key: value for key, value in worker.raw.items() if key.startswith(_ADMIN_INHERITS)}
    return {
        "bootstrap.servers": worker.bootstrap_servers,
        "client.id": f"connector-adminclient-{task}" if task else f"connector-worker-adminclient-{name}",
        **inherited,
        **worker.prefixed("admin."),
        **with_prefix(config, "admin.override."),
    }
