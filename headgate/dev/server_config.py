"""The files that a one-node Kafka reads: `server.properties` and the one for its log."""

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties

from headgate.dev.ports import HOST
from headgate.model import DEV_CLUSTER

# What follows from the arguments of `Broker`; changing it behind its back would make it lie about address or data.
OWNED: Final = frozenset(
    {
        "advertised.listeners",
        "controller.listener.names",
        "controller.quorum.voters",
        "inter.broker.listener.name",
        "listener.security.protocol.map",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    }
)

# Defaults for one node that starts, rebalances and stops quickly; nothing here slows the data path.
DEFAULTS: Final[Mapping[str, str]] = {
    "auto.create.topics.enable": "true",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "5",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    # The cleaner takes this much heap at start, 128 MB unless told otherwise.
    "log.cleaner.dedupe.buffer.size": str(16 * 1024 * 1024),
    # A controller without anything to say says so twice a second, a third of what a broker does that nobody uses.
    "metadata.max.idle.interval.ms": "5000",
}

TO_BE_KILLED: Final[Mapping[str, str]] = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""Properties of a broker that is killed on purpose: the controller waits so long for the dead one before it lets the
next one in. Not for others: a controller that has not heard of its only broker for that time, because the machine was
held up, tells clients that there are no brokers, and some of librdkafka's never find it again (its issue 5301)."""

_LOG4J2: Final[Mapping[str, str]] = {
    "status": "error",
    "shutdownHook": "disable",  # it would close the log while Kafka's own hook still has to say how the stop went
    "appender.file.type": "RollingFile",
    "appender.file.name": "file",
    "appender.file.fileName": "${sys:headgate.logs}/server.log",
    "appender.file.filePattern": "${sys:headgate.logs}/server.%i.log",
    "appender.file.layout.type": "PatternLayout",
    "appender.file.layout.pattern": "[%d] %p %m (%c)%n",
    "appender.file.policies.type": "Policies",
    "appender.file.policies.size.type": "SizeBasedTriggeringPolicy",
    "appender.file.policies.size.size": "20MB",
    "appender.file.strategy.type": "DefaultRolloverStrategy",
    "appender.file.strategy.max": "2",
    "rootLogger.level": "info",
    "rootLogger.appenderRef.file.ref": "file",
}


@dataclass(frozen=True, slots=True)
class BrokerListener:
    """One more door of a broker, on a free port of its own; what its logins need is set by `properties`.

    `advertised` is the address that clients are sent to when something stands between them and the broker."""

    name: str
    protocol: str = "PLAINTEXT"
    advertised: str | None = None


def check_properties(properties: Mapping[str, str]) -> None:
    """ValueError when `properties` holds one that is for `Broker` to set."""
    if taken := sorted(OWNED & properties.keys()):
        raise ValueError(f"{', '.join(taken)} cannot be set: the broker's port and data folder decide it.")


def write_server_properties(
    path: Path,
    *,
    log_dir: Path,
    port: int,
    controller_port: int,
    properties: Mapping[str, str],
    listeners: Mapping[BrokerListener, int],
) -> None:
    """A broker and a controller in one process; `properties` win over the defaults."""
    more = {door.name: f"{HOST}:{door_port}" for door, door_port in listeners.items()}
    sent_to = {door.name: door.advertised or more[door.name] for door in listeners}
    protocols = {"CLIENT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT", **{door.name: door.protocol for door in listeners}}
    derived = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": _addresses({"CLIENT": f"{HOST}:{port}", "CONTROLLER": f"{HOST}:{controller_port}", **more}),
        "advertised.listeners": _addresses({"CLIENT": f"{HOST}:{port}", **sent_to}),
        "listener.security.protocol.map": ",".join(f"{name}:{protocol}" for name, protocol in protocols.items()),
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        # Fixed voters and not the dynamic quorum, which stores the address: the port may be another at the next start.
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "log.dirs": str(log_dir),
    }
    _write(path, {**DEFAULTS, **properties, **derived})


def write_log4j2_properties(path: Path) -> None:
    """Everything from INFO up into one rolling file in the folder that `-Dheadgate.logs` names."""
    _write(path, _LOG4J2)


def new_cluster_id() -> str:
    """A random id in Kafka's way of writing one, by which the cluster is known as ours."""
    made = base64.urlsafe_b64decode(DEV_CLUSTER) + uuid.uuid4().bytes
    return base64.urlsafe_b64encode(made[:16]).decode().rstrip("=")


def read_cluster_id(log_dir: Path) -> str | None:
    """The cluster id of a formatted folder, None when it has not been formatted."""
    try:
        text = (log_dir / "meta.properties").read_text()
    except FileNotFoundError:
        return None
    properties: dict[str, str] = javaproperties.loads(text)
    return properties.get("cluster.id")


def _addresses(listeners: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in listeners.items())


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.write_text(javaproperties.dumps(dict(properties), timestamp=False, ensure_ascii=True), encoding="latin-1")
