"""What docs/migrating.md shows is what the command prints: of a stopped cluster of Apache Kafka Connect 4.3.1."""

from __future__ import annotations

from dataclasses import replace

from docs_support import DOCS, blocks, commands

from headgate.cli.migrate import parser
from headgate.cli.migration.connector import ConnectorCheck
from headgate.cli.migration.findings import ConnectorFinding, Findings, OffsetsFinding, StatusFinding
from headgate.cli.migration.report import text
from headgate.cli.migration.worker import check_worker
from headgate.cluster.roster import Roster
from headgate.model import ConnectorType, State, TargetState
from headgate.runtime.plugins import Plugins
from headgate.storage.snapshot import Topic

PAGE = DOCS / "migrating.md"
FILE = {
    "bootstrap.servers": "localhost:9092",
    "group.id": "connect-cluster",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "config.storage.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "status.storage.replication.factor": "1",
    "offset.storage.partitions": "25",
    "status.storage.partitions": "5",
    "listeners": "http://localhost:8083",
    "plugin.discovery": "service_load",
    "scheduled.rebalance.max.delay.ms": "500",
    "heartbeat.interval.ms": "300",
    "offset.flush.interval.ms": "2000",
    "offset.flush.timout.ms": "5000",
}
GCS = {"connector.class": "io.confluent.connect.gcs.GcsSinkConnector", "topics": "orders"}
LAST = StatusFinding(State.UNASSIGNED, "localhost:8083")


def _connector(name: str, connector_class: str, kind: ConnectorType, offsets: OffsetsFinding) -> ConnectorFinding:
    return ConnectorFinding(
        name, connector_class, kind, TargetState.STARTED, 1, status=LAST, task_statuses={0: LAST}, offsets=offsets
    )


def test_the_report_is_what_would_be_printed() -> None:
    plugins = Plugins.discover()
    worker = check_worker(FILE, plugins)
    lacking = ConnectorCheck(plugins, worker).check(GCS)
    sink, source = ConnectorType.SINK, ConnectorType.SOURCE
    sample = next(block for block in blocks(PAGE, "") if block.startswith("connect-distributed.properties"))
    cluster = sample.partition("(cluster ")[2].partition(")")[0]
    findings = Findings(
        file="connect-distributed.properties",
        bootstrap_servers="localhost:9092",
        cluster_id=cluster,
        group="connect-cluster",
        roster=Roster("connect"),
        worker=worker.finding,
        topics=(
            Topic("connect-configs", "config.storage.topic", 1, 10),
            Topic("connect-offsets", "offset.storage.topic", 25, 1),
            Topic("connect-status", "status.storage.topic", 5, 14),
        ),
        connectors=(
            _connector("lines-in", "FileStreamSource", source, OffsetsFinding("connect-offsets", 1)),
            _connector(
                "lines-out",
                "org.apache.kafka.connect.file.FileStreamSinkConnector",
                sink,
                OffsetsFinding("connect-lines-out", 1),
            ),
            replace(
                _connector("orders", GCS["connector.class"], lacking.type, OffsetsFinding("connect-orders", 0)),
                problems=lacking.problems,
            ),
        ),
    )
    assert text(findings) == sample


def test_commands_are_taken() -> None:
    typed = [command for block in blocks(PAGE, "shell") for command in commands(block) if command[0] == "headgate"]
    assert [command[1] for command in typed] == ["migrate", "migrate"]
    for command in typed:
        assert parser().parse_args(command[2:]).worker == "connect-distributed.properties"
