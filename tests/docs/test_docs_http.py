"""docs/http.md: its keys are those of the code, its configurations are accepted, and do what it says."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from docs_support import DOCS, blocks, section
from http_server import HttpServer, Reply

from headgate.api import ConfigDef
from headgate.api.config import text_of
from headgate.api.testing import MemorySourceTaskContext
from headgate.connectors import HttpSink, HttpSource
from headgate.connectors.http import client_config, sink_config, source_config
from headgate.connectors.http.source_task import HttpSourceTask

PAGE = DOCS / "http.md"
CONFIGS: list[dict[str, str]] = [json.loads(text) for text in blocks(PAGE, "json") if "connector.class" in text]
CLASSES: dict[str, type[HttpSource] | type[HttpSink]] = {cls.aliases[0]: cls for cls in (HttpSource, HttpSink)}


def told(title: str) -> dict[str, str]:
    """Keys with their defaults."""
    return dict(re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section(PAGE, title), re.MULTILINE))


@pytest.mark.parametrize(
    ("title", "definition", "others"),
    [
        ("Keys of HttpSource", source_config.CONFIG, []),
        ("Keys of HttpSink", sink_config.CONFIG, []),
        ("Keys of both", client_config.CONFIG, ["headers.*", "secret.headers.*"]),
    ],
)
def test_every_key_is_described_with_its_default(title: str, definition: ConfigDef, others: list[str]) -> None:
    common = [] if definition is client_config.CONFIG else client_config.CONFIG.names
    found = told(title)
    assert sorted(found) == sorted([*(name for name in definition.names if name not in common), *others])
    for key in definition:
        if key.required:
            assert found[key.name] == "required"
        elif key.name in found and key.default not in (None, ""):
            assert found[key.name] == f"`{text_of(key.type, key.default)}`", key.name


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: str(config["url"]))
def test_its_configurations_are_accepted(config: dict[str, str]) -> None:
    values = CLASSES[config["connector.class"]]().validate(config)
    assert {value.name: value.errors for value in values if value.errors} == {}


def test_its_answer_is_read_as_it_says() -> None:
    (answer,) = [
        json.loads(text) for text in blocks(PAGE, "json") if '"items"' in text and "connector.class" not in text
    ]
    config = next(config for config in CONFIGS if config.get("cursor.pointer") == "/next")
    with HttpServer() as server:
        server.replies = [Reply(body=answer)]
        records, asked = _polled({**config, "url": config["url"].replace("https://api.example", server.url)}, server)
    assert asked.query == {"status": "paid"}
    assert [(record.key, record.timestamp) for record in records] == [("o-17", 1896091200000), ("o-18", 1896091207000)]
    assert [record.value for record in records] == answer["items"]
    assert records[1].source_offset == {"cursor": answer["next"]}


def test_its_body_is_sent_as_it_says() -> None:
    config = next(config for config in CONFIGS if config.get("method") == "POST")
    with HttpServer() as server:
        server.replies = [Reply(body={"hits": [{"id": 7}]})]
        records, asked = _polled({**config, "url": server.url}, server)
    assert asked.json == {"query": {"status": "paid"}, "size": 100, "after": None}
    assert records[0].source_offset == {"cursor": 7}


def test_its_offsets_can_be_set() -> None:
    (text,) = [text for text in blocks(PAGE, "json") if '"offsets"' in text]
    offsets = [(each["partition"], each["offset"]) for each in json.loads(text)["offsets"]]
    config = next(config for config in CONFIGS if config.get("cursor.pointer") == "/next")
    assert HttpSource().alter_offsets(config, offsets)


def _polled(config: dict[str, str], server: HttpServer) -> tuple[Any, Any]:
    task = HttpSourceTask()
    task.context = MemorySourceTaskContext(config)
    try:
        task.start(config)
        return task.poll(), server.asked[0]
    finally:
        task.stop()
