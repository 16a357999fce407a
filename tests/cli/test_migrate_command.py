"""`headgate migrate` on topics as Kafka Connect's workers leave them: it tells all of it, and changes none of it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headgate.cli.migration.findings import ConnectorFinding, Findings
from headgate.cli.migration.survey import survey
from headgate.cluster.coordinator import Coordinator, GroupConfig
from headgate.cluster.protocol import Assignment, MemberState, Protocol, encode_assignment, encode_member
from headgate.cluster.roster import Roster
from headgate.dev.broker import Broker
from headgate.model import State, Status, TargetState, TaskId
from headgate.model import TopicPartition as Place
from headgate.runtime.plugins import Plugins
from headgate.storage.config_records import CommitRecord, ConnectorRecord, TaskRecord, encode
from headgate.storage.group_offsets import KafkaGroupOffsets
from headgate.storage.snapshot import UnreadableTopic
from headgate.storage.worker_logs import WorkerLogs

pytestmark = [pytest.mark.broker, pytest.mark.process]

COMMAND = Path(sys.executable).parent / "headgate"
SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}
SINK = {"connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "file": "o", "topics": "lines"}
SECRETS = ("hush-in-plain-text", "hush-in-a-file", "hush-of-the-worker")


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    """For these tests alone: they look at all that is in it."""
    with Broker(heap="256m") as running:
        make(running, NewTopic("lines", 1, 1))
        yield running


def make(kafka: Broker, topic: NewTopic) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    admin.create_topics([topic])[topic.topic].result(20)
    deadline = time.monotonic() + 20
    while topic.topic not in admin.list_topics(timeout=20).topics:  # it is told a moment later
        assert time.monotonic() < deadline
        time.sleep(0.05)


def settings(kafka: Broker, name: str) -> dict[str, str]:
    return {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": name,
        "config.storage.topic": f"{name}-configs",
        "offset.storage.topic": f"{name}-offsets",
        "status.storage.topic": f"{name}-status",
        **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
        "offset.storage.partitions": "3",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    }


@pytest.fixture
def file(kafka: Broker, unique: Callable[[str], str]) -> dict[str, str]:
    return settings(kafka, unique("etl"))


@pytest.fixture
def logs(file: dict[str, str]) -> Iterator[WorkerLogs]:
    with closing(WorkerLogs(file)) as made:
        made.start()
        yield made


def run(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "migrate", str(path), *arguments], capture_output=True, text=True, timeout=120)


def written(folder: Path, file: Mapping[str, str]) -> Path:
    path = folder / "connect-distributed.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in file.items()))
    return path


def found(file: Mapping[str, str], timeout: float = 20) -> Findings:
    return survey("worker.properties", file, Plugins.discover(), timeout)


def by_name(findings: Findings) -> dict[str, ConnectorFinding]:
    return {each.name: each for each in findings.connectors}


def produce(kafka: Broker, *records: tuple[str, bytes | None, bytes | None]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0})
    for topic, key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(30) == 0


def world(kafka: Broker) -> dict[str, Any]:
    """All topics with the ends of their partitions, and all groups."""
    client: dict[str, str | int | float | bool] = {"bootstrap.servers": kafka.bootstrap, "log_level": 0}
    admin = AdminClient(client)
    consumer = Consumer({**client, "group.id": "looks-on"})
    try:
        topics = admin.list_topics(timeout=20).topics
        ends = {
            (name, number): consumer.get_watermark_offsets(TopicPartition(name, number), timeout=20)
            for name, topic in topics.items()
            for number in topic.partitions
        }
    finally:
        consumer.close()
    groups = admin.list_consumer_groups(request_timeout=20).result()
    return {"ends": ends, "groups": sorted((each.group_id, str(each.state)) for each in groups.valid)}


def fill(kafka: Broker, file: Mapping[str, str], logs: WorkerLogs, secrets: Path) -> None:
    """A cluster that has seen something."""
    configs = {
        "lines-in": {**SOURCE, "producer.override.ssl.key.password": f"${{file:{secrets}:key}}"},
        "lines-out": SINK,
        "jdbc": {
            "connector.class": "io.acme.JdbcSink",
            "topics": "lines",
            "connection.password": SECRETS[0],
            "connection.url": f"jdbc:x?password={SECRETS[0]}",
        },
        "spied": {**SINK, "transforms": "spy", "transforms.spy.type": "com.acme.Spy"},
        "wrong": {**SOURCE, "batch.size": "none", "db.password": SECRETS[0]},
        "own": {**SOURCE, "offsets.storage.topic": f"{file['offset.storage.topic']}-own"},
    }
    for name, config in configs.items():
        logs.configs.put_connector(name, {"name": name, **config})
        logs.configs.put_tasks(name, [{"task.class": "x", "password": SECRETS[0]}])
    logs.configs.put_connector("paused", {"name": "paused", **SOURCE}, TargetState.PAUSED)
    logs.configs.put_connector("stopped", {"name": "stopped", **SINK}, TargetState.STOPPED)
    logs.configs.put_tasks("stopped", [])
    logs.configs.put_connector("deleted", {"name": "deleted", **SINK})
    logs.configs.remove_connector("deleted")

    logs.statuses.put("lines-in", Status(State.RUNNING, "old:8083", generation=4))
    logs.statuses.put(TaskId("lines-in", 0), Status(State.RUNNING, "old:8083", generation=4))
    trace = f"org.acme.SqlException: no login with {SECRETS[0]}\n\tat org.acme.Jdbc.open(Jdbc.java:7)"
    logs.statuses.put("jdbc", Status(State.RUNNING, "old:8083", generation=4))
    logs.statuses.put(TaskId("jdbc", 0), Status(State.FAILED, "old:8083", trace, generation=4))
    assert logs.statuses.flush(20)

    logs.offsets.put("lines-in", [({"filename": name}, {"position": 3}) for name in "abc"])
    logs.offsets.put("lines-in", [({"filename": "c"}, None)])
    logs.offsets.put("own", [({"filename": "a"}, {"position": 3})])
    own = logs.connector_offsets(configs["own"]["offsets.storage.topic"], {})
    assert own is not None
    own.put("own", [({"filename": "b"}, {"position": 4})])
    own.close()
    groups = KafkaGroupOffsets()
    groups.alter({"bootstrap.servers": kafka.bootstrap}, "connect-lines-out", {Place("lines", 0): 7})
    groups.close()

    half = [
        encode(ConnectorRecord("half", {"name": "half", **SINK})),
        encode(TaskRecord(TaskId("half", 1), {"task.class": "x"})),
        encode(CommitRecord("half", 2)),
    ]
    produce(
        kafka,
        *((file["config.storage.topic"], key, value) for key, value in half),
        (file["config.storage.topic"], b"connector-garbage", b"{not json"),
        (file["config.storage.topic"], b"what-is-this", b"{}"),
        (file["status.storage.topic"], b"status-connector-lines-in", b'{"state":"DANCING"}'),
        (file["offset.storage.topic"], b"no key", b"{}"),
        (file["offset.storage.topic"], b'["lines-in",{"filename":"d"}]', b"[]"),
    )


@pytest.fixture(scope="module")
def filled(kafka: Broker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    secrets = tmp_path_factory.mktemp("secrets") / "secrets.properties"
    secrets.write_text(f"key={SECRETS[1]}\n")
    file = settings(kafka, "filled")
    with closing(WorkerLogs(file)) as logs:
        logs.start()
        fill(kafka, file, logs, secrets)
    return {
        **file,
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "producer.ssl.truststore.password": SECRETS[2],
        "plugin.discovery": "only_scan",
    }


@dataclass(frozen=True)
class Printed:
    before: Mapping[str, Any]
    text: subprocess.CompletedProcess[str]
    json: subprocess.CompletedProcess[str]
    after: Mapping[str, Any]


@pytest.fixture(scope="module")
def printed(kafka: Broker, filled: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Printed:
    path = written(tmp_path_factory.mktemp("worker"), filled)
    return Printed(world(kafka), run(path), run(path, "--json"), world(kafka))


class TestACluster:
    def test_it_is_told_as_it_is(self, filled: dict[str, str]) -> None:
        findings = found(filled)
        assert isinstance(findings.roster, Roster)
        assert findings.roster.members == ()
        assert findings.worker.problems == ()
        connectors = by_name(findings)
        assert list(connectors) == [
            "half", "jdbc", "lines-in", "lines-out", "own", "paused", "spied", "stopped", "wrong",
        ]  # fmt: skip
        assert [name for name, each in connectors.items() if not each.runs] == ["jdbc", "spied", "wrong"]
        assert connectors["jdbc"].problems[0].what == "connector.class: io.acme.JdbcSink is not installed here."
        assert connectors["spied"].problems[0].what == "transforms.spy.type: com.acme.Spy is not installed here."
        assert "batch.size" in connectors["wrong"].problems[0].what
        assert {name: each.target.value for name, each in connectors.items() if each.target.value != "STARTED"} == {
            "paused": "PAUSED",
            "stopped": "STOPPED",
        }
        assert {name: each.tasks for name, each in connectors.items() if each.tasks != 1} == {
            "half": 2,
            "paused": 0,
            "stopped": 0,
        }
        assert [name for name, each in connectors.items() if not each.consistent] == ["half"]

    def test_the_last_statuses(self, filled: dict[str, str]) -> None:
        connectors = by_name(found(filled))
        status, tasks = connectors["jdbc"].status, connectors["jdbc"].task_statuses
        assert status is not None
        assert (status.state, status.worker_id) == (State.RUNNING, "old:8083")
        assert tasks is not None
        assert (tasks[0].state, tasks[0].trace) == (State.FAILED, "org.acme.SqlException: no login with [hidden]")
        assert connectors["paused"].status is None
        status = connectors["lines-in"].status
        assert status is not None
        assert status.state is State.RUNNING, "what no worker understands does not replace what they said before"

    def test_where_each_goes_on(self, filled: dict[str, str]) -> None:
        places = {name: each.offsets for name, each in by_name(found(filled)).items()}
        told = {name: (each.where, each.partitions, each.problem) for name, each in places.items() if each}
        topic = filled["offset.storage.topic"]
        assert told["lines-in"] == (topic, 2, None)
        assert told["own"] == (f"{topic}-own", 2, None)
        assert told["lines-out"] == ("connect-lines-out", 1, None)
        assert told["jdbc"] == ("connect-jdbc", 0, None)
        assert told["paused"] == (topic, 0, None)

    def test_records_that_nobody_understands_are_counted(self, filled: dict[str, str]) -> None:
        configs, offsets, status = found(filled).topics
        assert (len(configs.ignored), len(offsets.ignored), len(status.ignored)) == (2, 2, 1)
        assert configs.records > 20
        assert (configs.partitions, offsets.partitions, status.partitions) == (1, 3, 5)

    def test_of_an_exactly_once_cluster_only_what_was_committed_counts(
        self, logs: WorkerLogs, file: dict[str, str]
    ) -> None:
        producer = Producer(
            {"bootstrap.servers": file["bootstrap.servers"], "transactional.id": file["group.id"], "log_level": 0}
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        key, value = encode(ConnectorRecord("ghost", {"name": "ghost", **SINK}))
        producer.produce(file["config.storage.topic"], value, key)
        producer.flush(20)
        producer.abort_transaction(20)
        assert list(by_name(found(file))) == ["ghost"]
        assert found({**file, "exactly.once.source.support": "enabled"}).connectors == ()

    def test_nothing_is_added_by_looking(self, printed: Printed) -> None:
        assert printed.after == printed.before

    def test_no_secret_is_printed(self, printed: Printed, filled: dict[str, str], tmp_path: Path) -> None:
        for done in (printed.text, printed.json, run(written(tmp_path, filled), "--log-level", "DEBUG")):
            assert done.returncode == 1
            for secret in SECRETS:
                assert secret not in done.stdout + done.stderr

    def test_for_people(self, printed: Printed) -> None:
        assert (printed.text.returncode, printed.text.stderr) == (1, "")
        for told in (
            "Connectors: 6 of 9 can run",
            "without effect here: plugin.discovery",
            "CANNOT RUN  jdbc",
            "2 tasks, of which some are lost",
            "Decide about jdbc, spied, wrong",
        ):
            assert told in printed.text.stdout

    def test_for_machines(self, printed: Printed) -> None:
        tree = json.loads(printed.json.stdout)
        assert tree["all_can_run"] is False
        assert {each["name"]: each["can_run"] for each in tree["connectors"]}["lines-in"] is True

    def test_all_can_run(self, logs: WorkerLogs, file: dict[str, str], tmp_path: Path) -> None:
        logs.configs.put_connector("in", {"name": "in", **SOURCE})
        done = run(written(tmp_path, file))
        assert (done.returncode, done.stderr) == (0, "")
        assert "Connectors: 1 of 1 can run" in done.stdout

    def test_what_plugins_print_is_no_part_of_the_report(
        self, logs: WorkerLogs, file: dict[str, str], tmp_path: Path
    ) -> None:
        (tmp_path / "plugins").mkdir()
        (tmp_path / "plugins" / "chatty_plugin.py").write_text("print('hello')\n")
        done = run(written(tmp_path, {**file, "plugin.path": str(tmp_path / "plugins")}), "--json")
        assert json.loads(done.stdout)["connectors"] == []
        assert done.stderr == "hello\n"

    def test_a_cluster_without_connectors(self, logs: WorkerLogs, file: dict[str, str]) -> None:
        findings = found(file)
        assert findings.connectors == ()
        assert findings.all_can_run


class TestOldWorkers:
    def test_members_of_the_group_are_told(self, logs: WorkerLogs, file: dict[str, str]) -> None:
        state = encode_member(Protocol.SESSIONED, MemberState("http://old:8083/", 1))
        answer = encode_assignment(Protocol.SESSIONED, Assignment("m", "http://old:8083/", 1))
        worker = Coordinator(
            GroupConfig(file["group.id"], (Protocol.SESSIONED,)),
            {"bootstrap.servers": file["bootstrap.servers"], "client.id": "connect-old:8083"},
            lambda: [(Protocol.SESSIONED, state)],
            lambda protocol, generation, own, members: dict.fromkeys(members, answer),
        )
        try:
            deadline = time.monotonic() + 30
            while worker.join(100) is None:
                assert time.monotonic() < deadline
            roster = found(file).roster
            assert not isinstance(roster, str)
            assert [(each.url, each.client_id) for each in roster.members] == [("http://old:8083/", "connect-old:8083")]
            worker.leave("test", 3000)
        finally:
            worker.end()
        roster = found(file).roster
        assert not isinstance(roster, str)
        assert roster.members == ()

    def test_a_group_of_consumers_is_a_mistake(
        self, logs: WorkerLogs, file: dict[str, str], eventually: Callable[..., None]
    ) -> None:
        consumer = Consumer(
            {"bootstrap.servers": file["bootstrap.servers"], "group.id": file["group.id"], "log_level": 0}
        )
        try:
            consumer.subscribe([file["status.storage.topic"]])
            eventually(lambda: consumer.poll(0.1) is not None or consumer.assignment())
            findings = found(file)
        finally:
            consumer.close()
        (problem,) = findings.worker.problems
        assert "is not one of workers" in problem.what
        assert "group.id" in problem.remedy


class TestWhatCanBeWrong:
    def test_no_such_file(self, tmp_path: Path) -> None:
        done = run(tmp_path / "gone.properties")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"headgate migrate: The file '{tmp_path / 'gone.properties'}' does not exist\n"

    def test_a_file_that_is_not_a_workers(self, tmp_path: Path) -> None:
        path = written(tmp_path, {"name": "lines", "connector.class": "FileStreamSource", "topic": "lines"})
        done = run(path, "--json")
        assert done.returncode == 2
        assert "lacks bootstrap.servers, group.id, config.storage.topic" in done.stderr
        assert json.loads(done.stdout)["error"] in done.stderr

    def test_no_broker_ends_in_bounded_time(self, file: dict[str, str], tmp_path: Path) -> None:
        path = written(tmp_path, {**file, "bootstrap.servers": "127.0.0.1:1"})
        began = time.monotonic()
        done = run(path, "--timeout", "2")
        assert time.monotonic() - began < 20
        assert done.returncode == 2
        assert done.stderr.startswith("headgate migrate: No Kafka broker answered at 127.0.0.1:1 within 2 s (")
        assert "Check bootstrap.servers" in done.stderr
        assert done.stderr.count("\n") == 1

    def test_settings_that_no_client_can_be_made_of(self, file: dict[str, str]) -> None:
        broken = {"security.protocol": "SSL", "ssl.truststore.location": "trust.jks", "ssl.truststore.type": "JKS"}
        with pytest.raises(UnreadableTopic, match=r"ssl.truststore.location names trust.jks"):
            found({**file, **broken})

    def test_what_is_wrong_in_the_file_is_told_when_kafka_cannot_be_reached(self, file: dict[str, str]) -> None:
        lost = {
            "config.providers": "vault",
            "config.providers.vault.class": "com.acme.Vault",
            "bootstrap.servers": "${vault:kafka:servers}",
        }
        with pytest.raises(UnreadableTopic) as raised:
            found({**file, **lost}, 1)
        assert "com.acme.Vault" in str(raised.value)

    def test_missing_topics_are_named_and_not_created(
        self, kafka: Broker, logs: WorkerLogs, file: dict[str, str], tmp_path: Path
    ) -> None:
        path = written(tmp_path, {**file, "config.storage.topic": "nowhere", "status.storage.topic": "nothing"})
        before = world(kafka)
        done = run(path)
        assert done.returncode == 2
        assert "nowhere (config.storage.topic), nothing (status.storage.topic)" in done.stderr
        assert world(kafka) == before

    def test_a_topic_that_is_not_compacted_keeps_headgate_from_starting(
        self, kafka: Broker, logs: WorkerLogs, file: dict[str, str], unique: Callable[[str], str], tmp_path: Path
    ) -> None:
        name = unique("deleting")
        make(kafka, NewTopic(name, 2, 1, config={"cleanup.policy": "delete"}))
        logs.configs.put_connector("in", {"name": "in", **SOURCE})
        done = run(written(tmp_path, {**file, "offset.storage.topic": name}), "--json")
        assert done.returncode == 1
        tree = json.loads(done.stdout)
        (problem,) = tree["worker"]["problems"]
        assert f"Topic '{name}' supplied via the 'offset.storage.topic' property is required" in problem["problem"]
        assert f"--entity-name {name} --add-config cleanup.policy=compact" in problem["remedy"]
        assert [each["can_run"] for each in tree["connectors"]] == [True], "the rest is told all the same"

    def test_a_config_topic_of_several_partitions(
        self, kafka: Broker, logs: WorkerLogs, file: dict[str, str], unique: Callable[[str], str]
    ) -> None:
        name = unique("wide")
        make(kafka, NewTopic(name, 2, 1, config={"cleanup.policy": "compact"}))
        (problem,) = found({**file, "config.storage.topic": name}).worker.problems
        assert "found 2 partitions" in problem.what
        assert "one partition" in problem.remedy


def test_help_explains_it() -> None:
    done = subprocess.run([COMMAND, "migrate", "--help"], capture_output=True, text=True, check=True)
    assert "exit code" in done.stdout
    assert "migrate" in subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
