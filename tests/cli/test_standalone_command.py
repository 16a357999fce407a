"""`headgate standalone` and `connect-standalone` as a user runs them: real processes, signals, exit codes."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from harness import Client, await_, lines, sink_config, source_config

from headgate.dev.broker import Broker

pytestmark = pytest.mark.process

BIN = Path(sys.executable).parent


class Process:
    """A worker process whose log is read from a file."""

    def __init__(self, folder: Path, number: int, *arguments: str, program: str = "headgate") -> None:
        self.log = folder / f"worker-{number}.log"
        self.clients: list[Client] = []
        words = [str(BIN / program), *(["standalone"] if program == "headgate" else []), *arguments]
        with self.log.open("ab") as output:
            self.running = subprocess.Popen(words, cwd=folder, stdout=output, stderr=subprocess.STDOUT)

    @property
    def text(self) -> str:
        return self.log.read_text()

    def client(self) -> Client:
        def address() -> Any:
            assert self.running.poll() is None, self.text
            return re.findall(r"REST API listens on (http://[0-9.:]+)", self.text)

        self.clients.append(Client(await_(address, "REST", 60)[0]))
        return self.clients[-1]

    def end(self, number: int = signal.SIGINT, seconds: float = 40) -> int:
        self.running.send_signal(number)
        return self.running.wait(seconds)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    started: list[Process] = []

    def make(*arguments: str, program: str = "headgate") -> Process:
        started.append(Process(tmp_path, len(started), *arguments, program=program))
        return started[-1]

    yield make
    for process in started:
        if process.running.poll() is None:
            process.running.kill()
            process.running.wait()
        for client in process.clients:
            client.close()


@pytest.fixture
def worker_file(broker: Broker, tmp_path: Path) -> Path:
    file = tmp_path / "worker.properties"
    file.write_text(
        f"bootstrap.servers={broker.bootstrap}\n"
        "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
        "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
        f"offset.storage.file.filename={tmp_path / 'offsets'}\n"
        "offset.flush.interval.ms=60000\n"
        "listeners=http://127.0.0.1:0\n"
    )
    return file


def _ended(process: Process, seconds: float = 40) -> int:
    return process.running.wait(seconds)


@pytest.mark.spark
@pytest.mark.kip(980, "Can use JSON files containing connector key-value configurations with standalone mode")
@pytest.mark.kip(980, "Can use JSON files similar to the request body of POST /connectors with standalone mode")
def test_files_of_all_three_kinds_make_connectors_and_ctrl_c_commits_their_offsets(
    start: Callable[..., Process], worker_file: Path, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    topic = unique("topic")
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\n")
    (tmp_path / "flat").write_text(json.dumps({"name": f"{topic}-in", **source_config(source, topic)}))
    request = {"name": f"{topic}-stopped", "config": sink_config(out, topic), "initial_state": "stopped"}
    (tmp_path / "request").write_text(json.dumps(request))
    properties = {"name": f"{topic}-out", **sink_config(out, topic)}
    (tmp_path / "properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    process = start(str(worker_file), "flat", "request", "properties", program="connect-standalone")
    client = process.client()
    await_(lambda: lines(out) == ["one", "two"], "the lines", 60)
    assert client.states(f"{topic}-stopped") == ("STOPPED", [])
    assert process.end(signal.SIGINT) == 0, process.text
    assert "Traceback" not in process.text, process.text

    # The flush interval is a minute: what is known now was committed by the end itself.
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    thread = "threading.Thread(target=threading.Event().wait, name='never-ends')"
    (plugins / "stays.py").write_text(f"import threading\n\n{thread}.start()\n")
    again = start(str(worker_file), "--plugin-path", str(plugins))
    client = again.client()
    client.create(f"{topic}-in", source_config(source, topic), state="STOPPED")
    client.create(f"{topic}-out", sink_config(out, topic), state="STOPPED")
    assert client.offsets(f"{topic}-in")[0]["offset"] == {"position": 8}
    assert client.offsets(f"{topic}-out")[0]["offset"] == {"kafka_offset": 2}
    for name in ("in", "out"):
        client.put(f"{topic}-{name}", "resume")
    with source.open("a") as file:
        file.write("three\n")
    await_(lambda: lines(out) == ["one", "two", "three"], "the third line, and no other again", 60)
    assert again.end(signal.SIGTERM) == 0, "a thread of a plugin that never ends keeps nobody"
    assert "Ended without threads that did not end: never-ends" in again.text
    (stored,) = json.loads((tmp_path / "offsets").read_text())["offsets"]
    assert stored["offset"] == {"position": 14}


@pytest.mark.spark
def test_kill_9_loses_nothing(
    start: Callable[..., Process], worker_file: Path, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    topic = unique("topic")
    source, out = tmp_path / "in.txt", tmp_path / "out.txt"
    text = worker_file.read_text().replace("interval.ms=60000", "interval.ms=200")
    worker_file.write_text(text)
    (tmp_path / "in.json").write_text(json.dumps({"name": f"{topic}-in", **source_config(source, topic)}))
    # A killed worker's consumer is a member of its group until its session is over.
    brief = {"consumer.override.session.timeout.ms": "6000"}
    (tmp_path / "out.json").write_text(json.dumps({"name": f"{topic}-out", **sink_config(out, topic, **brief)}))
    written: list[str] = []
    for round_ in range(3):
        process = start(str(worker_file), "in.json", "out.json")
        process.client()
        for number in range(200):
            written.append(f"{round_}-{number}")
            with source.open("a") as file:
                file.write(f"{written[-1]}\n")
        if round_ < 2:
            await_(lambda wanted=f"{round_}-50": wanted in lines(out), "some lines", 60)  # type: ignore[misc]
            process.running.kill()
            process.running.wait()
    await_(lambda: lines(out)[-1:] == [written[-1]], "the last line", 60)
    assert list(dict.fromkeys(lines(out))) == written, "something was lost or came out of order"
    # The offsets file survived each kill; at-least-once may repeat what was sent after the last commit, no more.
    assert process.end() == 0


@pytest.mark.spark
def test_without_a_worker_file_a_broker_is_started_and_said_so(start: Callable[..., Process], tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    config = {"name": "in", **source_config(tmp_path / "in.txt", "topic")}
    (tmp_path / "connector.json").write_text(json.dumps(config))
    with socket.socket() as probe:
        taken = probe.connect_ex(("127.0.0.1", 8083)) == 0
    if taken:
        pytest.skip("port 8083, which is the default that this test is about, is in use on this machine")
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "own.py").write_text(
        "from headgate.connectors.file_source import FileStreamSourceConnector\n"
        "class Own(FileStreamSourceConnector): aliases = ()\n"
    )
    process = start("--plugin-path", "plugins", "connector.json")
    client = process.client()
    assert client.url == "http://127.0.0.1:8083"
    assert "own.Own" in {each["class"] for each in client.call("GET", "/connector-plugins", 200)}
    assert f"starting a broker of our own, data kept in {tmp_path}/headgate-data/broker" in process.text
    await_(lambda: client.states("in") == ("RUNNING", ["RUNNING"]), "the connector", 60)
    await_(lambda: client.call("GET", "/", 200)["kafka_cluster_id"], "the cluster's id")
    await_(lambda: client.http.get("/connectors/in/topics").json()["in"]["topics"] == ["topic"], "a record")
    assert process.end() == 0
    assert (tmp_path / "headgate-data" / "offsets.json").exists()


# --- what can be wrong ------------------------------------------------------------------------------------------------

RIGHT = (
    "bootstrap.servers=127.0.0.1:1\n"
    "key.converter=org.apache.kafka.connect.storage.StringConverter\n"
    "value.converter=org.apache.kafka.connect.storage.StringConverter\n"
    "offset.storage.file.filename=offsets\n"
    "offset.flush.interval.ms=60000\n"
    "listeners=http://127.0.0.1:0\n"
)


@pytest.mark.broker
def test_a_port_in_use_is_one_sentence(start: Callable[..., Process], worker_file: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        worker_file.write_text(worker_file.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
        process = start(str(worker_file))
        assert _ended(process) == 2
    assert f"127.0.0.1:{port}" in process.text
    assert "listeners" in process.text
    assert "Traceback" not in process.text


@pytest.mark.spark
def test_a_broker_that_is_not_there_is_named_at_once(start: Callable[..., Process], tmp_path: Path) -> None:
    (tmp_path / "worker.properties").write_text(RIGHT)
    process = start("worker.properties")
    process.client()
    said = "Kafka does not answer, and what needs it waits: 127.0.0.1:1 (127.0.0.1:1/bootstrap: Connect to"
    await_(lambda: said in process.text, "the address", 5)
    assert process.end() == 0


@pytest.mark.spark
def test_apaches_basic_auth_asks_for_its_passwords(
    start: Callable[..., Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extension = "org.apache.kafka.connect.rest.basic.auth.extension"
    jaas, users, out = (tmp_path / name for name in ("jaas.conf", "users.properties", "out.txt"))
    users.write_text("alice=wonder\n")
    jaas.write_text(f'KafkaConnect {{ {extension}.PropertyFileLoginModule required file="{users}"; }};')
    monkeypatch.setenv("KAFKA_OPTS", f"-Xmx1g -Djava.security.auth.login.config={jaas}")
    (tmp_path / "worker.properties").write_text(
        f"{RIGHT}rest.extension.classes={extension}.BasicAuthSecurityRestExtension\n"
        f"headgate.audit.file={tmp_path / 'audit'}\n"
    )
    process = start("worker.properties")
    client = process.client()
    assert client.call("GET", "/health", 200)["warnings"] == []
    client.call("GET", "/connectors", 401)
    client.call("GET", "/connectors", 401, auth=("alice", "wrong"))
    client.http.auth = httpx2.BasicAuth("alice", "wonder")
    assert client.call("GET", "/connectors", 200) == []
    stolen = client.create("thief", {**source_config(users, "t"), "tasks.max": "1"}, 400)
    assert "is for the worker alone: it says who is let in" in stolen["message"]
    assert "for the worker alone" in client.create("thief", sink_config(tmp_path / "audit", "t"), 400)["message"]
    client.create("sink", sink_config(out, "t"))
    audited = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
    assert [(each["principal"], each["status"]) for each in audited] == [
        (None, 401), (None, 401), ("alice", 400), ("alice", 400), ("alice", 201),
    ]  # fmt: skip
    assert 'kafka_connect_worker_login_failures{login="basic"} 1.0' in client.http.get("/metrics").text
    assert process.end() == 0
    assert "wonder" not in process.text


@pytest.mark.broker
def test_a_typo_in_the_worker_file_is_named(start: Callable[..., Process], worker_file: Path) -> None:
    worker_file.write_text(worker_file.read_text() + "offset.flush.intervall.ms=5\n")
    process = start(str(worker_file))
    process.client()
    assert "offset.flush.intervall.ms (did you mean offset.flush.interval.ms?)" in process.text
    assert process.end() == 0


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("value.converter=", "value.konverter="), 'Missing required configuration "value.converter"'),
        (("value.converter=org.apache.kafka.connect.storage.StringConverter", "value.converter=Nope"), "Nope"),
        (("interval.ms=60000", "interval.ms=soon"), "Not a number of type LONG"),
        (("listeners=http://", "listeners=ftp://"), "ftp://"),
        (("offset.storage.file.filename=", "offset.storage.file.filename=/proc/none/"), "/proc/none/"),
        (("listeners=", "headgate.require.login=true\nlisteners="), "There is no login: set one of headgate.login."),
        (("listeners=", "rest.extension.classes=a.Kerberos\nlisteners="), "headgate.ignore.rest.extensions=true"),
        (("listeners=", "headgate.rights.file=rights.toml\nlisteners="), "Rights are for those who log in"),
        (("listeners=", "headgate.audit.file=/proc/none/a\nlisteners="), "It cannot be written"),
    ],
)
def test_a_wrong_worker_file_is_one_sentence_and_exit_2(
    start: Callable[..., Process], tmp_path: Path, change: tuple[str, str], text: str
) -> None:
    assert change[0] in RIGHT
    file = tmp_path / "worker.properties"
    file.write_text(RIGHT.replace(*change))
    process = start(str(file))
    assert _ended(process) == 2
    assert text in process.text
    assert "Traceback" not in process.text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"connector.class": "FileStreamSource"}', "'name'"),
        ('{"name": "x", "config": {"name": "y"}}', "doesn't match"),
        ('{"name": "x", "config": {}, "more": 1}', "more"),
        ("connector.class=FileStreamSource", "'name'"),
    ],
)
def test_a_wrong_connector_file_stops_the_worker_with_exit_3(
    start: Callable[..., Process], tmp_path: Path, content: str, text: str
) -> None:
    (tmp_path / "worker.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    (tmp_path / "connector").write_text(content)
    process = start("worker.properties", "connector")
    assert _ended(process) == 3
    assert text in process.text


@pytest.mark.broker
def test_a_connector_file_that_is_invalid_stops_the_worker_with_exit_3(
    start: Callable[..., Process], worker_file: Path, tmp_path: Path
) -> None:
    (tmp_path / "connector").write_text(json.dumps({"name": "x", "connector.class": "FileStreamSource"}))
    process = start(str(worker_file), "connector")
    assert _ended(process) == 3
    assert 'Missing required configuration "topic"' in process.text


def test_missing_java_is_one_sentence_that_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "from headgate.jars.find import find_java, JavaMissing\ntry:\n find_java()\nexcept JavaMissing as e:\n print(e)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], env={"PATH": str(tmp_path), "HOME": str(tmp_path)}, capture_output=True, text=True
    )
    assert "17" in answer.stdout
    assert answer.stdout.count("\n") == 1


def test_help_explains_all() -> None:
    top = subprocess.run([str(BIN / "headgate"), "--help"], capture_output=True, text=True, check=True).stdout
    assert "standalone" in top
    assert "broker" in top
    each = subprocess.run([str(BIN / "headgate"), "standalone", "--help"], capture_output=True, text=True, check=True)
    assert "initial_state" in each.stdout
    wrong = subprocess.run([str(BIN / "headgate"), "fly"], capture_output=True, text=True)
    assert wrong.returncode == 1
    assert "no command 'fly'" in wrong.stderr
