"""Workers that start, that wait for Kafka, and that refuse to start and say why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_harness import Cluster, Worker, await_, free_port
from topic_reader import create_topic

from headgate.dev.broker import Broker

pytestmark = pytest.mark.spark

REFUSED = 2


@pytest.fixture
def lonely(broker: Broker, tmp_path: Path, group: str) -> Iterator[Cluster]:
    """A cluster without workers yet."""
    made = Cluster(tmp_path, broker.bootstrap, group, {})
    try:
        yield made
    finally:
        made.close()


def test_topics_that_must_not_be_used(lonely: Cluster, broker: Broker, unique: Callable[[str], str]) -> None:
    """All of them at once: what takes time is the start of a process."""
    expected: dict[Worker, str] = {}
    for kind, holds in (
        ("config", "connector configurations"),
        ("offset", "source connector offsets"),
        ("status", "connector and task statuses"),
    ):
        topic = unique(kind)
        create_topic(broker.bootstrap, topic, cleanup_policy="delete")
        worker = lonely.add(**{f"{kind}_storage_topic": topic})
        expected[worker] = (
            f"Topic '{topic}' supplied via the '{kind}.storage.topic' property is required to have"
            f" 'cleanup.policy=compact' to guarantee consistency and durability of {holds}, but found the topic"
            " currently has 'cleanup.policy=delete'."
        )
    topic = unique("wide")
    create_topic(broker.bootstrap, topic, 2, cleanup_policy="compact")
    expected[lonely.add(config_storage_topic=topic)] = (
        f"Topic '{topic}' supplied via the 'config.storage.topic' property is required to have a single partition in"
        " order to guarantee consistency of connector configurations, but found 2 partitions."
    )
    for worker, sentence in expected.items():
        assert worker.wait(120) == REFUSED
        said = worker.log.read_text()
        assert sentence in said
        assert "Traceback" not in said


def test_a_worker_without_kafka_says_what_it_waits_for(lonely: Cluster) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    worker = lonely.add(bootstrap_servers=nowhere)
    await_(worker.answers, "REST answers")
    said = f"Kafka does not answer, and this worker ends with exit code 2 if it does not within 120 s: {nowhere} ("
    await_(lambda: said in worker.log.read_text(), "the address", 5)
    health = worker.http.get("/health")
    assert health.status_code == 503
    assert health.json()["status"] == "starting"
    message = health.json()["message"]
    assert message.startswith("Worker is still starting up. The worker is currently reading the internal topics")
    for path in ("/", "/connectors", "/connectors/x/status"):
        answer = worker.http.get(path)
        assert (answer.status_code, answer.json()["error_code"]) == (503, 503)
        assert answer.json()["message"].startswith("Worker is still starting up.")
        assert answer.headers["Retry-After"] == "1"
    assert worker.stop(30) == 0


GOOD = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "group",
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "listeners": "http://127.0.0.1:0",
}

BAD_FILES: list[tuple[dict[str, str | None], str]] = [
    ({"group.id": None}, 'Missing required configuration "group.id" which has no default value.'),
    ({"config.storage.topic": None}, 'Missing required configuration "config.storage.topic"'),
    ({"offset.storage.topic": None}, 'Missing required configuration "offset.storage.topic"'),
    ({"status.storage.topic": None}, 'Missing required configuration "status.storage.topic"'),
    ({"bootstrap.servers": None}, 'Missing required configuration "bootstrap.servers"'),
    ({"key.converter": None}, 'Missing required configuration "key.converter"'),
    ({"key.converter": "no.such.Converter"}, "no.such.Converter"),
    ({"connect.protocol": "polite"}, "connect.protocol"),
    ({"heartbeat.interval.ms": "10000", "session.timeout.ms": "6000"}, "heartbeat.interval.ms"),
    ({"scheduled.rebalance.max.delay.ms": "-1"}, "scheduled.rebalance.max.delay.ms"),
    ({"inter.worker.signature.algorithm": "HmacSHA1"}, "inter.worker.signature.algorithm"),
    ({"inter.worker.key.generation.algorithm": "Caesar"}, "inter.worker.key.generation.algorithm"),
    ({"exactly.once.source.support": "perhaps"}, "exactly.once.source.support"),
    ({"config.storage.replication.factor": "0"}, "config.storage.replication.factor"),
    ({"listeners": "nowhere"}, "nowhere"),
]


_TRY_ALL = """
import sys
from headgate.cli.distributed import main
for file in sys.argv[1:]:
    print(f"exit code {main([file])} for {file}", file=sys.stderr, flush=True)
"""


def test_bad_worker_files_are_refused_with_a_sentence(tmp_path: Path) -> None:
    """All in one process: to start one takes longer than to refuse a file."""
    files = [tmp_path / f"{number}.properties" for number in range(len(BAD_FILES))]
    for file, (changes, _) in zip(files, BAD_FILES, strict=True):
        settings = {key: value for key, value in {**GOOD, **changes}.items() if value is not None}
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    missing = tmp_path / "nothing.properties"
    done = subprocess.run(
        [sys.executable, "-c", _TRY_ALL, *map(str, [*files, missing])],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert "Traceback" not in done.stdout
    left = done.stdout
    for file, sentence in zip([*files, missing], [*(said for _, said in BAD_FILES), missing.name], strict=True):
        said, _, left = left.partition(f"exit code {REFUSED} for {file}\n")
        assert sentence in said
    assert left == ""


def test_the_command_ends_with_that_code(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "connect-distributed"), str(tmp_path / "nothing.properties")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == REFUSED
    assert "nothing.properties" in done.stdout + done.stderr


def test_the_worker_file_comes_first(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli.distributed"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert "worker.properties" in done.stderr
