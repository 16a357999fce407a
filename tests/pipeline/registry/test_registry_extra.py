"""The extra: without it the classes are found, and say what to install."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from headgate.api import ConfigError
from headgate.connectors.file_sink import FileStreamSinkConnector
from headgate.model import ChainSpec, ConnectorType, PluginRef, PluginSpec, TaskId
from headgate.pipeline.chain import Chain
from headgate.pipeline.converters.registry.avro import AvroConverter
from headgate.pipeline.converters.registry.converter import RegistryConverter
from headgate.pipeline.converters.registry.json_schema import JsonSchemaConverter
from headgate.pipeline.converters.registry.protobuf import ProtobufConverter
from headgate.pipeline.converters.simple_header import SimpleHeaderConverter
from headgate.pipeline.converters.string import StringConverter
from headgate.runtime.config.validator import Validator, failure_message
from headgate.runtime.plugins import GROUP, PluginKind, Plugins

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[3]
CONVERTERS = {
    "io.confluent.connect.avro.AvroConverter": (AvroConverter, "fastavro"),
    "io.confluent.connect.json.JsonSchemaConverter": (JsonSchemaConverter, "confluent_kafka.schema_registry"),
    "io.confluent.connect.protobuf.ProtobufConverter": (ProtobufConverter, "google.protobuf"),
}
INSTALL = r'pip install "headgate\[registry\]"'
MISSING = 'Missing required configuration "value.converter.schema.registry.url" which has no default value.'
every_class = pytest.mark.parametrize(("name", "cls", "needed"), [(name, *rest) for name, rest in CONVERTERS.items()])


@every_class
def test_confluents_class_names_lead_to_ours(name: str, cls: type[RegistryConverter], needed: str) -> None:
    plugins = Plugins([cls])
    assert plugins.find(name, PluginKind.CONVERTER).cls is cls
    assert plugins.find(cls.__name__, PluginKind.CONVERTER).cls is cls


@every_class
def test_the_entry_point_is_there(name: str, cls: type[RegistryConverter], needed: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    value = project["entry-points"][GROUP][cls.__name__]
    assert EntryPoint(cls.__name__, value, GROUP).load() is cls


@every_class
def test_without_the_extra_configuring_says_what_to_install(
    name: str, cls: type[RegistryConverter], needed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, needed, None)
    with pytest.raises(ConfigError, match=INSTALL):
        cls().configure({"schema.registry.url": "http://127.0.0.1:1"}, is_key=False)


@every_class
@pytest.mark.parametrize("given", [{"value.converter.schema.registry.url": "http://127.0.0.1:1"}, {}], ids=str)
def test_without_the_extra_a_connector_is_refused(
    name: str, cls: type[RegistryConverter], needed: str, given: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, needed, None)
    validator = Validator(Plugins([FileStreamSinkConnector, cls]), {})
    config = {"connector.class": "FileStreamSink", "name": "n", "topics": "t", "file": "f", "value.converter": name}
    found = validator.validate({**config, **given})
    assert found.error_count > 0
    assert 'pip install "headgate[registry]"' in failure_message(found)


@every_class
@pytest.mark.parametrize("key", ["key.converter", "value.converter"])
def test_without_the_extra_the_converter_of_the_worker_file_is_refused_too(
    name: str, cls: type[RegistryConverter], needed: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = {key: name, f"{key}.schema.registry.url": "http://127.0.0.1:1"}
    validator = Validator(Plugins([FileStreamSinkConnector, StringConverter, cls]), worker)
    config = {"connector.class": "FileStreamSink", "name": "n", "topics": "t", "file": "f"}
    assert validator.validate(config).error_count == 0
    monkeypatch.setitem(sys.modules, needed, None)
    found = validator.validate(config)
    assert found.error_count == 1
    assert f"Invalid value {name} for configuration {key}: Converters of a schema registry" in failure_message(found)
    assert 'pip install "headgate[registry]"' in failure_message(found)
    assert validator.validate({**config, key: "StringConverter"}).error_count == 0


def test_with_the_extra_a_connector_is_accepted() -> None:
    validator = Validator(Plugins([FileStreamSinkConnector, AvroConverter]), {})
    config = {"connector.class": "FileStreamSink", "name": "n", "topics": "t", "file": "f", "value.converter": "Avro"}
    assert validator.validate(config).error_count == 1
    assert f"\n{MISSING}\n" in failure_message(validator.validate(config))
    assert validator.validate({**config, "value.converter.schema.registry.url": "http://r:8081"}).error_count == 0


def test_keys_that_the_worker_file_lacks_are_named_when_a_connector_would_need_them() -> None:
    worker = {"value.converter": "Avro", "key.converter": "Avro", "key.converter.schema.registry.url": "http://r:8081"}
    validator = Validator(Plugins([FileStreamSinkConnector, AvroConverter]), worker)
    config = {"connector.class": "FileStreamSink", "name": "n", "topics": "t", "file": "f"}
    said = failure_message(validator.validate(config))
    assert f"Invalid value Avro for configuration value.converter: {MISSING} (the worker's converter)" in said
    assert validator.validate(config).error_count == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, MISSING),
        (
            {"schema.registry.url": "r:8081"},
            "Invalid value r:8081 for configuration value.converter.schema.registry.url: ",
        ),
        (
            {"schema.registry.url": "http://r:8081", "basic.auth.credentials.source": "USER_INFO"},
            "value.converter: basic.auth.credentials.source=USER_INFO needs basic.auth.user.info=",
        ),
    ],
)
def test_a_task_that_cannot_be_built_names_them_too(given: dict[str, str], said: str) -> None:
    text = PluginSpec(PluginRef(StringConverter.__module__, "StringConverter"))
    avro = PluginSpec(PluginRef(AvroConverter.__module__, "AvroConverter"), given)
    headers = PluginSpec(PluginRef(SimpleHeaderConverter.__module__, "SimpleHeaderConverter"))
    with pytest.raises(ConfigError) as raised:
        Chain.build(ChainSpec(TaskId("orders", 0), ConnectorType.SINK, text, avro, headers))
    assert str(raised.value).startswith(said)


@pytest.mark.process
def test_the_modules_can_be_imported_without_the_extra() -> None:
    missing = [
        "fastavro",
        "google.protobuf",
        "jsonschema",
        "confluent_kafka",
        "attrs",
        "cachetools",
        "authlib",
        "httpx2",
    ]
    modules = ", ".join(f"headgate.pipeline.converters.registry.{each}" for each in ("avro", "json_schema", "protobuf"))
    program = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {modules}"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
