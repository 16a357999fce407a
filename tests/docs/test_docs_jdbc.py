"""docs/jdbc.md: its keys are those of the code, its configurations are accepted."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from docs_support import DOCS, blocks, section

from headgate.api.config import ConfigDef, text_of
from headgate.connectors import JdbcSink, JdbcSource
from headgate.connectors.jdbc import sink_config, source_config

PAGE = DOCS / "jdbc.md"


@pytest.mark.parametrize(
    ("title", "config"),
    [("Keys of the source", source_config.CONFIG), ("Keys of the sink", sink_config.CONFIG)],
)
def test_every_key_is_described_with_its_default(title: str, config: ConfigDef) -> None:
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section(PAGE, title), re.MULTILINE)
    told = dict(rows)
    assert list(told) == config.names
    for key in config:
        if key.required:
            assert told[key.name] == "required"
        elif key.default not in (None, ""):
            assert told[key.name] == f"`{text_of(key.type, key.default)}`", key.name


@pytest.mark.parametrize("text", [text for text in blocks(PAGE, "json") if "connector.class" in text])
def test_its_configurations_are_accepted(text: str) -> None:
    config = json.loads(text)
    connector: Any = next(each for each in (JdbcSource, JdbcSink) if config["connector.class"] in each.aliases)
    assert [value.errors for value in connector().validate(config) if value.errors] == []


def test_its_offsets_can_be_set() -> None:
    (text,) = [text for text in blocks(PAGE, "json") if '"offsets"' in text]
    offsets = [(each["partition"], each["offset"]) for each in json.loads(text)["offsets"]]
    assert JdbcSource().alter_offsets({}, offsets)
