"""What docs/distributed.md says is so, and the files of examples/cluster fit each other and the code."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from docs_support import DOCS, ROOT, blocks, first_column, prose, section

from headgate.api.config import REQUIRED
from headgate.cli.distributed import parser
from headgate.cli.files import read_properties
from headgate.cluster.coordinator import GroupConfig
from headgate.jars.jars import SPARK_KAFKA
from headgate.log import masked
from headgate.model import Config
from headgate.rest.settings import RestSettings
from headgate.runtime.config.secrets import resolve_worker
from headgate.runtime.config.worker_config import COMMON, DISTRIBUTED, WorkerConfig, unknown_keys
from headgate.runtime.plugins import Plugins
from headgate.storage.internal_topics import InternalTopics

PAGE = DOCS / "distributed.md"
EXAMPLE = ROOT / "examples" / "cluster"
OWN = sorted(set(DISTRIBUTED.names) - set(COMMON.names))


# --- the page ---------------------------------------------------------------------------------------------------------


def test_every_key_of_clusters_is_described() -> None:
    assert sorted(first_column(section(PAGE, "Keys"))) == OWN


def test_keys_have_the_defaults_of_the_code() -> None:
    rows = dict(re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", section(PAGE, "Keys"), re.MULTILINE))
    for name in OWN:
        default = DISTRIBUTED[name].default
        if default is REQUIRED:
            assert rows[name] == "required", name
        elif default is not None:
            told = default[0] if isinstance(default, list) else str(default)
            assert rows[name].strip("`") == told, name


def _accepted(raw: Config) -> RestSettings:
    """As a worker would be started with it."""
    assert unknown_keys(raw, DISTRIBUTED) == []
    parsed = DISTRIBUTED.parse(raw)
    WorkerConfig.parse(raw, DISTRIBUTED)
    InternalTopics.of(raw)
    GroupConfig(
        parsed["group.id"],
        session_timeout_ms=parsed["session.timeout.ms"],
        heartbeat_interval_ms=parsed["heartbeat.interval.ms"],
    )
    return RestSettings.parse(raw)


def test_the_worker_file_of_the_page_is_taken(tmp_path: Path) -> None:
    shortest, failover = blocks(PAGE, "properties")
    file = tmp_path / "worker.properties"
    file.write_text(shortest)
    assert {name for name in DISTRIBUTED.names if DISTRIBUTED[name].default is REQUIRED} <= read_properties(file).keys()
    _accepted(read_properties(file))
    file.write_text(shortest + failover)
    _accepted(read_properties(file))


def test_the_command_of_the_page_is_taken() -> None:
    (line,) = [line for block in blocks(PAGE, "shell") for line in block.splitlines() if line.startswith("headgate")]
    program, word, *arguments = shlex.split(line, comments=True)
    assert (program, word) == ("headgate", "distributed")
    parser("headgate distributed").parse_args(arguments)


def test_answers_are_quoted_as_the_code_has_them() -> None:
    code = "".join(
        file.read_text() for folder in ("runtime", "rest") for file in (ROOT / "headgate" / folder).glob("*.py")
    )
    one_line = re.sub(r'"\s*f?"', "", code)  # literals over several lines
    quoted = re.findall(r"^\| 409 (`[^|]+`) \|", section(PAGE, "Any worker answers"), re.MULTILINE)
    assert len(quoted) == 2
    for answers in quoted:
        for part in re.findall(r"[^`.]{8,}", answers):
            if part.strip(" ,"):
                assert part.strip() in one_line, part


def test_the_three_requests_of_workers_are_those_of_rest() -> None:
    told = re.findall(r"`((?:POST|PUT|DELETE) /[^`]+)`", section(PAGE, "Signed requests between workers"))
    assert len(told) == 3
    for request in told:
        assert f"`{request}`" in (DOCS / "rest.md").read_text()


# --- the example ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cluster_example", EXAMPLE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_sample_is_taken_and_its_failover_is_that_of_the_page() -> None:
    raw = read_properties(EXAMPLE / "worker.properties")
    _accepted(raw)
    failover = dict(line.split("=") for line in blocks(PAGE, "properties")[1].splitlines())
    assert {key: raw[key] for key in failover} == failover


def test_workers_of_the_example_differ_only_in_their_addresses(run: ModuleType, tmp_path: Path) -> None:
    sample = read_properties(EXAMPLE / "worker.properties")
    own = {"bootstrap.servers": "127.0.0.1:1", "listeners": "http://127.0.0.1:2"}
    file = tmp_path / "worker.properties"
    file.write_text(run.settings(own))
    warnings: list[str] = []
    assert read_properties(file, warnings) == {**sample, **own}
    assert warnings == []


def test_connectors_of_the_example_are_those_it_looks_for(run: ModuleType) -> None:
    source, sink = (json.loads((EXAMPLE / f"file-{kind}.json").read_text()) for kind in ("source", "sink"))
    assert (source["name"], sink["name"]) == (run.SOURCE, run.SINK)
    assert source["config"]["topic"] == sink["config"]["topics"]
    assert int(source["config"]["tasks.max"]) + int(sink["config"]["tasks.max"]) == run.ALL_TASKS
    assert Path(source["config"]["file"]).parent == Path(sink["config"]["file"]).parent == run.DATA


@pytest.mark.process
def test_a_port_that_is_taken_ends_the_example_with_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, str(EXAMPLE / "run.py"), "--ports", port, "1", "2"]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.strip() == f"Port {port} cannot be used: give three that are free"
    assert list(tmp_path.iterdir()) == []


# --- Docker -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((EXAMPLE / "compose.yaml").read_text()))


def _workers(compose: dict[str, Any]) -> dict[str, Any]:
    return {name: service for name, service in compose["services"].items() if name != "broker"}


def test_each_worker_of_compose_advertises_the_name_of_its_container(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = read_properties(EXAMPLE / "compose.properties")
    assert sorted(_workers(compose)) == ["worker1", "worker2", "worker3"]
    for name, service in _workers(compose).items():
        assert service["hostname"] == name
        monkeypatch.setenv("HOSTNAME", name)
        resolved, secrets = resolve_worker(raw, Plugins.discover(()), DISTRIBUTED.names)
        secrets.close()
        settings = _accepted(resolved)
        assert settings.advertised_host == name
        assert [listener.host for listener in settings.listeners] == [""]
        assert masked(name) == name


def test_its_worker_file_is_the_sample_but_for_addresses() -> None:
    sample, raw = (read_properties(EXAMPLE / f"{name}.properties") for name in ("worker", "compose"))
    differing = {key for key in {*sample, *raw} if sample.get(key) != raw.get(key)}
    addresses = {"bootstrap.servers", "listeners", "rest.advertised.host.name"}
    assert {key for key in differing if not key.startswith("config.providers")} == addresses


def test_workers_and_broker_of_compose_find_each_other(compose: dict[str, Any]) -> None:
    broker = compose["services"]["broker"]
    environment = broker["environment"]
    advertised = dict(each.split("://") for each in environment["KAFKA_ADVERTISED_LISTENERS"].split(","))
    opened = dict(each.split("://:") for each in environment["KAFKA_LISTENERS"].split(","))
    protocols = dict(each.split(":") for each in environment["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert opened.keys() == protocols.keys() == {*advertised, environment["KAFKA_CONTROLLER_LISTENER_NAMES"]}
    inside = advertised[environment["KAFKA_INTER_BROKER_LISTENER_NAME"]]
    assert read_properties(EXAMPLE / "compose.properties")["bootstrap.servers"] == inside
    assert inside == f"{broker['hostname']}:{opened['INTERNAL']}"
    assert inside in broker["healthcheck"]["test"]
    assert broker["ports"] == [f"127.0.0.1:{opened['EXTERNAL']}:{advertised['EXTERNAL'].rpartition(':')[2]}"]
    voter = f"{environment['KAFKA_NODE_ID']}@{broker['hostname']}:{opened['CONTROLLER']}"
    assert environment["KAFKA_CONTROLLER_QUORUM_VOTERS"] == voter
    assert all(value == 1 for key, value in environment.items() if key.endswith(("REPLICATION_FACTOR", "MIN_ISR")))
    for volume in broker["volumes"]:
        name, path = volume.split(":")
        assert name in compose["volumes"]
        assert path == environment["KAFKA_LOG_DIRS"]


def test_workers_of_compose_are_built_checked_and_given_time_to_leave(compose: dict[str, Any]) -> None:
    published = []
    for service in _workers(compose).values():
        assert service["depends_on"] == {"broker": {"condition": "service_healthy"}}
        assert "http://localhost:8083/health" in service["healthcheck"]["test"][-1]
        assert (
            int(service["stop_grace_period"].removesuffix("s"))
            > DISTRIBUTED["task.shutdown.graceful.timeout.ms"].default / 1000
        )
        assert (EXAMPLE / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]).samefile(EXAMPLE / "Dockerfile")
        (file, mounted, _), (files, _) = (volume.split(":") for volume in service["volumes"])
        assert (EXAMPLE / file).samefile(EXAMPLE / "compose.properties")
        assert f'"{mounted}"]' in (EXAMPLE / "Dockerfile").read_text()
        assert files in compose["volumes"]
        (port,) = service["ports"]
        host, outside, inside = port.split(":")
        assert (host, inside) == ("127.0.0.1", "8083")
        published.append(outside)
    assert published == ["8083", "8084", "8085"]


def test_the_image_is_made_of_what_is_there() -> None:
    text = (EXAMPLE / "Dockerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for name in line.split()]
    assert copied
    ignored = (EXAMPLE / "Dockerfile.dockerignore").read_text().splitlines()
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored
    assert "FROM python:3.11-slim" in text
    assert "openjdk-17-jre-headless" in text
    (code,) = re.findall(r'^RUN python -c "([^"]+)"', text, re.MULTILINE)
    module, names = re.findall(r"from (\S+) import (.+);", code)[0]
    assert module == SPARK_KAFKA.__module__
    assert names == "SPARK_KAFKA, fetch"


def test_links_of_its_readme_lead_somewhere() -> None:
    for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(EXAMPLE / "README.md")):
        assert (EXAMPLE / link).exists(), link
