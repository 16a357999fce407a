"""The page on SQL: its keys are those of the transform, its statements and its configuration are taken."""

from __future__ import annotations

import json

import pytest
from docs_support import DOCS, blocks, first_column, section

from headgate.pipeline.sql.statement import Statement
from headgate.pipeline.transforms.sql import Sql
from headgate.runtime.config.validator import Validator
from headgate.runtime.plugins import Plugins

pytestmark = pytest.mark.process

PAGE = DOCS / "sql.md"


def test_the_keys_are_those_of_the_transform() -> None:
    assert first_column(section(PAGE, "SQL over a batch")) == Sql.config.names


@pytest.mark.parametrize("text", blocks(PAGE, "sql"))
def test_the_statements_may_be_tried(text: str) -> None:
    assert Statement(text).problem() is None


def test_the_configuration_is_valid() -> None:
    (block,) = blocks(PAGE, "json")
    config = {"name": "docs", "connector.class": "FileStreamSink", "topics": "t", "file": "f", **json.loads(block)}
    infos = Validator(Plugins.discover(), {}).validate(config)
    assert infos.error_count == 0
    assert not infos.unknown_keys
