"""docs/datagen.md: its tables are those of the code, its configurations and schemas work."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from docs_support import DOCS, blocks, section

from headgate.api.config import text_of
from headgate.connectors import Datagen
from headgate.connectors.datagen.compact import read_compact
from headgate.connectors.datagen.config import CONFIG
from headgate.connectors.datagen.quickstarts import QUICKSTARTS
from headgate.connectors.datagen.random_rows import RandomRows
from headgate.connectors.datagen.recipes import RECIPES
from headgate.connectors.datagen.slices import BLOCK, SLICES

PAGE = DOCS / "datagen.md"


def test_the_tables_are_those_of_the_code() -> None:
    script = [sys.executable, str(DOCS / "datagen.py"), "--print"]
    assert subprocess.run(script, capture_output=True, text=True, check=True).stdout == PAGE.read_text(), "make docs"
    generators = re.findall(r"^\| `(\w+)\(", section(PAGE, "Generators"), re.MULTILINE)
    assert generators == list(RECIPES)
    assert re.findall(r"^\| `(\w+)` \|", section(PAGE, "Quickstarts"), re.MULTILINE) == ["quickstart", *QUICKSTARTS]


def test_every_key_is_described_with_its_default() -> None:
    told = dict(re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section(PAGE, "Keys"), re.MULTILINE))
    assert list(told) == CONFIG.names
    for key in CONFIG:
        if key.default not in (None, ""):
            assert told[key.name] == f"`{text_of(key.type, key.default)}`", key.name


@pytest.mark.parametrize("text", [text for text in blocks(PAGE, "json") if "connector.class" in text])
def test_its_configurations_are_accepted(text: str) -> None:
    assert [value.errors for value in Datagen().validate(json.loads(text)) if value.errors] == []


def test_its_schemas_can_be_read() -> None:
    (text,) = blocks(PAGE, "")
    rows = RandomRows.of(0, np.arange(3), np.arange(3))
    assert len(read_compact(text).column(rows, 0)) == 3
    before = "user long, sender int"
    for written in re.findall(r"^\| `(.+?)` \|", section(PAGE, "The notation"), re.MULTILINE):
        read_compact(f"{before}, {written}")


def test_its_offsets_can_be_set() -> None:
    (text,) = [text for text in blocks(PAGE, "json") if '"offsets"' in text]
    offsets = [(each["partition"], each["offset"]) for each in json.loads(text)["offsets"]]
    assert Datagen().alter_offsets({}, offsets)


def test_its_numbers_are_those_of_the_code() -> None:
    text = section(PAGE, "The same records again")
    assert f"blocks of {BLOCK} records" in text
    assert f"{SLICES} slices" in text
