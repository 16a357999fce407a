"""Configurations of SparkSource: what is wrong is told by the key; what may be reached is declared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from headgate.api import ConfigError, ConnectError, ExactlyOnceSupport, Reach, ReachKind
from headgate.connectors import SparkSource
from headgate.connectors.spark.source.config import SparkSourceConfig
from headgate.connectors.spark.source.folder.formats import ALLOWED
from headgate.connectors.spark.source.folder.task import FolderTask
from headgate.connectors.spark.source.task import DataSourceTask

PLUGINS = Path(__file__).parent.parent / "plugins"
FOLDER = {"path": "/data", "topic": "t"}
STREAM = {"provider": "streams.Lines", "topic": "t"}


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(PLUGINS), *sys.path])


def errors(config: dict[str, str]) -> dict[str, list[str]]:
    return {value.name: value.errors for value in SparkSource().validate(config) if value.errors}


@pytest.mark.parametrize(
    "config",
    [
        STREAM,
        {**STREAM, "provider": "streams:Simple", "options.anything": "at all", "schema": "a INT"},
        FOLDER,
        {**FOLDER, "format": "csv", "options.HEADER": "true", "options.mode": "permissive", "schema": "a INT"},
    ],
)
def test_these_are_fine(config: dict[str, str]) -> None:
    assert errors(config) == {}
    SparkSourceConfig.of(config)


@pytest.mark.parametrize(
    ("config", "key", "said"),
    [
        ({"topic": "t"}, "provider", "Set one of provider and path"),
        ({**STREAM, **FOLDER}, "provider", "Set one of provider and path"),
        ({**STREAM, "provider": "Lines"}, "provider", "my_module.MySource or my_module:MySource"),
        ({**STREAM, "provider": "nowhere.Lines"}, "provider", "It cannot be imported: ModuleNotFoundError"),
        ({**STREAM, "provider": "streams.Part"}, "provider", "streams has no data source Part"),
        ({**STREAM, "provider": "streams.DataSource"}, "provider", "name it by where it is, pyspark.sql.datasource"),
        ({**STREAM, "provider": "streams.Whole"}, "provider", "neither streamReader nor simpleStreamReader"),
        ({**STREAM, "format": "csv"}, "format", "it has no meaning with provider"),
        ({**FOLDER, "path": "data"}, "path", "must be the absolute path of a folder"),
        ({**FOLDER, "path": "file:data"}, "path", "must be the absolute path of a folder"),
        ({**FOLDER, "format": "orc"}, "format", "must be one of: text, csv, json, parquet"),
        ({**FOLDER, "order.by": "size"}, "order.by", "must be one of: name, time"),
        ({**FOLDER, "schema": "a INT"}, "schema", "Lines of text have none"),
        ({**FOLDER, "key.columns": "a,a"}, "key.columns", "Duplicate"),
        ({**FOLDER, "options.header": "true"}, "options.header", "Files of format text have these options: lineSep"),
        ({**FOLDER, "format": "csv", "options.mode": "SOME"}, "options.mode", "It must be one of PERMISSIVE"),
        ({**FOLDER, "format": "csv", "options.path": "/etc"}, "options.path", "have these options"),
        ({**FOLDER, "format": "parquet", "options.__globPaths__": "true"}, "options.__globPaths__", "these options"),
    ],
)
def test_what_is_wrong_is_told_by_its_key(config: dict[str, str], key: str, said: str) -> None:
    (told,) = errors(config)[key]
    assert said in told
    with pytest.raises(ConfigError):
        SparkSourceConfig.of(config)


def test_no_option_of_files_names_another_file_a_class_or_a_host() -> None:
    names = {option.lower() for options in ALLOWED.values() for option in options}
    risky = ("path", "url", "class", "codec", "provider", "key", "host", "recursive", "filter", "credential")
    assert [name for name in names if any(each in name for each in risky)] == []


def test_modules_and_folders_are_declared_before_they_are_touched() -> None:
    assert list(SparkSource.reaches({"provider": " a.b:C "})) == [Reach(ReachKind.CODE, "a.b", "provider")]
    assert list(SparkSource.reaches({"path": " /data/x "})) == [Reach(ReachKind.READ, "/data/x", "path")]
    assert list(SparkSource.reaches({})) == []


def test_there_is_one_task_of_the_kind_that_fits() -> None:
    for config, kind in ((STREAM, DataSourceTask), (FOLDER, FolderTask)):
        assert SparkSource.task_class_for(config) is kind
        connector = SparkSource()
        connector.start(config)
        assert connector.task_configs(5) == [config]
        assert connector.exactly_once_support(config) is ExactlyOnceSupport.SUPPORTED


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize(
    ("config", "partition", "offset"),
    [
        (STREAM, {"source": "streams.Lines"}, {"line": 7}),
        ({**STREAM, "provider": "streams:Lines"}, {"source": "streams.Lines"}, {"offset": '{"a":{"b":1}}'}),
        (STREAM, {"source": "streams.Lines"}, {"offset": "{}", "until": "{}", "partition": 0, "rows": 5}),
        (STREAM, {"anything": "at all"}, None),
        (FOLDER, {"path": "/data"}, {"file": "a", "records": 0, "done": True}),
        ({**FOLDER, "path": "/data/"}, {"path": "/data"}, {"file": "a", "records": 5, "done": False}),
        ({**FOLDER, "order.by": "time"}, {"path": "/data"}, {"file": "a", "modified": 1, "records": 5, "done": False}),
    ],
)
def test_offsets_of_the_right_shape_can_be_set(config: dict[str, str], partition: Any, offset: Any) -> None:
    assert SparkSource().alter_offsets(config, [(partition, offset)])


@pytest.mark.kip(875, "altering offsets")
@pytest.mark.parametrize(
    ("config", "partition", "offset", "said"),
    [
        (STREAM, {"source": "streams.Simple"}, {"line": 7}, "The partition of this connector is"),
        (STREAM, {"source": "streams.Lines"}, {"offset": 1, "until": 2, "partition": 0, "rows": 5}, "within a batch"),
        (FOLDER, {"path": "/elsewhere"}, {"file": "a", "records": 0, "done": True}, "The partition of this connector"),
        (FOLDER, {"path": "/data"}, {"file": "a", "records": 0}, "With order.by=name, an offset has file, records"),
        (FOLDER, {"path": "/data"}, {"file": "a", "records": -1, "done": True}, "an offset has"),
        (FOLDER, {"path": "/data"}, {"file": "a", "records": True, "done": True}, "an offset has"),
        ({**FOLDER, "order.by": "time"}, {"path": "/data"}, {"file": "a", "records": 1, "done": True}, "modified (ms)"),
    ],
)
def test_offsets_that_tasks_could_not_go_on_from_are_refused(
    config: dict[str, str], partition: Any, offset: Any, said: str
) -> None:
    with pytest.raises(ConnectError) as raised:
        SparkSource().alter_offsets(config, [(partition, offset)])
    assert said in str(raised.value)
