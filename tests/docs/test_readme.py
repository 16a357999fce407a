"""What README.md shows is true: its connector runs, its requests are answered, its files and commands are taken."""

from __future__ import annotations

import ast
import importlib
import io
import re
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from docs_support import README, ROOT, ask, blocks, commands, curl, worker

from headgate.api import SourceRecord, SourceTask
from headgate.api.testing import MemoryConnectorContext, MemorySourceTaskContext
from headgate.cli.files import read_properties
from headgate.cli.main import main
from headgate.cli.standalone import parser
from headgate.model import TargetState, TaskId
from headgate.pipeline.blob import pack, pack_spec, run, source_records_job, unpack
from headgate.runtime import task_spec
from headgate.runtime.config.worker_config import STANDALONE, WorkerConfig, unknown_keys
from headgate.runtime.plugins import Plugins
from headgate.spark.settings import settings_of

pytestmark = pytest.mark.process

SHELL = [command for block in blocks(README, "shell") for command in commands(block)]
REQUESTS = [curl(command) for command in SHELL if command[0] == "curl"]


@pytest.fixture
def plugin_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with README's connector, under the name that README gives it."""
    (block,) = blocks(README, "python")
    assert "`clock.py`" in README.read_text()
    (tmp_path / "clock.py").write_text(block)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("clock", None)
    importlib.invalidate_caches()


def test_the_connector_has_ten_lines() -> None:
    (block,) = blocks(README, "python")
    assert len([line for line in block.splitlines() if line.strip()]) == 10
    ast.parse(block)


def test_the_connector_is_found_and_its_records_become_bytes(
    plugin_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    plugins = Plugins.discover([str(plugin_path)])
    assert not plugins.broken
    found = plugins.find_connector("Clock")
    connector = found.connector()
    connector.context = MemoryConnectorContext("clock")
    assert not [value for value in connector.validate({}) if value.errors]
    connector.start({"connector.class": "Clock"})
    (config,) = connector.task_configs(1)
    task = found.connector.task_class()
    assert isinstance(task, SourceTask)
    task.context = MemorySourceTaskContext(config)
    task.start(config)
    records = task.poll()
    task.stop()
    connector.stop()

    assert isinstance(records, list)
    assert [type(record) for record in records] == [SourceRecord]
    worker_config = WorkerConfig.parse(_worker_file(plugin_path))
    spec = task_spec.build(
        TaskId("clock", 0), {"connector.class": "Clock"}, config, TargetState.STARTED, worker_config, plugins
    )
    table = unpack(run(pack(source_records_job(pack_spec(spec.chain), records)))).table()
    assert table.column("topic").to_pylist() == ["clock"]
    assert time.ctime()[:10].encode() in table.column("value").to_pylist()[0]


def test_all_requests_are_answered_in_the_order_of_the_page(
    plugin_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with worker(plugin_path) as client:
        codes = [ask(client, request) for request in REQUESTS]
        assert codes == [201, 200, 201, 200, 202, 200, 201]
        assert client.get("/connectors").json() == ["lines-out", "lines-in", "clock"]
        offsets = client.get("/connectors/lines-in/offsets").json()["offsets"]
    assert offsets == [{"partition": {"filename": "in.txt"}, "offset": {"position": 6}}]


def test_the_position_is_the_one_after_the_first_line() -> None:
    (made,) = [command for command in SHELL if command[0] == "printf"]
    assert len(made[1].encode().decode("unicode_escape").splitlines(keepends=True)[0]) == 6


def _worker_file(folder: Path) -> dict[str, str]:
    file = folder / "worker.properties"
    file.write_text(blocks(README, "properties")[0])
    return read_properties(file)


def test_the_worker_file_is_taken_and_has_no_unknown_key(tmp_path: Path) -> None:
    raw = _worker_file(tmp_path)
    parsed = WorkerConfig.parse(raw)
    assert parsed.plugin_path == ("plugins",)
    assert unknown_keys(raw, STANDALONE) == []


def test_the_spark_keys_reach_spark(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(blocks(README, "properties")[1])
    raw = read_properties(file)
    assert all(key.startswith("spark.") for key in raw)
    assert settings_of(raw)[0]["spark.master"] == raw["spark.master"]


def test_the_commands_of_headgate_exist() -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        assert main(["--help"]) == 0
    used = [command for command in SHELL if command[0] in ("headgate", "connect-standalone")]
    assert used
    for command in used:
        if command[0] == "headgate":
            assert f"  {command[1]} " in shown.getvalue(), f"headgate has no command {command[1]}"
    for command in used:
        if "standalone" in command[:2] or command[0] == "connect-standalone":
            files = command[2:] if command[0] == "headgate" else command[1:]
            parser("headgate standalone").parse_args(files)


def test_the_scripts_are_installed() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for script in {command[0] for command in SHELL if command[0] in ("headgate", "connect-standalone")}:
        assert re.search(rf"^{script} = ", text, re.MULTILINE), f"{script} is no script of the package"


def test_headgate_gets_on_the_path_by_what_the_page_says() -> None:
    """Before anything is run by that name."""
    names = [command[0] for command in SHELL]
    assert SHELL.index(["make", "setup"]) < names.index(".") < names.index("headgate")
    (activated,) = [command[1:] for command in SHELL if command[0] == "."]
    assert f"VENV := {Path(*activated).parents[1]}\n" in (ROOT / "Makefile").read_text()


def test_the_targets_of_make_exist() -> None:
    targets = {command[1] for command in SHELL if command[0] == "make"}
    assert targets == {"setup", "quickstart", "cluster", "lake", "test"}
    makefile = ROOT / "Makefile"
    assert makefile.is_file(), "README shows make, but there is no Makefile"
    for target in targets:
        assert re.search(rf"^{target}\s*:", makefile.read_text(), re.MULTILINE), f"make has no target {target}"


def test_every_command_of_the_page_is_looked_at() -> None:
    known = {"make", ".", "headgate", "connect-standalone", "curl", "printf"}
    assert {command[0] for command in SHELL} <= known


def test_the_versions_it_asks_for_are_those_of_the_code() -> None:
    from headgate.jars.find import OLDEST

    text = README.read_text()
    assert f"Java {OLDEST} or newer" in text
    assert "Python 3.11 or newer" in text
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text()
