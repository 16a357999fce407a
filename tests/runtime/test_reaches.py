"""What a configuration reaches is refused with its key when it is validated, and again when something is started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from memory_offsets import MemoryOffsetStore
from runtime_fakes import WORKER_FILE

from headgate.api import ConfigError, ConfigValue, ConnectError, Reach, ReachKind, SinkConnector
from headgate.api.testing import MemorySinkTaskContext, MemorySourceTaskContext
from headgate.connectors.exact_file_sink import ExactFileSinkTask
from headgate.connectors.file_sink import FileStreamSinkConnector, FileStreamSinkTask
from headgate.connectors.file_source import FileStreamSourceConnector
from headgate.connectors.http.sink import HttpSink
from headgate.connectors.http.source import HttpSource
from headgate.connectors.mirror.connector import Mirror
from headgate.model import TargetState, TaskId
from headgate.pipeline.converters.json import JsonConverter
from headgate.pipeline.converters.registry.avro import AvroConverter
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.converters.string import StringConverter
from headgate.pipeline.transforms.python import Python
from headgate.providers.file import FileConfigProvider
from headgate.runtime import task_spec
from headgate.runtime.config.client_check import ClientCheck
from headgate.runtime.config.validator import Validator
from headgate.runtime.config.worker_config import WorkerConfig
from headgate.runtime.herder_ports import offsets_in
from headgate.runtime.offset_changes import OffsetChanges
from headgate.runtime.plugins import Plugins
from headgate.runtime.view import ConnectorView
from headgate.storage.group_offsets import KafkaGroupOffsets


class Caller(SinkConnector):
    """Its validation asks its host."""

    called = False

    @classmethod
    def reaches(cls, config: Mapping[str, str]) -> list[Reach]:
        return [Reach(ReachKind.HOST, config.get("url", ""), "url")]

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return []

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        Caller.called = True
        return []


CLASSES = [
    FileStreamSourceConnector, FileStreamSinkConnector, HttpSource, HttpSink, Mirror, Caller, JsonConverter,
    StringConverter, SimpleHeaderConverter, AvroConverter, Python, FileConfigProvider,
]  # fmt: skip
SINK = {"name": "a", "connector.class": "FileStreamSink", "topics": "t"}
SOURCE = {"name": "a", "connector.class": "FileStreamSource", "topic": "t"}
PYTHON = {**SINK, "transforms": "x", "transforms.x.type": "headgate.transforms.Python"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Of plugins."""
    made = tmp_path / "plugins"
    made.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(made), str(tmp_path)])
    known = set(sys.modules)
    yield made
    for name in set(sys.modules) - known:
        del sys.modules[name]


def worker(folder: Path, **more: str) -> tuple[WorkerConfig, Plugins]:
    plugins = Plugins(CLASSES, folders=[str(folder)])
    raw = {**WORKER_FILE, "plugin.path": str(folder), **{key.replace("_", "."): each for key, each in more.items()}}
    return WorkerConfig.parse(raw, plugins=plugins), plugins


def errors(folder: Path, config: Mapping[str, str], **more: str) -> dict[str, list[str]]:
    parsed, plugins = worker(folder, **more)
    check = ClientCheck(parsed)
    infos = Validator(plugins, parsed.raw, clients=check, sandbox=parsed.sandbox).validate(config)
    found = {info.value.name: info.value.errors for info in infos.configs if info.value and info.value.errors}
    assert infos.error_count == sum(map(len, found.values()))
    return found


# --- the attack: a module is written into plugin.path, and then called ------------------------------------------------


def test_a_file_sink_writes_no_module_into_a_plugin_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    for file in (folder / "evil.txt", tmp_path / "x" / ".." / "plugins" / "evil", tmp_path / "link" / "e", "evil.py"):
        (said,) = errors(folder, {**SINK, "file": str(file)})["file"]
        assert said.startswith(f"Invalid value {file} for configuration file: ")
    exact = {**SINK, "file": str(folder), "exactly.once": "true"}
    assert list(errors(folder, exact)) == ["file"]
    assert errors(folder, {**SINK, "file": str(tmp_path / "out.txt")}) == {}


def test_a_module_that_is_not_allowed_is_not_imported_to_look_at_it(folder: Path, tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef enrich(record): return record\n"
    (tmp_path / "elsewhere.py").write_text(code)
    given = {**PYTHON, "transforms.x.function": "elsewhere.enrich"}
    (said,) = errors(folder, given)["transforms.x.function"]
    assert "Module elsewhere is not in a folder of plugin.path" in said
    assert not (tmp_path / "ran").exists()
    assert errors(folder, given, headgate_python_modules="elsewhere") == {}
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("mine.enrich", None),
        ("mine.wrapped", None),
        ("mine.system", "It is not defined in mine but in posix: name it by the module that it is defined in"),
        ("mine.check_output", "It is not defined in mine but in subprocess"),
        ("mine.os.system", "It cannot be imported"),
        ("os.system", "Module os is not in a folder of plugin.path"),
        ("posix.system", "Module posix is not in a folder of plugin.path"),
        ("builtins.exec", "Module builtins is not in a folder of plugin.path"),
    ],
)
def test_functions_are_defined_where_they_are_looked_for(folder: Path, function: str, reason: str | None) -> None:
    (folder / "mine.py").write_text(
        "import os, functools\nfrom os import system\nfrom subprocess import check_output\n"
        "def enrich(record): return record\n"
        "@functools.wraps(enrich)\ndef wrapped(record): return record\n"
    )
    found = errors(folder, {**PYTHON, "transforms.x.function": function})
    if reason is None:
        assert found == {}
    else:
        assert reason in found["transforms.x.function"][0]


# --- strict: everything -----------------------------------------------------------------------------------------------


def test_strict_refuses_files_hosts_and_classes_with_their_keys(folder: Path, tmp_path: Path) -> None:
    strict = {"headgate_sandbox": "strict", "headgate_file_roots": str(tmp_path), "headgate_hosts": "registry"}
    avro = {"value.converter": "io.confluent.connect.avro.AvroConverter"}
    config = {
        **SOURCE,
        **avro,
        "file": "/etc/passwd",
        "value.converter.schema.registry.url": "http://registry:8081,http://169.254.169.254",
        "value.converter.schema.registry.ssl.ca.location": "/etc/ssl/ca.pem",
        "producer.override.bootstrap.servers": "elsewhere:9092",
        "producer.override.ssl.keystore.location": "/etc/shadow",
    }
    refused = [
        "file",
        "producer.override.bootstrap.servers",
        "producer.override.ssl.keystore.location",
        "value.converter.schema.registry.url",
        "value.converter.schema.registry.ssl.ca.location",
    ]
    assert sorted(errors(folder, config, **strict)) == sorted(refused)
    assert errors(folder, config) == {}, "as on Apache's worker"
    fine = {**SOURCE, **avro, "file": str(tmp_path / "in"), "value.converter.schema.registry.url": "http://registry"}
    assert errors(folder, fine, **strict) == {}
    mirror = {"name": "a", "connector.class": "Mirror", "topics": "t", "source.bootstrap.servers": "elsewhere:9092"}
    assert list(errors(folder, mirror, **strict)) == ["source.bootstrap.servers"]
    assert errors(folder, {**mirror, "source.bootstrap.servers": "registry:9092"}, **strict) == {}


def test_http_connectors_reach_what_the_worker_file_names(folder: Path, tmp_path: Path) -> None:
    strict = {"headgate_sandbox": "strict", "headgate_hosts": "api.example,*.pages.example"}
    files = {"ssl.ca.location": str(tmp_path / "ca"), "ssl.certificate.location": str(tmp_path / "me")}
    source = {"name": "a", "connector.class": "HttpSource", "topic": "t", "page.by": "link"}
    fine = {**source, "url": "https://api.example:8443/x", "link.hosts": "eu.pages.example"}
    assert errors(folder, fine, **strict) == {}
    refused = {**source, "url": "http://169.254.169.254/", "link.hosts": "pages.example,eu.pages.example", **files}
    assert sorted(errors(folder, refused, **strict)) == ["link.hosts", *sorted(files), "url"]
    sink = {"name": "a", "connector.class": "HttpSink", "topics": "t", "url": "https://api.example/${topic}/${key}"}
    assert errors(folder, sink, **strict) == {}
    for url in ("https://api.example.evil/", "https://evil/api.example", "https://api.example\\@evil/", "//evil"):
        assert list(errors(folder, {**sink, "url": url}, **strict)) == ["url"]


def test_a_connector_is_not_asked_about_what_it_may_not_reach(folder: Path) -> None:
    config = {"name": "a", "connector.class": "Caller", "topics": "t", "url": "http://inside"}
    strict = {"headgate_sandbox": "strict", "headgate_classes": f"{__name__}.Caller"}
    Caller.called = False
    assert list(errors(folder, config, **strict)) == ["url"]
    assert not Caller.called
    assert errors(folder, config, **strict, headgate_hosts="inside") == {}
    assert Caller.called
    (said,) = errors(folder, config, headgate_sandbox="strict", headgate_hosts="inside")["connector.class"]
    assert "headgate.classes" in said


def test_strict_wants_to_know_where_config_providers_look(folder: Path, tmp_path: Path) -> None:
    given = {"headgate_sandbox": "strict", "config_providers": "f", "config_providers_f_class": "FileConfigProvider"}
    with pytest.raises(ConfigError, match=r"config\.providers\.f\.param\.allowed\.paths: / is in none of"):
        worker(folder, **given)
    worker(folder, **given, config_providers_f_param_allowed_paths=str(tmp_path))
    worker(folder, **{**given, "headgate_sandbox": "compatible"})


# --- and again, when it is used ---------------------------------------------------------------------------------------


def test_a_task_does_not_start_when_a_link_leads_elsewhere_by_then(folder: Path, tmp_path: Path) -> None:
    parsed, plugins = worker(folder)
    link = tmp_path / "out"
    config = {**SINK, "file": str(link)}
    assert errors(folder, config) == {}
    link.symlink_to(folder / "evil")
    with pytest.raises(ConfigError, match="is the worker's own"):
        task_spec.build(TaskId("a", 0), config, config, TargetState.STARTED, parsed, plugins)


def test_offsets_of_a_folder_are_not_altered_where_nothing_may_be_written(folder: Path) -> None:
    parsed, plugins = worker(folder)
    changes = OffsetChanges(parsed, plugins, offsets_in(MemoryOffsetStore()), KafkaGroupOffsets())
    config = {**SINK, "file": str(folder / "exact"), "exactly.once": "true"}
    wanted: Any = [({"kafka_topic": "t", "kafka_partition": 0}, {"kafka_offset": 1})]
    view = ConnectorView(name="a", config=config, target=TargetState.STOPPED)
    with pytest.raises(Exception, match="is the worker's own"):
        asyncio.run(changes.alter(view, wanted))
    assert not (folder / "exact").exists()


def test_the_tasks_of_files_ask_right_before_they_open_them(tmp_path: Path) -> None:
    class Refusing(MemorySinkTaskContext):
        def require(self, reach: Reach) -> None:
            raise ConnectError(f"no {reach.kind.value} of {Path(reach.what).name}")

    class RefusingSource(MemorySourceTaskContext):
        def require(self, reach: Reach) -> None:
            raise ConnectError(f"no {reach.kind.value} of {Path(reach.what).name}")

    config = {"file": str(tmp_path / "out"), "exactly.once": "true"}
    sink, exact = FileStreamSinkTask(), ExactFileSinkTask()
    sink.context = exact.context = Refusing(config)
    with pytest.raises(ConnectError, match="no write of out"):
        sink.start(config)
    exact.start(config)
    with pytest.raises(ConnectError, match="no write of out"):
        exact.open([])
    source = FileStreamSourceConnector.task_class()
    source.context = RefusingSource({})
    (tmp_path / "in").write_text("secret\n")
    source.start({"topic": "t", "file": str(tmp_path / "in")})
    with pytest.raises(ConnectError, match="no read of in"):
        source.poll()
    assert [each.name for each in tmp_path.iterdir()] == ["in"]
