"""docs/mirror.md: its keys are those of the code, its configurations are accepted."""

from __future__ import annotations

import json
import re

import pytest
from docs_support import DOCS, blocks, section

from headgate.api.config import text_of
from headgate.connectors import Mirror
from headgate.connectors.mirror.config import CONFIG

PAGE = DOCS / "mirror.md"


def test_every_key_is_described_with_its_default() -> None:
    rows = re.findall(r"^\| ((?:`[^`]+`(?:, )?)+) \| ([^|]*) \|", section(PAGE, "Keys"), re.MULTILINE)
    told = {key: default for keys, default in rows for key in re.findall(r"`([^`]+)`", keys)}
    assert sorted(told) == sorted([*CONFIG.names, "source.*"])
    for key in CONFIG:
        if key.default not in (None, ""):
            assert told[key.name] == f"`{text_of(key.type, key.default)}`", key.name


@pytest.mark.parametrize("text", [text for text in blocks(PAGE, "json") if "connector.class" in text])
def test_its_configurations_are_accepted(text: str) -> None:
    values = Mirror().validate(json.loads(text))
    assert [value.errors for value in values if value.errors] == []


def test_its_offsets_can_be_set() -> None:
    (text,) = [text for text in blocks(PAGE, "json") if '"offsets"' in text]
    offsets = [(each["partition"], each["offset"]) for each in json.loads(text)["offsets"]]
    assert Mirror().alter_offsets({"topics": "orders", "source.alias": "east"}, offsets)
