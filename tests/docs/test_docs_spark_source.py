"""docs/spark-source.md: its keys, options and types are those of the code, its configurations are accepted."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from docs_support import DOCS, blocks, section

from headgate.api.config import text_of
from headgate.connectors import SparkSource
from headgate.connectors.spark.source.config import CONFIG, OPTIONS
from headgate.connectors.spark.source.folder.formats import ALLOWED
from headgate.connectors.spark.source.types import PLAIN

PAGE = DOCS / "spark-source.md"
CONFIGS = [text for text in blocks(PAGE, "json") if "connector.class" in text]
OFFSETS = [text for text in blocks(PAGE, "json") if '"offsets"' in text]


@pytest.fixture(autouse=True)
def given_the_data_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = blocks(PAGE, "python")
    (tmp_path / "squares_source.py").write_text(code)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


def test_every_key_is_described_with_its_default() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section(PAGE, "Keys"), re.MULTILINE)
    told = dict(rows)
    assert sorted(told) == sorted([*CONFIG.names, f"{OPTIONS}*"])
    for key in CONFIG:
        expected = "required" if key.required else f"`{text_of(key.type, key.default)}`" if key.default else "none"
        assert told[key.name] == expected, key.name


def test_every_option_of_files_is_named() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", section(PAGE, "Options of files"), re.MULTILINE)
    assert {kind: set(re.findall(r"`(\w+)`", told)) for kind, told in rows} == {
        kind: set(options) for kind, options in ALLOWED.items()
    }


def test_every_plain_type_is_named_with_its_schema() -> None:
    told: dict[str, str] = {}
    for spark, connect in re.findall(r"^\| (`.*?) \| (.*?) \|$", section(PAGE, "Types"), re.MULTILINE):
        names, schemas = re.findall(r"`(\w+)", spark), connect.split(", ")
        told |= dict(zip(names, schemas if len(schemas) == len(names) > 1 else [connect] * len(names), strict=True))
    named = {"byte": "TINYINT", "short": "SMALLINT", "integer": "INT", "long": "BIGINT"}
    for kind, schema in PLAIN.items():
        name = named.get(kind.typeName(), kind.typeName().upper())
        expected = schema.name.rpartition(".")[2] if schema.name else schema.type.value
        assert told[name].partition(",")[0] == expected, name


@pytest.mark.parametrize("text", CONFIGS)
def test_its_configurations_are_accepted(text: str) -> None:
    assert [value.errors for value in SparkSource().validate(json.loads(text)) if value.errors] == []


@pytest.mark.parametrize("text", OFFSETS)
def test_its_offsets_can_be_set(text: str) -> None:
    offsets = [(each["partition"], each["offset"]) for each in json.loads(text)["offsets"]]
    found = [json.loads(config) for config in CONFIGS]
    (config,) = [each for each in found if ("path" in each) == ("path" in offsets[0][0])]
    assert SparkSource().alter_offsets(config, offsets)
