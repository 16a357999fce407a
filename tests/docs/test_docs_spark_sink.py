"""docs/spark-sink.md: its keys are those of the code, its configurations are accepted, its tables of types hold."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from delta_support import delta_settings
from docs_support import DOCS, blocks, section
from iceberg_support import iceberg_settings

from headgate.api.config import text_of
from headgate.connectors import SparkSink
from headgate.connectors.spark.sink.config import CONFIG, METADATA
from headgate.connectors.spark.sink.iceberg import catalog_properties
from headgate.sandbox import Sandbox

PAGE = DOCS / "spark-sink.md"


def test_every_key_is_described_with_its_default() -> None:
    rows = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \| ([^|]*) \|", section(PAGE, "Keys"), re.MULTILINE)
    told = {key: default for keys, default in rows for key in re.findall(r"`([^`]+)`", keys)}
    assert sorted(told) == sorted([*CONFIG.names, "options.*"])
    for key in CONFIG:
        expected = "none" if key.default in (None, []) else f"`{text_of(key.type, key.default)}`"
        assert told[key.name] == expected, key.name


def test_all_metadata_are_named() -> None:
    assert all(f"`{name}`" in section(PAGE, "Keys") for name in METADATA)


@pytest.mark.parametrize("text", blocks(PAGE, "json"))
def test_its_configurations_are_accepted(text: str) -> None:
    values = SparkSink().validate(json.loads(text))
    assert [value.errors for value in values if value.errors] == []


def settings() -> list[dict[str, str]]:
    """Of worker files: for Delta, and for Iceberg."""
    return [dict(line.split("=", 1) for line in text.splitlines()) for text in blocks(PAGE, "properties")]


def test_tests_run_with_its_settings_of_delta() -> None:
    told, _ = settings()
    used = delta_settings()
    assert {key: value for key, value in told.items() if key != "spark.jars.packages"}.items() <= used.items()
    _, artifact, version = told["spark.jars.packages"].split(":")
    assert f"{artifact}-{version}.jar" in used["spark.jars"]


def test_its_settings_of_iceberg_are_those_that_its_example_needs(tmp_path: Path) -> None:
    _, told = settings()
    (example,) = (config for config in map(json.loads, blocks(PAGE, "json")) if config.get("format") == "iceberg")
    sandbox = Sandbox.of(told)
    assert [sandbox.problem(reach) for reach in SparkSink.reaches(example)] == [None]
    session = cast(Any, SimpleNamespace(conf=SimpleNamespace(getAll=told)))
    assert catalog_properties(session, example["catalog"])["type"] == "rest"
    assert set(told) >= {key for key in iceberg_settings(tmp_path) if not key.endswith(".warehouse")}
